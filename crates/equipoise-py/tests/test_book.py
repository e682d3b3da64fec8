"""Tests that the code in the book's chapters about Python and sweeps works as printed."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars
import pytest
import yaml  # type: ignore[import-untyped]

import equipoise
from equipoise._native import SweepFolder

BOOK = Path(__file__).resolve().parents[3] / "docs/src"
CHAPTER = BOOK / "python.md"
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_code_of_the_chapter_runs(root: Path, tmp_path: Path) -> None:
    """If this test fails, the chapter's code blocks do not work when a reader runs them one after the other."""
    blocks = FENCE.findall(CHAPTER.read_text(encoding="utf-8"))
    code = [text for language, text in blocks if language == "python"]
    assert len(code) == 5 and {language for language, _ in blocks} == {"console", "python"}
    os.symlink(root / "scenarios", tmp_path / "scenarios")
    told = "print(len(result.flows), controller.why, controller.rate_bps)"
    ran = subprocess.run([sys.executable, "-c", "".join([*code, told])], check=True, capture_output=True, text=True, cwd=tmp_path)
    flows, why, rate_bps = ran.stdout.split()
    assert int(flows) == 2 * 20 and why and 0 < int(rate_bps) <= 5_000_000
    assert len(polars.read_parquet(tmp_path / "b.parquet")) == 3 * 10 * 2


@pytest.mark.parametrize("name", re.findall(r"`equipoise\.(\w+)", CHAPTER.read_text(encoding="utf-8")))
def test_what_the_chapter_names_is_there(name: str) -> None:
    """If this test fails, the chapter uses a name that the package does not have."""
    assert hasattr(equipoise, name) or name == "gym"


def test_the_job_of_kubernetes_runs_all_shares() -> None:
    """If this test fails, the Kubernetes job in the book's chapter on sweeps omits parts of the sweep, or mounts a
    volume that the job does not define."""
    blocks = FENCE.findall((BOOK / "sweep.md").read_text(encoding="utf-8"))
    [job] = [yaml.safe_load(text) for language, text in blocks if language == "yaml"]
    spec = job["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert f"--shard=$(JOB_COMPLETION_INDEX)/{spec['completions']}" in container["args"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    changes = {"duration": "16 s", "flow.background.source.steps": None}
    rates: dict[str, Sequence[Any]] = {"link.bottleneck.rate": ["12M", "15M"]}
    with tempfile.TemporaryDirectory() as folder:
        begun = SweepFolder.create(folder, equipoise.DEMO, set=changes, vary=rates, draw=None, points=1, runs=2, seed=None)
        for index in range(3):
            assert begun.missing()
            begun.run(f"{index}/3")
        assert begun.missing() == []


def test_the_code_of_sweeps_is_code() -> None:
    """If this test fails, the chapter's code is not valid Python. The code is not run, because it needs clusters."""
    blocks = FENCE.findall((BOOK / "sweep.md").read_text(encoding="utf-8"))
    code = [text for language, text in blocks if language == "python"]
    assert len(code) == 3
    for text in code:
        compile(text, "sweep.md", "exec")
