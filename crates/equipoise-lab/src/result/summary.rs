use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MediaResult, Run, World};
use crate::metrics::{self, Metric};
use crate::statistics::mean_95;

/// Summary of all simulated runs, or of all live runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorldSummary {
    /// Whether the runs were simulated or live.
    pub world: World,
    /// Number of runs that are summarised.
    pub runs: u64,
    /// One entry per flow, in the scenario's order.
    pub flows: Vec<FlowSummary>,
    /// Metrics of all media together: for the key of each metric, the mean over the runs. Omitted if no flow sends
    /// media.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub media: BTreeMap<String, Mean>,
    /// One entry per phase; omitted if no flow sends media.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSummary>,
}

/// Summary of one phase over all simulated runs, or over all live runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// Start of the phase, in seconds since the run's start.
    pub start_s: f64,
    /// Latest end of the phase in any of the runs, in seconds since the run's start.
    pub end_s: f64,
    /// The mean over the runs of each metric that has a value in at least one run, by the metric's key.
    pub metrics: BTreeMap<String, Mean>,
}

/// Summary of one flow over all simulated runs, or over all live runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// The flow's name.
    pub name: String,
    /// Maps the [key](crate::metrics::Metric::key) of each metric to the metric's mean over the runs, in the unit that
    /// the key names. A metric without a value in any run is omitted.
    pub metrics: BTreeMap<String, Mean>,
}

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Number of runs in which the metric was measured.
    pub runs: u64,
    /// The mean over these runs.
    pub mean: f64,
    /// Lower and upper end of the mean's 95 % confidence interval (Student's t); `null` for a single run.
    pub ci95: Option<[f64; 2]>,
}

impl Mean {
    /// Returns the mean of `values`; `None` if there are no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len() as u64;
        let mean = (runs > 0).then(|| values.iter().sum::<f64>() / runs as f64)?;
        Some(Self { runs, mean, ci95: mean_95(values).map(|estimate| estimate.ci95) })
    }

    /// Returns half the width of the confidence interval; `None` if there is no interval.
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| (high - low) / 2.0)
    }
}

/// Returns a summary of the simulated runs and a summary of the live runs. Each summary needs at least two runs, and is
/// omitted otherwise.
pub(super) fn of(runs: &[Run]) -> Vec<WorldSummary> {
    let of_world = |world| {
        let runs: Vec<_> = runs.iter().filter(|run| run.world == world).collect();
        let media: Vec<_> = runs.iter().filter_map(|run| run.media.as_ref()).collect();
        (runs.len() > 1).then(|| WorldSummary {
            world,
            runs: runs.len() as u64,
            flows: flows(&runs),
            media: means(metrics::RUN, &media),
            phases: phases(&media),
        })
    };
    [World::Sim, World::Live].into_iter().filter_map(of_world).collect()
}

fn flows(runs: &[&Run]) -> Vec<FlowSummary> {
    let first = runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let flow = |(index, first)| {
        let results: Vec<_> = runs.iter().filter_map(|run| run.flows.get(index)).collect();
        let first: &super::FlowResult = first;
        FlowSummary { name: first.name.clone(), metrics: means(metrics::of(first), &results) }
    };
    first.iter().enumerate().map(flow).collect()
}

/// Returns the summary of each phase. The phases are those of the run with the most phases, because a run that ended
/// early lacks the last phases.
fn phases(runs: &[&MediaResult]) -> Vec<PhaseSummary> {
    let longest = runs.iter().map(|run| run.phases.as_slice()).max_by_key(|phases| phases.len()).unwrap_or_default();
    let phase = |(number, planned): (usize, &super::PhaseResult)| {
        let results: Vec<_> = runs.iter().filter_map(|run| run.phases.get(number)).collect();
        let end_s = results.iter().map(|phase| phase.end_s).fold(planned.end_s, f64::max);
        PhaseSummary { start_s: planned.start_s, end_s, metrics: means(metrics::PHASE, &results) }
    };
    longest.iter().enumerate().map(phase).collect()
}

/// Returns, for the key of each metric that has a value in at least one run, the metric's mean over the runs.
fn means<T>(metrics: &[Metric<T>], results: &[&T]) -> BTreeMap<String, Mean> {
    let mean = |metric: &Metric<T>| {
        let values: Vec<_> = results.iter().filter_map(|result| metric.of(result)).collect();
        Some((metric.key.to_owned(), Mean::of(&values)?))
    };
    metrics.iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the values 1 and 3 has a standard error of 1. Half the width of the interval is therefore equal to
    /// Student's t with one degree of freedom, 12.706.
    #[test]
    fn a_mean_has_an_interval_from_two_runs_on() {
        let mean = Mean::of(&[1.0, 3.0]).expect("two runs");
        assert_eq!(mean.runs, 2);
        assert!((mean.mean - 2.0).abs() < 1e-12 && (mean.half_width().expect("an interval") - 12.706).abs() < 1e-9);
        assert_eq!(Mean::of(&[5.0]), Some(Mean { runs: 1, mean: 5.0, ci95: None }));
        assert_eq!(Mean::of(&[]), None);
    }
}
