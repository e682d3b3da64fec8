#!/usr/bin/env python3
"""Tests the control law `equipoise` under held-out conditions (docs/src/held-out.md).

    ./x python && target/python/tests/bin/python bench/held-out/judge.py SECRET --json held-out.json

Prints the table of the suite's cases under randomly drawn conditions. This program does not run the random paths and
the recorded links: --commands prints the command lines that run them with `equipoise`.
"""

import argparse
import hashlib
import json
import math
import random
import statistics
import sys
import tomllib
from pathlib import Path
from typing import Any

import equipoise

ROOT = Path(__file__).resolve().parents[2]
LAWS = ["equipoise", "gcc", "nada", "scream"]
COMMITMENT = "12336bfcd47b92b8e28ce48a04ebae1460f94ac8d11d69f680b6d60f224ccfec"
RATES = {"rate", "min_rate", "max_rate", "initial_rate"}
UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6}
RUNS = 10
# The 97.5 % quantile of Student's t-distribution with 9 degrees of freedom, for RUNS runs.
T_9 = 2.262


def digest(name: str, secret: str) -> bytes:
    """Return the SHA-256 digest of a name followed by the secret."""
    return hashlib.sha256((name + secret).encode()).digest()


def first_seed(name: str, secret: str) -> int:
    """Return the first seed of the runs called `name`: the first twelve hex digits of the digest, as a number."""
    return int(digest(name, secret).hex()[:12], 16)


def drawn(case: str, secret: str) -> dict[str, float]:
    """Draw the conditions of a case: delay, feedback interval, factor of the rates, and queue length."""
    numbers = random.Random(digest(case, secret))
    return {
        "delay_ms": numbers.uniform(10, 150),
        "feedback_ms": numbers.uniform(20, 200),
        "factor": math.exp(numbers.uniform(math.log(0.3), math.log(20))),
        "queue_ms": numbers.uniform(100, 1000),
    }


def scaled(value: Any, factor: float, key: str = "") -> Any:
    """Multiply all rates in a part of a scenario by the factor. The rates of audio are not changed."""
    if isinstance(value, dict):
        if value.get("kind") == "audio":
            return value
        return {key: scaled(part, factor, key) for key, part in value.items()}
    if isinstance(value, list):
        return [scaled(part, factor) for part in value]
    if key in RATES and value != "unlimited":
        return f"{bps(value) * factor:.0f} bit/s"
    return value


def bps(rate: str) -> float:
    """Convert a rate of a scenario to bit/s."""
    number, unit = rate.split()
    return float(number) * UNITS[unit]


def changed(text: str, draw: dict[str, float], law: str) -> dict[str, Any]:
    """Apply the drawn conditions and a control law to the scenario of a case, and return the scenario. The drawn factor
    multiplies the rates, but not the minimum rates: the minimum rate of an encoder does not depend on the path.
    """
    plain = tomllib.loads(text)
    scenario: dict[str, Any] = scaled(plain, draw["factor"])
    longest = max(path_ms(plain, flow) for flow in plain["flow"])
    for link in scenario["link"]:
        share = float(link["delay"].split()[0]) / longest if longest else 0.0
        link["delay"] = f"{share * draw['delay_ms']:.3f} ms"
        # Without a delay of its own, the reverse direction has the delay of the forward direction.
        link.get("back", {}).pop("delay", None)
        if "queue" in link:
            link["queue"] = f"{draw['queue_ms']:.3f} ms"
        if "aqm" in link:
            # With active queue management, the limit of the queue is given in bytes (RFC 8868, Sec. 4.3). The limit is
            # computed for the initial rate of the link.
            link["queue"] = f"{draw['queue_ms'] / 8e3 * bps(link['rate']):.0f} B"
    for flow, before in zip(scenario["flow"], plain["flow"], strict=True):
        if "controller" in flow:
            ours = flow["controller"]
            least = before["controller"]["min_rate"]
            flow["controller"] = {"name": law, "initial_rate": least, "min_rate": least, "max_rate": ours["max_rate"]}
            flow["feedback"] = {"format": "rfc8888", "interval": f"{draw['feedback_ms']:.3f} ms"}
            for source, source_before in zip(flow["source"], before["source"], strict=True):
                if "min_rate" in source:
                    source["min_rate"] = source_before["min_rate"]
    return scenario


def path_ms(scenario: dict[str, Any], flow: dict[str, Any]) -> float:
    """Return the one-way delay of a flow's path, in ms."""
    delays = {link["name"]: float(link["delay"].split()[0]) for link in scenario["link"]}
    return sum(delays[name] for name in flow["path"])


def estimate(values: list[float | None]) -> dict[str, float] | None:
    """Return the mean over all runs and half the width of its 95 % confidence interval; None if a run lacks the
    value.
    """
    found = [value for value in values if value is not None]
    if len(found) < RUNS:
        return None
    return {"mean": statistics.fmean(found), "plus_minus": T_9 * statistics.stdev(found) / math.sqrt(RUNS)}


def judged(result: equipoise.Result) -> dict[str, Any]:
    """Return the values of one law, computed from all its runs. Control laws are compared by these values."""
    runs = result.summary["runs"]
    sessions = [[flow for flow in run["flows"] if flow.get("video")] for run in runs]
    return {
        "used": estimate([run["media"]["utilisation"] for run in runs]),
        "queue_p95_s": estimate([run["media"]["queueing"]["p95_s"] for run in runs]),
        "frame_p95_s": estimate([longest(flows) for flows in sessions]),
        "rate_bps": estimate([sum(flow["delivered_rate_bps"] for flow in flows) for flows in sessions]),
    }


def longest(flows: list[dict[str, Any]]) -> float | None:
    """Return the largest 95th percentile of the frame delay among the flows; None if a flow has no complete frame."""
    delays = [(flow["video"]["delay"] or {}).get("p95_s") for flow in flows]
    return None if None in delays else max(delays)


def verdicts(laws: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the control laws because of which `equipoise` misses a requirement (bar) of the book. The list
    `frames_behind` is for bar (a), on the frame delay. The list `use_behind` is for bar (b), on the utilisation.
    """
    ours = laws["equipoise"]

    def mean(law: dict[str, Any], key: str) -> float:
        # A missing value of `equipoise` counts against `equipoise`, because comparisons with NaN are false.
        return float(law[key]["mean"]) if law[key] else math.nan

    slower, ahead = [], []
    for name, law in laws.items():
        if name == "equipoise":
            continue
        comparable = mean(law, "rate_bps") >= 0.95 * mean(ours, "rate_bps")
        if comparable and not mean(ours, "frame_p95_s") < mean(law, "frame_p95_s"):
            slower.append(name)
        is_ahead = mean(law, "used") > mean(ours, "used") + 0.05
        if is_ahead and mean(law, "queue_p95_s") < 2 * mean(ours, "queue_p95_s"):
            ahead.append(name)
    return {"frames_behind": slower, "use_behind": ahead}


def main() -> None:
    """Run the cases, and print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("secret", help="32 hex digits; any other than the one committed to makes a trial")
    parser.add_argument("--case", help="only those whose name begins so")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commands", action="store_true", help="print the commands for paths and links instead")
    options = parser.parse_args()
    secret: str = options.secret
    if hashlib.sha256(secret.encode()).hexdigest() != COMMITMENT:
        print("not the secret that was committed to: a trial", file=sys.stderr)
    if options.commands:
        print(f"equipoise suite paths --runs 10000 --first-seed {first_seed('paths', secret)}")
        print("equipoise suite traces ODD_LINKS --controllers gcc,nada,scream,equipoise --duration 120s --max-rate 20M")
        return
    seed, results = first_seed("suite", secret), {}
    print("| case | delay, feedback, capacity, queue | " + " | ".join(LAWS) + " | not met by |")
    print("|---" * (3 + len(LAWS)) + "|")
    for path in sorted((ROOT / "scenarios/rfc8867").glob("*.toml")):
        if options.case and not path.stem.startswith(options.case):
            continue
        draw = drawn(path.stem, secret)
        laws = {}
        for law in LAWS:
            scenario = changed(path.read_text(), draw, law)
            laws[law] = judged(equipoise.run(scenario, seed=seed, runs=RUNS, series=False))
        results[path.stem] = {"conditions": draw, "laws": laws, **verdicts(laws)}
        print(row(path.stem, results[path.stem]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    met = sum(not result["frames_behind"] and not result["use_behind"] for result in results.values())
    print(f"\nboth bars are met in {met} of {len(results)} cases")


def row(name: str, result: dict[str, Any]) -> str:
    """Return a row of the table. For each law, the row contains the used capacity in %, and the 95th percentiles of the
    queueing delay and of the frame delay in ms.
    """
    draw = result["conditions"]
    cells = [name, "{delay_ms:.0f} ms, {feedback_ms:.0f} ms, × {factor:.2f}, {queue_ms:.0f} ms".format(**draw)]
    for law in result["laws"].values():
        figures = ((100, law["used"]), (1e3, law["queue_p95_s"]), (1e3, law["frame_p95_s"]))
        cells.append(" · ".join(f"{scale * found['mean']:.0f}" if found else "-" for scale, found in figures))
    missed = [f"frames: {', '.join(result['frames_behind'])}"] if result["frames_behind"] else []
    missed += [f"use: {', '.join(result['use_behind'])}"] if result["use_behind"] else []
    return "| " + " | ".join([*cells, "; ".join(missed) or "met"]) + " |"


if __name__ == "__main__":
    main()
