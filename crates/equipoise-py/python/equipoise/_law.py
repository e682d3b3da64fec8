"""The interface of a control law written in Python."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._native import Allowance, Interval, Packets, Silence


class Law(Protocol):
    """A control law that a session can use. The law processes feedback, and returns the allowed rate.

    The methods ``on_feedback`` and ``allowance`` are required. A law may also have these methods:

    - ``on_sent(now_s, packet)``: called for each packet that was sent (a ``Sent``), if the law needs ``"packets"``;
    - ``on_frame(now_s, frame)``: called for each frame of live media that is added to the send queue (a ``Frame``);
    - ``next_timer_s()``: returns the time at which the session calls ``on_timer(now_s)``; None for no call.

    A law may also have these attributes, which are read once:

    - ``needs``: what the law needs from the session, as one word or several: ``"intervals"`` (the default),
      ``"packets"``, ``"packet-pairs"``, ``"playout"``, ``"ecn"``;
    - ``lowest_rate_bps``: the lowest rate that the law can choose; 1000 by default;
    - ``target_s``: the law's target for the one-way delay. Only the results use the target.

    Times are in seconds since the start of the run. The session limits every law: the sending rate is at most twice
    the rate at which packets arrived according to feedback. To make runs repeatable, a law must not read a clock, and
    its random numbers must come from a seed of its own.
    """

    @abstractmethod
    def on_feedback(self, now_s: float, feedback: Interval | Packets | Silence) -> None:
        """Process feedback from the receiver. ``Silence`` means that no feedback arrives."""

    @abstractmethod
    def allowance(self) -> float | Allowance:
        """Return how fast the session may send from now on: a rate of IP packets in bit/s, or an ``Allowance``."""
