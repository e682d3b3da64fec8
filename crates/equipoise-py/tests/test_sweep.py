"""Tests of sweeps on one machine, and of sweeps with workers, one of which is killed."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import distributed
import polars
import pytest

import equipoise

DESIGN: dict[str, Any] = {
    "vary": {"link.bottleneck.rate": ["12 Mbit/s", "15 Mbit/s"], "flow.media.controller.b": [150, 300]},
    "draw": {"link.bottleneck.delay": "uniform(2 ms, 6 ms)"},
    "points": 3,
    "runs": 2,
    "set": {"duration": "16 s", "warm_up": "4 s", "flow.background.source.steps": None},
}


def test_every_combination_is_a_row_and_threads_change_nothing(tmp_path: Path) -> None:
    """If this test fails, a row differs from the result of ``run`` with the same values, or the number of threads
    changes the file.
    """
    shares: list[float] = []
    one = equipoise.sweep(equipoise.DEMO, tmp_path / "one.parquet", threads=1, progress=shares.append, **DESIGN)
    two = equipoise.sweep(equipoise.DEMO, tmp_path / "two.parquet", threads=2, **DESIGN)
    assert one.read_bytes() == two.read_bytes() and shares[-1] == 1
    rows = polars.read_parquet(one)
    assert len(rows) == 2 * 2 * 3 * 2
    row = rows.row(17, named=True)
    changes = {"link.bottleneck.rate": f"{row['link.bottleneck.rate_bps']:.0f} bit/s",
               "link.bottleneck.delay": f"{row['link.bottleneck.delay_s']:.9f} s",
               "flow.media.controller.b": row["flow.media.controller.b"]}
    again = equipoise.run(equipoise.DEMO, set={**DESIGN["set"], **changes}, seed=row["seed"]).flows.where(flow="media")
    assert again["delay_mean_s"] == [row["delay_mean_s"]]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_give_the_same_bytes(tmp_path: Path, backend: str) -> None:
    """If this test fails, a sweep with workers writes other bytes than a sweep without workers."""
    alone = equipoise.sweep(equipoise.DEMO, tmp_path / "alone.parquet", **DESIGN)
    spread = equipoise.sweep(equipoise.DEMO, tmp_path / "spread.parquet", backend=backend, n_jobs=2, **DESIGN)
    assert spread.read_bytes() == alone.read_bytes()


def test_workers_of_ray_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this test fails, a sweep with ray writes other bytes than a sweep without workers. Ray returns no result
    before a round of up to 16 parts is complete. The sweep has 24 parts, so it takes two rounds.
    """
    ray = pytest.importorskip("ray", reason="ray for this Python")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    alone = equipoise.sweep(equipoise.DEMO, tmp_path / "alone.parquet", **DESIGN)
    shares: list[float] = []
    try:
        ray.init("local", num_cpus=2, include_dashboard=False, logging_level="warning")
    except (RuntimeError, OSError) as refused:
        pytest.skip(f"a ray that starts: {refused}")
    try:
        spread = equipoise.sweep(equipoise.DEMO, tmp_path / "spread.parquet", backend="ray", progress=shares.append, **DESIGN)
    finally:
        ray.shutdown()
    assert spread.read_bytes() == alone.read_bytes()
    assert len(shares) == 24 and shares == sorted(shares) and shares[-1] == 1


def test_what_was_done_is_not_run_again(tmp_path: Path) -> None:
    """If this test fails, the same call with the same folder runs complete parts again, or a different sweep is
    accepted in the folder. """
    kept = tmp_path / "kept"
    first = equipoise.sweep(equipoise.DEMO, tmp_path / "first.parquet", folder=kept, **DESIGN)
    parts = sorted((kept / "parts").iterdir())
    lost, times = parts.pop(3), [path.stat().st_mtime_ns for path in parts]
    lost.unlink()
    second = equipoise.sweep(equipoise.DEMO, tmp_path / "second.parquet", folder=kept, backend="threading", **DESIGN)
    assert second.read_bytes() == first.read_bytes() and lost.exists()
    assert [path.stat().st_mtime_ns for path in parts] == times
    with pytest.raises(equipoise.EquipoiseError, match="number of runs is 2, and here 3"):
        equipoise.sweep(equipoise.DEMO, tmp_path / "third.parquet", folder=kept, **{**DESIGN, "runs": 3})


def test_a_lost_worker_costs_its_part(tmp_path: Path) -> None:
    """If this test fails, a killed worker changes the output file of a sweep with three dask workers."""
    design = {**DESIGN, "points": 8, "set": {**DESIGN["set"], "duration": "60 s"}}
    alone = equipoise.sweep(equipoise.DEMO, tmp_path / "alone.parquet", **design)
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, \
            distributed.Client(cluster):
        victim = next(iter(cluster.workers.values())).pid
        killed = threading.Event()

        def kill(share: float) -> None:
            if share > 0.1 and not killed.is_set():
                killed.set()
                os.kill(victim, signal.SIGKILL)

        start = time.monotonic()
        spread = equipoise.sweep(equipoise.DEMO, tmp_path / "spread.parquet", backend="dask", progress=kill, **design)
        assert killed.is_set() and time.monotonic() - start < 120
    assert spread.read_bytes() == alone.read_bytes()


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    """If this test fails, a wrong design does not raise an exception before the first run."""
    with pytest.raises(equipoise.EquipoiseError, match="taget"):
        equipoise.sweep(equipoise.DEMO, tmp_path / "x.parquet", vary={"flow.media.controller.taget": ["8 ms"]})
    with pytest.raises(ValueError, match="a list of values"):
        equipoise.sweep(equipoise.DEMO, tmp_path / "x.parquet", vary={"duration": "16 s"})
    assert not (tmp_path / "x.parquet").exists()
