//! The measured values of a suite as a table: the rows for CSV and Python.

use super::bars::{BarResult, JUDGED};
use super::result::{CAPACITY, CaseFlow, CaseResult, Estimate, Metrics, PhaseResult, SuiteResult};

/// A metric of a case under a controller.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow<'a> {
    /// The case, with its variant and controller; simulated or live.
    pub case: &'a CaseResult,
    /// The object that the metric describes.
    pub scope: Scope<'a>,
    /// The metric's key.
    pub metric: &'a str,
    /// The measured value; for a phase's capacity, the planned one.
    pub found: Estimate,
}

/// The object that a metric describes.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// All media together in the whole run.
    Run,
    /// A flow.
    Flow(&'a CaseFlow),
    /// A phase: a time span between planned changes.
    Phase(&'a PhaseResult),
    /// A bar.
    Bar(&'a BarResult),
}

impl Scope<'_> {
    /// The scope as a lower-case word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Flow(_) => "flow",
            Self::Phase(_) => "phase",
            Self::Bar(_) => "bar",
        }
    }
}

impl MetricRow<'_> {
    /// The flow's name, or the requirement of the bar.
    pub fn name(&self) -> Option<String> {
        match self.scope {
            Scope::Flow(flow) => Some(flow.name.clone()),
            Scope::Bar(bar) => Some(bar.limit.to_string()),
            Scope::Run | Scope::Phase(_) => None,
        }
    }

    /// The kind of flow, or whether the law under test met the bar.
    pub fn kind(&self) -> Option<&'static str> {
        match self.scope {
            Scope::Flow(flow) => Some(flow.kind.name()),
            Scope::Bar(bar) if self.case.controller == JUDGED => Some(if bar.met? { "met" } else { "not met" }),
            Scope::Run | Scope::Phase(_) | Scope::Bar(_) => None,
        }
    }

    /// Start and end of the phase, in seconds since the run's start.
    pub const fn phase_s(&self) -> Option<[f64; 2]> {
        match self.scope {
            Scope::Phase(phase) => Some([phase.start_s, phase.end_s]),
            Scope::Run | Scope::Flow(_) | Scope::Bar(_) => None,
        }
    }
}

/// Returns all rows: for each case, the rows of the run, its flows, its phases and its bars. Values that were not
/// measured have no row.
pub(super) fn of(result: &SuiteResult) -> Vec<MetricRow<'_>> {
    let mut rows = Vec::new();
    for case in &result.results {
        let row = |scope, metric, found| MetricRow { case, scope, metric, found };
        rows.extend(measured(case, Scope::Run, &case.metrics));
        for flow in &case.flows {
            rows.extend(measured(case, Scope::Flow(flow), &flow.metrics));
        }
        for phase in &case.phases {
            let planned = phase.capacity_bps.map(|mean| Estimate { mean, lo: None, hi: None, runs: case.runs });
            rows.extend(planned.map(|found| row(Scope::Phase(phase), CAPACITY, found)));
            rows.extend(measured(case, Scope::Phase(phase), &phase.metrics));
        }
        for bar in result.bars.iter().filter(|bar| bar.case == case.case && bar.variant == case.variant) {
            let reached = bar.laws.iter().find(|law| law.controller == case.controller).and_then(|law| law.value);
            rows.extend(reached.map(|found| row(Scope::Bar(bar), &bar.key, found)));
        }
    }
    rows
}

fn measured<'a>(case: &'a CaseResult, scope: Scope<'a>, metrics: &'a Metrics) -> impl Iterator<Item = MetricRow<'a>> {
    let found = metrics.iter().filter_map(|(key, found)| Some((key.as_str(), (*found)?)));
    found.map(move |(metric, found)| MetricRow { case, scope, metric, found })
}
