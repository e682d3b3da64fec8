//! The bandwidth estimator of pion (`bench/peers/gcc`), as a running program and as recorded rates of this program.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::{env, fmt, fs};

use equipoise::control::{Fate, PacketFeedback};
use equipoise::units::{Instant, SenderClock, Size};

use super::draft::MIN_BPS;
use super::path::{FROM, MAX_BPS, Peer, START_BPS};

/// The rates of another implementation after each report, in bit/s.
pub(super) type Said = Rc<RefCell<Vec<u64>>>;

/// Builds pion's estimator with the command that `EQUIPOISE_GO` names. Returns `None` without that variable.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(super) fn build() -> Option<PathBuf> {
    let Some(go) = env::var_os("EQUIPOISE_GO") else {
        println!("skipped: EQUIPOISE_GO does not name the command `go`");
        return None;
    };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pion");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/gcc");
    let built = Command::new(go).args(["test", "-c", "-o"]).arg(&program).current_dir(folder).status();
    assert!(built.expect("EQUIPOISE_GO names a program").success(), "bench/peers/gcc does not build");
    Some(program)
}

/// A process that runs pion's estimator. Each packet and each feedback is passed to the process when it occurs.
pub(super) struct Pion {
    process: Child,
    events: ChildStdin,
    targets: BufReader<ChildStdout>,
    said: Said,
}

impl Pion {
    pub(super) fn start(program: &Path, said: Said) -> Self {
        let mut command = Command::new(program);
        command.args(["-test.run", "Targets"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("built");
        let events = process.stdin.take().expect("piped");
        let targets = BufReader::new(process.stdout.take().expect("piped"));
        let mut pion = Self { process, events, targets, said };
        pion.tell(format_args!("start {START_BPS} {MIN_BPS} {MAX_BPS}"));
        pion
    }

    fn tell(&mut self, event: fmt::Arguments<'_>) {
        writeln!(self.events, "{event}").expect("it reads");
    }
}

impl Drop for Pion {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Peer for Pion {
    fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, size: Size) {
        self.tell(format_args!("sent {} {number} {}", (now - FROM).as_nanos(), size.as_bytes()));
    }

    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<f64> {
        let first = feedback.packets.first()?.number;
        let mut arrivals = String::new();
        for packet in feedback.packets {
            match packet.fate {
                Fate::Arrived { at: Some(at), .. } => arrivals.push_str(&format!(" {}", at.as_nanos() / 1000)),
                _ => arrivals.push_str(" -"),
            }
        }
        self.tell(format_args!("report {} {first}{arrivals}", (now - FROM).as_nanos()));
        let mut line = String::new();
        self.targets.read_line(&mut line).expect("it answers");
        let bps = line.trim().strip_prefix("target ").and_then(|bps| bps.parse().ok());
        let bps: u64 = bps.unwrap_or_else(|| panic!("no target: {line}"));
        self.said.borrow_mut().push(bps);
        Some(bps as f64)
    }
}

/// The rates of pion's estimator on the test paths, recorded in `tests/it/gcc/pion.txt`.
pub(super) struct Recorded {
    targets: std::vec::IntoIter<u64>,
}

impl Recorded {
    /// Returns the recorded rates of a path, from the line that begins with the path's name.
    pub(super) fn of(name: &str) -> Self {
        let lines = include_str!("pion.txt").lines();
        let mut found = lines.filter_map(|line| line.split_once(": ")).filter(|(known, _)| *known == name);
        let (_, targets) = found.next().unwrap_or_else(|| panic!("no line of pion.txt is {name}"));
        let targets: Vec<u64> = targets.split(' ').map(|bps| bps.parse().expect("bit/s")).collect();
        Self { targets: targets.into_iter() }
    }
}

impl Peer for Recorded {
    fn on_sent(&mut self, _now: Instant<SenderClock>, _number: u64, _size: Size) {}

    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &PacketFeedback<'_>) -> Option<f64> {
        Some(self.targets.next().expect("a target for each report") as f64)
    }
}

/// Reads the trace `name` in the folder `EQUIPOISE_TEST_DATA`. Each line has the number of a second, counted from 1,
/// and the number of bytes carried in this second. Returns the changes of the capacity, which is a tenth of the trace's
/// rate, but at least 100 kbit/s.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(super) fn recorded_link(name: &str) -> Option<Vec<(f64, f64)>> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let file = env::var_os("EQUIPOISE_TEST_DATA").map_or(default, PathBuf::from).join(name);
    let Ok(text) = fs::read_to_string(&file) else {
        println!("skipped: test data (EQUIPOISE_TEST_DATA): a recorded link at {}", file.display());
        return None;
    };
    let seconds = text.lines().filter_map(|line| line.split_once(','));
    let changes = seconds.map(|(second, bytes)| {
        let bytes: f64 = bytes.trim().parse().expect("bytes");
        (second.parse::<f64>().expect("a second") - 1.0, (bytes * 8.0 / 10.0).max(100e3))
    });
    Some(changes.collect())
}
