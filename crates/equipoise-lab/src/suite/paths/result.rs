//! The results of the suite of random paths.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::draw::Path;
use super::judge::{Fault, faults, late_utilisation, target_s};
use super::watch::Watch;
use super::{DURATION, MOST_BAD, NAME, Plan};
use crate::result::{Run, json_line};

/// The results of all runs over random paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathsResult {
    /// The name of the suite, always "paths".
    pub suite: String,
    /// Version of Equipoise that produced the result.
    pub version: String,
    /// The name of the control law.
    pub controller: String,
    /// Seed of the first run; each further run uses the next number.
    pub first_seed: u64,
    /// Number of bad runs.
    pub bad: u32,
    /// Number of bad runs with each kind of fault. The key is the `kind` of the faults in `runs`.
    pub faults: BTreeMap<String, u32>,
    /// All runs in order of their seeds.
    pub runs: Vec<PathRun>,
}

/// The result of one run over a random path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathRun {
    /// The seed of the path and of the run.
    pub seed: u64,
    /// Description of the path.
    pub path: String,
    /// Capacity of the path, in bit/s.
    pub capacity_bps: u64,
    /// One-way propagation delay of the path, in seconds.
    pub delay_s: f64,
    /// Maximum queueing delay of the path, in seconds.
    pub queue_s: f64,
    /// Share of the packets that are lost at random, 0 to 1.
    pub loss: f64,
    /// Standard deviation of the half-normal jitter of the path, in seconds.
    pub jitter_s: f64,
    /// Interval of the per-packet feedback, in seconds.
    pub feedback_s: f64,
    /// Start of each flow, in seconds since the run's start.
    pub starts_s: Vec<f64>,
    /// Rate of media received, relative to the capacity, in the whole run.
    pub utilisation: Option<f64>,
    /// Rate of media received from 30 s on, relative to the capacity.
    pub late_utilisation: f64,
    /// 95th percentile of the queueing delays of media, in seconds.
    pub queueing_p95_s: Option<f64>,
    /// The target queueing delay at the end of the run, in seconds.
    pub target_s: f64,
    /// The faults of the run; empty if the run is good.
    pub faults: Vec<Fault>,
}

impl PathRun {
    pub(super) fn new(path: &Path, run: &Run, watch: &Watch) -> Self {
        let media = run.media.as_ref();
        Self {
            seed: path.seed,
            path: path.in_words(),
            capacity_bps: path.capacity.as_bps(),
            delay_s: path.delay.as_secs_f64(),
            queue_s: path.queue.as_secs_f64(),
            loss: f64::from(path.loss) / 1e4,
            jitter_s: path.jitter.as_secs_f64(),
            feedback_s: path.feedback.as_secs_f64(),
            starts_s: path.starts.iter().map(|start| start.as_secs_f64()).collect(),
            utilisation: media.and_then(|media| media.utilisation),
            late_utilisation: late_utilisation(path, watch),
            queueing_p95_s: media.and_then(|media| media.queueing?.p95_s),
            target_s: target_s(path, DURATION),
            faults: faults(path, watch),
        }
    }

    /// Whether the run has any fault.
    pub const fn is_bad(&self) -> bool {
        !self.faults.is_empty()
    }
}

impl PathsResult {
    pub(super) fn new(controller: &str, plan: &Plan, runs: Vec<PathRun>) -> Self {
        let mut faults = BTreeMap::new();
        for run in &runs {
            let mut kinds: Vec<_> = run.faults.iter().map(Fault::kind).collect();
            kinds.dedup();
            for kind in kinds {
                *faults.entry(kind.to_owned()).or_insert(0) += 1;
            }
        }
        Self {
            suite: NAME.to_owned(),
            version: crate::VERSION.to_owned(),
            controller: controller.to_owned(),
            first_seed: plan.first_seed,
            bad: runs.iter().map(|run| u32::from(run.is_bad())).sum(),
            faults,
            runs,
        }
    }

    /// Returns the share of bad runs, 0 to 1.
    pub fn bad_share(&self) -> f64 {
        f64::from(self.bad) / self.runs.len().max(1) as f64
    }

    /// Whether the share of bad runs is acceptable.
    pub fn is_good(&self) -> bool {
        self.bad_share() <= MOST_BAD
    }

    /// Returns the result as JSON in one line.
    pub fn to_json(&self) -> String {
        json_line(self)
    }

    /// Returns the result as text: the number of bad runs, their kinds of faults, quantiles of the utilisation and of
    /// the queueing delays over all runs, and a description of each bad run.
    pub fn to_text(&self) -> String {
        let Self { controller, first_seed, bad, runs, .. } = self;
        let last = runs.last().map_or(*first_seed, |run| run.seed);
        let mut text = format!(
            "{NAME}, {controller}, seeds {first_seed} to {last}: {bad} of {} bad, {:.2} % ({:.1} % may be)\n",
            runs.len(),
            self.bad_share() * 100.0,
            MOST_BAD * 100.0
        );
        for (kind, count) in &self.faults {
            text.push_str(&format!("  {}: {count}\n", kind.replace('-', " ")));
        }
        let spread = |of: &dyn Fn(&PathRun) -> Option<f64>| {
            let mut found: Vec<_> = runs.iter().filter_map(of).collect();
            found.sort_by(f64::total_cmp);
            let quantile = |share: f64| found.get((share * found.len() as f64) as usize).copied().unwrap_or(f64::NAN);
            [0.05, 0.5, 0.95].map(quantile)
        };
        let [low, middle, high] = spread(&|run| Some(run.late_utilisation)).map(|share| share * 100.0);
        text.push_str(&format!(
            "  utilisation from 30 s on: {middle:.0} % in the median of the runs, from {low:.0} to {high:.0} % in nine of ten\n"
        ));
        let [low, middle, high] = spread(&|run| Some(run.queueing_p95_s? / run.target_s));
        text.push_str(&format!(
            "  95th percentile of waits over the target: {middle:.1} in the median, from {low:.1} to {high:.1} in nine of ten\n"
        ));
        for run in runs.iter().filter(|run| run.is_bad()) {
            let faults: Vec<_> = run.faults.iter().map(Fault::in_words).collect();
            text.push_str(&format!("\nseed {}: {}\n  {}\n", run.seed, run.path, faults.join("\n  ")));
        }
        text
    }
}
