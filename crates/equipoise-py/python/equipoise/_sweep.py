"""Sweeps, run on one machine or by workers on several machines."""

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
"""Number of parts per worker in a round. A worker that has no more parts waits until the round is complete."""


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
    """Run a scenario with every combination of varied and random values. Write a Parquet file with one row per flow and
    run.

    The bytes of the file depend only on the runs. Threads, backends, lost workers and interruptions do not change them.

    :param scenario: a scenario as for ``run``. The overrides of ``set`` are applied before the values of ``vary`` and
        ``draw``.
    :param file: the Parquet file to write.
    :param vary: a dict from key paths to lists of values.
    :param draw: a dict from key paths to distributions such as ``"uniform(2 ms, 8 ms)"``. For each of
        ``points`` random points, one value is drawn from each distribution.
    :param runs: number of runs for each combination of values; the first run has the seed ``seed``, and later runs the
        next seeds.
    :param folder: folder for intermediate results. The sweep is divided into parts, and each part has a file. After an
        interruption, the same call with the same folder continues the sweep. Without ``folder``, the parts are
        temporary files, which are deleted at the end of the call.
    :param threads: number of threads on this machine if no backend is used; all cores by default.
    :param backend: a backend of joblib: ``"loky"``, ``"threading"``, ``"dask"`` with a client, ``"ray"``, or the name
        of a registered backend. joblib must be installed. Workers receive the scenario's text and the number of a part,
        and return the part's bytes, so they need no common file system. If a worker is lost, ``"dask"`` runs the
        part of this worker again. Other backends may end the call; then the same call with the same ``folder``
        continues the sweep.
    :param n_jobs: number of jobs that the backend runs at the same time, as in joblib; by default as many as possible.
    :return: the path ``file``.
    """
    with contextlib.ExitStack() as stack:
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="equipoise-")) if folder is None else folder)
        begun = SweepFolder.create(kept, scenario, set=set, vary=vary, draw=draw, points=points, runs=runs, seed=seed)
        if backend is None:
            begun.run("1/1", threads=threads, progress=progress)
        else:
            _spread(begun, kept, backend, n_jobs, progress)
        # The file is written with a temporary name, so that a file with the final name is always complete.
        beside = Path(f"{os.fspath(file)}.{os.getpid()}.part")
        try:
            begun.merge(beside)
            beside.replace(file)
        finally:
            # Delete an incomplete file, so that repeated calls do not fill the disk.
            beside.unlink(missing_ok=True)
    return Path(file)


def _spread(
    begun: SweepFolder,
    folder: Path,
    backend: str,
    n_jobs: int | None,
    progress: bool | Callable[[float], object] | None,
) -> None:
    """Let workers run the parts that have no result yet, one part per task, and store each result when it arrives."""
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
        # Some backends return no result before all tasks are complete. Such a backend receives one round of parts at a
        # time, so that completed rounds are stored and memory is bounded.
        length = max(1, len(missing) if hands_on else _ROUND * joblib.effective_n_jobs(jobs))
        # Each task is one part, so that only one part is run again if a worker is lost.
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
    """Register ray as a backend of joblib, and initialise ray if the caller has not done so. Ray then uses the cluster
    that the environment variable ``RAY_ADDRESS`` names. If the variable is not set, ray uses a cluster on this machine.
    """
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    if not ray.is_initialized():
        ray.init()


def part(manifest: str, number: int, parts: int) -> tuple[int, bytes]:
    """Run one part of a sweep on a worker; return the number of the part and the bytes of its result."""
    with tempfile.TemporaryDirectory(prefix="equipoise-") as kept:
        (Path(kept) / _MANIFEST).write_text(manifest, encoding="utf-8")
        (Path(kept) / _PARTS).mkdir()
        SweepFolder.open(kept).run(f"{number + 1}/{parts}", threads=1)
        [file] = (Path(kept) / _PARTS).glob("*.parquet")
        return number, file.read_bytes()
