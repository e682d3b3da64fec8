//! Fig. 3, where each connection measures for itself.

use std::collections::BTreeMap;

use super::super::fig3::joins;
use super::super::series::{dropped, mean_of, mean_of_link};
use super::super::{Lab, Options, drafts};
use crate::Claim;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{jain, mean_95};

/// Runs of Fig. 3 with measurement, which differ in the moment at which the second connection joins (ours).
const RUNS: u32 = 5;
/// The last part of Fig. 3.
const LAST: (f64, f64) = (150.0, 200.0);

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2)
}

/// Both connections of Fig. 3 measure for themselves.
fn measuring() -> Override {
    Override::set("flow.*.bandwidth", BTreeMap::from([("kind", "inline")]))
}

/// The claim of Fig. 3, once more.
pub(super) fn run(lab: &Lab<'_>) -> Result<Claim, SimError> {
    let runs = planned(&lab.options);
    let outcomes = joins(lab, runs, &[measuring()], |run| {
        let window = |flow| mean_of(run, flow, LAST, |sample| Some(sample.window_segments));
        let utilisation = mean_of_link(run, "E0-E1", LAST, |sample| sample.utilisation);
        (jain(&[window(0), window(1)]), utilisation, dropped(run))
    })?;
    let lost: u64 = outcomes.iter().map(|outcome| outcome.2).sum();
    let least = outcomes.iter().map(|outcome| outcome.1).fold(1.0, f64::min);
    let statement = "Both windows become equal where each connection measures for itself. Rule: Jain's index of their means over \
                     the last 50 s is above 0.95, the link used above 95 %, and no packet lost.";
    let draft = drafts("Fig. 3", runs)("fig3.inline_jain", statement, Some(1.0), "Jain's index");
    Ok(draft.decide(
        mean_95(&outcomes.iter().map(|outcome| outcome.0).collect::<Vec<_>>()),
        |ours| ours.ci95[0] > 0.95 && least > 0.95 && lost == 0,
        format!("The link was used {:.1} % at least; {lost} packets were lost.", 100.0 * least),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::parse_with;
    use super::super::super::scenarios::FIG3;
    use super::*;
    use equipoise_lab::sim;

    #[test]
    fn two_connections_that_measure_share_a_link_nearly_equally_without_loss() {
        let run = sim::simulate(&parse_with(FIG3, &[measuring()]), 1, &mut |_| {}).unwrap();
        let window = |flow| mean_of(&run, flow, LAST, |sample| Some(sample.window_segments));
        assert!(jain(&[window(0), window(1)]) > 0.95, "{} {}", window(0), window(1));
        assert_eq!(dropped(&run), 0);
    }
}
