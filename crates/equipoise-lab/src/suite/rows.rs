//! What a suite has measured as a table: the rows that CSV and Python have.

use super::bars::{BarResult, JUDGED};
use super::result::{CAPACITY, CaseFlow, CaseResult, Estimate, Metrics, PhaseResult, SuiteResult};

/// A metric of a case under a controller.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow<'a> {
    /// The case, its variant, the world and the controller.
    pub case: &'a CaseResult,
    /// Of what it is.
    pub scope: Scope<'a>,
    /// Its key.
    pub metric: &'a str,
    /// What was measured; of a phase's capacity, what was planned.
    pub found: Estimate,
}

/// Of what a metric is.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Of all media of the whole run together.
    Run,
    /// Of a flow.
    Flow(&'a CaseFlow),
    /// Of a stretch between planned changes.
    Phase(&'a PhaseResult),
    /// Of a bar.
    Bar(&'a BarResult),
}

impl Scope<'_> {
    /// The scope in a lower-case word.
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
    /// The flow, or what the bar asks for.
    pub fn name(&self) -> Option<String> {
        match self.scope {
            Scope::Flow(flow) => Some(flow.name.clone()),
            Scope::Bar(bar) => Some(bar.limit.to_string()),
            Scope::Run | Scope::Phase(_) => None,
        }
    }

    /// What the flow is, or whether the controller that is judged met the bar.
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

/// All rows: of each case those of the run, of its flows, its phases and its bars. What was not measured has none.
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
