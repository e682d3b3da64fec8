//! Tests how long the inline measurement needs to detect a step in the rate of the cross traffic.

use std::collections::BTreeMap;

use super::super::series::samples;
use super::super::{Lab, Rule, Spec};
use super::setting::{OWN, Own, SECTION, Setting, runs};
use crate::Claim;
use equipoise_lab::result::TcpSample;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::mean_95;

/// A step counts as found when the result differs from the new available bandwidth by less than this, in percent of the
/// capacity. Our choice.
const NEAR: f64 = 15.0;

pub(super) const STEP: Spec = Spec::new(
    "inline.step_rtts",
    SECTION,
    "A step of the others from 70 to 30 % is found in a few measurements: within 15 % of the capacity after less than six of four round \
     trips each, on the mean.",
    Rule::below(24.0),
)
.unit("round trips");

/// Returns whether a setting is used for the claim about a step of the cross traffic from 70 to 30 %. In such a
/// setting, the connection's receive window allows all of the bandwidth that is available before the step.
pub(super) fn is_stepped(setting: &Setting) -> bool {
    setting.path.capacity >= 100 && setting.own == Own::Limited(100) && setting.load == 70
}

/// In the middle of each run, the rate of the cross traffic steps from 70 to 30 % of the capacity. Returns the claim
/// about the time until the measurement finds the step.
pub(super) fn steps(lab: &Lab<'_>) -> Result<Claim, SimError> {
    let mut times = Vec::new();
    let mut missed = 0;
    for setting in Setting::all().filter(is_stepped) {
        let (capacity, middle) = (setting.path.capacity, setting.path.duration_s as f64 / 2.0);
        let step = BTreeMap::from([("at", format!("{middle} s")), ("rate", format!("{} Mbit/s", capacity * 30 / 100))]);
        let scenario = setting.scenario(true, &[Override::set("flow.others.source.steps", vec![step])]);
        let found = lab.runs(&scenario, runs(lab), |run| {
            let near = |sample: &&TcpSample| {
                sample.at_s > middle && setting.result(sample).is_some_and(|result| (result.1 - 70.0).abs() < NEAR)
            };
            let found = samples(run, OWN).iter().find(near);
            // If the step is not found in a run, the time until the end of the run counts.
            let at = found.map_or(run.lasted_s, |sample| sample.at_s);
            (found.is_none(), (at - middle) * 1e3 / setting.path.round_trip_ms as f64)
        })?;
        missed += found.iter().filter(|(missed, _)| *missed).count();
        times.extend(found.into_iter().map(|(_, time)| time));
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    let note = format!("The longest took {most:.0} round trips; {missed} runs did not find it.");
    Ok(STEP.decide(runs(lab), mean_95(&times), note))
}
