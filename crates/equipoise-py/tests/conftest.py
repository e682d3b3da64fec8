"""Fixtures and output shared by the tests."""

from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, which becomes the current folder."""
    monkeypatch.chdir(ROOT)
    return ROOT


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print why tests were skipped, in the format of the Rust tests, because CI reads these lines."""
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = report.longrepr
        terminalreporter.write_line(f"skipped: {reason.removeprefix('Skipped: ')}")
