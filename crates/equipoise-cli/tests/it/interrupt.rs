//! Tests that Ctrl-C ends a live run cleanly, and that the report of the run is still written.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::support::{Folder, Running, equipoise, scenario};

/// The live run is on the loopback interface, and is interrupted after its first interval.
#[test]
fn an_interrupted_run_writes_what_it_measured_and_says_so_by_its_exit_code() {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let (json, report) = (folder.file("out.json"), folder.file("out.html"));
    let mut command = equipoise();
    command.args(["live", &scenario("demo"), "--json", &json, "--report", &report]).stderr(Stdio::null());
    // The first row below the table's header describes an interval that contains packets.
    let (mut live, _) = Running::ready(&mut command);
    assert!(live.line().is_some_and(|row| row.contains(" Mbit/s ")));
    let begin = Instant::now();
    assert_eq!(live.interrupt(), Some(130));
    // The scenario would last 40 s. The bound of 12 s is far above the usual time, because the machine may stall.
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
    assert_eq!(folder.names(), ["out.html", "out.json"]);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).expect("written")).expect("JSON");
    assert_eq!(json["runs"][0]["complete"], false);
    assert!(json["runs"][0]["flows"][0]["packets_received"].as_u64().expect("a count") > 0);
}
