//! What every paper's experiments are made of: runs that are counted, claims that are decided by a rule.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU32;

use super::{Claim, Figure, Results, Verdict};
use crate::result::Run;
use crate::scenario::{Scenario, ScenarioError};
use crate::sim::{self, SimError};
use crate::statistics::Estimate;

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

impl Found {
    /// All that was found, as the results of a paper.
    pub(super) fn results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        Results {
            paper: paper.to_owned(),
            claims: self.claims,
            seed: options.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            assumptions: assumptions.iter().map(|&text| text.to_owned()).collect(),
            figures: self.figures,
        }
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
        let counted = |run: Run| {
            let kept = keep(&run);
            self.count(1);
            kept
        };
        sim::simulate_many(scenario, (self.options.seed, runs), self.options.threads, counted, &|_| {})
    }

    /// One run of each scenario; the number beside it makes its seed.
    pub(super) fn each<T: Send>(
        &self,
        scenarios: impl IntoIterator<Item = (Scenario, u32)>,
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

    /// So many more of the runs are done, or need not be.
    pub(super) fn count(&self, runs: u32) {
        let done = self.done.fetch_add(runs, std::sync::atomic::Ordering::Relaxed) + runs;
        (self.progress)(f64::from(done) / f64::from(self.total.max(1)));
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
    pub(super) id: &'static str,
    pub(super) figure: &'static str,
    pub(super) statement: String,
    pub(super) paper: Option<f64>,
    pub(super) unit: &'static str,
    pub(super) runs: u32,
}

impl Draft {
    /// The claim, decided by `rule` on the interval; not comparable where there is no interval.
    pub(super) fn decide(
        self,
        ours: Option<Estimate>,
        rule: impl Fn(&Estimate) -> bool,
        note: impl Into<String>,
    ) -> Claim {
        let verdict = match &ours {
            None => Verdict::NotComparable,
            Some(ours) if rule(ours) => Verdict::Reproduced,
            Some(_) => Verdict::NotReproduced,
        };
        self.with(ours, verdict, note)
    }

    /// The claim where the paper has nothing to compare with.
    pub(super) fn beyond(self, ours: Option<Estimate>, note: impl Into<String>) -> Claim {
        self.with(ours, Verdict::NotComparable, note)
    }

    fn with(self, ours: Option<Estimate>, verdict: Verdict, note: impl Into<String>) -> Claim {
        Claim {
            id: self.id.to_owned(),
            figure: self.figure.to_owned(),
            statement: self.statement,
            paper: self.paper,
            ours: ours.map(|ours| ours.value),
            ci95: ours.map(|ours| ours.ci95),
            unit: self.unit.to_owned(),
            runs: self.runs,
            verdict,
            note: note.into(),
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
