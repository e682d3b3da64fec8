"""Measures how much faster a sweep is with two threads than with one, and how much processor time and memory each sweep
uses.

    cargo build --release -p equipoise-cli
    python3 bench/sweep/threads.py target/release/equipoise [RUNS]

Each sweep runs `scenarios/demo.toml` RUNS times, 10,000 by default, into a new folder. The elapsed times are meaningful
only on a machine without other load. Therefore processor times are printed, too.
"""

import os
import subprocess
import sys
import tempfile
import time


def sweep(program: str, runs: int, threads: int) -> tuple[float, float]:
    """Run a sweep. Return its elapsed time and its processor time, in s, and print them and the memory used."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [program, "sweep", "scenarios/demo.toml", "--runs", str(runs), "--out", f"{folder}/out", "--threads", str(threads), "--quiet"]
        begun = time.monotonic()
        with subprocess.Popen(asked) as running:
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        clock = time.monotonic() - begun
    if running.returncode:
        sys.exit(f"{' '.join(asked)} ended with {running.returncode}")
    cpu = used.ru_utime + used.ru_stime
    print(f"{runs} runs on {threads} threads: {clock:.1f} s, {used.ru_utime:.1f} s user, {used.ru_stime:.1f} s system, {used.ru_maxrss / 1024:.1f} MB")
    return clock, cpu


def main() -> None:
    """Run the sweep with one and with two threads, and print the ratios of the elapsed times and of the processor
    times.
    """
    program = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    print(f"load before: {os.getloadavg()[0]:.1f}, processors: {len(os.sched_getaffinity(0))}")
    (clock_1, cpu_1), (clock_2, cpu_2) = sweep(program, runs, 1), sweep(program, runs, 2)
    print(f"two threads: {clock_1 / clock_2:.2f} times as fast by the clock, {cpu_2 / cpu_1:.3f} times the processor time")


if __name__ == "__main__":
    main()
