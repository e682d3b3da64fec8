#!/usr/bin/env python3
"""Simulates bulk TCP flows over a dumbbell network with Equipoise, for the settings of `cargo xtask peers tcp`. Prints
CSV rows.

usage: tcp-equipoise.py EQUIPOISE [SEEDS]

EQUIPOISE is the path of the command. The rows can be compared with those of ns-2 and ns-3.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

SETTINGS = [
    (2, 24, 10, 100),
    (10, 40, 50, 100),
    (10, 100, 25, 100),
    (50, 60, 300, 100),
    (100, 120, 1000, 200),
    (100, 30, 100, 100),
]
# Window law and loss recovery of each variant. The first two variants are compared with the simulators ns-2 and ns-3.
# The other variants are compared with the Linux kernel, in runs of 30 s.
VARIANTS = {
    "newreno": ("reno", "newreno"),
    "sack": ("reno", "sack"),
    "reno": ("reno", "sack"),
    "cubic": ("cubic", "sack"),
}
KERNEL = ["reno", "cubic"]
KERNEL_S = 30
FLOWS = [1, 4]
WARM_UP_S = 10
COLUMNS = (
    "tool,variant,rate_mbps,rtt_ms,queue_packets,flows,seed,seconds,goodput_mbps,loss_ratio,timeouts,"
    "fast_retransmits,retransmitted,mean_queue_packets,jain,delayed_acks,steady_goodput_mbps"
)


def scenario(variant, rate, rtt, queue, flows, seed, seconds):
    """Returns the scenario of the dumbbell network. Its only link is the bottleneck, which has the whole propagation
    delay. The access links of 1 Gbit/s are left out, because packets would hardly wait there.
    """
    text = [
        f'name = "tcp-{variant}-{rate}-{rtt}-{queue}-{flows}"',
        f'duration = "{seconds} s"',
        f'warm_up = "{WARM_UP_S} s"',
        f"seed = {seed}",
        f'[[link]]\nname = "bottleneck"\nrate = "{rate} Mbit/s"\ndelay = "{rtt / 2} ms"\nqueue = "{queue} packets"',
    ]
    jitter = random.Random(seed)
    law, recovery = VARIANTS[variant]
    for flow in range(flows):
        start = 0.1 * flow + 0.1 * jitter.random()
        text.append(
            f'[[flow]]\nname = "flow {flow + 1}"\npath = ["bottleneck"]\npacket_size = "1500 B"\n'
            f'start = "{start:.6f} s"\nwindow = {{ name = "{law}" }}\n'
            f'tcp = {{ recovery = "{recovery}" }}'
        )
    return "\n\n".join(text) + "\n"


def row(command, variant, setting, flows, seed):
    rate, rtt, queue, seconds = setting
    seconds = KERNEL_S if variant in KERNEL else seconds
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "tcp.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(scenario(variant, rate, rtt, queue, flows, seed, seconds))
        ran = subprocess.run([command, "sim", file, "--quiet", "--json", "-"], check=True, capture_output=True)
    run = json.loads(ran.stdout)["runs"][0]
    link, results = run["links"][0], [flow["tcp"] for flow in run["flows"]]
    goodputs = [tcp["delivered_bytes"] * 8 / seconds / 1e6 for tcp in results]
    offered = link["packets_forwarded"] + link["packets_dropped"]
    jain = sum(goodputs) ** 2 / (len(goodputs) * sum(goodput**2 for goodput in goodputs))
    fields = [
        "equipoise", variant, rate, rtt, queue, flows, seed, seconds,
        f"{sum(goodputs):.6f}",
        f"{link['packets_dropped'] / offered:.6e}",
        sum(tcp["timeouts"] for tcp in results),
        sum(tcp["recoveries"] for tcp in results),
        sum(tcp["resent_in_recovery"] + tcp["resent_after_timeout"] for tcp in results),
        f"{link['mean_queue_packets']:.4f}",
        f"{jain:.6f}",
        "on",
        f"{sum(tcp['goodput_bps'] for tcp in results) / 1e6:.6f}",
    ]
    return ",".join(map(str, fields))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    command, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 5
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"# {version}; bench/peers/tcp-equipoise.py EQUIPOISE {seeds}")
    print(COLUMNS)
    for setting in SETTINGS:
        for variant in VARIANTS:
            for flows in FLOWS:
                for seed in range(1, seeds + 1):
                    print(row(command, variant, setting, flows, seed), flush=True)


if __name__ == "__main__":
    main()
