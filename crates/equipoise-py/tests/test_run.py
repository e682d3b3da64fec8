"""Tests of runs of scenarios, and of their results."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import equipoise

SHORT = {"duration": "12 s", "warm_up": "2 s", "flow.background.source.steps": None}


def test_dict_text_and_file_are_the_same_scenario(root: Path, tmp_path: Path) -> None:
    """If this test fails, the results depend on the form in which the scenario is passed."""
    link = {"name": "l", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "300 ms"}
    controller = {"name": "ap", "target": "40 ms", "b": 300}
    flow = {"name": "media", "path": ["l"], "packet_size": "1000 B", "report_interval": "1 s", "controller": controller}
    scenario = {"name": "idle", "duration": "20 s", "link": [link], "flow": [flow]}
    text = equipoise.run(scenario).scenario_text
    file = tmp_path / "idle.toml"
    file.write_text(text)
    dicts = [equipoise.run(source).to_dict() for source in (scenario, text, file, str(file))]
    assert all(found == dicts[0] for found in dicts)
    assert dicts[0]["runs"][0]["flows"][0]["packets_sent"] > 100


def test_overrides_set_insert_and_remove(root: Path) -> None:
    """If this test fails, an override cannot change a value, cannot add a missing key, or cannot remove a key with
    None."""
    changed = equipoise.run("scenarios/demo.toml", set={**SHORT, "flow.media.start": "1 s", "flow.media.controller.b": 200.5})
    assert changed.summary["duration_s"] == 12
    assert changed.steps["at_s"] == [0, 0], "no step is left"
    assert changed.intervals.where(flow="media")["start_s"][0] == 1


def test_seeds_count_on_and_threads_change_nothing() -> None:
    """If this test fails, a run depends on the other runs or on the number of threads, and not only on its seed."""
    many = [equipoise.run(equipoise.DEMO, set=SHORT, seed=5, runs=3, threads=threads, series=True) for threads in (1, 3)]
    assert many[0].to_json() == many[1].to_json()
    assert many[0].flows.where(flow="media")["seed"] == [5, 6, 7]
    alone = equipoise.run(equipoise.DEMO, set=SHORT, seed=6)
    assert alone.to_dict()["runs"][0] == many[0].to_dict()["runs"][1]
    assert many[0].means.where(flow="media", metric="delay_mean_s")["runs"] == [3]
    without = equipoise.run(equipoise.DEMO, set=SHORT, seed=5, runs=3, series=False)
    assert len(without.intervals) == 0
    assert without.summary == many[0].summary


def flat(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Return the keys of a JSON object as names of columns, with their values. Lists, and the objects named in the code
    below, have no columns.
    """
    for key, value in row.items():
        if isinstance(value, dict) and key not in {"ignored", "decisions", "circuit_broken", "pair"}:
            yield from flat(value, f"{before}{key}_")
        elif not isinstance(value, dict | list):
            yield before + key, value


@pytest.mark.parametrize("file", ["demo-short.toml", "call.toml", "web.toml", "kodama2009/beyond-noise.toml", "two-paths.toml"])
def test_columns_are_the_keys_of_the_json(root: Path, file: str) -> None:
    """If this test fails, a value of a flow, a link or an interval is in the JSON but not in the table."""
    short = {"duration": "25 s", "warm_up": "5 s"} if file == "web.toml" else None
    result = equipoise.run(f"scenarios/{file}", set=short, series=True)
    [run] = result.to_dict()["runs"]

    def check(table: equipoise.Table, rows: list[dict[str, Any]], names: dict[str, str]) -> None:
        assert len(table) == len(rows)
        columns = {name: table[name] for name in table.columns}
        for place, row in enumerate(rows):
            for key, value in flat(row):
                inner = [column for column in columns if column.startswith(f"{key}_")] if value is None else []
                for column in inner or [names.get(key, key)]:
                    assert columns[column][place] == value, (file, key)

    check(result.flows, run["flows"], {"name": "flow"})
    check(result.links, run["links"], {"name": "link"})
    check(result.intervals, [row for flow in run["flows"] for row in flow["intervals"]]
          + [row for flow in run["flows"] for path in flow.get("paths", []) for row in path["intervals"]], {})
    check(result.paths, [path for flow in run["flows"] for path in flow.get("paths", [])], {"name": "path"})
    check(result.link_samples, [row for link in run["links"] for row in link.get("samples", [])], {})
    check(result.tcp_samples, [row for flow in run["flows"] for row in flow.get("tcp", {}).get("samples", [])], {})
    check(result.received, [row for flow in run["flows"] for row in flow.get("received", [])], {})
    check(result.distribution, [row for flow in run["flows"] for row in flow["distribution"]], {})
    check(result.phases, run.get("media", {}).get("phases", []), {})
    beliefs = [row for flow in run["flows"] for row in flow.get("beliefs", [])]
    assert [round(value, 9) for value in result.beliefs["queue_s"]] == [pytest.approx(row["queue_s"]) for row in beliefs]


def test_pandas_polars_and_pyarrow_take_tables() -> None:
    """If this test fails, pandas, polars or pyarrow shows a wrong value of a table, or a value where nothing was
    measured."""
    table = equipoise.run(equipoise.DEMO, set=SHORT).flows
    for frame in (pandas.DataFrame.from_arrow(table), polars.DataFrame(table), pyarrow.table(table)):
        assert list(frame.schema.names() if isinstance(frame, polars.DataFrame) else
                    frame.columns if isinstance(frame, pandas.DataFrame) else frame.column_names) == table.columns
        assert list(map(int, frame["packets_sent"].to_numpy())) == table["packets_sent"]
    assert polars.DataFrame(table)["target_s"].to_list() == table["target_s"] == [0.0082, None]
    assert pyarrow.schema(table).names == table.columns  # type: ignore[arg-type]


def test_the_report_is_a_page() -> None:
    """If this test fails, the report is not an HTML page."""
    assert equipoise.run(equipoise.DEMO, set=SHORT).to_html().startswith("<!DOCTYPE html>")


def test_errors_name_line_and_key(root: Path, tmp_path: Path) -> None:
    """If this test fails, an exception does not say what is wrong, or has a wrong line, column or key."""
    with pytest.raises(equipoise.ScenarioError, match="15 Mbits") as wrong:
        equipoise.run(equipoise.DEMO.replace('rate = "15 Mbit/s"', 'rate = "15 Mbits"'))
    assert (wrong.value.line, wrong.value.key) == (equipoise.DEMO.split('rate = "15 Mbit/s"')[0].count("\n") + 1, "rate")
    assert wrong.value.column is not None and isinstance(wrong.value, ValueError)
    with pytest.raises(equipoise.ScenarioError) as wrong:
        equipoise.run(equipoise.DEMO + "\nnonsense")
    assert wrong.value.line is not None and wrong.value.key is None
    with pytest.raises(equipoise.ScenarioError, match="similar one exists: `target`") as wrong:
        equipoise.run("scenarios/demo.toml", set={"flow.media.controller.taget": "9 ms"})
    assert (wrong.value.line, wrong.value.key) == (None, "flow.media.controller.taget")
    with pytest.raises(FileNotFoundError, match=r"missing\.toml"):
        equipoise.run(tmp_path / "missing.toml")
    with pytest.raises(TypeError, match="no NoneType"):
        equipoise.run({"name": None})
    with pytest.raises(ValueError, match="1 or more"):
        equipoise.run(equipoise.DEMO, runs=0)
    with pytest.raises(equipoise.EquipoiseError, match="too much"):
        equipoise.run(equipoise.DEMO, set={"duration": "100000 h"})


@pytest.mark.parametrize("runs", [1, 4])
def test_control_c_ends_a_run(runs: int) -> None:
    """If this test fails, Ctrl-C does not end a long run within 5 s."""
    sent = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    sent.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        equipoise.run(equipoise.DEMO, set={"duration": "5 h"}, runs=runs)
    assert time.monotonic() - start < 5
    sent.join()


def test_other_threads_run_meanwhile() -> None:
    """If this test fails, a run holds the global interpreter lock (GIL), so that other Python threads stop."""
    counted, is_over = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_over.wait(0.001):
            counted += 1

    counting = threading.Thread(target=count)
    counting.start()
    equipoise.run(equipoise.DEMO, set={"duration": "600 s"})
    is_over.set()
    counting.join()
    assert counted >= 5


@pytest.mark.parametrize("runs", [1, 8])
def test_progress_is_told_and_its_exception_ends_the_run(runs: int) -> None:
    """If this test fails, the reported progress falls or does not reach 1, or an exception of the callback does not end
    the run."""
    shares: list[float] = []
    equipoise.run(equipoise.DEMO, set={"duration": "120 s"}, runs=runs, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1

    def refuse(share: float) -> None:
        raise LookupError(share)

    with pytest.raises(LookupError):
        equipoise.run(equipoise.DEMO, set={"duration": "5 h"}, runs=runs, progress=refuse)


def test_the_json_is_that_of_the_command(root: Path) -> None:
    """If this test fails, the JSON of ``to_json`` is not byte for byte the JSON that the command writes."""
    ran = [os.environ["EQUIPOISE_COMMAND"], "sim", "scenarios/demo-short.toml", "--seed", "3", "--json", "-", "--quiet"]
    printed = subprocess.run(ran, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed)["seed"] == 3
    assert equipoise.run("scenarios/demo-short.toml", seed=3, series=True).to_json() == printed


def test_explain_says_what_would_run() -> None:
    """If this test fails, ``explain`` does not name the controller of the session, or ``controllers`` lacks a
    controller."""
    assert "RTP session under `ap`" in equipoise.explain(equipoise.DEMO)
    names = [entry["name"] for entry in equipoise.controllers()]
    assert "equipoise" in names and "gcc" in names
