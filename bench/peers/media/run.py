#!/usr/bin/env python3
"""Compares media congestion controls on one path: those of other projects in live runs, and our own in live and
simulated runs.

  run.py --equipoise PATH [--peers pion,chromium,scream,...] [--case 5.1|tcp] [--runs 3] [--worlds live,sim] [--out FILE] [--captures DIR]

Live runs need root and a machine with little other load. If the captures of a run exist, the program evaluates these
captures and does not repeat the run.
`README.md` describes the comparison, and what each peer needs.
"""

import argparse
import json
import os
import subprocess
import sys

import bed
from cases import CASES
from measure import measure
from problems import Missing, Problem
from senders import PEERS, Tools
from simulate import SESSIONS, simulate

WORLDS = ("live", "sim")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--equipoise", default="target/release/equipoise", help="the command")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {', '.join(PEERS)}; default: all")
    parser.add_argument("--case", choices=CASES, action="append", help="default: all")
    parser.add_argument("--runs", type=int, default=3, help="of each, live and simulated; default 3")
    parser.add_argument("--worlds", default=",".join(WORLDS), help="default: both")
    parser.add_argument("--scream", help="folder of SCReAM's bandwidth test tools")
    parser.add_argument("--chromium", help="the browser; default: the one on the PATH")
    parser.add_argument("--captures", default="media-captures", help="where captures are kept, and what is built; default: media-captures")
    parser.add_argument("--out", help="results as JSON")
    options = parser.parse_args()
    for given, known, name in ((options.peers, PEERS, "peers"), (options.worlds, WORLDS, "worlds")):
        for word in given.split(","):
            if word not in known:
                parser.error(f"--{name}: `{word}` is none of {', '.join(known)}")
    return options


def live_runs(case, name, tools, runs):
    peer, results = PEERS[name], []
    for number in range(1, runs + 1):
        out = os.path.join(tools.work, f"{case.name}-{name}-{number}")
        if not os.path.exists(f"{out}/meta.json"):
            if os.geteuid():
                raise Missing("root", "live runs make network namespaces", "run it as root, or --worlds sim")
            tools.need((*bed.NEEDS, *peer.needs, "equipoise"))
            bed.live(case, peer, tools, out)
            print(out, file=sys.stderr, flush=True)
        results.append(measure(case, out))
    return results


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def span(runs, stretch, key, scale):
    """Returns the smallest and the largest value of `key` among the runs. `stretch` is a phase, or None for the whole
    run.
    """
    found = [(run["phases"][stretch] if stretch else run["whole"])[key] for run in runs]
    found = [scale * value for value in found if value is not None]
    return (min(found), max(found)) if found else None


def cell(ends):
    return "–" if ends is None else f"{ends[0]:.0f}" if round(ends[0]) == round(ends[1]) else f"{ends[0]:.0f} to {ends[1]:.0f}"


def outside(live, simulated):
    """Returns by how much the middle of the simulated range is outside of the live range; 0 if it is inside."""
    if live is None or simulated is None:
        return "–"
    middle = sum(simulated) / 2
    return f"{max(0.0, live[0] - middle, middle - live[1]):.0f}"


def table(case, results):
    stretches = [None, *(f"{begin}-{end}" for begin, end in case.phases)]
    print(f"\nCase {case.name}: utilisation in %, mean queueing in ms, least to largest of the runs; how far the simulated lies outside of the live\n")
    print("| sender | seconds | live % | simulated % | outside | live ms | simulated ms | outside |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, found in results.items():
        for stretch in stretches:
            cells = []
            for key, scale in (("utilisation", 100), ("queueing_mean_s", 1000)):
                live, simulated = (span(found[world], stretch, key, scale) if world in found else None for world in WORLDS)
                cells += [cell(live), cell(simulated), outside(live, simulated)]
            print(f"| {name} | {stretch or f'0-{case.seconds}'} | {' | '.join(cells)} |")


def main():
    options = arguments()
    work = os.path.abspath(options.captures)
    os.makedirs(work, exist_ok=True)
    tools = Tools(options.equipoise, options.scream, options.chromium, work)
    worlds, results = options.worlds.split(","), {}
    for case in (CASES[name] for name in options.case or CASES):
        results[case.name] = {name: {} for name in options.peers.split(",")}
        for name, found in results[case.name].items():
            if "live" in worlds:
                found["live"] = live_runs(case, name, tools, options.runs)
            if "sim" in worlds:
                tools.need(["equipoise"])
                found["sim"] = simulate(tools.found["equipoise"], case, SESSIONS[name], options.runs)
        table(case, results[case.name])
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"equipoise": version(tools), "cases": rounded(results)}, file, separators=(",", ":"))
            file.write("\n")


def version(tools):
    tools.need(["equipoise"])
    return subprocess.run([tools.found["equipoise"], "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(str(problem))
