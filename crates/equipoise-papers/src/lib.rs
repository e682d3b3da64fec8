//! Reproduction of published papers' experiments: each claim is compared with our result, with a confidence interval
//! and a verdict. Also the analysis of captures that some of them need.
//!
//! An experiment returns [`Claim`]s and [`Figure`]s; nothing in them is decided by hand. The condition for a claim to
//! be reproduced is fixed with its statement, and the verdict follows from the interval by that rule. An experiment
//! uses `equipoise-lab`'s public API: scenarios, simulated and live runs, statistics, charts. This crate is never
//! published, because it reads the scenarios of the repository.
#![forbid(unsafe_code)]
// Without the live experiments, parts of the shared code are unused.
#![cfg_attr(not(feature = "live"), allow(dead_code))]

pub mod asvarujanon2014;
pub mod capture;
#[cfg(test)]
mod committed;
mod experiment;
pub mod kodama2009;
pub mod page;
pub mod subramanya2003;
pub mod tobe1999;
pub mod waki2013;

pub use experiment::Options;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[cfg(feature = "live")]
use equipoise_lab::live::LiveError;
use equipoise_lab::result::World;
use equipoise_lab::sim::SimError;

/// A live experiment cannot be run.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The simulator, which provides the curves for comparison, refused a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The live run failed.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// The results of a paper's experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Handle of the paper, such as `Waki 2013`.
    pub paper: String,
    /// The paper's claims, in the order of its figures.
    pub claims: Vec<Claim>,
    /// Whether the runs were simulated or live.
    pub world: World,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// Requested number of runs of each experiment; `null` for the paper's numbers, or the few of a quick look.
    pub runs: Option<u32>,
    /// Whether it was a quick look: few runs, and no verdicts.
    pub quick: bool,
    /// Version of Equipoise that wrote it.
    pub version: String,
    /// What the paper leaves open, and our assumptions.
    pub assumptions: Vec<String>,
    /// The claims under other readings of the paper, the main reading first.
    pub readings: Vec<Reading>,
    /// The figures, shown in the report but not in the JSON.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// One claim of a paper, and our result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Stable name, such as `fig7.slope`.
    pub id: String,
    /// Where the paper states it.
    pub figure: String,
    /// Its statement.
    pub statement: String,
    /// The condition on our number; empty if there is nothing to compare with.
    pub rule: String,
    /// The paper's number; `null` if there is none.
    pub paper: Option<f64>,
    /// Our number.
    pub ours: Option<f64>,
    /// 95 % confidence interval of our number.
    pub ci95: Option<[f64; 2]>,
    /// Unit of all three.
    pub unit: String,
    /// Number of runs.
    pub runs: u32,
    /// Whether the rule holds for the whole interval, or for no part of it; `null` if it holds for a part, or if there
    /// is no rule.
    pub holds: Option<bool>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was not reproduced, or a remark.
    pub note: String,
}

/// A reading of what a paper leaves open, and its claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// How it differs from the main reading, in a few words.
    pub name: String,
    /// The claims tested with it.
    pub claims: Vec<Claim>,
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The rule holds for the whole interval.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The rule holds for no part of the interval.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// The rule holds for a part of the interval: more runs would be needed.
    #[serde(rename = "undecided")]
    Undecided,
    /// The paper's claim with a reading that was chosen because it fits. This proves nothing, whether the rule holds or
    /// not.
    #[serde(rename = "fitted")]
    Fitted,
    /// Our claim, not the paper's, whether the rule holds or not.
    #[serde(rename = "ours")]
    Ours,
    /// The paper has nothing to compare with, or the runs were too few for an interval.
    #[serde(rename = "not comparable")]
    NotComparable,
    /// A quick look: the runs are too few for a verdict.
    #[serde(rename = "too few runs")]
    TooFewRuns,
}

/// A figure of the paper, or one of ours: charts and tables under a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in the paper, such as `Fig. 12`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Text below the heading.
    pub text: String,
    /// Its charts.
    pub charts: Vec<Plot>,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// A chart, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Its title, one line.
    pub title: String,
    /// Label and unit of the horizontal axis.
    pub x: &'static str,
    /// Label and unit of the vertical axis.
    pub y: &'static str,
    /// Limits of the vertical axis; values outside are drawn at the edge. `None` for the range of the data.
    pub y_limits: Option<(f64, f64)>,
    /// The layers, each with its own colour, in the order of the legend.
    pub layers: Vec<PlotLayer>,
    /// Horizontal lines: value and name, such as the target.
    pub marks: Vec<(f64, String)>,
}

/// A layer of a [`Plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotLayer {
    /// Its name in the legend.
    pub name: String,
    /// Its data.
    pub data: PlotData,
}

/// Data of a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotData {
    /// A line through points (x, y).
    Line(Vec<(f64, f64)>),
    /// Single points (x, y).
    Points(Vec<(f64, f64)>),
    /// One box with whiskers above the layer's name, as in Waki 2013, Fig. 13: minimum, quartiles, maximum, and a cross
    /// at the mean.
    Box {
        /// Minimum, 25th percentile, median, 75th percentile, maximum.
        five: [f64; 5],
        /// The mean.
        mean: f64,
    },
}

/// A table, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its caption.
    pub caption: String,
    /// Headings of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

impl Verdict {
    /// All verdicts, in the order in which they are counted.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::Undecided,
        Self::NotReproduced,
        Self::NotComparable,
        Self::Ours,
        Self::Fitted,
        Self::TooFewRuns,
    ];

    /// The verdict as text.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
            Self::Fitted => "fitted",
            Self::Ours => "ours",
            Self::NotComparable => "not comparable",
            Self::TooFewRuns => "too few runs",
        }
    }
}

impl Results {
    /// The claims as a table for a terminal, with the reason below each claim that was not reproduced.
    pub fn to_text(&self) -> String {
        let mut text =
            format!("{:29} {:>9} {:>9} {:>21}  {:15} {}\n", self.paper, "paper", "ours", "95 %", "", "verdict");
        for claim in &self.claims {
            let number = |value: Option<f64>| value.map_or("-".to_owned(), four_digits);
            let interval = claim
                .ci95
                .map_or("-".to_owned(), |[low, high]| format!("{} to {}", four_digits(low), four_digits(high)));
            text.push_str(&format!(
                "{:29} {:>9} {:>9} {interval:>21}  {:15} {}\n",
                claim.id,
                number(claim.paper),
                number(claim.ours),
                claim.unit,
                claim.verdict.words()
            ));
            if matches!(claim.verdict, Verdict::NotReproduced | Verdict::Undecided) {
                text.push_str(&format!("    {} {}\n    {}\n", claim.statement, claim.rule, claim.note));
            }
        }
        text.push_str(&format!("{}\n", self.counts()));
        text
    }

    /// The number of claims for each verdict, as text.
    pub fn counts(&self) -> String {
        let count = |verdict: Verdict| self.claims.iter().filter(|claim| claim.verdict == verdict).count();
        let words = |verdict: Verdict| match (verdict, count(verdict)) {
            // These are counted even if there are none.
            (Verdict::Reproduced | Verdict::NotReproduced, number) | (_, number @ 1..) => {
                Some(format!("{number} {}", verdict.words()))
            }
            _ => None,
        };
        Verdict::ALL.into_iter().filter_map(words).collect::<Vec<_>>().join(", ")
    }

    /// The results as JSON, with a final line break.
    ///
    /// # Panics
    /// Never: numbers and texts always have a JSON form.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("results are plain numbers and texts");
        json.push('\n');
        json
    }
}

/// A number with four significant digits.
pub(crate) fn four_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", decimals as usize)
}
