use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::peer::Peer;
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// Returns the simulators that are installed, each with its command for the scenario. Adds their versions to `sheet`.
pub(super) fn prepared(
    workspace: &Workspace,
    peers: &[Peer],
    scenario: &str,
    sheet: &mut Sheet,
) -> Result<Vec<(Peer, Vec<PathBuf>)>, Error> {
    let mut installed = Vec::new();
    for &peer in peers {
        if let Some(command) = peer.prepare(workspace, scenario)? {
            sheet.versions.push(peer.version());
            installed.push((peer, command));
        } else {
            println!("skipped: {} is not installed (apt-get install {})", peer.name(), peer.packages());
        }
    }
    Ok(installed)
}

/// The CSV file to be written: its columns, and one run of a simulator for each row, in the order of the rows.
#[derive(Debug)]
pub(super) struct Sheet {
    columns: &'static str,
    pub(super) versions: Vec<String>,
    pub(super) runs: Vec<Run>,
}

impl Sheet {
    pub(super) fn new(columns: &'static str) -> Self {
        Self { columns, versions: Vec::new(), runs: Vec::new() }
    }

    /// Runs all simulations, `jobs` at a time, and writes the file. The file begins with a comment that contains the
    /// simulators' versions and `command`. Writes no file if there are no runs.
    pub(super) fn write(&self, path: &Path, command: &str, jobs: u32) -> Result<(), Error> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let comment = format!("# {}; {}", self.versions.join("; "), command.trim_end());
        write_rows(path, &format!("{comment}\n{}", self.columns), &self.runs, jobs)?;
        println!("{} runs in {}", self.runs.len(), path.display());
        Ok(())
    }
}

/// Runs all simulations and writes their rows in order. If a run fails, the written rows are those of the first runs,
/// without a gap.
fn write_rows(path: &Path, head: &str, runs: &[Run], jobs: u32) -> Result<(), Error> {
    let unwritable = |source| Error::File { verb: "write", path: path.to_path_buf(), source };
    let mut file = File::create(path).map_err(unwritable)?;
    writeln!(file, "{head}").map_err(unwritable)?;
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..runs.len().min(jobs as usize) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(index) else { return };
                    // Sending fails if the receiver was dropped because another run failed or a row could not be
                    // written.
                    if sender.send((index, run.row())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut rows = InOrder::default();
        for (index, row) in receiver {
            for row in rows.take(index, row?) {
                writeln!(file, "{row}").map_err(unwritable)?;
            }
        }
        Ok(())
    })
}

/// Puts the rows of the runs into the order of the runs. This is needed because the runs may end in another order.
#[derive(Debug, Default)]
struct InOrder {
    given: usize,
    waiting: BTreeMap<usize, String>,
}

impl InOrder {
    /// Adds the row with this index, counted from 0. Returns all rows that can now be written in order.
    fn take(&mut self, index: usize, row: String) -> Vec<String> {
        self.waiting.insert(index, row);
        let mut ready = Vec::new();
        while let Some(row) = self.waiting.remove(&self.given) {
            self.given += 1;
            ready.push(row);
        }
        ready
    }
}

/// One run of a simulator, which is one process.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) peer: Peer,
    pub(super) command: Vec<PathBuf>,
    pub(super) arguments: Vec<String>,
    /// The text with which the printed row must begin.
    pub(super) start: String,
    pub(super) columns: &'static str,
}

impl Run {
    /// Runs the process. Returns the printed row, with the wall-clock time of the process as last column.
    fn row(&self) -> Result<String, Error> {
        let (program, arguments) = self.command.split_first().expect("every peer's command begins with its program");
        let process = Process::new(program).arguments(arguments);
        let mut printed = Vec::new();
        let start = Instant::now();
        process.arguments(&self.arguments).run_lines(|line| printed.push(line.to_string()))?;
        let wall = start.elapsed().as_secs_f64();
        match &printed[..] {
            [row] if is_row(row, &self.start, self.columns) => Ok(format!("{row},{wall:.3}")),
            _ => Err(Error::PeerRow {
                peer: self.peer.name(),
                arguments: self.arguments.join(" "),
                found: printed.join("\n"),
                columns: self.columns,
            }),
        }
    }
}

/// Whether the row begins with `start`, and each of the following columns is a finite number, `on` or `off`.
fn is_row(row: &str, start: &str, columns: &str) -> bool {
    let is_value = |field: &str| matches!(field, "on" | "off") || field.parse::<f64>().is_ok_and(f64::is_finite);
    // The row lacks the last column, the wall-clock time, which this program adds.
    row.split(',').count() + 1 == columns.split(',').count()
        && row
            .strip_prefix(start)
            .and_then(|rest| rest.strip_prefix(','))
            .is_some_and(|rest| rest.split(',').all(is_value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str = "peer,rate_mbps,seed,packets,mean_s,variance_s2,wall_s";

    #[test]
    fn rows_come_out_in_their_own_order_whichever_is_done_first() {
        let mut rows = InOrder::default();
        let mut given = Vec::new();
        for index in [2, 0, 3, 1, 4] {
            given.push(rows.take(index, index.to_string()));
        }
        assert_eq!(given, [vec![], vec!["0"], vec![], vec!["1", "2", "3"], vec!["4"]]);
    }

    #[test]
    fn a_row_begins_as_asked_and_has_a_value_in_every_column() {
        let start = "ns-2,3.0,1";
        assert!(is_row("ns-2,3.0,1,150000,0.0082,8.2e-07", start, COLUMNS));
        for row in [
            "ns-3,3.0,1,150000,0.0082,8.2e-07",
            "ns-2,3.0,2,150000,0.0082,8.2e-07",
            "ns-2,3.0,1,150000,0.0082",
            "ns-2,3.0,1,150000,0.0082,8.2e-07,1",
            "ns-2,3.0,1,0,nan,nan",
            "ns-2,3.0,1,0,of,0",
            "",
        ] {
            assert!(!is_row(row, start, COLUMNS), "{row}");
        }
    }
}
