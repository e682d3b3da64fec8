"""A fixture that several tests use, and the output for skipped tests."""

from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the root folder of the repository the current folder, and return its path."""
    monkeypatch.chdir(ROOT)
    return ROOT


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print why tests were skipped, in the format of the Rust tests, because the CI reads lines of this format."""
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = report.longrepr
        terminalreporter.write_line(f"skipped: {reason.removeprefix('Skipped: ')}")
