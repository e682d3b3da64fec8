//! Runs the command's demo, and checks the files that it writes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::Error;
use crate::process::Process;
use crate::workspace::{self, Workspace};

/// Runs the short demo of the README with the debug build of the command, and checks the written files.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    demo(&workspace.build_command()?, &["--short"])
}

/// Runs the demo of the README with `command`, and checks the written files.
pub(crate) fn demo(command: &Path, options: &[&str]) -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("equipoise-smoke-{}", std::process::id()));
    let ran = Process::new(command).argument("demo").arguments(options).argument("--out").argument(&folder).run();
    let found = ran.and_then(|()| inspect(&folder));
    // Remove the folder, even after an error, because this process created it.
    let removed = fs::remove_dir_all(&folder);
    found?;
    removed.map_err(|source| Error::File { verb: "remove", path: folder, source })
}

fn inspect(folder: &Path) -> Result<(), Error> {
    let (page, data) = (folder.join("report.html"), folder.join("report.json"));
    if !workspace::read(&page)?.contains("</html>") {
        return Err(Error::Report { path: page, missing: "the page does not end as HTML does" });
    }
    let text = workspace::read(&data)?;
    let report: Value = serde_json::from_str(&text).map_err(|source| Error::Json { path: data.clone(), source })?;
    let packets = judge_all(&report).map_err(|missing| Error::Report { path: data, missing })?;
    println!("the report is there: {packets} media packets received in both worlds together");
    Ok(())
}

/// Returns the total number of packets received in all parts of the demo, or a text that says what the reports lack.
fn judge_all(reports: &Value) -> Result<u64, &'static str> {
    let reports = reports.as_array().filter(|all| all.len() == PARTS).ok_or("it is no list of the demo's two parts")?;
    reports.iter().map(judge).sum()
}

/// Number of parts of the demo. One is a session with a target delay, the other a session with Equipoise's own law.
const PARTS: usize = 2;

/// Returns the total number of packets received in the simulated run and the live run. Returns an error if a run is
/// missing, or if a flow received no packet.
fn judge(report: &Value) -> Result<u64, &'static str> {
    let runs = report["runs"].as_array().ok_or("it has no list `runs`")?;
    let mut packets = 0;
    for (world, missing) in [("sim", "it has no simulated run"), ("live", "it has no live run")] {
        let run = runs.iter().find(|run| run["world"] == world).ok_or(missing)?;
        let flows = run["flows"].as_array().ok_or("a run has no list `flows`")?;
        if flows.is_empty() {
            return Err("a run has no flow");
        }
        for flow in flows {
            match flow["packets_received"].as_u64() {
                Some(received) if received > 0 => packets += received,
                _ => return Err("a flow received no packet"),
            }
        }
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_wants_both_worlds_and_packets_in_every_flow() {
        let run = |world: &str, received: u64| json!({"world": world, "flows": [{"packets_received": received}]});
        assert_eq!(judge(&json!({"runs": [run("sim", 3), run("live", 4)]})), Ok(7));
        assert_eq!(judge(&json!({"runs": [run("sim", 3)]})), Err("it has no live run"));
        assert_eq!(judge(&json!({"runs": [run("sim", 3), run("live", 0)]})), Err("a flow received no packet"));
        assert_eq!(judge(&json!({})), Err("it has no list `runs`"));
    }
}
