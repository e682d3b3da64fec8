//! Ctrl-C ends a live run cleanly, and its report is written.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Folder, equipoise, scenario};

#[test]
fn an_interrupted_run_writes_what_it_measured_and_says_so_by_its_exit_code() {
    let folder = Folder::new();
    let (json, report) = (folder.file("out.json"), folder.file("out.html"));
    let mut child = equipoise()
        .args(["live", &scenario("demo"), "--json", &json, "--report", &report])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    sleep(Duration::from_secs(3));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    // Not the forty seconds of the scenario; the bound allows for a machine that stands still now and then.
    let deadline = Instant::now() + Duration::from_secs(15);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(130));
    assert_eq!(folder.names(), ["out.html", "out.json"]);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).expect("written")).expect("JSON");
    assert_eq!(json["runs"][0]["complete"], false);
    assert!(json["runs"][0]["flows"][0]["packets_received"].as_u64().expect("a count") > 0);
}
