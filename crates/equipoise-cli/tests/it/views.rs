//! Tests of the live views of a run: lines of JSON, a page, metrics, the terminal view, and a report.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::link::{report_in, start};
use crate::machine::Machine;
use crate::support::{Folder, Running, equipoise, eventually, installed, port_of, run, said, scenario, skip};

/// Timeout of reads. It is longer than any stall of the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a receiver on the loopback interface with the options in `arguments`. The standard error of the receiver is
/// written to the file `said`. Returns the receiver and its port.
fn receiver(arguments: &[&str], said: &str) -> (Running, String) {
    let mut command = equipoise();
    command.args(["receive", "-p", "0", "-B", "127.0.0.1", "--insecure"]).args(arguments);
    let running = Running::start(command.stderr(fs::File::create(said).expect("writable")));
    let port = port_of(running.id(), "udp").to_string();
    (running, port)
}

/// Returns the address at which a command serves `what`. The command prints the address to its standard error, which is
/// in the file `said`.
#[track_caller]
fn served(said: &str, what: &str) -> SocketAddr {
    let line = eventually("it says where it serves", || {
        let text = fs::read_to_string(said).ok()?;
        text.lines().find(|line| line.starts_with(&format!("serving {what} at http://"))).map(str::to_owned)
    });
    let address = line.split('/').nth(2).expect("an address");
    address.parse().expect("an address with a port")
}

/// Sends a request for `path` to a server, with the server's address in the `Host` header, as a browser does.
fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("sent");
    stream
}

fn body(address: SocketAddr, path: &str) -> String {
    let mut answer = String::new();
    ask(address, path).read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers and a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

fn send(port: &str, rate: &str, arguments: &[&str]) -> Command {
    let mut command = equipoise();
    command.args(["send", "127.0.0.1", "-p", port, "--insecure", "-b", rate, "-l", "500", "-i", "0.2"]);
    command.args(["--report-interval", "200ms"]).args(arguments);
    command
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().expect("a kind")).collect();
    kinds.dedup();
    kinds
}

/// Runs a link, a sender through this link, and a receiver. Each of the three must write events during the run and a
/// report after the run.
#[test]
fn all_three_tell_as_lines_of_json_while_they_run_and_write_reports() {
    let folder = Folder::new();
    let [received, errors] = ["received.jsonl", "errors"].map(|name| folder.file(name));
    let [link_report, send_report, receive_report] = ["l.html", "s.html", "r.html"].map(|name| folder.file(name));
    let stream = format!("--json-stream={received}");
    let (mut receiver, port) = receiver(&["-i", "0.2", "-1", "-q", &stream, "--report", &receive_report], &errors);
    let mut command = equipoise();
    command.args([
        "link",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &format!("127.0.0.1:{port}"),
        "--rate",
        "1.5M",
        "-i",
        "0.2",
    ]);
    command.args(["--queue", "20 packets", "--json-stream", "--report", &link_report]);
    let link = Running::start(&mut command);
    let line = |running: &Running| running.line().expect("a line");
    let begins: Value = serde_json::from_str(&line(&link)).expect("a line of JSON");
    assert_eq!((&begins["event"], &begins["command"]), (&"start".into(), &"link".into()));
    let through = begins["title"].as_str().and_then(|title| title.split(' ').nth(1)).expect("an address").to_owned();
    let through = through.rsplit(':').next().expect("a port");
    let sender = Running::start(&mut send(through, "1.6M", &["-t", "3", "--json-stream", "--report", &send_report]));
    let begins: Value = serde_json::from_str(&line(&sender)).expect("a line of JSON");
    assert_eq!(begins["event"], "start");
    // The receiver must write events while the sender still runs, even if the events are written to a file.
    let seen = eventually("the receiver reports an interval", || {
        let text = fs::read_to_string(&received).ok()?;
        text.lines().find(|line| line.contains("\"event\":\"interval\"")).map(str::to_owned)
    });
    let seen: Value = serde_json::from_str(&seen).expect("a line of JSON");
    assert!(seen["rate_bps"].as_f64() > Some(0.0) && seen["delay_p95_s"].is_number(), "{seen}");
    let mut sender = sender;
    let sent = events(&sender.rest());
    sender.finish();
    receiver.finish();
    let mut link = link;
    link.signal("INT");
    let carried = events(&link.rest());
    assert!(link.wait().success());
    let received = events(&fs::read_to_string(&received).expect("written"));
    assert_eq!(kinds(&received), ["start", "open", "interval", "end", "over"]);
    assert_eq!(kinds(&sent), ["open", "interval", "end", "over"]);
    assert_eq!(kinds(&carried), ["open", "interval", "end", "over"]);
    let of = |events: &[Value], key: &str, series: u64| -> u64 {
        let intervals = events.iter().filter(|it| it["event"] == "interval" && it["series"] == series);
        intervals.filter_map(|it| it[key].as_u64()).sum()
    };
    // The packets that the receiver did not get must have been dropped by the link, whose queue was full.
    let (packets, lost) = (of(&received, "packets", 0), of(&received, "packets_lost", 0));
    assert!(packets > 300 && of(&sent, "packets", 0) >= packets + lost, "{packets} and {lost} lost");
    assert!(lost > 10 && of(&carried, "packets_dropped", 0) >= lost, "{lost}");
    let queue = carried.iter().filter_map(|it| it["queue_mean_packets"].as_f64()).fold(0.0, f64::max);
    assert!((10.0..=20.0).contains(&queue), "{queue}");
    for (report, charts) in [(&link_report, 4), (&send_report, 2), (&receive_report, 3)] {
        let page = fs::read_to_string(report).expect("written");
        let drawn = page.matches("<svg class=\"plot\"").count();
        assert!(drawn >= charts && page.ends_with("</html>\n"), "{report}: {drawn} charts");
    }
}

/// If this test fails, the results are lost when the program that reads the events ends.
#[test]
fn results_are_written_even_if_nobody_reads_the_stream_any_more() {
    let folder = Folder::new();
    let results = folder.file("results.json");
    let mut command = equipoise();
    command.args(["link", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "-t", "1", "-i", "0.1", "--json-stream"]);
    let mut link = command.args(["--json", &results]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(link.stdout.take());
    assert!(!link.wait().expect("it ends").success(), "the stream was lost");
    assert!(report_in(&results)["lasted_s"].as_f64() > Some(0.9));
}

#[test]
fn a_live_run_tells_of_its_flows_until_it_is_interrupted() {
    let _machine = Machine::shared();
    let mut command = equipoise();
    command.args(["live", &scenario("demo"), "--json-stream"]).stderr(Stdio::null());
    let mut live = Running::start(&mut command);
    let mut told = String::new();
    while !told.contains("\"event\":\"interval\"") {
        told.push_str(&(live.line().expect("it goes on") + "\n"));
    }
    live.signal("INT");
    told.push_str(&live.rest());
    assert_eq!(live.wait().code(), Some(130));
    let told = events(&told);
    assert_eq!(kinds(&told), ["start", "open", "interval", "end", "over"]);
    let interval = &told[2];
    assert!(interval["flow"] == "media" && interval["rate_bps"].as_f64() > Some(0.0), "{interval}");
}

#[test]
fn the_page_follows_a_run_with_less_than_a_second_of_lag() {
    let folder = Folder::new();
    let errors = folder.file("errors");
    let begun = Instant::now();
    let (mut receiver, port) = receiver(&["-i", "0.2", "-1", "--serve", "0", "--metrics", "0"], &errors);
    let (page, metrics) = (served(&errors, "a page"), served(&errors, "metrics"));
    assert!(body(page, "/").contains("live.js") && body(page, "/live.js").contains("EventSource"));
    let mut following = BufReader::new(ask(page, "/events")).lines();
    let mut sender = Running::start(&mut send(&port, "2M", &["-t", "3", "-q"]));
    let mut lags = Vec::new();
    let mut last = None;
    while let Some(line) = following.next().map(|line| line.expect("text")) {
        let Some(event) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(event).expect("an event");
        if event["event"] == "interval" {
            // The lag is computed as an upper bound: `at_s` counts from the start of the run, which is later than
            // `begun`.
            lags.push(begun.elapsed().as_secs_f64() - event["at_s"].as_f64().expect("a time"));
        }
        if lags.len() == 5 && last.is_none() {
            assert!(body(metrics, "/metrics").contains("equipoise_sessions{direction=\"received\"} 1\n"));
        }
        last = Some(event["event"].as_str().unwrap_or_default().to_owned());
    }
    sender.finish();
    receiver.finish();
    assert_eq!(last.as_deref(), Some("over"), "it receives the end");
    lags.sort_by(f64::total_cmp);
    let median = lags.get(lags.len() / 2).copied().expect("intervals");
    assert!(lags.len() >= 10 && median < 1.0, "{lags:?}");
}

/// Tries three Python interpreters in this order: the interpreter that `EQUIPOISE_PYTHON` names, the first `python3` in
/// the `PATH`, and `/usr/bin/python3`. Returns the first interpreter that has `module`.
fn python_that_has(module: &str) -> Option<String> {
    let named = std::env::var("EQUIPOISE_PYTHON").ok();
    let all = named.into_iter().chain(["python3", "/usr/bin/python3"].map(str::to_owned));
    let has = |python: &String| Command::new(python).args(["-c", &format!("import {module}")]).output();
    all.into_iter().find(|python| has(python).is_ok_and(|output| output.status.success()))
}

/// If this test fails, scrapers may reject the metrics. The text is parsed by Prometheus' own Python library, which is
/// stricter than Prometheus.
#[test]
fn the_metrics_are_read_by_the_parser_of_prometheus() {
    let Some(python) = python_that_has("prometheus_client.openmetrics.parser") else {
        skip("a Python with prometheus_client (EQUIPOISE_PYTHON names one)");
        return;
    };
    let folder = Folder::new();
    let errors = folder.file("errors");
    let (mut receiver, port) = receiver(&["-i", "0.2", "-1", "--metrics", "0"], &errors);
    let metrics = served(&errors, "metrics");
    let mut sender = Running::start(&mut send(&port, "2M", &["-t", "2", "-q"]));
    let text = eventually("a session is measured", || {
        let text = body(metrics, "/metrics");
        text.contains("quantile=\"0.99\"").then_some(text)
    });
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        for family in parse(sys.stdin.read()):\n    \
            for sample in family.samples:\n        \
                print(family.type, sample.name, sample.labels.get('quantile', ''), sample.value)\n";
    let mut parser = Command::new(&python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    parser.stdin.take().expect("piped").write_all(text.as_bytes()).expect("taken");
    let output = parser.wait_with_output().expect("it ends");
    let parsed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    for part in ["gauge equipoise_sessions  1", "counter equipoise_bytes_total", "summary equipoise_delay_seconds 0.99"]
    {
        assert!(parsed.contains(part), "{part} is not in\n{parsed}");
    }
    sender.finish();
    receiver.finish();
}

/// If this test fails, the terminal view does not appear, or the user's terminal is not restored after the run.
#[test]
fn the_terminal_is_drawn_upon_and_given_back_and_without_one_there_are_lines() {
    if !installed("script") {
        return;
    }
    let equipoise = env!("CARGO_BIN_EXE_equipoise");
    let command = format!("stty rows 24 columns 100; {equipoise} receive -p 0 -B 127.0.0.1 --insecure --ui");
    for key in [&b"q"[..], b"\x03"] {
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &command, "/dev/null"]).env("TERM", "xterm");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is there");
        let mut keys = child.stdin.take().expect("piped");
        let mut output = child.stdout.take().expect("piped");
        let (post, pieces) = mpsc::channel();
        let reading = thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut some) {
                let _ = post.send(some[..count].to_vec());
            }
        });
        let mut seen = Vec::new();
        eventually("the terminal is drawn upon", || {
            seen.extend(pieces.try_iter().flatten());
            String::from_utf8_lossy(&seen).contains("q ends the run").then_some(())
        });
        keys.write_all(key).expect("taken");
        let code = eventually("it ends", || child.try_wait().expect("a child of ours")).code();
        assert_eq!(code, Some(130), "as by Ctrl-C");
        reading.join().expect("no panic");
        seen.extend(pieces.try_iter().flatten());
        let seen = String::from_utf8_lossy(&seen);
        let (enters, leaves) = (seen.find("\u{1b}[?1049h"), seen.rfind("\u{1b}[?1049l"));
        assert!(enters.is_some() && enters < leaves, "{seen:?}");
        // The first line about the run is printed only after the terminal is restored.
        assert!(seen.rfind("receiving sessions without") > leaves, "{seen:?}");
    }
    let output = run(&["receive", "-p", "0", "-B", "127.0.0.1", "--insecure", "--ui", "-t", "0.3"]);
    assert!(output.status.success() && said(&output).starts_with("receiving sessions without"), "{}", said(&output));
}

#[test]
fn what_cannot_be_served_is_said_before_the_run_and_who_else_may_look_is_warned_of() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let place = taken.local_addr().expect("bound").to_string();
    let receive = ["receive", "-p", "0", "--insecure", "-t", "0.1", "-q"];
    let output = run(&[&receive[..], &["--serve", &place]].concat());
    assert_eq!(output.status.code(), Some(4));
    assert!(said(&output).contains(&format!("cannot serve at {place}")), "{}", said(&output));
    let output = run(&[&receive[..], &["--serve", "8080.example"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = run(&[&receive[..], &["--json", "-", "--json-stream"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("mixed on standard output"), "{}", said(&output));
    for (place, is_warned) in [("0.0.0.0:0", true), ("0", false), ("[::ffff:127.0.0.1]:0", false)] {
        let output = run(&[&receive[..], &["--metrics", place]].concat());
        assert!(output.status.success());
        assert!(!said(&output).contains("serving"), "it is to be quiet");
        assert_eq!(said(&output).contains("warning: anyone who can reach"), is_warned, "{place}: {}", said(&output));
    }
}

/// Runs a link with traffic, and returns the 99th percentile of the lateness of the link's departures, in s. If
/// `is_watched`, a page and a scraper read the run's data.
fn lateness(folder: &Folder, is_watched: bool) -> f64 {
    let [report, errors] = ["link.json", "errors"].map(|name| folder.file(name));
    let (mut receiver, port) = receiver(&["-1", "-q"], &folder.file("receiver"));
    let mut command = equipoise();
    command.args(["link", "--listen", "127.0.0.1:0", "--to", &format!("127.0.0.1:{port}"), "--delay", "10ms"]);
    command.args(["--json", &report]).stderr(fs::File::create(&errors).expect("writable"));
    if is_watched {
        command.args(["--serve", "0", "--metrics", "0", "-i", "0.1"]);
    }
    let (mut link, line) = start(command);
    let following = is_watched.then(|| {
        let (page, metrics) = (served(&errors, "a page"), served(&errors, "metrics"));
        let lines = thread::spawn(move || BufReader::new(ask(page, "/events")).lines().map_while(Result::ok).count());
        (lines, metrics)
    });
    let through = line.split(' ').nth(1).and_then(|address| address.rsplit(':').next()).expect("an address");
    let mut sender = Running::start(&mut send(through, "4M", &["-t", "2", "-q"]));
    if let Some((_, metrics)) = &following {
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(700));
            assert!(body(*metrics, "/metrics").ends_with("# EOF\n"));
        }
    }
    sender.finish();
    receiver.finish();
    link.interrupt();
    if let Some((lines, _)) = following {
        assert!(lines.join().expect("no panic") > 30, "the page was told");
    }
    let report = report_in(&report);
    // On a busy machine, every part of the run may have stalls. Then `late_without_stalls` has no value, and `late` is
    // used.
    let mut late = ["late_without_stalls", "late"].iter().filter_map(|late| report["forward"][late]["p99_s"].as_f64());
    late.next().unwrap_or_else(|| panic!("{report}"))
}

/// If this test fails, live views delay packets. The test compares ten runs with views and ten runs without views, in
/// alternation.
#[test]
#[ignore = "real time: 45 s, alone on the machine"]
fn departures_are_as_punctual_with_a_page_and_a_scraper_as_without() {
    /// The 97.5th percentile of Student's t-distribution with 9 degrees of freedom.
    const T: f64 = 2.262;
    let _machine = Machine::alone();
    let folder = Folder::new();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        without.push(lateness(&folder, false));
        with.push(lateness(&folder, true));
    }
    let interval = |values: &[f64]| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, T * (variance / count).sqrt())
    };
    let (with, without) = (interval(&with), interval(&without));
    let micros = |(mean, half): (f64, f64)| format!("{:.0} ± {:.0} us", mean * 1e6, half * 1e6);
    println!("99 % of the packets left late by at most: watched {}; alone {}", micros(with), micros(without));
    assert!(with.0 - with.1 <= without.0 + without.1, "watched {}; alone {}", micros(with), micros(without));
}
