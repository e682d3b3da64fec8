"""Sweeps on one machine or many."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._native import SweepFolder

_MANIFEST = "sweep.json"
_PARTS = "parts"
_ROUND = 8
"""Parts per worker in a round. At the end of a round, workers wait for its last part."""


def sweep(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    file: str | os.PathLike[str],
    *,
    vary: dict[str, Sequence[Any]] | None = None,
    draw: dict[str, str] | None = None,
    points: int = 1,
    set: dict[str, Any] | None = None,
    runs: int = 1,
    seed: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> Path:
    """Run every combination of varied values, and of random values, into one Parquet file: one row for each flow of a run.

    The bytes of the file depend only on the runs, not on threads, backends, lost workers or interruptions.

    :param scenario: as for ``run``; ``set`` changes it first.
    :param file: the Parquet file to write.
    :param vary: keys, each with a list of values.
    :param draw: keys, each with a distribution such as ``"uniform(2 ms, 8 ms)"``, whose values are drawn at ``points`` random points.
    :param runs: number of runs at each point; their seeds begin with ``seed``.
    :param folder: folder for the parts. The same call with the same folder continues after an interruption. Without it, the parts are
        temporary files until the end.
    :param threads: number of threads on this machine, without a backend; all cores by default.
    :param backend: a backend of joblib, which must be installed: ``"loky"``, ``"threading"``, ``"dask"`` with a client, ``"ray"``, or a
        registered one. Workers receive the scenario's text and the number of a part, and return the part's bytes, so they need no common
        file system. If a worker is lost, the backend runs its part again; if the backend ends the call, the same call with ``folder``
        continues.
    :param n_jobs: number of jobs of the backend at the same time, as joblib counts them; all by default.
    :return: ``file``.
    """
    with contextlib.ExitStack() as stack:
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="equipoise-")) if folder is None else folder)
        begun = SweepFolder.create(kept, scenario, set=set, vary=vary, draw=draw, points=points, runs=runs, seed=seed)
        if backend is None:
            begun.run("1/1", threads=threads, progress=progress)
        else:
            _spread(begun, kept, backend, n_jobs, progress)
        # The file appears under its final name only when it is complete.
        beside = Path(f"{os.fspath(file)}.{os.getpid()}.part")
        try:
            begun.merge(beside)
            beside.replace(file)
        finally:
            # Repeated attempts must not fill a full disk.
            beside.unlink(missing_ok=True)
    return Path(file)


def _spread(
    begun: SweepFolder,
    folder: Path,
    backend: str,
    n_jobs: int | None,
    progress: bool | Callable[[float], object] | None,
) -> None:
    """Let workers run the missing parts, one part per task, and store each result when it arrives."""
    import joblib  # type: ignore[import-untyped]

    from ._progress import Bar

    if backend == "ray":
        _register_ray()
    manifest = (folder / _MANIFEST).read_text(encoding="utf-8")
    missing = begun.missing()
    show = Bar() if progress is True else progress or None
    jobs = -1 if n_jobs is None else n_jobs
    done = 0
    with joblib.parallel_config(backend=backend, n_jobs=jobs):
        active, _ = joblib.parallel.get_active_backend()
        hands_on = active.supports_return_generator
        # A backend that returns no result before all are complete gets a round of parts at a time: completed parts are
        # kept, and memory is bounded.
        length = max(1, len(missing) if hands_on else _ROUND * joblib.effective_n_jobs(jobs))
        # Each task is one part, so that a lost worker costs only one part.
        with joblib.Parallel(return_as="generator_unordered" if hands_on else "list", batch_size=1) as parallel:
            for first in range(0, len(missing), length):
                asked = missing[first : first + length]
                found: Iterable[tuple[int, bytes]] = parallel(joblib.delayed(part)(manifest, number, begun.parts) for number in asked)
                for number, content in found:
                    begun.put(number, content)
                    done += 1
                    if show is not None:
                        show(done / len(missing))


def _register_ray() -> None:
    """Register ray as a backend of joblib, with the cluster that the caller or ``RAY_ADDRESS`` names, or one on this machine."""
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    if not ray.is_initialized():
        ray.init()


def part(manifest: str, number: int, parts: int) -> tuple[int, bytes]:
    """Run one part of a sweep on a worker; return its number and its bytes."""
    with tempfile.TemporaryDirectory(prefix="equipoise-") as kept:
        (Path(kept) / _MANIFEST).write_text(manifest, encoding="utf-8")
        (Path(kept) / _PARTS).mkdir()
        SweepFolder.open(kept).run(f"{number + 1}/{parts}", threads=1)
        [file] = (Path(kept) / _PARTS).glob("*.parquet")
        return number, file.read_bytes()
