"""Runs a live test: the sender and the receiver are in two network namespaces, and `equipoise link` joins them in a
third one. The packets are captured at the sender and at the receiver.
"""

import json
import os
import signal
import subprocess
import time

from problems import Failed, Unmeasured
from senders import RECEIVER, SENDER

DELAY_MS, QUEUE_MS = 50, 300
# How long to wait until a browser, or a receiver, has started, in s.
EARLY_S, LISTEN_S = 8, 1.5
# Maximum time until a program ends by itself, and maximum time until it ends after a signal, in s.
GRACE_S, STOP_S = 8, 5
NEEDS = ("ip", "ethtool", "tcpdump", "iperf3", "chrt", "nice")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(" ".join(words), done.returncode, done.stderr or done.stdout)


class Bed:
    """Three network namespaces and the programs in them. Leaving the context ends the programs and removes the
    namespaces.
    """

    def __init__(self, out):
        self.out = out
        self.near, self.middle, self.far = (f"eq-media-{os.getpid()}-{end}" for end in ("a", "m", "b"))
        self.programs = {}

    def __enter__(self):
        try:
            self.lay()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.programs):
            self.stop(name)
        for name in (self.near, self.middle, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def lay(self):
        for name in (self.near, self.middle, self.far):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for name, address, end in ((self.near, SENDER, "left"), (self.far, RECEIVER, "right")):
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", end, "netns", self.middle)
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", self.middle, "link", "set", end, "up")
            # Turn off offloads, so that captures contain single packets, and packets are not sent in bursts of 64 kB.
            run("ip", "netns", "exec", name, "ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off")

    def start(self, name, where, words, priority=10, environment=None):
        """Starts a program in a namespace, with real-time priority so that other load disturbs it little. Priority 0
        means no real-time priority, for a program that needs much processor time.
        """
        how = ["chrt", "-f", str(priority)] if priority else ["nice", "-n", "-10"]
        with open(f"{self.out}/{name}.log", "w", encoding="utf-8") as log:
            self.programs[name] = subprocess.Popen(
                ["ip", "netns", "exec", where, *how, *words], cwd=self.out, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        return self.programs[name]

    def stop(self, name):
        program = self.programs[name]
        if program.poll() is None:
            program.send_signal(signal.SIGINT)
            try:
                program.wait(STOP_S)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()


def live(case, peer, tools, out):
    """Runs a case once. Writes a.pcap, b.pcap, link.json, meta.json and the logs of the programs to the folder
    `out`.
    """
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/rate.csv", "w", encoding="utf-8") as steps:
        steps.writelines(f"{at},{rate}\n" for at, rate in case.steps)
    with Bed(out) as bed:
        for end, where in (("a", bed.near), ("b", bed.far)):
            capture = f"tcpdump -i eth0 -n -s 160 -B 8192 --time-stamp-precision=nano -U -w {out}/{end}.pcap ip"
            bed.start(f"tcpdump-{end}", where, capture.split())
        send = tools.words(peer.send, out, case.seconds)
        environment = tools.environment()
        bed.start("receive", bed.far, tools.words(peer.receive, out, case.seconds))
        if case.tcp:
            bed.start("iperf3-server", bed.far, ["iperf3", "-s"])
        if peer.early:
            bed.start("send", bed.near, send, 0, environment)
        time.sleep(EARLY_S if peer.early else LISTEN_S)
        begin = time.time()
        # With `--spin` the link waits actively (without sleeping) for the last 200 us before each departure.
        bed.start("link", bed.middle, [
            *tools.words("{equipoise} link --between left right", out, 0), "--rate-csv", f"{out}/rate.csv", "--back-rate", "unlimited",
            "--delay", f"{DELAY_MS}ms", "--queue", f"{QUEUE_MS} ms", "--aqm", "droptail", "--spin", "-q", "-t", str(case.seconds + 12),
            "--json", f"{out}/link.json",
        ], 20)
        time.sleep(0.15)
        if peer.early:
            bed.programs["send"].send_signal(signal.SIGUSR2)
        else:
            bed.start("send", bed.near, send)
        if case.tcp:
            on, off = case.tcp
            time.sleep(max(0.0, begin + on - time.time()))
            bed.start("iperf3", bed.near, f"iperf3 -c {RECEIVER} -C cubic -t {off - on} -J".split())
        try:
            bed.programs["send"].wait(max(1.0, begin + case.seconds + GRACE_S - time.time()))
        except subprocess.TimeoutExpired:
            pass
        for name in bed.programs:
            if name != "link" and not name.startswith("tcpdump"):
                bed.stop(name)
        # Wait until the last packets have crossed the link.
        time.sleep(0.7)
        for name in ("link", "tcpdump-a", "tcpdump-b"):
            bed.stop(name)
    with open("/proc/loadavg", encoding="ascii") as load:
        meta = {"begin_s": begin, "load": float(load.read().split()[0])}
    with open(f"{out}/meta.json", "w", encoding="utf-8") as file:
        json.dump(meta, file)
    if not os.path.exists(f"{out}/link.json"):
        raise Unmeasured("no word of the link", out)
    return meta
