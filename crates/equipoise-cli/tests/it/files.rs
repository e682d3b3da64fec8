//! Tests of input and output files. An output file must be correct and complete, or it must not exist.

use std::fs;
use std::io::Read as _;
use std::process::{Output, Stdio};

use crate::support::{Folder, equipoise, run, said, scenario};

#[test]
fn a_wrong_scenario_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let text =
        fs::read_to_string(scenario("demo")).expect("readable").replace("target = \"8.2 ms\"", "target = \"4 ms\"");
    let line = 1 + text.lines().position(|line| line.contains("target = \"4 ms\"")).expect("the demo has a target");
    let line = format!("line {line},");
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
        for words in ["wrong.toml", &*line, "target = \"4 ms\"", "5 ms", "hint:"] {
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

/// If this test fails, text for the user stands in front of a report on standard output.
#[test]
fn a_report_on_standard_output_is_nothing_but_html() {
    let demo = scenario("demo-short");
    let commands: [&[&str]; 3] = [
        &["sim", &demo],
        &["compare", &demo, "--controller", "ap,tfrc", "--runs", "2"],
        &["suite", "rfc8867", "5.1/50ms-link", "--runs", "2", "--controllers", "tfrc"],
    ];
    for command in commands {
        let done = run(&[command, &["--report", "-"]].concat());
        let page = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{command:?}: {}", said(&done));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{command:?}: {page:.100}");
    }
}

/// Runs the command with its standard output in a pipe. Reads the first `after` bytes from the pipe, and closes the
/// pipe. Returns the command's standard error and exit status.
fn unread(arguments: &[&str], after: usize) -> Output {
    let mut child =
        equipoise().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut output = child.stdout.take().expect("piped");
    output.read_exact(&mut vec![0; after]).expect("it prints more than that");
    drop(output);
    child.wait_with_output().expect("it ends")
}

/// If the reader of a pipe ends early, as `head` does, the command must print neither an error message nor a panic.
/// Text for the user may be lost without an error, but lost results must change the exit code.
#[test]
fn a_closed_pipe_ends_every_printing_quietly() {
    let (demo, folder) = (scenario("demo-short"), Folder::new());
    let report = folder.file("report.html");
    let texts = [&["completions", "bash"][..], &["controllers"], &["check", &demo], &["sim", &demo], &["--help"]];
    let results = [&["sim", &demo, "--json", "-"][..], &["paper", "waki2013", "fig5", "--json", "-"]];
    let quiet = |arguments: &[&str], after, code| {
        let ended = unread(arguments, after);
        assert_eq!((ended.status.code(), said(&ended).as_str()), (Some(code), ""), "{arguments:?}");
    };
    for arguments in texts {
        quiet(arguments, 0, 0);
    }
    for arguments in results {
        quiet(arguments, 0, 141);
    }
    quiet(&["sim", &demo, "--trace", "-", "--report", &report], 80, 141);
    assert_eq!(folder.names(), ["report.html"], "other results are written all the same");
}

/// Writes to `/dev/full`, a device that can be opened but not written. If the test fails, the message says that nothing
/// was run, although the run took place.
#[test]
fn results_that_are_lost_after_the_run_are_not_said_to_be_those_of_no_run() {
    let lost = run(&["sim", &scenario("demo-short"), "--json", "/dev/full"]);
    assert_eq!(lost.status.code(), Some(5), "{}", said(&lost));
    assert!(said(&lost).contains("the run took place") && !said(&lost).contains("nothing was run"), "{}", said(&lost));
}

/// A scenario: a call of 2.5 Mbit/s over a link of 5 Mbit/s. The delay of the call stays below the controller's target.
const CALL: &str = r#"
name = "call"
duration = "60 s"
warm_up = "10 s"
[[link]]
name = "access"
rate = "5 Mbit/s"
delay = "15 ms"
queue = "300 ms"
[[flow]]
name = "call"
path = ["access"]
packet_size = "1200 B"
report_interval = "200 ms"
controller = { name = "ap", target = "40 ms", max_rate = "4 Mbit/s" }
source = { kind = "video", rate = "2.5 Mbit/s", length = "60 s", peak = 3.0, cv = 0.3 }
"#;

/// An additional flow: an upload that fills the queue. The delay of the call then exceeds twice its target for more
/// than 2 s.
const UPLOAD: &str = r#"
[[flow]]
name = "upload"
path = ["access"]
packet_size = "1500 B"
start = "30 s"
window = { name = "reno" }
tcp = { transfer = "5 MB" }
"#;

/// If this test fails, the exit code of `--check` contradicts the judgement in the report.
#[test]
fn whether_it_held_is_said_in_the_terminal_in_the_report_and_by_the_exit_code() {
    let folder = Folder::new();
    let (file, report) = (folder.file("call.toml"), folder.file("report.html"));
    let fixed = CALL.replace("name = \"ap\", target = \"40 ms\", max_rate", "name = \"cbr\", rate");
    let cases = [
        (CALL.to_owned(), 0, "held; less delay than asked for", "verdict held"),
        (format!("{CALL}{UPLOAD}"), 6, "an excursion lasted longer than 2 s", "verdict missed"),
    ];
    for (scenario, code, sentence, class) in cases {
        fs::write(&file, scenario).expect("writable");
        let checked = run(&["sim", &file, "--check", "--report", &report]);
        let page = fs::read_to_string(&report).expect("written");
        assert_eq!(checked.status.code(), Some(code), "{}", said(&checked));
        assert!(said(&checked).contains(sentence) && page.contains(sentence), "{}", said(&checked));
        assert!(page.contains(&format!("<p class=\"{class}\"><strong>Simulated, call</strong>")), "{sentence}");
        assert!(!page.contains("<p class=\"verdict held\"><strong>Simulated, upload"), "TCP has nothing to hold");
        assert_eq!(run(&["sim", &file, "--quiet"]).status.code(), Some(0), "nobody asked");
    }
    fs::write(&file, fixed).expect("writable");
    assert_eq!(run(&["sim", &file, "--report", &report]).status.code(), Some(0));
    let page = fs::read_to_string(&report).expect("written");
    assert!(
        page.contains("<p class=\"verdict\"><strong>Simulated, call</strong>") && page.contains("it has no target")
    );
    let unchecked = run(&["sim", &file, "--check"]);
    assert!(
        unchecked.status.code() == Some(2) && said(&unchecked).contains("nothing to check"),
        "{}",
        said(&unchecked)
    );
}
