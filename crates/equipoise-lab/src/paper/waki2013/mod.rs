//! Waki 2013: every analysis and experiment of Sec. 4 and 7, and what we found beyond them.

mod criteria;
mod fig10;
mod fig12;
mod fig13;
mod fig5;
mod fig7;
mod learning;
mod robust;
mod runaway;

use std::fmt::Write as _;

use super::{Claim, Figure, Results, Verdict};
use crate::result::Run;
use crate::scenario::{Scenario, ScenarioError};
use crate::sim::{self, SimError};
use crate::statistics::Estimate;

/// A part of the paper that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 5: b over the load, from the closed form.
    Fig5,
    /// Fig. 7: the linear relation of variance and response, 45 rates and ten patterns.
    Fig7,
    /// Fig. 10 and 11: one run of each controller over time.
    Fig10,
    /// Fig. 12: criteria of AP and CBR, thirty runs.
    Fig12,
    /// Fig. 13: criteria of AP and AIMD, a hundred runs.
    Fig13,
    /// Fig. 14: sending rates of AP and AIMD, a hundred runs.
    Fig14,
    /// Beyond the paper: how often the printed law runs away, what triggers it, and the robust law beside it.
    Runaway,
    /// The paper's future work: b learned instead of given.
    Learning,
}

impl Part {
    /// All of it.
    pub const ALL: [Self; 8] =
        [Self::Fig5, Self::Fig7, Self::Fig10, Self::Fig12, Self::Fig13, Self::Fig14, Self::Runaway, Self::Learning];
}

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

/// Runs parts of the paper. `progress` is told the share that is done.
///
/// # Errors
/// [`SimError`] where a scenario cannot be run, which is a fault of ours.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.dedup();
    let has = |part: Part| parts.contains(&part);
    let criteria = has(Part::Fig13) || has(Part::Fig14);
    let planned = [
        (has(Part::Fig7), fig7::planned(options)),
        (has(Part::Fig10), fig10::planned(options)),
        (has(Part::Fig12), fig12::planned(options)),
        (criteria, fig13::planned(options)),
        (has(Part::Runaway), runaway::planned(options) + robust::planned(options)),
        (has(Part::Learning), learning::planned(options)),
    ];
    let total = planned.iter().filter(|(wanted, _)| *wanted).map(|(_, runs)| runs).sum();
    let lab = Lab { options: *options, total, done: std::sync::atomic::AtomicU32::new(0), progress };
    let mut found = Found::default();
    if has(Part::Fig5) {
        fig5::run(&mut found);
    }
    if has(Part::Fig7) {
        fig7::run(&lab, &mut found)?;
    }
    if has(Part::Fig10) {
        fig10::run(&lab, &mut found)?;
    }
    if has(Part::Fig12) {
        fig12::run(&lab, &mut found)?;
    }
    if criteria {
        fig13::run(&lab, (has(Part::Fig13), has(Part::Fig14)), &mut found)?;
    }
    if has(Part::Runaway) {
        let printed = runaway::run(&lab, &mut found)?;
        robust::run(&lab, &printed, &mut found)?;
    }
    if has(Part::Learning) {
        learning::run(&lab, &mut found)?;
    }
    Ok(Results {
        paper: "Waki 2013".to_owned(),
        claims: found.claims,
        seed: options.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        assumptions: ASSUMPTIONS.iter().map(|&text| text.to_owned()).collect(),
        figures: found.figures,
    })
}

const ASSUMPTIONS: &[&str] = &[
    "All links are drop-tail queues of 1000 packets; a packet is 1000 bytes on every link, as in the paper's ns-2.",
    "The initial transient of AP and CBR is taken to last 50 s; the paper does not state it.",
    "AIMD runs for 600 s before the paper's 400 s, so that it is in its steady state, which the paper looks at.",
    "An interval's delay T_i is the mean over the packets sent in it, intervals of 10 s, whatever the report interval.",
    "A run has run away where three intervals in a row, 30 s, have a mean delay above twice the target.",
    "Medians are compared rather than means: a few runs that have run away ruin every mean. Both are in the tables.",
];

/// What the parts have found so far.
#[derive(Default)]
struct Found {
    claims: Vec<Claim>,
    figures: Vec<Figure>,
}

/// Runs scenarios and keeps count.
struct Lab<'a> {
    options: Options,
    total: u32,
    done: std::sync::atomic::AtomicU32,
    progress: &'a (dyn Fn(f64) + Sync),
}

impl Lab<'_> {
    /// So many runs of a scenario, or as many as the options want.
    fn runs<T: Send>(
        &self,
        scenario: &Scenario,
        runs: u32,
        keep: impl Fn(&Run) -> T + Sync,
    ) -> Result<Vec<T>, SimError> {
        use std::sync::atomic::Ordering::Relaxed;
        let counted = |run: Run| {
            let kept = keep(&run);
            let done = self.done.fetch_add(1, Relaxed) + 1;
            (self.progress)(f64::from(done) / f64::from(self.total.max(1)));
            kept
        };
        sim::simulate_many(scenario, (self.options.seed, runs), self.options.threads, counted, &|_| {})
    }
}

impl Options {
    /// How often an experiment runs for which the paper has `paper` runs, and a quick look `quick`.
    fn runs(&self, paper: u32, quick: u32) -> u32 {
        self.runs.unwrap_or(if self.quick { quick } else { paper })
    }
}

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../../../../scenarios/waki2013/", $name, ".toml"))
    };
}

const FIG7: &str = scenario!("fig7");
const AP_300: &str = scenario!("ap-300");
const AP_407: &str = scenario!("ap-407");
const AP_LOAD: &str = scenario!("ap-load");
const AP_ROBUST: &str = scenario!("ap-robust");
const AP_LEARN: &str = scenario!("ap-learn");
const CBR_3: &str = scenario!("cbr-3");
const CBR_08: &str = scenario!("cbr-0.8");
/// With A in Mbit/s, as the paper names them.
const AIMD: [(&str, &str); 5] = [
    ("1", scenario!("aimd-1")),
    ("0.8", scenario!("aimd-0.8")),
    ("0.4", scenario!("aimd-0.4")),
    ("0.2", scenario!("aimd-0.2")),
    ("0.1", scenario!("aimd-0.1")),
];

/// A scenario of this folder.
fn parse(text: &str) -> Scenario {
    // The files are part of the program and are parsed by a test.
    expect_parsed(Scenario::parse(text))
}

/// A scenario of this folder with some of its words replaced.
fn variant(text: &str, replaced: &[(&str, &str)]) -> Scenario {
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
struct Draft {
    id: &'static str,
    figure: &'static str,
    statement: String,
    paper: Option<f64>,
    unit: &'static str,
    runs: u32,
}

impl Draft {
    /// The claim, decided by `rule` on the interval; not comparable where there is no interval.
    fn decide(self, ours: Option<Estimate>, rule: impl Fn(&Estimate) -> bool, note: impl Into<String>) -> Claim {
        let verdict = match &ours {
            None => Verdict::NotComparable,
            Some(ours) if rule(ours) => Verdict::Reproduced,
            Some(_) => Verdict::NotReproduced,
        };
        self.with(ours, verdict, note)
    }

    /// The claim where the paper has nothing to compare with.
    fn beyond(self, ours: Option<Estimate>, note: impl Into<String>) -> Claim {
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
fn ratio(over: Estimate, under: Estimate) -> Option<Estimate> {
    let half = |of: &Estimate| (of.ci95[1] - of.ci95[0]) / 2.0 / of.value;
    let spread = half(&over).hypot(half(&under));
    let value = over.value / under.value;
    let sound = value.is_finite() && value > 0.0 && spread.is_finite();
    sound.then(|| Estimate { value, ci95: [value * (-spread).exp(), value * spread.exp()] })
}

/// An estimate times a factor, for another unit.
fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate { value: estimate.value * factor, ci95: estimate.ci95.map(|end| end * factor) }
}

/// A number with its interval, for tables.
fn with_interval(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or("–".to_owned(), |Estimate { value, ci95: [low, high] }| {
        let mut text = format!("{value:.decimals$}");
        // Writing to a string does not fail.
        let _ = write!(text, " [{low:.decimals$}, {high:.decimals$}]");
        text
    })
}

#[cfg(test)]
mod tests;
