#!/usr/bin/env python3
"""Measures packet spacing and processor time of `equipoise send` and `iperf3 -u`, with captures between two network
namespaces.

For comparison, a bare loop of one sleep and one sendto for each packet (bare.c) shows the minimum cost of even spacing.
Needs root, iproute2, iperf3, dumpcap (tshark) and a C compiler. Usage: compare.py EQUIPOISE [SECONDS]
"""
import os, statistics, struct, subprocess, sys, time

EQUIPOISE, SECONDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
NEAR, FAR, PCAP = "eq-pace-near", "eq-pace-far", "/dev/shm/eq-pace.pcap"
BARE, KEY = "/dev/shm/eq-pace-bare", "/dev/shm/eq-pace.key"
# The compared settings: rate in Mbit/s, and size of IP packets in bytes.
RATES = [(3, 1000), (30, 1200), (300, 1200)]


def sh(command):
    subprocess.run(command.split(), check=True)


def inside(namespace, command):
    return ["ip", "netns", "exec", namespace] + command


def gaps(size):
    """Returns the intervals between the packets of this IP size in the capture, in s. The capture is a pcap file."""
    data = open(PCAP, "rb").read()
    magic = struct.unpack("<I", data[:4])[0]
    unit = 1e9 if magic == 0xA1B23C4D else 1e6
    at, times = 24, []
    while at + 16 <= len(data):
        seconds, fraction, kept, length = struct.unpack("<IIII", data[at : at + 16])
        if length == size + 14:
            times.append(seconds * int(unit) + fraction)
        at += 16 + kept
    # Leave out the packets of the first and the last half second.
    times = [t for t in times if times[0] + unit / 2 <= t <= times[-1] - unit / 2]
    return [(b - a) / unit for a, b in zip(times, times[1:])]


def run(name, rate, size, receiver, sender):
    capture = subprocess.Popen(
        inside(NEAR, ["dumpcap", "-q", "-P", "-i", "eth0", "-s", "64", "-B", "64", "-w", PCAP]),
        stderr=subprocess.DEVNULL,
    )
    listening = subprocess.Popen(inside(FAR, receiver), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    sending = subprocess.Popen(inside(NEAR, sender), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(sending.pid, 0)
    time.sleep(0.5)
    capture.terminate(), capture.wait()
    listening.terminate(), listening.wait()
    assert status == 0, name
    found, ideal = gaps(size), size * 8 / rate / 1e6
    errors = sorted(abs(gap - ideal) for gap in found)
    share = lambda q: errors[int(q * (len(errors) - 1))] * 1e6
    mean, cv = statistics.mean(found), statistics.stdev(found) / statistics.mean(found)
    sent = len(found) * size * 8
    busy = (usage.ru_utime + usage.ru_stime) / (SECONDS * rate / 1000)
    print(
        f"| {rate} Mbit/s | {name} | {size * 8 / mean / 1e6:.2f} | {share(0.5):.1f} | {share(0.9):.1f} | {share(0.99):.1f} "
        f"| {share(0.999):.0f} | {cv:.4f} | {busy:.2f} |",
        flush=True,
    )


def main():
    for namespace in (NEAR, FAR):
        subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)
        sh(f"ip netns add {namespace}")
    sh(f"ip -n {NEAR} link add eth0 type veth peer name eth0 netns {FAR}")
    for namespace, host in ((NEAR, 1), (FAR, 2)):
        sh(f"ip -n {namespace} addr add 198.18.5.{host}/24 dev eth0")
        sh(f"ip -n {namespace} link set eth0 up")
        sh(f"ip -n {namespace} link set lo up")
    subprocess.run([EQUIPOISE, "keygen", "--force", KEY], check=True)
    sh(f"cc -O2 -o {BARE} {os.path.dirname(os.path.abspath(__file__))}/bare.c")
    print("| rate | sender | sent (Mbit/s) | error p50 (us) | p90 | p99 | p99.9 | coefficient of variation | processor s / Gbit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for rate, size in RATES:
        common = ["send", "198.18.5.2", "-b", f"{rate}M", "-l", str(size), "-t", str(SECONDS), "-q"]
        key = ["--key", KEY]
        iperf = ["iperf3", "-c", "198.18.5.2", "-u", "-b", f"{rate * (size - 28) / size:.6f}M", "-l", str(size - 28), "-t", str(SECONDS)]
        run("equipoise --insecure", rate, size, [EQUIPOISE, "receive", "--insecure", "-q"], [EQUIPOISE, *common, "--insecure"])
        run("equipoise", rate, size, [EQUIPOISE, "receive", *key, "-q"], [EQUIPOISE, *common, *key])
        run("iperf3", rate, size, ["iperf3", "-s"], iperf)
        run("iperf3 --pacing-timer 100", rate, size, ["iperf3", "-s"], [*iperf, "--pacing-timer", "100"])
        gap = str(round(size * 8000 / rate))
        run("a bare loop", rate, size, [EQUIPOISE, "receive", "--insecure", "-q"], [BARE, "198.18.5.2", "5004", str(size - 28), gap, str(SECONDS)])
    for namespace in (NEAR, FAR):
        sh(f"ip netns delete {namespace}")


main()
