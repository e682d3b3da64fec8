"""What the tests share."""

from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, as the folder that relative paths begin at."""
    monkeypatch.chdir(ROOT)
    return ROOT


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Why a test was skipped, in the words of the other tests: CI reads these lines."""
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = report.longrepr
        terminalreporter.write_line(f"skipped: {reason.removeprefix('Skipped: ')}")
