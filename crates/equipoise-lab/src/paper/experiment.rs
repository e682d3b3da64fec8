//! What every paper's experiments are made of: runs that are counted, claims that are decided by a rule.

use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Claim, Figure, Results, Verdict};
use crate::Progress;
use crate::live::{self, LiveError, Stage};
use crate::result::{Run, World};
use crate::scenario::{Scenario, ScenarioError};
use crate::sim::{self, SimError};
use crate::statistics::{Estimate, mean_95};

/// How to run it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs of every experiment, in place of the paper's numbers.
    pub runs: Option<u32>,
    /// Few runs: shows that it works, too few to judge by.
    pub quick: bool,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// Threads, or all cores.
    pub threads: Option<usize>,
}

/// What the parts have found so far.
#[derive(Default)]
pub(super) struct Found {
    pub(super) claims: Vec<Claim>,
    pub(super) figures: Vec<Figure>,
}

/// Runs scenarios and keeps count.
pub(super) struct Lab<'a> {
    pub(super) options: Options,
    total: u32,
    done: AtomicU32,
    progress: &'a (dyn Fn(f64) + Sync),
}

/// Runs scenarios across network namespaces, in real time and one after another, and keeps count.
pub(super) struct LiveLab<'a> {
    pub(super) options: Options,
    stop: &'a AtomicBool,
    total: u32,
    done: Cell<u32>,
    progress: &'a dyn Fn(f64),
}

/// What runs a part of a paper, and how many runs it takes.
pub(super) type Experiment = (fn(&Options) -> u32, fn(&Lab<'_>, &mut Found) -> Result<(), SimError>);

/// Runs parts of a paper in their order, each once. `progress` is told the share that is done.
pub(super) fn run_parts<P: Copy + Ord>(
    parts: &[P],
    experiment: fn(P) -> Experiment,
    options: &Options,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Found, SimError> {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.dedup();
    let experiments: Vec<_> = parts.into_iter().map(experiment).collect();
    let total = experiments.iter().map(|(planned, _)| planned(options)).sum();
    let lab = Lab::new(options, total, progress);
    let mut found = Found::default();
    for (_, run) in experiments {
        run(&lab, &mut found)?;
    }
    Ok(found)
}

impl Found {
    /// All that was found, as the results of a paper.
    pub(super) fn results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        Results {
            paper: paper.to_owned(),
            claims: self.claims,
            world: World::Sim,
            seed: options.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            assumptions: assumptions.iter().map(|&text| text.to_owned()).collect(),
            figures: self.figures,
        }
    }

    /// The same, of runs in the real world.
    pub(super) fn live_results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        let mut results = self.results(paper, options, assumptions);
        results.world = World::Live;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        results.assumptions.push(format!("Linux {}.", release.trim()));
        results
    }
}

impl<'a> Lab<'a> {
    /// A lab that is going to do `total` runs, and tells `progress` the share that is done.
    pub(super) const fn new(options: &Options, total: u32, progress: &'a (dyn Fn(f64) + Sync)) -> Self {
        Self { options: *options, total, done: AtomicU32::new(0), progress }
    }

    /// So many runs of a scenario, or as many as the options want.
    pub(super) fn runs<T: Send>(
        &self,
        scenario: &Scenario,
        runs: u32,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        self.each((0..runs).map(|number| (scenario, number)), keep)
    }

    /// One run of each scenario; the number beside it makes its seed.
    pub(super) fn each<T: Send>(
        &self,
        scenarios: impl IntoIterator<Item = (impl Borrow<Scenario> + Sync, u32)>,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        let seeded = |(scenario, number)| (scenario, self.options.seed.wrapping_add(u64::from(number)));
        let counted = |run: Run| {
            let kept = keep(&run);
            self.count(1);
            kept
        };
        let scenarios: Vec<_> = scenarios.into_iter().map(seeded).collect();
        sim::simulate_each(&scenarios, self.options.threads, counted)
    }

    /// So many runs, each with a seed of its own and a scenario of its own, made from its place among them: 0 for the first,
    /// below 1 for the last.
    ///
    /// For scenarios that draw little or nothing, whose runs would be one if nothing else differed.
    pub(super) fn spread<T: Send>(
        &self,
        runs: u32,
        scenario: impl Fn(f64) -> Scenario,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        let at = |number: u32| (scenario(f64::from(number) / f64::from(runs)), number);
        self.each((0..runs).map(at), keep)
    }

    /// So many more of the runs are done, or need not be.
    pub(super) fn count(&self, runs: u32) {
        let done = self.done.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.progress)(f64::from(done) / f64::from(self.total.max(1)));
    }
}

impl<'a> LiveLab<'a> {
    /// A lab that is going to do `total` runs, until `stop` is set, and tells `progress` the share that is done.
    pub(super) const fn new(options: &Options, total: u32, stop: &'a AtomicBool, progress: &'a dyn Fn(f64)) -> Self {
        Self { options: *options, stop, total, done: Cell::new(0), progress }
    }

    /// A run of the scenario; the number makes its seed. `None` where it was interrupted: what was cut short says nothing of
    /// what it lacks.
    pub(super) fn run(&self, scenario: &Scenario, number: u32) -> Result<Option<Run>, LiveError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let before = f64::from(self.done.replace(self.done.get() + 1));
        let mut tell = |part: Progress| {
            if let Progress::Share(share) = part {
                (self.progress)((before + share) / f64::from(self.total.max(1)));
            }
        };
        let at = (self.options.seed.wrapping_add(number.into()), Stage::Namespaces);
        let run = live::run(scenario, at, self.stop, &mut tell)?;
        Ok(run.complete.then_some(run))
    }
}

impl Options {
    /// How often an experiment runs for which the paper has `paper` runs, and a quick look `quick`.
    pub(super) fn runs(&self, paper: u32, quick: u32) -> u32 {
        self.runs.unwrap_or(if self.quick { quick } else { paper })
    }
}

/// A scenario of the program itself.
pub(super) fn parse(text: &str) -> Scenario {
    // The files are part of the program and are parsed by a test.
    expect_parsed(Scenario::parse(text))
}

/// A scenario of the program itself with some of its words replaced.
pub(super) fn variant(text: &str, replaced: &[(&str, &str)]) -> Scenario {
    let changed = replaced.iter().fold(text.to_owned(), |text, (from, to)| text.replacen(from, to, 1));
    parse(&changed)
}

fn expect_parsed(parsed: Result<Scenario, ScenarioError>) -> Scenario {
    match parsed {
        Ok(scenario) => scenario,
        Err(error) => unreachable!("a scenario of the program itself is wrong: {error}"),
    }
}

/// A claim without its verdict.
pub(super) struct Draft {
    id: &'static str,
    figure: &'static str,
    statement: String,
    paper: Option<f64>,
    unit: &'static str,
    runs: u32,
}

/// Makes the claims of a figure that are judged by so many runs: of a name, a statement with its rule, the paper's number
/// and the unit.
pub(super) fn drafts(
    figure: &'static str,
    runs: u32,
) -> impl Fn(&'static str, &str, Option<f64>, &'static str) -> Draft {
    move |id, statement, paper, unit| Draft { id, figure, statement: statement.to_owned(), paper, unit, runs }
}

impl Draft {
    /// The claim, decided by `rule` on the interval; not comparable where there is no interval, as with a single run.
    pub(super) fn decide(
        self,
        ours: impl Into<Mean>,
        rule: impl Fn(&Estimate) -> bool,
        note: impl Into<String>,
    ) -> Claim {
        let ours = ours.into();
        let verdict = match &ours.estimate {
            None => Verdict::NotComparable,
            Some(estimate) if rule(estimate) => Verdict::Reproduced,
            Some(_) => Verdict::NotReproduced,
        };
        self.with(ours, verdict, note)
    }

    /// The claim where the paper has nothing to compare with.
    pub(super) fn beyond(self, ours: impl Into<Mean>, note: impl Into<String>) -> Claim {
        self.with(ours.into(), Verdict::NotComparable, note)
    }

    fn with(self, ours: Mean, verdict: Verdict, note: impl Into<String>) -> Claim {
        Claim {
            id: self.id.to_owned(),
            figure: self.figure.to_owned(),
            statement: self.statement,
            paper: self.paper,
            ours: ours.value,
            ci95: ours.estimate.map(|ours| ours.ci95),
            unit: self.unit.to_owned(),
            runs: self.runs,
            verdict,
            note: note.into(),
        }
    }
}

/// A mean over runs, or a number that was made of such.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    /// `None` without runs.
    pub(super) value: Option<f64>,
    /// With its interval, where there are runs enough.
    pub(super) estimate: Option<Estimate>,
}

impl From<Option<Estimate>> for Mean {
    fn from(estimate: Option<Estimate>) -> Self {
        Self { value: estimate.map(|estimate| estimate.value), estimate }
    }
}

impl Mean {
    pub(super) fn of(values: &[f64]) -> Self {
        let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        Self { value, estimate: mean_95(values) }
    }

    /// For tables.
    pub(super) fn words(self, decimals: usize) -> String {
        match (self.estimate, self.value) {
            (None, Some(value)) => format!("{value:.decimals$}"),
            (estimate, _) => with_interval(estimate, decimals),
        }
    }
}

/// The ratio of two estimates, with the interval that follows from theirs if their logarithms are about normal.
pub(super) fn ratio(over: Estimate, under: Estimate) -> Option<Estimate> {
    let half = |of: &Estimate| (of.ci95[1] - of.ci95[0]) / 2.0 / of.value;
    let spread = half(&over).hypot(half(&under));
    let value = over.value / under.value;
    let sound = value.is_finite() && value > 0.0 && spread.is_finite();
    sound.then(|| Estimate { value, ci95: [value * (-spread).exp(), value * spread.exp()] })
}

/// The difference of two estimates from different runs, with the interval that follows from theirs, which may be lopsided
/// (Newcombe 1998, method 10).
pub(super) fn difference(minuend: Estimate, subtrahend: Estimate) -> Estimate {
    let value = minuend.value - subtrahend.value;
    let below = (minuend.value - minuend.ci95[0]).hypot(subtrahend.ci95[1] - subtrahend.value);
    let above = (minuend.ci95[1] - minuend.value).hypot(subtrahend.value - subtrahend.ci95[0]);
    Estimate { value, ci95: [value - below, value + above] }
}

/// An estimate times a factor, for another unit.
pub(super) fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate { value: estimate.value * factor, ci95: estimate.ci95.map(|end| end * factor) }
}

/// A number with its interval, for tables.
pub(super) fn with_interval(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or("–".to_owned(), |Estimate { value, ci95: [low, high] }| {
        let mut text = format!("{value:.decimals$}");
        // Writing to a string does not fail.
        let _ = write!(text, " [{low:.decimals$}, {high:.decimals$}]");
        text
    })
}
