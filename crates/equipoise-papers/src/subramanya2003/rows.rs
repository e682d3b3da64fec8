//! Runs a method in the cases I and II of the paper. Several parts of the paper are repeated with these runs.

use super::outcome::{Outcome, Row};
use super::{Lab, parse_with};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

/// The start times of the runs of case I are spread over this time, in ms. It is the report interval of the paper's
/// method TQ. So the bottleneck's rate is cut at a different point of the report interval in each run.
const SPREAD_MS: f64 = 100.0;

/// Returns the time at which the source starts in run number `run`, in seconds. `runs` is the total number of runs.
fn start_s(run: u32, runs: u32) -> f64 {
    (SPREAD_MS * f64::from(run) / f64::from(runs)).round() / 1e3
}

/// Runs case I of Subramanya 2003: one source, whose bottleneck is cut to a quarter. In each run, the source starts at
/// a different time. These times are spread over one report interval.
pub(super) fn case1(lab: &Lab<'_>, name: &str, text: &str, overrides: &[Override], runs: u32) -> Result<Row, SimError> {
    let scenario = |run: u32| {
        let start = Override::set("flow.cbr-2.start", format!("{} ms", 1e3 * start_s(run, runs)));
        parse_with(text, &[overrides, &[start]].concat())
    };
    let keep = |run: &equipoise_lab::result::Run| run.clone();
    let found = lab.each((0..runs).map(|run| (scenario(run), run)), keep)?;
    let outcomes = (0..runs).zip(&found).map(|(run, result)| Outcome::of(result, start_s(run, runs), "Link0"));
    Ok(Row::new(name, &scenario(0), outcomes.collect()))
}

/// Runs case II with the overrides `overrides`.
pub(super) fn case2(lab: &Lab<'_>, name: &str, text: &str, overrides: &[Override], runs: u32) -> Result<Row, SimError> {
    let scenario = parse_with(text, overrides);
    let outcomes = lab.runs(&scenario, runs, |run| Outcome::of(run, 0.0, "Link0"))?;
    Ok(Row::new(name, &scenario, outcomes))
}
