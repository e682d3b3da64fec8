"""The two test cases. A case defines the capacity of the path over time, and when a TCP flow competes, if any."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """A test case: steps of the capacity as pairs (s, Mbit/s), duration in s, start and end of a TCP flow in s, and
    start and end of each reported phase in s.
    """

    name: str
    steps: tuple
    seconds: int
    tcp: tuple | None
    phases: tuple

    def capacity(self, at):
        """Returns the capacity at the time `at`, in bit/s."""
        return [rate for begin, rate in self.steps if begin <= max(at, 0.0)][-1] * 1e6

    def bits(self, begin, end):
        """Returns the number of bits that the path can carry between two times."""
        edges = [at for at, _ in self.steps] + [float("inf")]
        rates = [rate for _, rate in self.steps]
        return sum(max(0.0, min(end, edges[i + 1]) - max(begin, edges[i])) * rate * 1e6 for i, rate in enumerate(rates))


CASES = {
    # The capacities of RFC 8867, Sec. 5.1.
    "5.1": Case("5.1", ((0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)), 100, None, ((0, 40), (40, 60), (60, 80), (80, 100))),
    "tcp": Case("tcp", ((0, 2.0),), 100, (30, 70), ((0, 30), (30, 70), (70, 100))),
}
