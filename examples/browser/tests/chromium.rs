//! A test with a short call to a real browser. It needs Debian's package `chromium`, Node.js and npm, and takes half a
//! minute.
#![allow(clippy::print_stdout, reason = "why it was skipped")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CHROMIUM: &str = "/usr/bin/chromium";

/// Returns what this machine lacks for a video call to Chromium; `None` if nothing is missing. Downloads puppeteer-core
/// if necessary.
fn missing() -> Option<&'static str> {
    let answers = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !Path::new(CHROMIUM).exists() {
        return Some("no Chromium at /usr/bin/chromium");
    }
    if !answers("node") || !answers("npm") {
        return Some("no node or no npm");
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("js");
    if scripts.join("node_modules/puppeteer-core").exists() {
        return None;
    }
    let fetched = Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(scripts).output();
    if fetched.is_ok_and(|it| it.status.success()) { None } else { Some("npm cannot fetch puppeteer-core") }
}

/// If this test fails, Chromium does not decode the video, or the sender does not follow the capacity. The utilisation
/// is measured only in the last 3 s of each phase. Because this time is short, the test requires only 0.5.
#[test]
#[ignore = "a real browser in real time"]
fn chromium_decodes_what_we_send_while_the_path_steps() {
    if let Some(missing) = missing() {
        println!("skipped: {missing}");
        return;
    }
    let run = Command::new(env!("CARGO_BIN_EXE_browser")).args(["--phase", "8", "--json"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&run.stdout).expect("a report in JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    let (sent, decoded) = (number(&report["frames_sent"]), number(&report["frames_decoded"]));
    assert!(sent > 400.0 && decoded >= 0.95 * sent, "{decoded} of {sent} frames decoded");
    let through = &report["through"];
    for phase in through["phases"].as_array().expect("four phases") {
        assert!(number(&phase["used"]) > 0.5, "{phase}");
    }
    assert!(number(&through["queueing_p95_s"]) < 0.12, "{}", through["queueing_p95_s"]);
    let longest = report["gaps"].as_array().expect("a list").iter().map(|gap| number(&gap[1])).fold(0.0, f64::max);
    assert!(longest < 2.0, "no new picture for {longest} s");
}
