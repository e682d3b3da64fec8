//! An experiment beyond the paper: pairs of paths whose capacities were measured on a Wi-Fi network and a cellular
//! network at the same time and place.

use std::path::{Path, PathBuf};
use std::{fs, io};

use equipoise::units::{Rate, Schedule, Span};
use thiserror::Error;

use super::setting::{EQUAL, METHODS, MIN_DELAY, Method, Outcome, Row, TOTALS, geometric, session};
use super::{Found, Lab, Options, Spec};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::SimError;

/// Suffixes of the names of the two files that describe a pair of paths.
const ENDS: [&str; 2] = ["_wifi.csv", "_cellular.csv"];
/// Mean capacity of the better path of each pair after scaling, in bit/s. Both capacities of a pair are multiplied by
/// the same factor. The mean equals the rate of the `WiMAX` path in our scenario, so that the pairs can have the same
/// total rates ([`TOTALS`]).
const BETTER: f64 = 5.1e6;
/// Propagation delays of the Wi-Fi path and of the cellular path, in ms. Our choice, because the files contain no
/// delays.
const WAYS_MS: [i64; 2] = [10, 30];
/// Minimum length of a pair's recording, in seconds: ten periods of the scheduler.
const SHORTEST_S: usize = 50;
/// Maximum number of lines that are read from a file. Recordings are far shorter, with one line per second.
const MOST_LINES: usize = 100_000;
/// Number of pairs of paths that are used in a quick look.
const FEW: usize = 2;

/// Defines a claim about pairs of measured Wi-Fi and cellular paths. The claim only shows a number, because the paper
/// has no such pairs.
const fn seen(id: &'static str, statement: &'static str) -> Spec {
    Spec::shown(id, "Pairs", statement).unit("ratio").ours()
}

const DELAY_1500: Spec = seen(
    "pairs.delay_1500",
    "1.5 Mbit/s over measured pairs: mean delay of AP over that of the better single path, which differs by pair.",
);
const THROUGHPUT_1500: Spec = seen(
    "pairs.throughput_1500",
    "1.5 Mbit/s over measured pairs: throughput of AP over that of the better single path, which differs by pair.",
);
const DELAY_3000: Spec = seen(
    "pairs.delay_3000",
    "3.0 Mbit/s over measured pairs: mean delay of AP over that of the better single path, which differs by pair.",
);
const THROUGHPUT_3000: Spec = seen(
    "pairs.throughput_3000",
    "3.0 Mbit/s over measured pairs: throughput of AP over that of the better single path, which differs by pair.",
);
const DELAY_4800: Spec = seen(
    "pairs.delay_4800",
    "4.8 Mbit/s over measured pairs: mean delay of AP over that of the better single path, which differs by pair.",
);
const THROUGHPUT_4800: Spec = seen(
    "pairs.throughput_4800",
    "4.8 Mbit/s over measured pairs: throughput of AP over that of the better single path, which differs by pair.",
);

/// Why a folder of measured capacities cannot be used.
#[derive(Debug, Error)]
pub enum PairsError {
    /// No folder was given.
    #[error("the part `pairs` needs --pairs, a folder with files NAME_wifi.csv and NAME_cellular.csv")]
    NoFolder,
    /// The folder, or one of its files, cannot be read.
    #[error("{file}")]
    Read {
        /// The path of the folder or file.
        file: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// A line of a file does not have the form `SECOND,BYTES`.
    #[error("{file}, line {line}: `{text}` is not `SECOND,BYTES`, the bytes that went through in that second")]
    Line {
        /// The path of the file.
        file: PathBuf,
        /// The number of the line in the file, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The folder contains no pair of files that can be used.
    #[error("{folder} has no two files NAME_wifi.csv and NAME_cellular.csv of {SHORTEST_S} seconds or more with data")]
    None {
        /// The path of the folder.
        folder: PathBuf,
    },
}

/// The capacities of two paths in each second, in bit/s.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    name: String,
    capacities: [Vec<f64>; 2],
}

/// Reads all usable pairs of paths in a folder, in the order of their names.
pub(super) fn read(folder: Option<&Path>) -> Result<Vec<Pair>, PairsError> {
    let folder = folder.ok_or(PairsError::NoFolder)?;
    let unreadable = |source| PairsError::Read { file: folder.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(ENDS[0])).map(str::to_owned));
    }
    names.sort_unstable();
    let mut pairs = Vec::new();
    for name in names {
        let files = ENDS.map(|end| folder.join(format!("{name}{end}")));
        if !files[1].exists() {
            continue;
        }
        let [wifi, cellular] = [capacity(&files[0])?, capacity(&files[1])?];
        let seconds = wifi.len().min(cellular.len());
        let capacities = [wifi, cellular].map(|all| all.into_iter().take(seconds).collect::<Vec<_>>());
        if seconds >= SHORTEST_S && capacities.iter().all(|all| all.iter().any(|bps| *bps > 0.0)) {
            pairs.push(Pair { name, capacities });
        }
    }
    if pairs.is_empty() { Err(PairsError::None { folder: folder.to_path_buf() }) } else { Ok(pairs) }
}

/// Reads a file, and returns the capacity in each second, in bit/s.
fn capacity(file: &Path) -> Result<Vec<f64>, PairsError> {
    let text = fs::read_to_string(file).map_err(|source| PairsError::Read { file: file.to_path_buf(), source })?;
    let mut capacities = Vec::new();
    for (number, line) in text.lines().enumerate().take(MOST_LINES).filter(|(_, line)| !line.trim().is_empty()) {
        let bytes = line.split_once(',').and_then(|(second, bytes)| {
            let _: f64 = second.trim().parse().ok()?;
            bytes.trim().parse::<f64>().ok().filter(|bytes| (0.0..1e12).contains(bytes))
        });
        capacities.push(
            8.0 * bytes.ok_or_else(|| PairsError::Line {
                file: file.to_path_buf(),
                line: number + 1,
                text: line.chars().take(60).collect(),
            })?,
        );
    }
    Ok(capacities)
}

impl Pair {
    fn mean(&self, path: usize) -> f64 {
        let all = self.capacities.get(path).map(Vec::as_slice).unwrap_or_default();
        all.iter().sum::<f64>() / all.len() as f64
    }

    /// Returns the scenario of the paper's session over the two measured paths. Of the scenario's cross traffic, only
    /// the Poisson packets are kept.
    fn scenario(&self, total: &str, method: Method) -> Scenario {
        let mut scenario = session(total, method);
        let scale = BETTER / self.mean(0).max(self.mean(1));
        for ((link, capacity), way) in scenario.links.iter_mut().zip(&self.capacities).zip(WAYS_MS) {
            let rate = |bps: &f64| Rate::from_bps_f64((bps * scale).round()).unwrap_or(Rate::ZERO);
            let steps = capacity.iter().enumerate().skip(1);
            let mut steps: Vec<_> = steps.map(|(second, bps)| (Span::from_secs(second as i64), rate(bps))).collect();
            // After the end of the recording, the links still have a rate, so that the packets in flight are delivered.
            steps.push((Span::from_secs(capacity.len() as i64), Rate::from_bps(BETTER as u64)));
            let rates = Schedule::new(capacity.first().map_or(Rate::ZERO, rate), steps);
            link.change(|direction| {
                direction.capacity = rates.clone().into();
                direction.delay = Span::from_millis(way).into();
            });
        }
        scenario.duration = Span::from_secs(self.capacities[0].len() as i64);
        scenario.flows.retain(|flow| !flow.name.starts_with("bursts"));
        scenario
    }
}

fn shown<'a>(pairs: &'a [Pair], options: &Options) -> &'a [Pair] {
    if options.quick { pairs.get(..FEW).unwrap_or(pairs) } else { pairs }
}

pub(super) fn planned(pairs: &[Pair], options: &Options) -> u32 {
    (shown(pairs, options).len() * METHODS.len() * TOTALS.len()) as u32
}

/// Runs the five methods over every pair of paths at each total rate: one run for each method, pair and total rate.
pub(super) fn run(lab: &Lab<'_>, pairs: &[Pair], found: &mut Found) -> Result<(), SimError> {
    let pairs = shown(pairs, &lab.options);
    let mut tables = Vec::new();
    let mut charts = Vec::new();
    for total in TOTALS {
        let mut rows = Vec::new();
        for (place, method) in METHODS.into_iter().enumerate() {
            let names = ["AP", "Equal", "Cellular-only", "Wi-Fi-only", "Min-delay"];
            let name = names.get(place).copied().unwrap_or(method.name);
            let scenarios = pairs.iter().map(|pair| (pair.scenario(total, method), 0));
            rows.push(Row { name: name.to_owned(), outcomes: lab.each(scenarios, Outcome::of)? });
        }
        claim(total, &rows, found);
        tables.push(Table {
            caption: format!("{total} Mbit/s: means over {} pairs with their 95 % intervals", pairs.len()),
            columns: std::iter::once("method").chain(Row::COLUMNS).map(str::to_owned).collect(),
            rows: rows.iter().map(|row| [vec![row.name.clone()], row.cells()].concat()).collect(),
        });
        charts.push(over_pairs(total, &rows));
    }
    let names =
        pairs.iter().map(|pair| format!("{} ({:.0} and {:.0})", pair.name, pair.mean(0) / 1e6, pair.mean(1) / 1e6));
    found.figures.push(Figure {
        name: "Pairs".to_owned(),
        title: "Capacities measured on Wi-Fi and cellular at the same time".to_owned(),
        text: format!(
            "Each pair is scaled so that the mean of its better path is {} Mbit/s, so that the totals mean what they do above; what the \
             measurement got is all that a path has, and 0.1 and 0.26 Mbit/s of it go to Poisson packets. Propagation is {} ms of Wi-Fi and {} ms of cellular, \
             queues are one second. Pairs, with their means in Mbit/s: {}.",
            BETTER / 1e6,
            WAYS_MS[0],
            WAYS_MS[1],
            names.collect::<Vec<_>>().join(", ")
        ),
        charts,
        tables,
    });
    Ok(())
}

/// Decides the claims that compare AP with the better single path of each pair, at one total rate.
fn claim(total: &'static str, rows: &[Row], found: &mut Found) {
    let [ap, equal, cellular, wifi, min_delay] = rows else { return };
    let [delay, throughput] = match total {
        "1.5" => [DELAY_1500, THROUGHPUT_1500],
        "3.0" => [DELAY_3000, THROUGHPUT_3000],
        _ => [DELAY_4800, THROUGHPUT_4800],
    };
    let over = |of: fn(&Outcome) -> f64, better: fn(f64, f64) -> f64| {
        let singles = cellular.values(of).into_iter().zip(wifi.values(of));
        let ratios = ap.values(of).into_iter().zip(singles).map(|(ap, (one, other))| ap / better(one, other));
        geometric(&ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
    };
    let runs = ap.outcomes.len() as u32;
    let others = |of| {
        let mean = |row: &Row| row.mean(of).words(2);
        format!("{} {}, {} {}.", EQUAL.name, mean(equal), MIN_DELAY.name, mean(min_delay))
    };
    found.claims.extend([
        delay.decide(runs, over(|outcome| outcome.delay_ms, f64::min), others(|outcome| outcome.delay_ms)),
        throughput.decide(
            runs,
            over(|outcome| outcome.throughput_mbps, f64::max),
            others(|outcome| outcome.throughput_mbps),
        ),
    ]);
}

/// Returns a chart of the mean delay over each pair, in the order of the pairs' names.
fn over_pairs(total: &str, rows: &[Row]) -> Plot {
    let layer = |row: &Row| {
        let points = row.outcomes.iter().zip(1u32..).map(|(outcome, number)| (f64::from(number), outcome.delay_ms));
        PlotLayer { name: row.name.clone(), data: PlotData::Points(points.collect()) }
    };
    Plot {
        title: format!("{total} Mbit/s: mean delay of each pair"),
        x: "pair",
        y: "mean delay (ms)",
        y_limits: None,
        layers: rows.iter().map(layer).collect(),
        marks: Vec::new(),
    }
}
