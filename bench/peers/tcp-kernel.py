#!/usr/bin/env python3
"""Measures bulk flows of the Linux kernel's TCP through `equipoise link`: goodput, losses, timeouts, retransmissions,
mean queue.

  tcp-kernel.py VARIANT RATE_MBPS RTT_MS QUEUE_PACKETS FLOWS SEED SECONDS

VARIANT is `reno` or `cubic`; the suffix `-nosack` turns off selective acknowledgements. RTT_MS is the round-trip
propagation time. QUEUE_PACKETS is the number of packets that can wait while one packet is sent. SEED is the seed of the
link; because nothing is random, it only numbers the repetitions. Prints one row, whose columns are described in
`README.md`.

The script needs root, iproute2, iperf3 and the command `equipoise`. The environment variable EQUIPOISE can contain the
path of this command. The script creates its namespaces, interfaces and settings, and removes them when it ends.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# Start of the second measurement (the columns `steady_...`), in s after the start of the flows.
WARM_UP_S = 10
# Maximum size of the send buffer and of the receive buffer of a flow, in bytes. It is far above every window in the
# test settings.
BUFFER_BYTES = 64 << 20
# Queue length of the return path, which must not drop packets.
UNLIMITED_PACKETS = 100_000
# Maximum time until the server listens, and until a program ends, in s. Closing sockets can take long on a busy
# machine.
PATIENCE_S = 60
PIPED = {"stdout": subprocess.PIPE, "text": True}

SYSCTLS = {
    # Without timestamps, the TCP and IP headers have 40 bytes together, as in the simulators.
    "net.ipv4.tcp_timestamps": "0",
    # Do not reuse the metrics that the kernel stored for an earlier flow.
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": f"4096 {BUFFER_BYTES // 4} {BUFFER_BYTES}",
    "net.ipv4.tcp_wmem": f"4096 {BUFFER_BYTES // 4} {BUFFER_BYTES}",
    "net.ipv4.tcp_ecn": "0",
}


def run(*words):
    """Runs a command until it ends, and returns its output. If the command fails, ends the script with the command's
    error messages.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Namespaces:
    """Three network namespaces: for the sender (`eth0`), the link (`left` and `right`) and the receiver (`eth0`).
    `eth0` of the sender is connected with `left`, and `eth0` of the receiver with `right`.
    """

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
            # Send one segment per packet. Otherwise, packets with several segments would arrive in bursts that a link
            # of this rate does not have.
            run("ip", "-n", name, "link", "set", "eth0", "gso_max_segs", "1", "up")
            run("ip", "-n", name, "addr", "add", f"10.0.0.{far}/24", "dev", "eth0")
            run("ip", "-n", link, "link", "set", end, "up")
            # Set the minimum retransmission timeout to 1 s (RFC 6298). The kernel's default is 200 ms.
            run("ip", "-n", name, "route", "change", "10.0.0.0/24", "dev", "eth0", "src", f"10.0.0.{far}", "rto_min", "1s")
            for key, value in (SYSCTLS | {"net.ipv4.tcp_sack": self.sack}).items():
                run("ip", "netns", "exec", name, "sysctl", "-q", "-w", f"{key}={value}")

    def start(self, which, *words, **options):
        process = subprocess.Popen(["ip", "netns", "exec", self.names[which], *words], **options)
        self.started.append(process)
        return process

    def counters(self):
        """Returns three counts of the kernel in the sender's namespace: the timeouts, the started recoveries, and the
        retransmitted segments.
        """
        lines = run("ip", "netns", "exec", self.names[0], "cat", "/proc/net/netstat", "/proc/net/snmp").splitlines()
        found = {}
        for heads, values in zip(lines[::2], lines[1::2]):
            prefix, *heads = heads.split()
            found |= {prefix + head: int(value) for head, value in zip(heads, values.split()[1:])}
        recoveries = found["TcpExt:TCPSackRecovery"] + found["TcpExt:TCPRenoRecovery"]
        return found["TcpExt:TCPTimeouts"], recoveries, found["Tcp:RetransSegs"]


def wait_for(holds, what):
    """Waits until `holds` returns true. Ends the script if this takes longer than PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} within {PATIENCE_S} s")
        time.sleep(0.05)


def goodput(intervals, begin_s, end_s):
    """Returns the total goodput of the flows in Mbit/s, and Jain's fairness index, from the values that the receiver
    measured every second.
    """
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
    """Runs the flows. Returns the results of the receiver's iperf3, of the link, and of the sender's kernel."""
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
            # The signal reaches `equipoise link`, because `ip netns exec` and `nice` replace their processes with the
            # command.
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
    # The link's mean queue length includes the short time after the end of the flows, in which the queue was empty.
    # Convert it to a mean over the time of the flows.
    waiting = there["mean_queue_packets"] * link["lasted_s"] / seconds
    stalled_ms = 1e3 * sum(stall["end_s"] - stall["start_s"] for stall in link["stalls"])
    # The counters of the link and of the kernel cover the whole run. Therefore the fields of these counters are empty
    # in the second measurement, which starts after the warm-up.
    print(
        f"kernel,{','.join(words)},{all_mbps:.6f},{dropped / there['packets_in']:.6e},{','.join(map(str, counted))},"
        f"{waiting:.4f},{all_jain:.6f},on,{steady_mbps:.6f},,,,,,{steady_jain:.6f},{stalled_ms:.0f}"
    )


if __name__ == "__main__":
    # Exit normally after SIGTERM, so that the script removes its namespaces in this case, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("killed"))
    main(sys.argv[1:])
