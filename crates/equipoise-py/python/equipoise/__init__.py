"""Congestion control experiments from scenario files: simulate and compare controllers, and add your own control law.

The names and units are the same as in scenario files and in the JSON that the command ``equipoise`` writes. If a
quantity has a unit, the last part of the quantity's name is the unit, as in ``at_s``. The value ``None`` means that the
quantity was not measured.
"""

from ._errors import EquipoiseError, ScenarioError
from ._law import Law
from ._native import (
    DEMO,
    Allowance,
    Capture,
    Comparison,
    Controller,
    Frame,
    Interval,
    Packet,
    Packets,
    Result,
    RtpCapture,
    Sent,
    Silence,
    Suite,
    Table,
    __version__,
    capture_rtp,
    capture_rtt,
    compare,
    controllers,
    explain,
    run,
    suite,
)
from ._sweep import sweep

__all__ = [
    "DEMO",
    "Allowance",
    "Capture",
    "Comparison",
    "Controller",
    "EquipoiseError",
    "Frame",
    "Interval",
    "Law",
    "Packet",
    "Packets",
    "Result",
    "RtpCapture",
    "ScenarioError",
    "Sent",
    "Silence",
    "Suite",
    "Table",
    "__version__",
    "capture_rtp",
    "capture_rtt",
    "compare",
    "controllers",
    "explain",
    "run",
    "suite",
    "sweep",
]
