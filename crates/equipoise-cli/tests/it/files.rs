//! What is read and written: the right files, or none.

use std::fs;

use crate::support::{Folder, run, said, scenario};

#[test]
fn a_wrong_scenario_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let text =
        fs::read_to_string(scenario("demo")).expect("readable").replace("target = \"8.2 ms\"", "target = \"4 ms\"");
    let file = folder.file("wrong.toml");
    fs::write(&file, text).expect("writable");
    for command in ["check", "sim", "live"] {
        let mut arguments = vec![command, &file];
        let json = folder.file("out.json");
        if command != "check" {
            arguments.extend(["--json", &json]);
        }
        let refused = run(&arguments);
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
        let message = said(&refused);
        for words in ["wrong.toml", "line 25", "target = \"4 ms\"", "5 ms", "hint:"] {
            assert!(message.contains(words), "{words} is missing from {message}");
        }
        assert_eq!(folder.names(), ["wrong.toml"]);
    }
    assert_eq!(run(&["check", &folder.file("missing.toml")]).status.code(), Some(3));
}

#[test]
fn an_output_that_cannot_be_written_is_said_before_the_run_begins() {
    let folder = Folder::new();
    let nowhere = folder.file("no/such/folder/out.json");
    for option in ["--json", "--report", "--trace"] {
        let refused = run(&["live", &scenario("demo"), option, &nowhere]);
        assert_eq!(refused.status.code(), Some(5), "{}", said(&refused));
        assert!(said(&refused).contains("nothing was run"));
    }
    let file = folder.file("file");
    fs::write(&file, "").expect("writable");
    assert_eq!(run(&["demo", "--out", &file]).status.code(), Some(5), "a file is no folder");
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_any_number_of_threads() {
    let folder = Folder::new();
    let json = |name: &str, threads: &str| {
        let file = folder.file(name);
        let demo = scenario("demo-short");
        let done = run(&["sim", &demo, "--runs", "4", "--threads", threads, "--json", &file, "--quiet"]);
        assert_eq!((done.status.code(), said(&done).as_str()), (Some(0), ""), "quiet means quiet");
        fs::read(file).expect("written")
    };
    let one = json("a.json", "1");
    assert!(one == json("b.json", "1") && one == json("c.json", "3"));
}

#[test]
fn json_on_standard_output_is_nothing_but_json_and_the_trace_has_every_packet() {
    let folder = Folder::new();
    let trace = folder.file("trace.csv");
    let done = run(&["sim", &scenario("demo-short"), "--json", "-", "--trace", &trace]);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON alone");
    let received: u64 = json["runs"][0]["flows"]
        .as_array()
        .expect("flows")
        .iter()
        .map(|flow| flow["packets_received"].as_u64().expect("a count"))
        .sum();
    let trace = fs::read_to_string(trace).expect("written");
    assert!(trace.starts_with("time_s,flow,event,"));
    assert_eq!(trace.matches(",media-received,").count() as u64, received);
    assert_eq!(folder.names(), ["trace.csv"], "nothing preliminary is left");
}
