//! The simulators that others use, over the same scenario: the programs of `bench/peers/`, by rate and seed into one CSV.

mod tcp;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// What a peer prints, and the wall-clock time of its process, which is measured here.
const COLUMNS: &str = "peer,rate_mbps,seed,packets,mean_s,variance_s2,wall_s";

/// The name of its programs in `bench/peers/`: `.tcl` for ns-2, `.cc` for ns-3.
const SCENARIO: &str = "waki2013-fig7";
const NS3_FLAGS: [&str; 3] = ["-std=c++17", "-O3", "-DNDEBUG"];
const NS3_LIBRARIES: [&str; 4] = ["-lns3-core", "-lns3-network", "-lns3-internet", "-lns3-point-to-point"];

/// Runs the peers that `words` ask for and writes their rows in order of peer, rate and seed.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<(), Error> {
    if let ["tcp", words @ ..] = words {
        return tcp::run(workspace, words);
    }
    let options = Options::parse(words)?;
    let mut sheet = Sheet::new(COLUMNS);
    for (peer, command) in prepared(workspace, &options.peers, SCENARIO, &mut sheet)? {
        for rate in options.rates.clone() {
            sheet.runs.extend((1..=options.seeds).map(|seed| {
                let arguments = vec![mbps(rate), seed.to_string(), options.seconds.to_string()];
                let start = format!("{},{},{seed}", peer.name(), mbps(rate));
                Run { peer, command: command.clone(), arguments, start, columns: COLUMNS }
            }));
        }
    }
    let path = options.out.clone().unwrap_or_else(|| workspace.target("peers.csv"));
    sheet.write(&path, &format!("cargo xtask peers {}", words.join(" ")), options.jobs)
}

/// Those of the peers that are installed, with the commands that want their arguments yet.
fn prepared(
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

/// The CSV to be: what runs, in the order of its rows.
#[derive(Debug)]
struct Sheet {
    columns: &'static str,
    versions: Vec<String>,
    runs: Vec<Run>,
}

impl Sheet {
    fn new(columns: &'static str) -> Self {
        Self { columns, versions: Vec::new(), runs: Vec::new() }
    }

    /// Runs all, `jobs` at a time, under a first line of versions and `command`; nothing where there is nothing to run.
    fn write(&self, path: &Path, command: &str, jobs: u32) -> Result<(), Error> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let comment = format!("# {}; {}", self.versions.join("; "), command.trim_end());
        write_rows(path, &format!("{comment}\n{}", self.columns), &self.runs, jobs)?;
        println!("{} runs in {}", self.runs.len(), path.display());
        Ok(())
    }
}

/// Writes each row once all those before it are there, so that what a failure leaves has no gaps.
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
                    // Nobody listens any more where another run failed.
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

/// Puts what comes in any order back into its own.
#[derive(Debug, Default)]
struct InOrder {
    given: usize,
    waiting: BTreeMap<usize, String>,
}

impl InOrder {
    /// Takes the row at `index`, counted from 0; gives all whose turn it is now.
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

/// A simulator that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Ns2,
    Ns3,
}

impl Peer {
    const ALL: [Self; 2] = [Self::Ns2, Self::Ns3];

    fn name(self) -> &'static str {
        match self {
            Self::Ns2 => "ns-2",
            Self::Ns3 => "ns-3",
        }
    }

    /// What it wants of Debian.
    fn packages(self) -> &'static str {
        match self {
            Self::Ns2 => "ns2",
            Self::Ns3 => "g++ libns3-dev",
        }
    }

    /// The version of its packages, where Debian's tools know it.
    fn version(self) -> String {
        let query = Process::new("dpkg-query").arguments(["--show", "--showformat", "${Package} ${Version}, "]);
        let packages = query.arguments(self.packages().split(' ')).output();
        packages.map_or_else(|_| self.name().to_string(), |known| known.trim_end_matches(", ").to_string())
    }

    /// The command that wants its arguments yet, built where it has to be; nothing where the peer is missing.
    fn prepare(self, workspace: &Workspace, scenario: &str) -> Result<Option<Vec<PathBuf>>, Error> {
        let source = |ending| workspace.path(format!("bench/peers/{scenario}.{ending}"));
        match self {
            Self::Ns2 => {
                let installed = Process::new("ns").argument("/dev/null").succeeds();
                Ok(installed.then(|| vec![PathBuf::from("ns"), source("tcl")]))
            }
            Self::Ns3 => {
                let header = ["-E", "-include", "ns3/ptr.h", "-x", "c++", "/dev/null"];
                if !Process::new("g++").arguments(header).succeeds() {
                    return Ok(None);
                }
                let folder = workspace.target("peers");
                fs::create_dir_all(&folder).map_err(|source| Error::File {
                    verb: "create",
                    path: folder.clone(),
                    source,
                })?;
                let program = folder.join(scenario);
                let compiler = Process::new("g++").arguments(NS3_FLAGS).argument(source("cc"));
                compiler
                    .argument("-o")
                    .argument(&program)
                    .argument("-Wl,--as-needed")
                    .arguments(NS3_LIBRARIES)
                    .run()?;
                Ok(Some(vec![program]))
            }
        }
    }
}

/// One process of a peer.
#[derive(Debug)]
struct Run {
    peer: Peer,
    command: Vec<PathBuf>,
    arguments: Vec<String>,
    /// What its row has to begin with.
    start: String,
    columns: &'static str,
}

impl Run {
    /// Runs it; its row, closed by the wall-clock time.
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

/// Whether it begins so and has a finite number, or `on` or `off`, in all its other columns.
fn is_row(row: &str, start: &str, columns: &str) -> bool {
    let is_value = |field: &str| matches!(field, "on" | "off") || field.parse::<f64>().is_ok_and(f64::is_finite);
    // The last column is not the peer's.
    row.split(',').count() + 1 == columns.split(',').count()
        && row
            .strip_prefix(start)
            .and_then(|rest| rest.strip_prefix(','))
            .is_some_and(|rest| rest.split(',').all(is_value))
}

/// A rate in steps of 0.1 Mbit/s, so that a range of them has exact ends.
type Tenths = u32;

fn mbps(rate: Tenths) -> String {
    format!("{}.{}", rate / 10, rate % 10)
}

/// What to run.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    peers: Vec<Peer>,
    rates: RangeInclusive<Tenths>,
    seeds: u32,
    seconds: u32,
    out: Option<PathBuf>,
    jobs: u32,
}

impl Default for Options {
    /// All of Waki 2013, Fig. 7, one process at a time.
    fn default() -> Self {
        Self { peers: Peer::ALL.to_vec(), rates: 1..=45, seeds: 10, seconds: 400, out: None, jobs: 1 }
    }
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, Error> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            let (option, value) = (pair[0], pair.get(1).copied().unwrap_or_default());
            let wrong = |want| Error::Option { option: option.to_string(), found: value.to_string(), want };
            let whole = || match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(wrong("a whole number of at least 1")),
            };
            match option {
                "--peers" => options.peers = peers(value).ok_or_else(|| wrong("`ns-2`, `ns-3` or `ns-2,ns-3`"))?,
                "--rates" => {
                    options.rates =
                        rates(value).ok_or_else(|| wrong("Mbit/s in steps of 0.1, as `3.0` or `0.1..4.5`"))?;
                }
                "--seeds" => options.seeds = whole()?,
                "--seconds" => options.seconds = whole()?,
                "--jobs" => options.jobs = whole()?,
                "--out" if !value.is_empty() => options.out = Some(PathBuf::from(value)),
                "--out" => return Err(wrong("a file")),
                _ => return Err(wrong("--peers, --rates, --seeds, --seconds, --out or --jobs")),
            }
        }
        Ok(options)
    }
}

fn peers(value: &str) -> Option<Vec<Peer>> {
    value.split(',').map(|name| Peer::ALL.into_iter().find(|peer| peer.name() == name)).collect()
}

fn rates(value: &str) -> Option<RangeInclusive<Tenths>> {
    let (first, last) = value.split_once("..").unwrap_or((value, value));
    let (first, last) = (tenths(first)?, tenths(last)?);
    (0 < first && first <= last).then_some(first..=last)
}

/// A decimal number with one digit behind its point, or with none and no point.
fn tenths(value: &str) -> Option<Tenths> {
    let (whole, tenth) = value.split_once('.').unwrap_or((value, "0"));
    let is_one_digit = tenth.len() == 1 && tenth.bytes().all(|digit| digit.is_ascii_digit());
    let whole: Tenths = whole.parse().ok()?;
    let tenth: Tenths = tenth.parse().ok().filter(|_| is_one_digit)?;
    whole.checked_mul(10)?.checked_add(tenth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order_and_the_rest_keeps_its_defaults() {
        let words = ["--rates", "0.3..12", "--peers", "ns-3", "--out", "a.csv", "--seeds", "5"];
        let read = Options::parse(&words).unwrap();
        let want = Options {
            peers: vec![Peer::Ns3],
            rates: 3..=120,
            seeds: 5,
            seconds: 400,
            out: Some(PathBuf::from("a.csv")),
            jobs: 1,
        };
        assert_eq!(read, want);
        assert_eq!(mbps(*read.rates.start()), "0.3");
        assert_eq!(mbps(*read.rates.end()), "12.0");
    }

    #[test]
    fn a_wrong_option_is_named() {
        for words in [
            ["--rates", "0"],
            ["--rates", "4.5..0.1"],
            ["--rates", "0.15"],
            ["--rates", "1.+"],
            ["--rates", "429496730"],
            ["--peers", "ns-4"],
            ["--jobs", "0"],
            ["--seeds", "many"],
            ["--out", ""],
            ["--speed", "1"],
        ] {
            let error = Options::parse(&words).unwrap_err();
            assert!(matches!(&error, Error::Option { option, .. } if option == words[0]), "{words:?}: {error}");
        }
        assert!(matches!(Options::parse(&["--seeds"]), Err(Error::Option { .. })));
    }

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
