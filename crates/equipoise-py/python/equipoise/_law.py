"""What a law written in Python looks like."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._native import Allowance, Interval, Packets, Silence


class Law(Protocol):
    """A law that a session can run: it takes feedback, and says what it allows.

    Two methods are required. A law can have more, and then they are called:

    - ``on_sent(now_s, packet)``: a packet left (``Sent``), if the law needs ``"packets"``;
    - ``on_frame(now_s, frame)``: a frame of live media joins what waits to be sent (``Frame``);
    - ``next_timer_s()``, the time at which ``on_timer(now_s)`` is to be called, or None;

    and these attributes, which are read once:

    - ``needs``: what of the session it cannot do without, a word or several: ``"intervals"`` (the default), ``"packets"``,
      ``"packet-pairs"``, ``"playout"``, ``"ecn"``;
    - ``lowest_rate_bps``: the least rate that it decides on; 1000 without;
    - ``target_s``: the one-way delay that it tries to hold, for reports.

    Times count from the start of the run. The session has the last word, as over every law: it sends no more than twice what was
    proved to arrive. A law may use no clock and no random numbers but those of its own seed, or runs are not repeatable.
    """

    @abstractmethod
    def on_feedback(self, now_s: float, feedback: Interval | Packets | Silence) -> None:
        """Take what the far end has told, or that it is silent."""

    @abstractmethod
    def allowance(self) -> float | Allowance:
        """How fast the session may send from now on: a rate of IP packets in bit/s, or more."""
