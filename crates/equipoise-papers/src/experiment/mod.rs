//! Functions that the experiments of all papers share. The functions run scenarios, report the progress, and decide
//! claims by rules.

#[cfg(feature = "live")]
pub(crate) mod live;
mod spec;

pub(crate) use spec::{Rule, Spec};

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Claim, Figure, Reading, Results, Verdict};
use equipoise_lab::VERSION;
use equipoise_lab::result::{Run, World};
use equipoise_lab::scenario::{Override, Scenario, ScenarioError};
use equipoise_lab::sim::{self, RunObserver, SimError};
use equipoise_lab::statistics::{Estimate, mean_95};

/// Options of a run of experiments.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of runs of every experiment; `None` for the default number of each experiment.
    pub runs: Option<u32>,
    /// Whether to make only few runs: enough to see that the experiment works, but too few for a verdict.
    pub quick: bool,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// Number of threads; `None` to use all processor cores.
    pub threads: Option<usize>,
}

/// The results of the parts of a paper that have been run so far.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) claims: Vec<Claim>,
    pub(crate) readings: Vec<Reading>,
    pub(crate) figures: Vec<Figure>,
}

/// Runs scenarios, and counts the runs to report the progress.
pub(crate) struct Lab<'a> {
    pub(crate) options: Options,
    total: u32,
    done: AtomicU32,
    progress: &'a (dyn Fn(f64) + Sync),
}

/// A part of a paper: a function that returns the number of runs of the part, and a function that runs the part.
pub(crate) type Experiment = (fn(&Options) -> u32, fn(&Lab<'_>, &mut Found) -> Result<(), SimError>);

/// Runs parts of a paper in order, each part once. Calls `progress` with the share of the runs that are done.
pub(crate) fn run_parts<P: Copy + Ord>(
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
    /// Returns all results of a paper. If `options.quick` is set, comparable claims get the verdict `TooFewRuns`,
    /// because more runs may reverse their verdicts.
    pub(crate) fn results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        let judged = |claim: Claim| match claim.verdict {
            Verdict::NotComparable => claim,
            _ if options.quick => Claim { verdict: Verdict::TooFewRuns, ..claim },
            _ => claim,
        };
        let read = |reading: Reading| {
            let claims = reading.claims.into_iter().map(judged).collect();
            Reading { claims, ..reading }
        };
        Results {
            paper: paper.to_owned(),
            claims: self.claims.into_iter().map(judged).collect(),
            world: World::Sim,
            seed: options.seed,
            runs: options.runs,
            quick: options.quick,
            version: VERSION.to_owned(),
            assumptions: assumptions.iter().map(|&text| text.to_owned()).collect(),
            readings: self.readings.into_iter().map(read).collect(),
            figures: self.figures,
        }
    }
}

impl<'a> Lab<'a> {
    /// Creates a lab for `total` runs. The lab calls `progress` with the share of the runs that are done.
    pub(crate) const fn new(options: &Options, total: u32, progress: &'a (dyn Fn(f64) + Sync)) -> Self {
        Self { options: *options, total, done: AtomicU32::new(0), progress }
    }

    /// Runs a scenario with `runs` different seeds, and returns what `keep` returns for each run.
    pub(crate) fn runs<T: Send>(
        &self,
        scenario: &Scenario,
        runs: u32,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        self.each((0..runs).map(|number| (scenario, number)), keep)
    }

    /// Runs each scenario once. The seed of a run is the options' seed plus the number that is given with the scenario.
    pub(crate) fn each<T: Send>(
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

    /// Does what [`each`](Self::each) does, and also passes each run's events to an observer.
    pub(crate) fn each_observed<T: Send, O: RunObserver>(
        &self,
        scenarios: impl IntoIterator<Item = (impl Borrow<Scenario> + Sync, u32)>,
        observer: impl Fn() -> O + Sync,
        keep: impl Fn(&Run, O) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        let seeded = |(scenario, number)| (scenario, self.options.seed.wrapping_add(u64::from(number)));
        let counted = |run: Run, observer| {
            let kept = keep(&run, observer);
            self.count(1);
            kept
        };
        let scenarios: Vec<_> = scenarios.into_iter().map(seeded).collect();
        sim::simulate_each_observed(&scenarios, self.options.threads, observer, counted)
    }

    /// Runs `runs` scenarios, each with its own seed. `scenario` creates each scenario from its position: 0 for the
    /// first scenario, 1/`runs` for the second, and so on.
    ///
    /// This is for scenarios with little or no randomness: their runs would be nearly equal if only the seeds differed.
    pub(crate) fn spread<T: Send>(
        &self,
        runs: u32,
        scenario: impl Fn(f64) -> Scenario,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        let at = |number: u32| (scenario(f64::from(number) / f64::from(runs)), number);
        self.each((0..runs).map(at), keep)
    }

    /// Counts `runs` runs as done. Runs that are skipped as unnecessary must also be counted.
    pub(crate) fn count(&self, runs: u32) {
        let done = self.done.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.progress)(f64::from(done) / f64::from(self.total.max(1)));
    }
}

impl Options {
    /// Returns the number of runs of an experiment: the number in the options, if there is one, otherwise `quick` for a
    /// quick look and `paper` for a full run.
    pub(crate) fn runs(&self, paper: u32, quick: u32) -> u32 {
        self.runs.unwrap_or(if self.quick { quick } else { paper })
    }
}

/// Parses a built-in scenario.
pub(crate) fn parse(text: &str) -> Scenario {
    // This call never fails: the scenario files are built into the program, and a test parses all of them.
    expect_parsed(Scenario::parse(text))
}

/// Parses a built-in scenario, with values replaced by the overrides.
pub(crate) fn parse_with(text: &str, overrides: &[Override]) -> Scenario {
    // The overrides are part of the program. An invalid override ends the program before a claim is printed.
    expect_parsed(Scenario::parse_with(text, overrides))
}

fn expect_parsed(parsed: Result<Scenario, ScenarioError>) -> Scenario {
    match parsed {
        Ok(scenario) => scenario,
        Err(error) => unreachable!("a scenario of the program itself is wrong: {error:?}"),
    }
}

/// A mean over runs, or a number that is computed from such means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mean {
    /// The mean, or the number computed from means; `None` if there are no runs to compute it from.
    pub(crate) value: Option<f64>,
    /// The number with its confidence interval; `None` if there are too few runs for an interval.
    pub(crate) estimate: Option<Estimate>,
}

impl From<Option<Estimate>> for Mean {
    fn from(estimate: Option<Estimate>) -> Self {
        Self { value: estimate.map(|estimate| estimate.value), estimate }
    }
}

impl Mean {
    pub(crate) fn of(values: &[f64]) -> Self {
        let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        Self { value, estimate: mean_95(values) }
    }

    /// Returns the value with its confidence interval, if there is one, as text for a table.
    pub(crate) fn words(self, decimals: usize) -> String {
        match (self.estimate, self.value) {
            (None, Some(value)) => format!("{value:.decimals$}"),
            (estimate, _) => with_interval(estimate, decimals),
        }
    }
}

/// Returns the ratio of two estimates. Its interval assumes that the logarithms of the estimates are nearly normal.
pub(crate) fn ratio(over: Estimate, under: Estimate) -> Option<Estimate> {
    let half = |of: &Estimate| (of.ci95[1] - of.ci95[0]) / 2.0 / of.value;
    let spread = half(&over).hypot(half(&under));
    let value = over.value / under.value;
    let sound = value.is_finite() && value > 0.0 && spread.is_finite();
    sound.then(|| Estimate { value, ci95: [value * (-spread).exp(), value * spread.exp()] })
}

/// Returns the difference of two estimates from independent runs. The confidence interval of the difference is computed
/// from the confidence intervals of the two estimates, which may be asymmetric (Newcombe 1998, method 10).
pub(crate) fn difference(minuend: Estimate, subtrahend: Estimate) -> Estimate {
    let value = minuend.value - subtrahend.value;
    let below = (minuend.value - minuend.ci95[0]).hypot(subtrahend.ci95[1] - subtrahend.value);
    let above = (minuend.ci95[1] - minuend.value).hypot(subtrahend.value - subtrahend.ci95[0]);
    Estimate { value, ci95: [value - below, value + above] }
}

/// Returns the estimate multiplied by a factor, to change its unit.
pub(crate) fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate { value: estimate.value * factor, ci95: estimate.ci95.map(|end| end * factor) }
}

/// Formats a number and its confidence interval for a table. If there is no estimate, returns a dash.
pub(crate) fn with_interval(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or("–".to_owned(), |Estimate { value, ci95: [low, high] }| {
        let mut text = format!("{value:.decimals$}");
        // Writing to a `String` never fails, so the result is ignored.
        let _ = write!(text, " [{low:.decimals$}, {high:.decimals$}]");
        text
    })
}
