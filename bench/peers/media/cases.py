"""The two cases: what the path does, and what else is on it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """Steps of the capacity as pairs of seconds and Mbit/s, length, one TCP flow from when to when, and the phases that are reported."""

    name: str
    steps: tuple
    seconds: int
    tcp: tuple | None
    phases: tuple

    def capacity(self, at):
        """In bit/s."""
        return [rate for begin, rate in self.steps if begin <= max(at, 0.0)][-1] * 1e6

    def bits(self, begin, end):
        """What the capacity comes to in this time."""
        edges = [at for at, _ in self.steps] + [float("inf")]
        rates = [rate for _, rate in self.steps]
        return sum(max(0.0, min(end, edges[i + 1]) - max(begin, edges[i])) * rate * 1e6 for i, rate in enumerate(rates))


CASES = {
    # RFC 8867, Sec. 5.1.
    "5.1": Case("5.1", ((0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)), 100, None, ((0, 40), (40, 60), (60, 80), (80, 100))),
    "tcp": Case("tcp", ((0, 2.0),), 100, (30, 70), ((0, 30), (30, 70), (70, 100))),
}
