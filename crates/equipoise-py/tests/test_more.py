"""Tests of comparisons, suites and packet captures."""

import csv
import json
import os
import struct
import subprocess
from pathlib import Path

import polars
import pytest

import equipoise


class Slow:
    """A law that always allows 0.1 Mbit/s."""

    def __init__(self, packet_bytes: int) -> None:
        pass

    def on_feedback(self, now_s: float, feedback: object) -> None:
        pass

    def allowance(self) -> float:
        return 1e5


def test_controllers_are_compared_on_the_same_seeds(root: Path) -> None:
    """Compares a built-in controller with a law in Python. If this test fails, the tables differ from the JSON of the
    comparison. """
    found = equipoise.compare("scenarios/demo-short.toml", ["ap", "slow"], laws={"slow": Slow}, runs=3, seed=2)
    assert found.flow == "media"
    rate = found.metrics.where(metric="delivered_rate_bps")
    assert rate["variant"] == ["ap", "slow"] and rate["word"] == [None, "less"]
    assert rate["mean"][1] == pytest.approx(1e5, rel=0.05)
    values = polars.DataFrame(found.values.where(metric="delivered_rate_bps", variant="ap"))
    assert values["seed"].to_list() == [2, 3, 4] and values["value"].mean() == pytest.approx(rate["mean"][0])
    told = found.to_dict()["flows"][0]["metrics"][0]["variants"][1]["difference"]
    assert told["mean"] == rate["difference"][1]
    assert found.to_html().startswith("<!DOCTYPE html>")


def test_scenarios_are_compared_by_name() -> None:
    """If this test fails, the keys of a dict are not the names of the variants, or two scenarios in a list may have the
    same name. """
    found = equipoise.compare({"one": equipoise.DEMO, "other": equipoise.DEMO}, set={"flow.media.start": "1 s"}, runs=2)
    assert set(found.metrics["word"]) <= {None, "equal"}
    with pytest.raises(equipoise.EquipoiseError, match="the name `demo`"):
        equipoise.compare([equipoise.DEMO, equipoise.DEMO], runs=2)
    with pytest.raises(equipoise.EquipoiseError, match="similar one exists: `aimd`"):
        equipoise.compare(equipoise.DEMO, ["ap", "amid"])
    with pytest.raises(equipoise.ScenarioError) as wrong:
        equipoise.compare(equipoise.DEMO, ["ap", "aimd"], set={"duration": "long"})
    assert wrong.value.key == "duration"


def test_a_case_of_rfc_8867_runs() -> None:
    """If this test fails, the table of a suite differs from the JSON or the CSV of the suite."""
    found = equipoise.suite(["5.1/50ms-link"], ["gcc", "equipoise"], runs=2)
    [gcc, ours] = found.to_dict()["results"]
    used = found.metrics.where(scope="run", metric="utilisation")
    assert used["controller"] == ["gcc", "equipoise"]
    assert used["mean"] == [gcc["utilisation"]["mean"], ours["utilisation"]["mean"]]
    # Each cell of the table equals the cell in the same row and column of the CSV.
    head, *rows = csv.reader(found.to_csv().splitlines())
    assert found.metrics.columns == head and len(found.metrics) == len(rows) > 50
    for place, name in enumerate(head):
        cells = [row[place] for row in rows]
        if name in {"mean", "lo", "hi", "start_s", "end_s", "runs"}:
            assert found.metrics[name] == [float(cell) if cell else None for cell in cells]
        else:
            assert [cell or "" for cell in found.metrics[name]] == cells
    assert set(found.metrics["scope"]) == {"run", "flow", "phase"}
    assert len(found.not_run) == 0 and found.to_html().startswith("<!DOCTYPE html>")
    with pytest.raises(equipoise.EquipoiseError, match=r"there is no case `9\.9`"):
        equipoise.suite(["9.9"])
    with pytest.raises(ValueError, match="fq_codel"):
        equipoise.suite(["5.1"], aqm="red")


def segment(sequence: int, acknowledged: int, data: bytes, *, back: bool) -> bytes:
    """An IPv4 packet with a TCP segment. Both checksums are 0, and there is no link-layer header."""
    ends = (b"\x0a\0\0\x02\x0a\0\0\x01", (80, 40000)) if back else (b"\x0a\0\0\x01\x0a\0\0\x02", (40000, 80))
    tcp = struct.pack(">HHIIBBHHH", *ends[1], sequence, acknowledged, 5 << 4, 0x10, 65535, 0, 0) + data
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends[0] + tcp


def test_round_trip_times_come_out_of_a_capture(tmp_path: Path) -> None:
    """Each pair of segments is acknowledged 20 ms after its second segment, so the median round-trip time is 20 ms."""
    frames, sequence = [], 1000
    for number in range(40):
        at = number * 100_000
        frames += [(at, segment(sequence, 1, b"x" * 1000, back=False)), (at + 100, segment(sequence + 1000, 1, b"x" * 1000, back=False))]
        sequence += 2000
        frames.append((at + 20_100, segment(1, sequence, b"", back=True)))
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for at, frame in frames:
        pcap += struct.pack("<IIII", at // 1_000_000, at % 1_000_000, len(frame), len(frame)) + frame
    file = tmp_path / "pairs.pcap"
    file.write_bytes(pcap)
    found = equipoise.capture_rtt(file, bin="1 ms")
    [row] = polars.DataFrame(found.directions).to_dicts()
    assert row["from"] == "10.0.0.1:40000" and row["samples"] >= 35 and row["p50_s"] == pytest.approx(0.020, abs=2e-4)
    assert found.to_dict()["frames"] == len(frames)
    with pytest.raises(equipoise.EquipoiseError, match="no unit"):
        equipoise.capture_rtt(file, bin="1")
    (tmp_path / "no.pcap").write_bytes(b"nothing of the kind")
    with pytest.raises(equipoise.EquipoiseError):
        equipoise.capture_rtt(tmp_path / "no.pcap")


def test_streams_of_rtp_come_out_of_a_capture(root: Path, tmp_path: Path) -> None:
    """If this test fails, the package finds other RTP streams in a capture than the command ``equipoise``."""
    command = os.environ.get("EQUIPOISE_COMMAND")
    if command is None:
        pytest.skip("EQUIPOISE_COMMAND names the command; ./x python does")
    capture, told = tmp_path / "run.pcapng", tmp_path / "rtp.json"
    subprocess.run([command, "sim", "scenarios/demo-short.toml", "--pcapng", capture, "--quiet"], check=True)
    subprocess.run([command, "capture", "rtp", capture, "--clock-rate", "90000", "--json", told, "--quiet"], check=True)
    found = equipoise.capture_rtp(capture, clock_rate=90_000)
    expected = json.loads(told.read_text(encoding="utf-8"))
    assert found.to_dict() == expected and found.to_json() == told.read_text(encoding="utf-8")
    near, far = polars.DataFrame(found.streams).to_dicts()
    assert near["interface"] == 0 and near["delay_mean_s"] is None and near["payload_types"] == "96"
    assert far["delay_mean_s"] == expected["streams"][1]["delay"]["mean_s"] and far["packets"] == near["packets"] - far["lost"]
    assert far["jitter_last_s"] == expected["streams"][1]["jitter"]["last_s"]
    assert sum(found.seconds.where(interface=1)["packets"]) == far["packets"]
    samples = [sample for trip in expected["round_trips"] for sample in trip["samples"]]
    assert found.round_trips["round_trip_s"] == [sample["round_trip_s"] for sample in samples]
    assert equipoise.capture_rtp(capture).streams["jitter_mean_s"] == [None, None]
    with pytest.raises(ValueError, match="90000"):
        equipoise.capture_rtp(capture, clock_rate=0)
    with pytest.raises(OSError, match="missing.pcap"):
        equipoise.capture_rtp(tmp_path / "missing.pcap")
