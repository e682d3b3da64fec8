#!/usr/bin/env python3
"""Compares `equipoise send --path` with the kernel's MPTCP: the message delay of a constant-rate stream over two links.

Two emulated links (`equipoise link`) join two network namespaces, each of which has two interfaces. The program sends
the same messages in two ways: as RTP packets through a session, which delivers them in order, and as records on an
MPTCP connection, which has a subflow on each link. Each message contains its sending time. The namespaces share a
clock, so that the receiver can compute the delay of every message. Needs root, iproute2 and a kernel with MPTCP.

usage: compare.py EQUIPOISE [SECONDS]
"""
import os, socket, statistics, struct, subprocess, sys, time

NEAR, MIDDLE, FAR, TARGET = "eq-mp-near", "eq-mp-middle", "eq-mp-far", "198.18.9.9"
KEY, RESULT = "/dev/shm/eq-mp.key", "/dev/shm/eq-mp.delays"
IPPROTO_MPTCP = 262
# For each link: rate in Mbit/s, one-way delay in ms, and maximum queueing delay in ms.
LINKS = [(6, 10, 200), (4, 40, 200)]
# Size of a message, in bytes. With RTP, UDP and IP headers, encryption and timestamps, the IP packet has 1072 bytes.
MESSAGE = 1000
# Length of the start of a run that is left out of the results, in s. In this time, the scheduler and TCP's window still
# adapt to the links.
SETTLING = 30.0


def emit(rate_mbps, seconds, give):
    """Sends messages at regular intervals. `give` is called with the number and the sending time of each message."""
    gap = MESSAGE * 8 / rate_mbps / 1e6
    start = time.clock_gettime(time.CLOCK_MONOTONIC)
    for number in range(int(seconds / gap)):
        due = start + number * gap
        while (wait := due - time.clock_gettime(time.CLOCK_MONOTONIC)) > 0:
            time.sleep(wait)
        # The message contains its due time. If the transport accepts the message late, the wait counts as delay.
        give(number, due)


def message(number, due):
    return struct.pack("!id", number, due).ljust(MESSAGE, b"\0")


def source(kind, rate_mbps, seconds, control):
    if kind == "rtp":
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        head = lambda number: struct.pack("!BBHII", 0x80, 96, number & 0xFFFF, number & 0xFFFFFFFF, 0x5EED)
        give = lambda number, due: out.sendto(head(number + 1) + message(number, due), ("127.0.0.1", 5006))
        give(-1, time.clock_gettime(time.CLOCK_MONOTONIC))  # the first packet opens the session
        time.sleep(1)
        emit(rate_mbps, seconds, give)
    else:
        out = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Set the congestion control of all subflows, because the default of the namespace may be any congestion
        # control.
        out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        out.connect((TARGET, 5010))
        time.sleep(1)  # wait until the second subflow is connected
        emit(rate_mbps, seconds, lambda number, due: out.sendall(message(number, due)))
        out.close()


def sink(kind, seconds):
    """Receives the messages, and writes the number, sending time and delay of each to a file."""
    now, found = lambda: time.clock_gettime(time.CLOCK_MONOTONIC), []

    def take(payload):
        number, due = struct.unpack("!id", payload[:12])
        found.append((number, due, now() - due))

    if kind == "rtp":
        into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        into.bind(("127.0.0.1", 5008))
        into.settimeout(5)
        try:
            while True:
                take(into.recv(2048)[12:])
        except TimeoutError:
            pass
    else:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((TARGET, 5010))
        listening.listen()
        into, _ = listening.accept()
        waiting = b""
        while part := into.recv(65536):
            waiting += part
            while len(waiting) >= MESSAGE:
                take(waiting[:MESSAGE])
                waiting = waiting[MESSAGE:]
    with open(RESULT, "w") as out:
        out.writelines(f"{number} {due} {delay}\n" for number, due, delay in found)


def sh(command):
    subprocess.run(command.split(), check=True)


def inside(namespace, *command):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command])


def wire():
    for namespace in (NEAR, MIDDLE, FAR):
        subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)
        sh(f"ip netns add {namespace}")
        sh(f"ip -n {namespace} link set lo up")
    sh(f"ip -n {FAR} addr add {TARGET}/32 dev lo")
    for path in (0, 1):
        for namespace, end, host in ((NEAR, "near", 1), (FAR, "far", 2)):
            sh(f"ip -n {namespace} link add eth{path} type veth peer name {end}{path} netns {MIDDLE}")
            sh(f"ip -n {namespace} addr add 198.18.{path}.{host}/24 dev eth{path}")
            sh(f"ip -n {namespace} link set eth{path} up")
            sh(f"ip -n {MIDDLE} link set {end}{path} up")
        sh(f"ip -n {NEAR} route add {TARGET} via 198.18.{path}.2 dev eth{path} metric {path + 1}")
        # Packets from each local address must use the interface with this address, so that the subflows use different
        # links.
        sh(f"ip -n {NEAR} rule add from 198.18.{path}.1 table {path + 10}")
        sh(f"ip -n {NEAR} route add {TARGET} via 198.18.{path}.2 dev eth{path} table {path + 10}")
    for namespace in (NEAR, FAR):
        sh(f"ip -n {namespace} mptcp limits set subflow 2 add_addr_accepted 2")
    sh(f"ip -n {NEAR} mptcp endpoint add 198.18.1.1 dev eth1 subflow")


def links(equipoise):
    start = lambda path, rate, delay, queue: inside(
        MIDDLE, equipoise, "link", "--between", f"near{path}", f"far{path}", "--rate", f"{rate}M",
        "--delay", f"{delay}ms", "--queue", f"{queue} ms", "-q",
    )  # fmt: skip
    started = [start(path, *line) for path, line in enumerate(LINKS)]
    time.sleep(1)
    return started


def octets():
    """Returns the number of bytes that each interface of the sender has sent so far."""
    read = lambda path: subprocess.run(
        ["ip", "netns", "exec", NEAR, "cat", f"/sys/class/net/eth{path}/statistics/tx_bytes"], capture_output=True, text=True
    )
    return [int(read(path).stdout) for path in (0, 1)]


def run(name, kind, rate_mbps, seconds, *around, control="none"):
    emulated = links(EQUIPOISE)
    ends = [inside(*end) for end in around]
    me = [sys.executable, os.path.abspath(__file__)]
    receiving = inside(FAR, *me, "sink", kind, str(seconds))
    time.sleep(1)
    before = octets()
    inside(NEAR, *me, "source", kind, str(rate_mbps), str(seconds), control).wait()
    after = octets()
    receiving.wait()
    for process in reversed(ends + emulated):
        process.terminate(), process.wait()
    rows = [tuple(map(float, line.split())) for line in open(RESULT) if not line.startswith("-1 ")]
    first = min(due for _, due, _ in rows)
    sent = int(seconds / (MESSAGE * 8 / rate_mbps / 1e6))
    delays = sorted(delay * 1e3 for _, due, delay in rows if due - first >= SETTLING)
    at = lambda share: delays[int(share * (len(delays) - 1))]
    second = (after[1] - before[1]) / max(1, sum(after) - sum(before))
    print(
        f"| {rate_mbps} Mbit/s | {name} | {statistics.mean(delays):.1f} | {at(0.5):.1f} | {at(0.95):.1f} | {at(0.99):.1f} "
        f"| {delays[-1]:.0f} | {sent - len(rows)} of {sent} | {second * 100:.0f} % |",
        flush=True,
    )


def main(seconds):
    wire()
    subprocess.run([EQUIPOISE, "keygen", "--force", KEY], check=True)
    print("| stream | carried by | delay: mean (ms) | p50 | p95 | p99 | longest | messages missing | on the second link |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for rate in (3, 7):
        for split in ("ap", "equal"):
            # The maximum rate of the session. It is above the rate of the stream, so that the session can catch up
            # after a stall.
            total = f"{rate * 1.25:.2f}M"
            send = [EQUIPOISE, "send", TARGET, "--key", KEY, "--path", "eth0", "--path", "eth1", "--scheduler", split]
            send += ["--rtp", "5006", "-b", total, "--delay", "one-way", "-t", "0", "-q"]
            receive = [EQUIPOISE, "receive", "-B", TARGET, "--key", KEY, "--rtp", "5008", "--hold", "400 ms", "-q"]
            run(f"equipoise, {split}", "rtp", rate, seconds, (FAR, *receive), (NEAR, *send))
        for control in ("cubic", "bbr"):
            run(f"MPTCP, {control}", "mptcp", rate, seconds, control=control)
    for namespace in (NEAR, MIDDLE, FAR):
        sh(f"ip netns delete {namespace}")


if sys.argv[1] == "source":
    source(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
elif sys.argv[1] == "sink":
    sink(sys.argv[2], float(sys.argv[3]))
else:
    EQUIPOISE = os.path.abspath(sys.argv[1])
    main(float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
