"""Computes the utilisation and the queueing delay of a live run from its two captures.

The queueing delay of a packet is its one-way delay between the captures, minus the propagation delay, minus its
transmission time at the current capacity. Both captures use the clock of the same kernel. A packet belongs to
the interval in which it left the bottleneck.
"""

import collections
import json
import socket
import struct

from bed import DELAY_MS
from problems import Unmeasured
from senders import SENDER

PROPAGATION_S = DELAY_MS * 1e-3
# Magic number of a pcap file with timestamps in ns, in this machine's byte order.
MAGIC = 0xA1B23C4D
IPV4, UDP, TCP = b"\x08\x00", 17, 6

Sent = collections.namedtuple("Sent", "at, key, size, is_tcp")
# `at` is the time at which the packet was sent. `left` is the time at which it left the bottleneck, or None if it was
# lost.
Packet = collections.namedtuple("Packet", "at, left, size, is_tcp")


def frames(path):
    """Yields a tuple for each frame with IPv4 in a capture: seconds, nanoseconds and the IP packet."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 24 or struct.unpack_from("<I", data)[0] != MAGIC:
        raise Unmeasured("no capture", path)
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        if len(frame) >= 42 and frame[12:14] == IPV4:
            yield seconds, nanoseconds, frame[14:]


def sent(path, begin_s):
    """Yields the packets in a capture that come from the sender. Each packet has its time in s since `begin_s`, and a
    key. A packet has the same key in the capture at the sender and in the capture at the receiver.
    """
    whole, part = int(begin_s), begin_s % 1
    source = socket.inet_aton(SENDER)
    for seconds, nanoseconds, packet in frames(path):
        if packet[12:16] != source:
            continue
        size, at = struct.unpack_from("!H", packet, 2)[0], seconds - whole + nanoseconds * 1e-9 - part
        body = packet[(packet[0] & 15) * 4 :]
        if packet[9] == UDP:
            # The key does not contain the UDP checksum, because the checksum may change on the emulated link.
            yield Sent(at, (size, body[:6], body[8:]), size, False)
        elif packet[9] == TCP:
            yield Sent(at, (size, packet[4:6], body[:16]), size, True)


def matched(near, far):
    """Yields the packets that were sent, each with the time at which it left the bottleneck."""
    arrivals = collections.defaultdict(collections.deque)
    for packet in far:
        arrivals[packet.key].append(packet.at)
    for packet in near:
        waiting = arrivals[packet.key]
        while waiting and waiting[0] < packet.at:
            waiting.popleft()
        left = waiting.popleft() - PROPAGATION_S if waiting else None
        yield Packet(packet.at, left, packet.size, packet.is_tcp)


def rate_bps(packets, begin, end):
    return 8 * sum(packet.size for packet in packets if packet.left is not None and begin <= packet.left < end) / (end - begin)


def part(case, media, begin, end):
    """Returns the results of a phase."""
    got = [packet for packet in media if packet.left is not None and begin <= packet.left < end]
    waits = [max(0.0, packet.left - packet.at - 8 * packet.size / case.capacity(packet.left)) for packet in got]
    offered = [packet for packet in media if begin <= packet.at < end]
    bits = 8 * sum(packet.size for packet in got)
    waits.sort()
    return {
        "utilisation": bits / case.bits(begin, end),
        "rate_bps": bits / (end - begin),
        "queueing_mean_s": sum(waits) / len(waits) if waits else None,
        "queueing_p95_s": waits[int(0.95 * (len(waits) - 1))] if waits else None,
        "loss": sum(packet.left is None for packet in offered) / len(offered) if offered else None,
    }


def lateness(path):
    """Returns how late the emulated link forwarded packets. This delay is caused by this machine, not by the
    senders.
    """
    with open(path, encoding="utf-8") as file:
        link = json.load(file)
    return {
        "late_p99_s": link["forward"]["late"]["p99_s"],
        "late_max_s": link["forward"]["late"]["max_s"],
        "stalled_s": sum(stall["end_s"] - stall["start_s"] for stall in link["stalls"]),
    }


def measure(case, out):
    """Returns the results of a live run, from the files that `bed.live` wrote to the folder `out`."""
    with open(f"{out}/meta.json", encoding="utf-8") as file:
        meta = json.load(file)
    packets = list(matched(*(list(sent(f"{out}/{end}.pcap", meta["begin_s"])) for end in "ab")))
    media = [packet for packet in packets if not packet.is_tcp]
    if not media:
        raise Unmeasured("no media", out)
    result = {"whole": part(case, media, 0, case.seconds)}
    result["phases"] = {f"{begin}-{end}": part(case, media, begin, end) for begin, end in case.phases}
    if case.tcp:
        result["tcp_bps"] = rate_bps([packet for packet in packets if packet.is_tcp], *case.tcp)
    result["each_second_kbps"] = [round(rate_bps(media, at, at + 1) / 1e3) for at in range(case.seconds)]
    return result | {"machine": lateness(f"{out}/link.json") | {"load": meta["load"]}}
