//! Writes the result of a suite as CSV, with one line per metric.

use super::SuiteResult;
use super::result::{CaseResult, Estimate};
use super::rows::MetricRow;
use crate::csv::Row;

const HEADER: &str =
    "suite,case,variant,world,controller,implementation,scope,name,kind,start_s,end_s,metric,mean,lo,hi,runs\n";

pub(super) fn of(result: &SuiteResult) -> String {
    let mut text = HEADER.to_owned();
    for row in result.measured() {
        line(&mut text, &result.suite, &row);
    }
    text
}

fn line(text: &mut String, suite: &str, row: &MetricRow<'_>) {
    let CaseResult { case, variant, world, controller, implementation, .. } = row.case;
    let Estimate { mean, lo, hi, runs } = row.found;
    let phase = row.phase_s();
    Row::after(text)
        .text(suite)
        .text(case)
        .text(variant)
        .text(world.name())
        .text(controller)
        .text(implementation)
        .text(row.scope.word())
        .text(&row.name().unwrap_or_default())
        .text(row.kind().unwrap_or_default())
        .measured(phase.map(|[start, _]| start))
        .measured(phase.map(|[_, end]| end))
        .text(row.metric)
        .number(mean)
        .measured(lo)
        .measured(hi)
        .number(runs)
        .end();
}
