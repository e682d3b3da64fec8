"""Tests of controllers in a program with its own network code."""

import math

import pytest

import equipoise


def over_a_link(name: str, seconds: float = 20.0, capacity_bps: float = 2e6, **options: str | float) -> equipoise.Controller:
    """Run a controller over a link of ``capacity_bps`` with a delay of 20 ms in each direction and a report every
    100 ms.
    """
    controller = equipoise.Controller(name, **options)  # type: ignore[arg-type]
    now, number, busy_until, reported = 0.0, 0, 0.0, 0.1
    under_way: list[tuple[int, float]] = []
    while now < seconds:
        due = controller.next_departure_s(now)
        timer = controller.next_timer_s
        now = max(now, min(at for at in (due, reported, timer) if at is not None))
        if due is not None and due <= now:
            controller.sent(now, number, 1000)
            busy_until = max(now, busy_until) + 8000 / capacity_bps
            under_way.append((number, busy_until + 0.020))
            number += 1
        if now >= reported:
            arrived = [packet for packet in under_way if packet[1] + 0.020 <= now]
            under_way = under_way[len(arrived):]
            controller.feedback(now, arrived)
            reported += 0.1
        controller.timer(now)
    return controller


@pytest.mark.parametrize("name", ["equipoise", "gcc"])
def test_a_controller_finds_the_capacity_of_a_link(name: str) -> None:
    """If this test fails, a controller that gets reports of packet numbers and arrival times does not find the capacity
    of a link."""
    controller = over_a_link(name)
    assert 1e6 < controller.rate_bps < 2.6e6, controller
    assert 0.040 <= controller.round_trip_s < 0.3 and controller.why
    assert controller.in_flight_bytes > 0 and controller.pace_bps >= controller.rate_bps


def test_silence_and_losses_bring_the_rate_down() -> None:
    """If this test fails, a sender that receives no feedback, or feedback that all packets were lost, keeps its
    rate."""
    controller = over_a_link("equipoise")
    before, now = controller.rate_bps, 20.0
    for number in range(100_000, 100_400):
        now += 0.01
        controller.sent(now, number, 1000)
        controller.timer(now)
    assert controller.rate_bps < before / 2
    controller.feedback(now, [(number, None) for number in range(100_000, 100_400)])
    assert controller.rate_bps < before / 2


def test_acknowledgements_without_times_do() -> None:
    """If this test fails, a controller that needs no arrival times rejects acknowledgements without arrival times."""
    controller = equipoise.Controller("cbr", rate="1 Mbit/s", feedback="acks")
    controller.sent(0.0, 1, 1200)
    controller.feedback(0.05, [(1, math.nan)])
    assert controller.rate_bps == 1_000_000 and controller.in_flight_bytes == 0


def test_what_is_wrong_is_named() -> None:
    """If this test fails, no exception is raised for wrong names or values, for packets that were never sent, or for
    feedback of a kind that the controller was not created for. """
    with pytest.raises(ValueError, match="there is no controller `nobody`"):
        equipoise.Controller("nobody")
    with pytest.raises(equipoise.EquipoiseError, match="`max_rate`"):
        equipoise.Controller("gcc", max_rate="fast")
    with pytest.raises(ValueError, match="twcc"):
        equipoise.Controller("gcc", feedback="mail")
    controller = equipoise.Controller("gcc")
    controller.sent(0.0, 5, 1000)
    with pytest.raises(equipoise.EquipoiseError, match="new number"):
        controller.sent(0.1, 5, 1000)
    with pytest.raises(equipoise.EquipoiseError):
        controller.feedback(0.1, [(9, 0.05)])
    with pytest.raises(equipoise.EquipoiseError, match="in arrays"):
        controller.rtcp(0.1, b"")
    with pytest.raises(ValueError, match="finite"):
        controller.timer(math.inf)
    with pytest.raises(equipoise.EquipoiseError):
        equipoise.Controller("gcc", feedback="twcc").rtcp(0.1, b"no RTCP")
