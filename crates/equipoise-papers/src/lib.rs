//! Reproduction of the experiments of published papers: each claim of a paper is compared with our result, with a
//! confidence interval and a verdict. The crate also analyses packet captures, which some experiments need.
//!
//! An experiment returns [`Claim`]s and [`Figure`]s; no verdict is decided by hand. The rule under which a claim counts
//! as reproduced is fixed together with its statement, and the verdict follows from the confidence interval by that
//! rule. An experiment uses `equipoise-lab`'s public API: scenarios, simulated and live runs, statistics, charts. This
//! crate is never published, because it reads the scenarios of the repository.
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
    /// Short name of the paper, such as `Waki 2013`.
    pub paper: String,
    /// The paper's claims, in the order of its figures.
    pub claims: Vec<Claim>,
    /// Whether the runs were simulated or live.
    pub world: World,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// Requested number of runs of each experiment; `null` for the paper's numbers, or the small numbers of a quick
    /// look.
    pub runs: Option<u32>,
    /// Whether this was a quick look: few runs, and no verdicts.
    pub quick: bool,
    /// Version of Equipoise that wrote the results.
    pub version: String,
    /// Our assumptions about details that the paper does not state.
    pub assumptions: Vec<String>,
    /// The claims under other interpretations of the paper; the main interpretation comes first.
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
    /// Where the paper makes the claim.
    pub figure: String,
    /// The statement of the claim.
    pub statement: String,
    /// The condition on our number; empty if the paper has no number or relation to compare with.
    pub rule: String,
    /// The paper's number; `null` if there is none.
    pub paper: Option<f64>,
    /// Our number.
    pub ours: Option<f64>,
    /// 95 % confidence interval of our number.
    pub ci95: Option<[f64; 2]>,
    /// Unit of the paper's number, of our number and of its interval.
    pub unit: String,
    /// Number of runs.
    pub runs: u32,
    /// Whether the rule holds for the whole interval (true) or for no part of it (false); `null` if it holds for a
    /// part, or if there is no rule.
    pub holds: Option<bool>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the claim was not reproduced, or a remark.
    pub note: String,
}

/// An interpretation of what a paper leaves open, and the claims tested with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// How the interpretation differs from the main one, in a few words.
    pub name: String,
    /// The claims tested with this interpretation.
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
    /// The rule holds for a part of the interval: more runs are needed.
    #[serde(rename = "undecided")]
    Undecided,
    /// A claim of the paper, tested with an interpretation that was chosen because it fits the paper's result. So the
    /// test proves nothing, whether the rule holds or not.
    #[serde(rename = "fitted")]
    Fitted,
    /// A claim that we make and the paper does not, whether the rule holds or not.
    #[serde(rename = "ours")]
    Ours,
    /// The paper has nothing to compare with, or there were too few runs for a confidence interval.
    #[serde(rename = "not comparable")]
    NotComparable,
    /// A quick look: there are too few runs for a verdict.
    #[serde(rename = "too few runs")]
    TooFewRuns,
}

/// A figure of the paper, or a figure that we added: charts and tables under a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The figure's name in the paper, such as `Fig. 12`.
    pub name: String,
    /// What the figure shows.
    pub title: String,
    /// Text below the heading.
    pub text: String,
    /// The figure's charts.
    pub charts: Vec<Plot>,
    /// The figure's tables.
    pub tables: Vec<Table>,
}

/// A chart, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Title of the chart, one line.
    pub title: String,
    /// Label and unit of the horizontal axis.
    pub x: &'static str,
    /// Label and unit of the vertical axis.
    pub y: &'static str,
    /// Limits of the vertical axis; values outside are drawn at the edge. `None` to use the range of the data.
    pub y_limits: Option<(f64, f64)>,
    /// The layers, each with its own colour, in the order of the legend.
    pub layers: Vec<PlotLayer>,
    /// Horizontal lines: the value and name of each, such as the target.
    pub marks: Vec<(f64, String)>,
}

/// A layer of a [`Plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotLayer {
    /// Name of the layer in the legend.
    pub name: String,
    /// Data of the layer.
    pub data: PlotData,
}

/// Data of a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotData {
    /// A line through points (x, y).
    Line(Vec<(f64, f64)>),
    /// Single points (x, y).
    Points(Vec<(f64, f64)>),
    /// One box plot above the layer's name, as in Waki 2013, Fig. 13: minimum, quartiles, maximum, and a cross at the
    /// mean.
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
    /// Caption of the table.
    pub caption: String,
    /// Headings of the columns, with units.
    pub columns: Vec<String>,
    /// The rows; each has one cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Verdict {
    /// All verdicts, in the order of [`Results::counts`].
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
            // These two verdicts are shown even if their number is zero.
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

/// Formats a number with four significant digits.
pub(crate) fn four_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", decimals as usize)
}
