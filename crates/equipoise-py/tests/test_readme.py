"""Tests that the code in the READMEs runs as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CODE = [
    code
    for file in (HERE.parent / "README.md", HERE.parents[2] / "README.md")
    for code in re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.parametrize("number", range(len(CODE)))
def test_the_code_runs(number: int, root: Path, tmp_path: Path) -> None:
    """If this test fails, a code block of a README does not run. Each block runs in a separate process, in a writable
    folder. """
    os.symlink(root / "scenarios", tmp_path / "scenarios")
    ran = [sys.executable, "-c", CODE[number]]
    printed = subprocess.run(ran, check=True, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MPLBACKEND": "agg"})
    if "savefig" in CODE[number]:
        assert (tmp_path / "demo.png").stat().st_size > 5000
    elif "runs=20" in CODE[number]:
        assert printed.stdout.startswith("[0.00")
    else:
        assert printed.stdout.splitlines()[1].startswith("careful 0.0")


def test_the_quick_start_is_short() -> None:
    """If this test fails, the first code block has more than ten lines in addition to the imports."""
    assert len(CODE[0].split("\n\n", 1)[1].strip().splitlines()) <= 10
