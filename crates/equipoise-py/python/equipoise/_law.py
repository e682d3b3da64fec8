"""The interface of a control law written in Python."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._native import Allowance, Interval, Packets, Silence


class Law(Protocol):
    """A control law that a session can run: it handles feedback, and returns the allowed rate.

    Two methods are required. If a law has any of these methods, they are called, too:

    - ``on_sent(now_s, packet)``: a packet was sent (``Sent``), if the law needs ``"packets"``;
    - ``on_frame(now_s, frame)``: a frame of live media was added to the send queue (``Frame``);
    - ``next_timer_s()``: returns the time at which to call ``on_timer(now_s)``, or None.

    A law may also have these attributes, which are read once:

    - ``needs``: what it needs from the session, one word or several: ``"intervals"`` (the default), ``"packets"``,
      ``"packet-pairs"``, ``"playout"``, ``"ecn"``;
    - ``lowest_rate_bps``: the minimum rate that it can choose; 1000 by default;
    - ``target_s``: its target for the one-way delay, for reports.

    Times count from the start of the run. The session limits every law: it sends at most twice the rate that was proved to arrive.
    A law must not use a clock, and no random numbers except from its own seed; otherwise runs are not repeatable.
    """

    @abstractmethod
    def on_feedback(self, now_s: float, feedback: Interval | Packets | Silence) -> None:
        """Handle feedback from the receiver, or its silence."""

    @abstractmethod
    def allowance(self) -> float | Allowance:
        """Return how fast the session may send from now on: a rate of IP packets in bit/s, or an ``Allowance``."""
