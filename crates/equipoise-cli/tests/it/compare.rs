//! Tests of `--set`, of runs with several files or several seeds, and of `equipoise compare`.

use std::path::Path;
use std::{env, fs};

use serde_json::Value;

use crate::support::{Folder, run, said, scenario};

/// Runs the command, and returns its JSON output.
#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let done = run(&[arguments, &["--json", "-", "--quiet"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    serde_json::from_slice(&done.stdout).expect("JSON alone")
}

#[test]
fn set_changes_what_runs_and_the_results_say_so() {
    let demo = scenario("demo-short");
    let set =
        ["--set", "duration=8s", "--set", "flow.media.controller.b=2", "--set", "link.bottleneck.rate=\"10 Mbit/s\""];
    let changed = json(&[&["sim", &demo][..], &set].concat());
    assert_eq!(changed["duration_s"], 8.0);
    assert!(changed["steps"][0]["rate_bps"] == 10_000_000, "{}", changed["steps"]);
    let text = changed["scenario_text"].as_str().expect("a text");
    assert!(text.contains("b = 2") && text.contains("rate = \"10 Mbit/s\""), "{text}");
    let explained = said(&run(&[&["check", &demo][..], &set].concat()));
    assert!(explained.contains("runs for 8 s") && explained.contains("b = 2"), "{explained}");
}

/// Tests the errors of `--set`. They must not contain line numbers of the changed scenario text, because the user does
/// not see this text.
#[test]
fn a_wrong_set_is_refused_by_name_with_what_would_be_right() {
    let demo = scenario("demo-short");
    let cases: [(&str, i32, &[&str]); 9] = [
        ("durration=30s", 3, &["--set 'durration=30s'", "a similar one exists: `duration`"]),
        (
            "flow.media.controller.taget=9ms",
            3,
            &["--set 'flow.media.controller.taget=9ms'", "a similar one exists: `target`"],
        ),
        ("flow.media.packetsize=9", 3, &["a similar one exists: `packet_size`"]),
        ("link.bottleneck.rate=15", 3, &["--set 'link.bottleneck.rate=15'", "has no unit"]),
        ("flow.madia.start=1s", 3, &["--set 'flow.madia.start=1s'", "there are: media, background"]),
        ("flow.media.controller.min_rate=20M", 3, &["--set 'flow.media.controller.min_rate=20M'", "above `max_rate`"]),
        ("flow.media.controller.max_rate=0.05M", 3, &["flow.media.controller.min_rate", "above `max_rate`"]),
        ("name=2", 3, &["--set 'name=2'", "expected a string", "quotes"]),
        ("duration", 2, &["'--set <KEY=VALUE>'", "KEY=VALUE, such as"]),
    ];
    for command in ["sim", "check"] {
        for (set, code, expected) in cases {
            let refused = run(&[command, &demo, "--set", set]);
            let message = said(&refused);
            assert_eq!(refused.status.code(), Some(code), "{set}: {message}");
            for words in expected {
                assert!(message.contains(words), "{set} is refused with `{message}`, without `{words}`");
            }
            assert!(!message.contains("line "), "{set}: {message}");
        }
    }
}

/// Tests the errors of invalid scenario files. The errors must contain line numbers of the file, whatever `--set`
/// changes.
#[test]
fn a_wrong_file_is_told_from_a_wrong_set() {
    let folder = Folder::new();
    let file = folder.file("wrong.toml");
    let demo = fs::read_to_string(scenario("demo")).expect("readable");
    let text = demo.replace("queue = \"1000 packets\"", "queue = \"many\"");
    let line = 1 + text.lines().position(|line| line == "queue = \"many\"").expect("the demo has a queue");
    fs::write(&file, text).expect("writable");
    let refused = said(&run(&["sim", &file, "--set", "duration=30s"]));
    let place = format!("line {line}, column 9: queue = \"many\"");
    assert!(refused.contains(&place) && !refused.contains("--set"), "{refused}");
}

#[test]
fn several_files_are_listed_one_after_another_and_share_report_and_json() {
    let folder = Folder::new();
    let (json, report, trace) = (folder.file("both.json"), folder.file("both.html"), folder.file("trace.csv"));
    let (demo, idle) = (scenario("demo-short"), scenario("idle"));
    let done = run(&[
        "sim",
        &demo,
        &idle,
        "--set",
        "duration=10s",
        "--set",
        "warm_up=2s",
        "--json",
        &json,
        "--report",
        &report,
    ]);
    let listed = said(&done);
    assert_eq!(done.status.code(), Some(0), "{listed}");
    let places = ["demo-short.toml", "idle.toml"].map(|name| listed.find(name).expect(name));
    assert!(places[0] < places[1], "{listed}");
    let results: Value = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    assert_eq!([0, 1].map(|file| results[file]["scenario"].clone()), ["demo-short", "idle"]);
    let page = fs::read_to_string(report).expect("written");
    assert_eq!(page.matches("<h1>").count(), 2);
    assert_eq!(page.matches("Chart: One-way delay of each control interval").count(), 2);
    let refused = run(&["sim", &demo, &idle, "--trace", &trace]);
    assert!(refused.status.code() == Some(2) && said(&refused).contains("single run"), "{}", said(&refused));
    let missing = run(&["sim", &demo, &folder.file("no.toml")]);
    assert!(missing.status.code() == Some(3) && !said(&missing).contains("sim "), "nothing is run: {}", said(&missing));
}

#[test]
fn many_runs_are_one_table_of_means_with_their_intervals() {
    let demo = scenario("demo-short");
    let table = said(&run(&["sim", &demo, "--runs", "5"]));
    assert!(table.contains("sim: 5 runs, seeds 1 to 5; mean ± 95 %"), "{table}");
    assert!(table.contains("media (ap)  ") && table.contains("background"), "{table}");
    let row = table.lines().find(|line| line.starts_with("settled delay (ms)")).expect("a row");
    assert_eq!(row.matches('±').count(), 2, "{row}");
    assert_eq!(table.lines().filter(|line| line.contains(" media")).count(), 2, "a column and a judgement: {table}");
    let results = json(&["sim", &demo, "--runs", "5"]);
    assert_eq!(results["runs"].as_array().map(Vec::len), Some(5), "JSON keeps all runs");
    let settled = &results["summary"][0]["flows"][0]["metrics"]["settled_delay_s"];
    assert_eq!(settled["runs"], 5);
    let mean = settled["mean"].as_f64().expect("a mean");
    assert!(row.contains(&format!("{:.3} ± ", mean * 1e3)), "{row} has not {mean}");
    assert!(json(&["sim", &demo])["summary"].is_null(), "a single run has no mean");
}

#[test]
fn charts_of_many_runs_show_their_spread() {
    let folder = Folder::new();
    let report = folder.file("many.html");
    assert_eq!(run(&["sim", &scenario("demo-short"), "--runs", "4", "--report", &report]).status.code(), Some(0));
    let page = fs::read_to_string(report).expect("written");
    for words in
        ["mean of each interval: 10 % to 90 % of 4 runs", "median of the runs", "the first run", "median of the 4 runs"]
    {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn controllers_are_compared_on_the_same_seeds() {
    let folder = Folder::new();
    let demo = scenario("demo");
    let page = |name: &str, threads: &str| {
        let (report, json) = (folder.file(&format!("{name}.html")), folder.file(&format!("{name}.json")));
        let set = ["--set", "flow.media.controller.rate=6 Mbit/s", "--runs", "3", "--threads", threads];
        let done =
            run(&[&["compare", &demo, "--controller", "ap,tfrc,cbr", "--report", &report, "--json", &json][..], &set]
                .concat());
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        (said(&done), fs::read_to_string(report).expect("written"), fs::read_to_string(json).expect("written"))
    };
    let one = page("one", "1");
    assert!(one == page("two", "2"), "the number of threads shows");
    let (table, page, json) = one;
    assert!(table.starts_with("ap, tfrc, cbr, simulated with 3 runs on the seeds 1 to 3 each\n"), "{table}");
    assert!(table.contains("difference from ap") && table.contains("Pareto-optimal"), "{table}");
    assert!(page.contains("difference from ap ± 95 %") && page.contains("<svg") && page.contains(", Pareto-optimal"));
    let results: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(results["variants"][2]["name"], "cbr");
    assert!(results["variants"][2]["scenario_text"].as_str().expect("a text").contains("rate = \"6 Mbit/s\""));
    let metric = |key: &str| {
        let all = results["flows"][0]["metrics"].as_array().expect("metrics");
        all.iter().find(|found| found["metric"] == key).expect("a metric")["variants"].clone()
    };
    let delay = metric("delay_mean_s");
    let value = |variant: usize, run: usize| delay[variant]["values"][run].as_f64().expect("measured");
    let by_hand = (0..3).map(|run| value(2, run) - value(0, run)).sum::<f64>() / 3.0;
    let difference = &delay[2]["difference"];
    assert!((difference["mean"].as_f64().expect("a mean") - by_hand).abs() < 1e-12, "{difference}");
    // The variant `cbr` sends 6 Mbit/s. Other traffic has first 9 and then 10.5 Mbit/s. The sum first reaches and then
    // exceeds the capacity of 15 Mbit/s. In the other variant, AP controls the flow and reduces its rate. So the delay
    // is larger with `cbr` than with AP.
    assert_eq!((difference["word"].as_str(), &delay[0]["difference"]), (Some("more"), &Value::Null));
    let alone = json_of_seed(&demo, 2);
    assert_eq!(alone, delay[0]["values"][1], "a run is the same alone and in a comparison");
}

/// A recorded mobile downlink. It has a queue of 1 s and is shared with the traffic of another user.
const LTE: &str = r#"
name = "recorded"
duration = "40 s"
warm_up = "5 s"

[[link]]
name = "downlink"
rate_trace = "TRACE"
delay = "30 ms"
queue = "1 s"
back = { rate_trace = "TRACE", rate_offset = "20 s" }

[[flow]]
name = "media"
path = ["downlink"]
packet_size = "1200 B"
report_interval = "200 ms"
controller = { name = "ap", target = "100 ms" }

[[flow]]
name = "other"
path = ["downlink"]
packet_size = "1200 B"
source = { kind = "poisson", rate = "300 kbit/s" }
"#;

#[test]
fn controllers_are_compared_on_a_recorded_path() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = env::var_os("EQUIPOISE_TEST_DATA").map_or(default, Into::into);
    let trace = data.join("links/mahimahi/ATT-LTE-driving-2016.down.gz");
    if !trace.is_file() {
        println!("skipped: test data (EQUIPOISE_TEST_DATA): a recorded path at {}", trace.display());
        return;
    }
    let folder = Folder::new();
    let file = folder.file("recorded.toml");
    fs::write(&file, LTE.replace("TRACE", &trace.display().to_string())).expect("writable");
    let rate = ["--set", "flow.media.controller.rate=1.4 Mbit/s"];
    let compare = ["compare", &file, "--controller", "ap,tfrc,cbr", "--runs", "4", "--flow", "media"];
    let results = json(&[&compare[..], &rate].concat());
    let metrics = results["flows"][0]["metrics"].as_array().expect("metrics");
    let delay = &metrics.iter().find(|found| found["metric"] == "delay_mean_s").expect("delays")["variants"];
    let mean = |variant: usize| {
        let values = delay[variant]["values"].as_array().expect("four runs");
        values.iter().map(|value| value.as_f64().expect("measured")).sum::<f64>() / 4.0
    };
    // AP reacts to delay. TFRC reacts only to losses, which occur late because the queue can contain 1 s of traffic.
    assert!(mean(0) < 0.75 * mean(1), "AP {}, TFRC {}", mean(0), mean(1));
    let difference = &delay[1]["difference"];
    assert!((difference["mean"].as_f64().expect("paired") - (mean(1) - mean(0))).abs() < 1e-9, "{difference}");
    assert!(difference["ci95"][0].as_f64().is_some_and(|least| least > 0.0), "{difference}");
}

/// Simulates the scenario `file` with the seed `seed`. Returns the mean delay of the scenario's first flow.
fn json_of_seed(file: &str, seed: u32) -> Value {
    json(&["sim", file, "--seed", &seed.to_string()])["runs"][0]["flows"][0]["delay"]["mean_s"].clone()
}

#[test]
fn files_are_compared_by_the_names_of_their_scenarios() {
    let folder = Folder::new();
    let other = folder.file("other.toml");
    let text = fs::read_to_string(scenario("demo-short")).expect("readable");
    fs::write(&other, text.replace("name = \"demo-short\"", "name = \"slow\"").replace("b = 300", "b = 3000"))
        .expect("writable");
    let done = said(&run(&["compare", &scenario("demo-short"), &other, "--runs", "2", "--flow", "media"]));
    assert!(done.starts_with("demo-short, slow, simulated") && done.contains("difference from demo-short"), "{done}");
    let same = said(&run(&["compare", &scenario("demo-short"), &other, &other, "--runs", "2"]));
    assert!(same.contains("two variants have the name"), "{same}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_could_be() {
    let demo = scenario("demo-short");
    let cases: [(&[&str], i32, &[&str]); 7] = [
        (&[&demo], 2, &["1 file and 0 controllers", "hint: for example"]),
        (&[&demo, "--controller", "ap"], 2, &["1 controller"]),
        (&[&demo, &demo, "--controller", "ap,cbr"], 2, &["2 files and 2 controllers"]),
        (&[&demo, "--controller", "ap,cbr"], 3, &["cbr needs `rate`", "--set 'flow.media.controller.rate=3 Mbit/s'"]),
        (&[&demo, "--controller", "ap,tfcr"], 3, &["no controller `tfcr`", "`tfrc`", "equipoise controllers"]),
        (&[&demo, "--controller", "ap,aimd", "--flow", "background"], 3, &["with a `controller`; there are: media"]),
        (
            &[&demo, "--controller", "ap,cbr", "--set", "flow.media.controller.rate=3ms"],
            3,
            &["--set 'flow.media.controller.rate=3ms'"],
        ),
    ];
    for (arguments, code, expected) in cases {
        let refused = run(&[&["compare"], arguments].concat());
        let message = said(&refused);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {message}");
        for words in expected {
            assert!(message.contains(words), "{arguments:?} is refused with `{message}`, without `{words}`");
        }
    }
    assert_eq!(run(&["compare", &demo, "--controller", "ap,cbr", "--runs", "1"]).status.code(), Some(2), "no interval");
}
