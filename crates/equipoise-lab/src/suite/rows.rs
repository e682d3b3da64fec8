//! Lists the measured values of a suite as rows of a table, for CSV and Python.

use super::bars::{BarResult, JUDGED};
use super::result::{CAPACITY, CaseFlow, CaseResult, Estimate, Metrics, PhaseResult, SuiteResult};

/// One metric of a case under a controller, which is one row of the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow<'a> {
    /// The result of the variant under the controller, either simulated or live.
    pub case: &'a CaseResult,
    /// What the metric describes: the whole run, a flow, a phase or a bar (pass criterion).
    pub scope: Scope<'a>,
    /// The metric's key.
    pub metric: &'a str,
    /// The measured value; for the capacity of a phase, the planned value.
    pub found: Estimate,
}

/// What a metric describes.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// All media together in the whole run.
    Run,
    /// A flow.
    Flow(&'a CaseFlow),
    /// A phase, which is a time span between planned changes.
    Phase(&'a PhaseResult),
    /// A bar, which is a pass criterion for the control law.
    Bar(&'a BarResult),
}

impl Scope<'_> {
    /// Returns the scope as a lower-case word.
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
    /// Returns the flow's name, or the text of the limit of a pass criterion (bar); `None` for other scopes.
    pub fn name(&self) -> Option<String> {
        match self.scope {
            Scope::Flow(flow) => Some(flow.name.clone()),
            Scope::Bar(bar) => Some(bar.limit.to_string()),
            Scope::Run | Scope::Phase(_) => None,
        }
    }

    /// For a flow, returns its kind. For a pass criterion (bar) in a row of the judged control law, returns `met` or
    /// `not met`. Returns `None` for a bar that was not judged, for a bar in a row of another law, and for other
    /// scopes.
    pub fn kind(&self) -> Option<&'static str> {
        match self.scope {
            Scope::Flow(flow) => Some(flow.kind.name()),
            Scope::Bar(bar) if self.case.controller == JUDGED => Some(if bar.met? { "met" } else { "not met" }),
            Scope::Run | Scope::Phase(_) | Scope::Bar(_) => None,
        }
    }

    /// Returns start and end of the phase, in seconds since the run's start; `None` for other scopes.
    pub const fn phase_s(&self) -> Option<[f64; 2]> {
        match self.scope {
            Scope::Phase(phase) => Some([phase.start_s, phase.end_s]),
            Scope::Run | Scope::Flow(_) | Scope::Bar(_) => None,
        }
    }
}

/// Returns all rows. For each case, there are rows for the whole run, the flows, the phases and the bars (pass
/// criteria). Values that were not measured have no row.
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
