#!/usr/bin/env python3
"""Bulk flows of the kernel's own TCP through `equipoise link`: goodput, losses, timeouts, retransmissions, mean queue.

  tcp-kernel.py VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS

VARIANT is `reno` or `cubic`, with `-nosack` behind it without selective acknowledgements. RTT_MS is the propagation time
there and back, QUEUE_PACKETS the room for waiting packets beside the one in service. SEED is the link's, which here leaves
nothing to it: it numbers the repeats. Prints one row; `README.md` names its columns.

Wants root, iproute2, iperf3 and the command `equipoise`, or its path in the variable EQUIPOISE. Namespaces, interfaces and
settings are the script's own and go with it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# The second measurement begins here.
WARM_UP_S = 10
# Both buffers of a flow may grow to this: far above every window of the settings.
BUFFER_BYTES = 64 << 20
# For the way back, which is not to lose anything.
UNLIMITED_PACKETS = 100_000
# For the server to listen, for programs to end: closing sockets can take long on a busy machine.
PATIENCE_S = 60
PIPED = {"stdout": subprocess.PIPE, "text": True}

SYSCTLS = {
    # As in the simulators: 40 bytes of header.
    "net.ipv4.tcp_timestamps": "0",
    # Not the metrics of the flow before.
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": f"4096 {BUFFER_BYTES // 4} {BUFFER_BYTES}",
    "net.ipv4.tcp_wmem": f"4096 {BUFFER_BYTES // 4} {BUFFER_BYTES}",
    "net.ipv4.tcp_ecn": "0",
}


def run(*words):
    """Runs a command to its end; its output, or the end of the script over its errors."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Namespaces:
    """Sender, link and receiver, each with a namespace of its own: `eth0 - left`, `right - eth0`."""

    def __init__(self, sack):
        self.names = [f"peer{os.getpid()}{end}" for end in "slr"]
        self.sack = sack
        self.started = []

    def __enter__(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        try:
            self.lay()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def lay(self):
        sender, link, receiver = self.names
        for name, end, far in ((sender, "left", 1), (receiver, "right", 2)):
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", end, "netns", link)
            # One segment in a packet, so that none comes in bunches that a link of this rate would not have.
            run("ip", "-n", name, "link", "set", "eth0", "gso_max_segs", "1", "up")
            run("ip", "-n", name, "addr", "add", f"10.0.0.{far}/24", "dev", "eth0")
            run("ip", "-n", link, "link", "set", end, "up")
            # RFC 6298: no timeout shorter than 1 s; the kernel's own bound is 200 ms.
            run("ip", "-n", name, "route", "change", "10.0.0.0/24", "dev", "eth0", "src", f"10.0.0.{far}", "rto_min", "1s")
            for key, value in (SYSCTLS | {"net.ipv4.tcp_sack": self.sack}).items():
                run("ip", "netns", "exec", name, "sysctl", "-q", "-w", f"{key}={value}")

    def start(self, which, *words, **options):
        process = subprocess.Popen(["ip", "netns", "exec", self.names[which], *words], **options)
        self.started.append(process)
        return process

    def counters(self):
        """Timeouts, recoveries begun and segments sent again by the sender's kernel."""
        lines = run("ip", "netns", "exec", self.names[0], "cat", "/proc/net/netstat", "/proc/net/snmp").splitlines()
        found = {}
        for heads, values in zip(lines[::2], lines[1::2]):
            prefix, *heads = heads.split()
            found |= {prefix + head: int(value) for head, value in zip(heads, values.split()[1:])}
        recoveries = found["TcpExt:TCPSackRecovery"] + found["TcpExt:TCPRenoRecovery"]
        return found["TcpExt:TCPTimeouts"], recoveries, found["Tcp:RetransSegs"]


def wait_for(holds, what):
    """Waits until it holds; ends the script where it does not."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} within {PATIENCE_S} s")
        time.sleep(0.05)


def goodput(intervals, begin_s, end_s):
    """Sum over the flows in Mbit/s and Jain's index, from the receiver's seconds."""
    flows = {}
    for interval in intervals:
        middle = (interval["sum"]["start"] + interval["sum"]["end"]) / 2
        if begin_s <= middle < end_s:
            for stream in interval["streams"]:
                flows[stream["socket"]] = flows.get(stream["socket"], 0) + stream["bytes"]
    rates = [8e-6 * count / (end_s - begin_s) for count in flows.values()]
    squares = sum(rate * rate for rate in rates)
    return sum(rates), sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 0.0


def measure(law, sack, rate, rtt_ms, queue, flows, seed, seconds):
    """Runs the flows; what the receiver's iperf3, the link and the sender's kernel counted."""
    folder = tempfile.TemporaryDirectory()
    link_file = os.path.join(folder.name, "link.json")
    with folder, Namespaces(sack) as net:
        one_way = f"{float(rtt_ms) / 2}ms"
        path = ["--rate", f"{rate}M", "--delay", one_way, "--queue", f"{queue} packets", "--aqm", "droptail"]
        back = ["--back-queue", f"{UNLIMITED_PACKETS} packets"]
        command = ["nice", "-n", "-15", os.environ.get("EQUIPOISE", "equipoise"), "link", "--between", "left", "right"]
        link = net.start(1, *command, *path, *back, "--seed", seed, "--json", link_file, **PIPED)
        server = net.start(2, "iperf3", "-s", "-1", "-J", **PIPED)
        try:
            if not link.stdout.readline():
                sys.exit("the link did not come up")
            listening = ["ip", "netns", "exec", net.names[2], "ss", "-Hltn", "sport = :5201"]
            wait_for(lambda: run(*listening).strip(), "iperf3 did not listen")
            words = ["iperf3", "-c", "10.0.0.2", "-C", law, "-P", flows, "-t", str(seconds), "-J"]
            client = net.start(0, *words, stdout=subprocess.DEVNULL)
            if client.wait(timeout=seconds + PATIENCE_S) != 0:
                sys.exit("iperf3 failed")
            counted = net.counters()
            received = json.loads(server.communicate(timeout=PATIENCE_S)[0])
        finally:
            # `ip netns exec` and `nice` become the command: the process is the link's own.
            link.send_signal(signal.SIGINT)
            link.wait(timeout=PATIENCE_S)
        with open(link_file, encoding="utf-8") as file:
            return received["intervals"], json.load(file), counted


def main(words):
    if len(words) != 7:
        sys.exit("usage: tcp-kernel.py VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS")
    variant, rate, rtt_ms, queue, flows, seed, seconds = words
    law, _, option = variant.partition("-")
    if law not in ("reno", "cubic") or option not in ("", "nosack"):
        sys.exit(f"VARIANT is `{variant}`; it has to be reno or cubic, or either with -nosack")
    seconds = int(seconds)
    if seconds <= WARM_UP_S:
        sys.exit(f"SECONDS is `{seconds}`; it has to be more than {WARM_UP_S}")
    sack = "0" if option else "1"
    intervals, link, counted = measure(law, sack, rate, rtt_ms, queue, flows, seed, seconds)
    if link["frames_taken_apart"]:
        sys.exit(f"{link['frames_taken_apart']} packets held more than one segment")
    all_mbps, all_jain = goodput(intervals, 0, seconds)
    steady_mbps, steady_jain = goodput(intervals, WARM_UP_S, seconds)
    there = link["forward"]
    dropped = there["packets_dropped_full"]
    # The link ran a little longer than the flows, with nothing in its queue.
    waiting = there["mean_queue_packets"] * link["lasted_s"] / seconds
    stalled_ms = 1e3 * sum(stall["end_s"] - stall["start_s"] for stall in link["stalls"])
    # Link and kernel count from beginning to end only: of what is measured later on, these columns stay empty.
    print(
        f"kernel,{','.join(words)},{all_mbps:.6f},{dropped / there['packets_in']:.6e},{','.join(map(str, counted))},"
        f"{waiting:.4f},{all_jain:.6f},on,{steady_mbps:.6f},,,,,,{steady_jain:.6f},{stalled_ms:.0f}"
    )


if __name__ == "__main__":
    # Killed, too, it takes its namespaces along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("killed"))
    main(sys.argv[1:])
