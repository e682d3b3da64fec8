"""Congestion control experiments from scenario files: simulate, compare, bring your own law.

The words and units are those of the scenario file and of the JSON that the command ``equipoise`` writes: a key carries its unit, and
``None`` stands for what was not measured.
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
