//! Tests the files that a simulated run writes for other programs: captures, packets, intervals, decisions and qlog.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, installed, run, said, scenario};

/// The lowest severity that fails a test: tshark's number for a note. A warning has the number 0x00600000.
const NOTE: u32 = 0x0040_0000;

#[track_caller]
fn done(arguments: &[&str]) {
    let done = run(arguments);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
}

fn json(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).expect("written")).expect("JSON")
}

/// Returns the values of `fields` for all frames of a capture, one line per frame.
fn frames(capture: &str, fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", capture, "-d", "udp.port==5004,rtp", "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let read = tshark.stderr(Stdio::null()).output().expect("tshark was there a moment ago");
    assert!(read.status.success(), "tshark does not know a field or cannot read the capture");
    String::from_utf8_lossy(&read.stdout).lines().map(str::to_owned).collect()
}

/// The scenarios contain sessions over one and over two paths, live media, and flow pairs (TCP and RTP). Of a flow
/// pair, only the RTP packets are captured.
#[test]
fn tshark_reads_every_capture_of_the_simulator_without_a_complaint() {
    if !installed("tshark") {
        return;
    }
    let folder = Folder::new();
    let capture = folder.file("run.pcapng");
    for name in ["demo-short", "call", "two-paths", "tobe1999/fig10"] {
        done(&["sim", &scenario(name), "--pcapng", &capture, "--quiet"]);
        let frames = frames(&capture, &["_ws.malformed", "_ws.expert.severity", "frame.protocols"]);
        assert!(frames.len() > 100, "{name}: {} frames", frames.len());
        let mut has = [0; 2];
        for frame in &frames {
            let columns: Vec<&str> = frame.split('\t').collect();
            let worst = columns[1].split(',').filter_map(|severity| severity.parse::<u32>().ok()).max();
            assert!(columns[0].is_empty() && worst.is_none_or(|worst| worst < NOTE), "{name}: {frame}");
            for (count, protocol) in has.iter_mut().zip([":rtp", ":rtcp"]) {
                *count += usize::from(columns[2].contains(protocol));
            }
        }
        assert!(has[0] > 0 && has[1] > 0, "{name}: {has:?}");
    }
}

/// If this test fails, two of the five output files of a run contradict each other.
#[test]
fn capture_packets_intervals_and_log_say_the_same_as_the_results() {
    let folder = Folder::new();
    let names = ["run.json", "run.pcapng", "packets.csv", "intervals.csv", "log.jsonl", "rtp.json"];
    let [results, capture, packets, intervals, log, rtp] = names.map(|name| folder.file(name));
    let short = ["--set", "duration=6s", "--set", "warm_up=0s"];
    let outputs = ["--pcapng", &capture, "--packets-csv", &packets, "--intervals-csv", &intervals, "--log", &log];
    let demo = scenario("demo-short");
    done(&[&["sim", &demo, "--json", &results, "--quiet"][..], &short, &outputs].concat());
    let results = json(&results);
    let flow = &results["runs"][0]["flows"][0];

    let decided: u64 = flow["decisions"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    let log = fs::read_to_string(log).expect("written");
    let reasons = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    assert_eq!(reasons.filter(|line| line["reason"].is_string() && line["rate_bps"].is_u64()).count() as u64, decided);

    let intervals = fs::read_to_string(intervals).expect("written");
    let of_media = intervals.lines().filter(|line| line.starts_with("demo-short,sim,1,media,")).count();
    assert_eq!(of_media, flow["intervals"].as_array().expect("a list").len());

    let packets = fs::read_to_string(packets).expect("written");
    let media: Vec<Vec<&str>> =
        packets.lines().filter(|line| line.starts_with("media,")).map(|line| line.split(',').collect()).collect();
    assert_eq!(media.len() as u64, flow["packets_sent"].as_u64().expect("a count"));
    let delays: Vec<f64> = media.iter().filter_map(|row| row[5].parse().ok()).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;

    done(&["capture", "rtp", &capture, "--json", &rtp, "--quiet"]);
    let rtp = json(&rtp);
    let streams = rtp["streams"].as_array().expect("a list");
    assert_eq!(streams.len(), 2, "one stream at both ends: {streams:?}");
    assert_eq!(streams[0]["packets"].as_u64(), flow["packets_sent"].as_u64());
    assert_eq!(streams[1]["packets"].as_u64(), flow["packets_received"].as_u64());
    let delay = &streams[1]["delay"];
    assert_eq!((delay["from_interface"].as_u64(), delay["packets"].as_u64()), (Some(0), Some(delays.len() as u64)));
    let found = delay["mean_s"].as_f64().expect("a number");
    assert!((found - mean).abs() < 1e-8, "{found} in the capture, {mean} in the list of packets");
    let trips = rtp["round_trips"][0]["samples"].as_array().expect("reports answer each other");
    // The path's delay is 5 ms in each direction. A queue adds further delay.
    assert!(
        trips.iter().all(|trip| (0.009..0.1).contains(&trip["round_trip_s"].as_f64().expect("a number"))),
        "{trips:?}"
    );
}

/// Returns the records of a JSON text sequence file. Each record is a separate JSON text.
fn records(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("written");
    let records = text.split('\u{1e}').skip(1);
    records.map(|record| serde_json::from_str(record).expect("a record is JSON")).collect()
}

/// The scenarios contain a session with background traffic, a session with live media, and a session over two paths.
/// Each end has a qlog file. The number of sent or received packets in each file must match the results.
#[test]
fn qlog_has_a_file_for_each_end_and_says_the_same_as_the_results() {
    for (name, ends) in [("demo-short", 2), ("call", 2), ("two-paths", 2)] {
        let folder = Folder::new();
        let [results, out] = ["run.json", "qlog"].map(|name| folder.file(name));
        done(&["sim", &scenario(name), "--json", &results, "--qlog", &out, "--quiet"]);
        let flows = json(&results)["runs"][0]["flows"].as_array().expect("a list").clone();
        let names: Vec<_> = fs::read_dir(&out).expect("made").map(|file| file.expect("readable").file_name()).collect();
        assert_eq!(names.len(), ends, "{name}: {names:?}");
        for (place, flow) in flows.iter().enumerate() {
            let file =
                |end: &str| format!("{out}/{}-{}-{end}.sqlog", place + 1, flow["name"].as_str().expect("a name"));
            if fs::metadata(file("sender")).is_err() {
                continue;
            }
            for (end, event, key) in [
                ("sender", "quic:packet_sent", "packets_sent"),
                ("receiver", "quic:packet_received", "packets_received"),
            ] {
                let records = records(&file(end));
                assert_eq!(records[0]["serialization_format"], "application/qlog+json-seq", "{name}");
                assert_eq!(records[0]["trace"]["common_fields"]["group_id"], flow["name"]);
                let count = records.iter().filter(|record| record["name"] == event).count() as u64;
                assert_eq!(Some(count), flow[key].as_u64(), "{name}: {key} of {}", flow["name"]);
                let paths = records.iter().filter(|record| record["tuple"].is_string()).count();
                assert_eq!(paths > 0, name == "two-paths", "{name}: {paths} events of paths");
            }
        }
        let again = folder.file("again");
        done(&["sim", &scenario(name), "--qlog", &again, "--quiet"]);
        for file in names {
            let bytes = |folder: &str| fs::read(Path::new(folder).join(&file)).expect("written");
            assert!(bytes(&out) == bytes(&again), "{name}: the bytes of {file:?} depend on more than the seed");
        }
    }
}

#[test]
fn what_is_of_one_run_is_refused_for_several() {
    let folder = Folder::new();
    let (demo, out) = (scenario("demo-short"), folder.file("out"));
    for option in ["--pcapng", "--log", "--packets-csv", "--qlog"] {
        let runs = run(&["sim", &demo, option, &out, "--runs", "2"]);
        assert_eq!(runs.status.code(), Some(2), "{}", said(&runs));
        let files = run(&["sim", &demo, &demo, option, &out]);
        assert_eq!(files.status.code(), Some(2), "{}", said(&files));
        assert!(said(&files).contains(option), "{}", said(&files));
    }
    assert!(folder.names().is_empty(), "nothing was written");
}
