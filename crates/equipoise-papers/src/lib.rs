//! Experiments of published papers, run again: each claim beside ours, with an interval and a verdict; and the analysis of
//! captures that some of them stand on.
//!
//! An experiment returns [`Claim`]s and [`Figure`]s; nothing in them is decided by hand. What a claim needs to be
//! reproduced is part of its statement, and the verdict follows from the interval by that rule. An experiment uses
//! `equipoise-lab`'s public API: scenarios, runs in either world, statistics, charts. This crate is never published, as it
//! reads the scenarios of the repository.
#![forbid(unsafe_code)]
// Without the live experiments, what they share with the simulated ones has fewer users.
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
    /// The simulator, whose curves lie beside it, refused a scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The real world refused.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// What came of a paper's experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Handle of the paper, such as `Waki 2013`.
    pub paper: String,
    /// The paper's claims, in the order of its figures.
    pub claims: Vec<Claim>,
    /// Where its experiments ran.
    pub world: World,
    /// Seed of the first run of each experiment.
    pub seed: u64,
    /// Runs of each experiment that were asked for; `null` for the paper's numbers, or few for a quick look.
    pub runs: Option<u32>,
    /// Whether it was a quick look: few runs, and no verdicts.
    pub quick: bool,
    /// Version of Equipoise that made it.
    pub version: String,
    /// What the paper leaves open and how it was filled.
    pub assumptions: Vec<String>,
    /// What becomes of claims where the paper is read in another way, the main reading first.
    pub readings: Vec<Reading>,
    /// The figures, drawn in the report and left out of the JSON.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// One claim of a paper, and what we found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Stable name, such as `fig7.slope`.
    pub id: String,
    /// Where the paper makes it.
    pub figure: String,
    /// What is claimed.
    pub statement: String,
    /// What our number has to be for that; empty where there is nothing to compare with.
    pub rule: String,
    /// The paper's number; `null` where it gives none.
    pub paper: Option<f64>,
    /// Our number.
    pub ours: Option<f64>,
    /// 95 % confidence interval of our number.
    pub ci95: Option<[f64; 2]>,
    /// Unit of all three.
    pub unit: String,
    /// Runs behind it.
    pub runs: u32,
    /// Whether the rule holds for the whole interval, or for nothing of it; `null` where it leaves that open, or there is none.
    pub holds: Option<bool>,
    /// What follows of it.
    pub verdict: Verdict,
    /// Why, where it does not come out; or what should be known beside it.
    pub note: String,
}

/// A way to read what a paper leaves open, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// In what it differs from the main one, in a few words.
    pub name: String,
    /// The claims that it was tried on.
    pub claims: Vec<Claim>,
}

/// Whether a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The rule holds for the whole interval.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The rule holds for no part of the interval.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// The rule holds for a part of the interval: the runs leave it open.
    #[serde(rename = "undecided")]
    Undecided,
    /// The paper's claim by a reading of it that was chosen because it fits, which proves nothing, whether the rule holds or not.
    #[serde(rename = "fitted")]
    Fitted,
    /// Ours and not the paper's, whether the rule holds or not.
    #[serde(rename = "ours")]
    Ours,
    /// The paper gives nothing to compare with, or the runs were too few for an interval.
    #[serde(rename = "not comparable")]
    NotComparable,
    /// A quick look: the runs are too few to judge by.
    #[serde(rename = "too few runs")]
    TooFewRuns,
}

/// A figure of the paper, or one of ours: charts and tables under a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Where it stands in the paper, such as `Fig. 12`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Words below the heading.
    pub text: String,
    /// Its charts.
    pub charts: Vec<Plot>,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// A chart, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows, in a line.
    pub title: String,
    /// Label and unit of the horizontal axis.
    pub x: &'static str,
    /// Label and unit of the vertical axis.
    pub y: &'static str,
    /// Limits of the vertical axis; what lies beyond is drawn at the edge. `None` for the data's own.
    pub y_limits: Option<(f64, f64)>,
    /// The layers, each with its own colour, in the order of the legend.
    pub layers: Vec<PlotLayer>,
    /// Horizontal lines: value and name, such as the target.
    pub marks: Vec<(f64, String)>,
}

/// A layer of a [`Plot`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotLayer {
    /// What the legend says.
    pub name: String,
    /// What is drawn.
    pub data: PlotData,
}

/// What a layer draws.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotData {
    /// A line through points (x, y).
    Line(Vec<(f64, f64)>),
    /// Single points (x, y).
    Points(Vec<(f64, f64)>),
    /// One box with whiskers over the layer's name, as in Waki 2013, Fig. 13: minimum, quartiles, maximum, and a cross at
    /// the mean.
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
    /// What it shows.
    pub caption: String,
    /// Heads of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, as long as the heads.
    pub rows: Vec<Vec<String>>,
}

impl Verdict {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::Undecided,
        Self::NotReproduced,
        Self::NotComparable,
        Self::Ours,
        Self::Fitted,
        Self::TooFewRuns,
    ];

    /// The verdict in words.
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
    /// The claims as a table for a terminal, with the reason below each that was not reproduced.
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

    /// How many claims have each verdict, in words.
    pub fn counts(&self) -> String {
        let count = |verdict: Verdict| self.claims.iter().filter(|claim| claim.verdict == verdict).count();
        let words = |verdict: Verdict| match (verdict, count(verdict)) {
            // These are counted even where there are none.
            (Verdict::Reproduced | Verdict::NotReproduced, number) | (_, number @ 1..) => {
                Some(format!("{number} {}", verdict.words()))
            }
            _ => None,
        };
        Verdict::ALL.into_iter().filter_map(words).collect::<Vec<_>>().join(", ")
    }

    /// The results as JSON, with a line break at its end.
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
