//! Reproduction of the experiments of published papers: each claim of a paper is compared with our result, which has a
//! confidence interval and leads to a verdict. The crate also analyses packet captures, which some experiments need.
//!
//! An experiment returns [`Claim`]s and [`Figure`]s. The rule under which a claim counts as reproduced is fixed
//! together with the statement of the claim. The verdict follows from the rule and the confidence interval; no verdict
//! is decided by hand. An experiment uses the public API of `equipoise-lab`: scenarios, simulated and live runs,
//! statistics and charts. The scenarios are built into this crate.
#![forbid(unsafe_code)]
// Without the live experiments, some of the shared code is unused.
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

/// Why a live experiment cannot be run.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The simulator, which computes the curves for comparison, refused a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A live run failed.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// The results of a paper's experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Short name of the paper, such as `Waki 2013`.
    pub paper: String,
    /// The claims of the paper and our own claims, in the order of the experiments.
    pub claims: Vec<Claim>,
    /// Whether the runs were simulated or live.
    pub world: World,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// The number of runs that the user requested for each experiment. With `null`, each experiment has its own default
    /// number, which is small in a quick look.
    pub runs: Option<u32>,
    /// Whether this was a quick look, which has few runs and no verdicts.
    pub quick: bool,
    /// Version of Equipoise that wrote the results.
    pub version: String,
    /// Our assumptions about details that the paper does not state.
    pub assumptions: Vec<String>,
    /// The claims under different interpretations of the paper. The main interpretation is the first.
    pub readings: Vec<Reading>,
    /// The figures. The report shows them, but the JSON results do not contain them.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// One claim of a paper, with our result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Stable identifier of the claim, such as `fig7.slope`.
    pub id: String,
    /// The figure, table or section of the paper that makes the claim.
    pub figure: String,
    /// The statement of the claim.
    pub statement: String,
    /// The condition on our number, as text; empty if the claim has no rule.
    pub rule: String,
    /// The number that the paper states; `null` if it states none.
    pub paper: Option<f64>,
    /// Our number; `null` if it could not be determined.
    pub ours: Option<f64>,
    /// 95 % confidence interval of our number; `null` if there is none, for example after a single run.
    pub ci95: Option<[f64; 2]>,
    /// Unit of the paper's number, of our number and of the confidence interval.
    pub unit: String,
    /// Number of runs from which our number was computed.
    pub runs: u32,
    /// Whether the rule holds in the whole confidence interval (true) or nowhere in it (false). `null` if the rule
    /// holds in a part of the interval, or if there is no rule or no interval.
    pub holds: Option<bool>,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// The reason if the claim was not reproduced, or another remark.
    pub note: String,
}

/// An interpretation of details that a paper does not state, and the claims that were tested under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// A short description of how the interpretation differs from the main one.
    pub name: String,
    /// The claims that were tested under this interpretation.
    pub claims: Vec<Claim>,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The claim's rule holds in the whole confidence interval of our number.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The rule holds nowhere in the confidence interval, or the event to measure occurred in no run.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// The rule holds in a part of the confidence interval, so more runs are needed.
    #[serde(rename = "undecided")]
    Undecided,
    /// A claim of the paper, tested under an interpretation that was chosen because its results fit the paper. Such a
    /// test proves nothing, whether the rule holds or not.
    #[serde(rename = "fitted")]
    Fitted,
    /// A claim that we make, but that the paper does not make. The verdict does not say whether the rule holds.
    #[serde(rename = "ours")]
    Ours,
    /// The claim has no rule, or our number has no confidence interval, for example after a single run.
    #[serde(rename = "not comparable")]
    NotComparable,
    /// This was a quick look, which has too few runs for a verdict.
    #[serde(rename = "too few runs")]
    TooFewRuns,
}

/// A figure of the paper, or a figure that we added: a heading with text, charts and tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The figure's name, such as `Fig. 12`.
    pub name: String,
    /// What the figure shows.
    pub title: String,
    /// Text that is shown below the heading.
    pub text: String,
    /// The figure's charts.
    pub charts: Vec<Plot>,
    /// The figure's tables.
    pub tables: Vec<Table>,
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Title of the chart, one line.
    pub title: String,
    /// Label and unit of the horizontal axis.
    pub x: &'static str,
    /// Label and unit of the vertical axis.
    pub y: &'static str,
    /// Limits of the vertical axis. Values outside the limits are drawn at the edge. With `None`, the axis includes all
    /// data.
    pub y_limits: Option<(f64, f64)>,
    /// The layers of the chart, in the order of the legend.
    pub layers: Vec<PlotLayer>,
    /// Horizontal lines, for example for the target: the value and the name of each.
    pub marks: Vec<(f64, String)>,
}

/// A layer of a [`Plot`], drawn in one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotLayer {
    /// Name of the layer in the legend.
    pub name: String,
    /// Data of the layer.
    pub data: PlotData,
}

/// The data of a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotData {
    /// A line through points (x, y).
    Line(Vec<(f64, f64)>),
    /// Single points (x, y).
    Points(Vec<(f64, f64)>),
    /// A box plot above the layer's name, as in Waki 2013, Fig. 13: minimum, quartiles and maximum, with a cross at the
    /// mean.
    Box {
        /// Minimum, 25th percentile, median, 75th percentile, maximum.
        five: [f64; 5],
        /// The mean of the data.
        mean: f64,
    },
}

/// A table whose cells are texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Caption of the table.
    pub caption: String,
    /// Headings of the columns. They contain the units.
    pub columns: Vec<String>,
    /// The rows of the table. Each row has one cell for each column.
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

    /// Returns the verdict as text.
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
    /// Returns the claims as a table for a terminal. Below each claim that is undecided or was not reproduced, the
    /// table shows the statement, the rule and the note of the claim.
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

    /// Returns a text with the number of claims for each verdict.
    pub fn counts(&self) -> String {
        let count = |verdict: Verdict| self.claims.iter().filter(|claim| claim.verdict == verdict).count();
        let words = |verdict: Verdict| match (verdict, count(verdict)) {
            // These two verdicts are listed even if no claim has them.
            (Verdict::Reproduced | Verdict::NotReproduced, number) | (_, number @ 1..) => {
                Some(format!("{number} {}", verdict.words()))
            }
            _ => None,
        };
        Verdict::ALL.into_iter().filter_map(words).collect::<Vec<_>>().join(", ")
    }

    /// Returns the results as JSON, with a final line break.
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
