"""Measures how much more time a run takes from Python than from Rust, and how many feedback calls per second a control
law in Python can process.

    cargo build --release -p equipoise-lab --example clocked
    python bench/python/overhead.py target/release/examples/clocked [ROUNDS]

Runs from Python and runs from the Rust library alternate. The import of the package is not measured. The scenario
simulates 400 s.
"""

import statistics
import subprocess
import sys
import time

import equipoise

SCENARIO = "scenarios/waki2013/fig7.toml"


def processor_s(pid: int) -> float:
    """Return the processor time that the first thread of a process has used, in s."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def overhead(program: str, rounds: int) -> None:
    """Execute the same run alternately from Python and from the Rust library. Measure the elapsed time and the
    processor time. Other load affects the processor time less than the elapsed time.
    """
    with subprocess.Popen([program, SCENARIO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin and peer.stdout
        here: list[tuple[float, float]] = []
        there: list[tuple[float, float]] = []
        for _ in range(rounds):
            used = processor_s(peer.pid)
            peer.stdin.write("\n")
            peer.stdin.flush()
            lasted = float(peer.stdout.readline())
            there.append((lasted, processor_s(peer.pid) - used))
            start, used = time.perf_counter(), time.process_time()
            equipoise.run(SCENARIO)
            here.append((time.perf_counter() - start, time.process_time() - used))
        peer.stdin.close()
    for place, what in enumerate(["by the clock", "of the processor"]):
        own, python = (statistics.median(run[place] for run in runs) for runs in (there, here))
        print(f"400 s simulated, medians of {rounds} {what}: library {own * 1e3:.2f} ms, "
              f"Python {python * 1e3:.2f} ms, {python / own - 1:+.1%}")


class Steady:
    """A control law that keeps its rate if the delay is below 1 s, and counts its feedback."""

    feedbacks = 0

    def __init__(self, packet_bytes: int) -> None:
        self.rate_bps = 1e6

    def on_feedback(self, now_s: float, feedback: equipoise.Interval | equipoise.Packets | equipoise.Silence) -> None:
        Steady.feedbacks += 1
        if isinstance(feedback, equipoise.Interval) and feedback.delay_mean_s is not None:
            self.rate_bps = 1e6 if feedback.delay_mean_s < 1 else 5e5

    def allowance(self) -> float:
        return self.rate_bps


def feedbacks() -> None:
    """Measure the time that a control law in Python needs for each feedback. The sessions have frequent reports. They
    run once with the law in Python and once with a built-in law. The difference of the two times is divided by the
    number of feedbacks.
    """
    flow = {"path": ["l"], "packet_size": "200 B", "report_interval": "20 ms"}
    flows = [flow | {"name": f"media {number}", "controller": {"name": "mine"}} for number in range(16)]
    link = {"name": "l", "rate": "100 Mbit/s", "delay": "5 ms", "queue": "300 ms"}
    scenario = {"name": "feedbacks", "duration": "100 s", "link": [link], "flow": flows}
    ours = {f"flow.{flow['name']}.controller": {"name": "cbr", "rate": "1 Mbit/s"} for flow in flows}

    def timed(**arguments: object) -> float:
        start = time.perf_counter()
        equipoise.run(scenario, **arguments)  # type: ignore[arg-type]
        return time.perf_counter() - start

    timed(laws={"mine": Steady})
    Steady.feedbacks = 0
    with_law = timed(laws={"mine": Steady})
    with_ours = timed(set=ours)
    each = (with_law - with_ours) / Steady.feedbacks
    print(f"{Steady.feedbacks} feedbacks in {with_law:.3f} s with the simulation: {Steady.feedbacks / with_law:,.0f} a second; "
          f"the law alone takes {each * 1e6:.2f} µs each, {1 / each:,.0f} a second")


if __name__ == "__main__":
    overhead(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30)
    feedbacks()
