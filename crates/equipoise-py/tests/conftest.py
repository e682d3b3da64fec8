"""What the tests share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, as the folder that relative paths begin at."""
    monkeypatch.chdir(ROOT)
    return ROOT
