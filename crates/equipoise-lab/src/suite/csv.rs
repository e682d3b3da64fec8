//! The result as CSV: one line a metric (RFC 4180).

use super::bars::JUDGED;
use super::result::{Estimate, Metrics};
use super::{CaseResult, SuiteResult};
use crate::csv::quoted;

const HEAD: &str =
    "suite,case,variant,world,controller,implementation,scope,name,kind,start_s,end_s,metric,mean,lo,hi,runs\r\n";

/// Where a metric belongs: of the whole run, of a flow, of a phase or of a bar.
#[derive(Default)]
struct Scope {
    what: &'static str,
    name: String,
    kind: &'static str,
    from_s: String,
    until_s: String,
}

pub(super) fn of(result: &SuiteResult) -> String {
    let mut text = HEAD.to_owned();
    for case in &result.results {
        let mut lines = Lines { text: &mut text, suite: &result.suite, case };
        lines.all(&Scope { what: "run", ..Scope::default() }, &case.metrics);
        for flow in &case.flows {
            let kind = match flow.kind {
                super::FlowKind::Media => "media",
                super::FlowKind::Audio => "audio",
                super::FlowKind::Tcp => "tcp",
            };
            lines.all(&Scope { what: "flow", name: flow.name.clone(), kind, ..Scope::default() }, &flow.metrics);
        }
        for phase in &case.phases {
            let (from_s, until_s) = (phase.start_s.to_string(), phase.end_s.to_string());
            let scope = Scope { what: "phase", from_s, until_s, ..Scope::default() };
            let planned = phase.capacity_bps.map(|mean| Estimate { mean, lo: None, hi: None, runs: case.runs });
            lines.one(&scope, super::result::CAPACITY, planned);
            lines.all(&scope, &phase.metrics);
        }
        for bar in result.bars.iter().filter(|bar| bar.case == case.case && bar.variant == case.variant) {
            let Some(law) = bar.laws.iter().find(|law| law.controller == case.controller) else { continue };
            let met = bar.met.filter(|_| law.controller == JUDGED);
            let kind = met.map_or("", |met| if met { "met" } else { "not met" });
            lines.one(
                &Scope { what: "bar", name: bar.limit.to_string(), kind, ..Scope::default() },
                &bar.key,
                law.value,
            );
        }
    }
    text
}

struct Lines<'a> {
    text: &'a mut String,
    suite: &'a str,
    case: &'a CaseResult,
}

impl Lines<'_> {
    fn all(&mut self, scope: &Scope, metrics: &Metrics) {
        for (key, found) in metrics {
            self.one(scope, key, *found);
        }
    }

    /// A line; none for what was not measured.
    fn one(&mut self, scope: &Scope, key: &str, found: Option<Estimate>) {
        let Some(Estimate { mean, lo, hi, runs }) = found else { return };
        let world = match self.case.world {
            crate::result::World::Sim => "sim",
            crate::result::World::Live => "live",
        };
        let CaseResult { case, variant, controller, implementation, .. } = self.case;
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let cells = [
            self.suite,
            case,
            variant,
            world,
            controller,
            implementation,
            scope.what,
            &scope.name,
            scope.kind,
            &scope.from_s,
            &scope.until_s,
            key,
            &mean.to_string(),
            &number(lo),
            &number(hi),
            &runs.to_string(),
        ];
        self.text.push_str(&cells.map(quoted).join(","));
        self.text.push_str("\r\n");
    }
}
