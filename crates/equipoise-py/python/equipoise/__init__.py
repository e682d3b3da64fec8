"""Congestion control experiments from scenario files: simulate, compare, add your own control law.

The words and units are the same as in the scenario file and in the JSON that the command ``equipoise`` writes: a key ends with its
unit, and ``None`` means not measured.
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
