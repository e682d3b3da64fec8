"""Tests of control laws written in Python."""

from typing import Any

import pytest

import equipoise

FEEDBACK = equipoise.Interval | equipoise.Packets | equipoise.Silence


def idle(**media: Any) -> dict[str, Any]:
    """A scenario: a session without other traffic on a link of 2 Mbit/s with a delay of 20 ms."""
    link = {"name": "l", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "300 ms"}
    flow = {"name": "media", "path": ["l"], "packet_size": "1000 B", "report_interval": "100 ms", "controller": {"name": "mine"}}
    return {"name": "idle", "duration": "20 s", "warm_up": "5 s", "link": [link], "flow": [flow | media]}


class Steady:
    """A law that allows a constant rate, and records the feedback."""

    def __init__(self, packet_bytes: int) -> None:
        self.packet_bytes = packet_bytes
        self.rate_bps = 1e6
        self.told: list[tuple[float, FEEDBACK]] = []

    def on_feedback(self, now_s: float, feedback: FEEDBACK) -> None:
        self.told.append((now_s, feedback))

    def allowance(self) -> float | equipoise.Allowance:
        return self.rate_bps


def ran(law: type[Steady], scenario: dict[str, Any] | None = None) -> tuple[dict[str, Any], Steady]:
    """Run a scenario whose flow uses a law; return the results of the flow, and the law object."""
    made: list[Steady] = []

    def make(packet_bytes: int) -> Steady:
        made.append(law(packet_bytes))
        return made[-1]

    result = equipoise.run(scenario or idle(), laws={"mine": make})
    return result.summary["runs"][0]["flows"][0], made[-1]


def test_a_law_by_intervals_decides_the_rate() -> None:
    """If this test fails, a session does not send at the rate of a law in Python, or the law's feedback differs from
    the results of the run."""
    flow, law = ran(Steady)
    assert flow["controller"] == "mine" and law.packet_bytes == 1000
    assert flow["mean_rate_bps"] == pytest.approx(1e6, rel=0.01)
    assert list(flow["decisions"]) == ["law"]
    now_s, interval = law.told[-1]
    assert isinstance(interval, equipoise.Interval) and 19 < now_s < 20.1
    assert interval.delay_mean_s == pytest.approx(0.024, rel=0.01)
    assert interval.fraction_lost == 0 and interval.packets and interval.packets > 10
    assert interval.delivered_bps == pytest.approx(1e6, rel=0.1)


def test_a_law_of_ours_and_the_same_in_python_send_the_same() -> None:
    """If this test fails, a session with a fixed-rate law in Python sends or delays packets differently from a session
    with the built-in law at the same rate."""
    ours = equipoise.run(idle(controller={"name": "cbr", "rate": "1 Mbit/s"})).summary["runs"][0]["flows"][0]
    flow, _ = ran(Steady)
    assert flow["delay"] == ours["delay"] and flow["packets_sent"] == pytest.approx(ours["packets_sent"], abs=1)


def test_a_law_by_packets_sees_each_packet_leave_and_arrive() -> None:
    """If this test fails, a law that needs per-packet feedback is not called for each packet that is sent or arrives,
    or the law is not called when its timer is due.
    """

    class Window(Steady):
        needs = "packets"

        def __init__(self, packet_bytes: int) -> None:
            super().__init__(packet_bytes)
            self.sent: list[equipoise.Sent] = []
            self.timer_s = 1.0

        def on_sent(self, now_s: float, packet: equipoise.Sent) -> None:
            self.sent.append(packet)

        def next_timer_s(self) -> float | None:
            return self.timer_s

        def on_timer(self, now_s: float) -> None:
            assert now_s == pytest.approx(self.timer_s)
            self.timer_s += 1
            self.rate_bps = 5e5

        def allowance(self) -> equipoise.Allowance:
            return equipoise.Allowance(self.rate_bps, window_bytes=30_000)

    flow, law = ran(Window, idle(feedback={"format": "rfc8888", "interval": "50 ms"}))
    assert isinstance(law, Window)
    assert flow["mean_rate_bps"] == pytest.approx(5e5, rel=0.02)
    reports = [packet for _, told in law.told if isinstance(told, equipoise.Packets) for packet in told.packets]
    assert len(law.sent) == flow["packets_sent"] and law.timer_s >= 19
    assert [packet.number for packet in reports] == sorted(packet.number for packet in reports)
    assert not reports[-1].lost and reports[-1].size_bytes == 1000
    assert reports[-1].arrived_s == pytest.approx(reports[-1].departed_s + 0.024, abs=0.002)


def test_what_a_law_needs_has_to_be_there() -> None:
    """If this test fails, a session without per-packet feedback accepts a law that needs per-packet feedback."""

    class ByPacket(Steady):
        needs = ("packets", "ecn")

    with pytest.raises(equipoise.EquipoiseError, match="feedback on single packets"):
        equipoise.run(idle(), laws={"mine": ByPacket})

    class Odd(Steady):
        needs = "luck"

    with pytest.raises(ValueError, match="`luck`, which no session provides"):
        equipoise.run(idle(), laws={"mine": Odd})


@pytest.mark.parametrize("runs", [1, 4])
def test_an_exception_in_a_law_ends_the_runs_and_is_raised(runs: int) -> None:
    """If this test fails, the exception of a law is not raised unchanged, with its traceback."""

    class Broken(Steady):
        def on_feedback(self, now_s: float, feedback: FEEDBACK) -> None:
            if now_s > 3:
                raise LookupError("lost")

    with pytest.raises(LookupError, match="lost") as raised:
        equipoise.run(idle(), laws={"mine": Broken}, runs=runs, set={"duration": "1000 s"})
    assert any(frame.name == "on_feedback" for frame in raised.traceback)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), "fast", None])
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    """If this test fails, a session accepts an invalid rate from a law."""

    class Strange(Steady):
        def allowance(self) -> Any:
            return rate if self.told else 1e6

    with pytest.raises((ValueError, TypeError), match="rate"):
        equipoise.run(idle(), laws={"mine": Strange})


def test_names_are_taken_once() -> None:
    """If this test fails, a law can replace a built-in controller that has the same name."""
    with pytest.raises(ValueError, match="already"):
        equipoise.run(idle(), laws={"ap": Steady})
    with pytest.raises(equipoise.ScenarioError, match="no such controller") as wrong:
        equipoise.run(idle())
    assert wrong.value.key == "name"


def test_the_same_seed_is_the_same_run_on_any_number_of_threads() -> None:
    """If this test fails, the number of threads changes the results of a law in Python."""
    scenario = idle()
    scenario["flow"].append({"name": "others", "path": ["l"], "packet_size": "1000 B", "source": {"kind": "poisson", "rate": "0.8 Mbit/s"}})
    texts = {equipoise.run(scenario, laws={"mine": Steady}, runs=4, threads=threads).to_json() for threads in (1, 4)}
    assert len(texts) == 1
