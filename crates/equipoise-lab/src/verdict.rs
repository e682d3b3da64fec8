//! Decides whether a session held its target delay. The report, the terminal and the exit code use the same rule.

use equipoise::units::Span;

use crate::report::{millis, signed_percent};
use crate::result::{ExcursionResult, FlowResult, Run, World};

/// A settled delay is near the target if its distance from the target is at most this share of the target. Our choice.
const HELD_WITHIN: f64 = 0.15;
/// A delay above this multiple of the target is an excursion. Our choice.
pub(crate) const EXCURSION_FROM: f64 = 2.0;
/// A session did not hold its target delay if its delay stayed above [`EXCURSION_FROM`] times the target for longer
/// than this. Our choice: about the time of a few spoken words.
const LONGEST_EXCURSION: Span = Span::from_secs(2);
/// A session counts as limited if the application or a rate limit set the rate in at least this share of the decisions.
/// Our choice.
const LIMITED_FROM: f64 = 0.5;

/// Whether a flow held its target in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The flow is a flow pair, or has no target delay. For example, TCP and a session at a fixed rate have no target
    /// delay.
    NoTarget,
    /// Nothing was measured after the warm-up.
    NotMeasured,
    /// The settled delay (the median delay outside of the warm-up and of steps) is near the target, and the delay never
    /// stayed above twice the target for longer than 2 s.
    Held,
    /// The settled delay (the median delay outside of the warm-up and of steps) is further below the target than `Held`
    /// allows, because the application or the maximum rate limits the session. This is not a failure.
    Limited,
    /// The settled delay (the median delay outside of the warm-up and of steps) is too far from the target.
    Missed,
    /// The flow would count as `Held` or `Limited`, but the delay stayed above twice the target for longer than 2 s.
    Excursion,
}

impl Verdict {
    /// Returns the verdict on a flow in one run.
    pub fn of(flow: &FlowResult) -> Self {
        let target = flow.target_s.filter(|_| flow.tcp.is_none() && flow.pair.is_none());
        let (Some(target), Some(settled)) = (target, flow.settled_delay_s) else {
            return if target.is_none() { Self::NoTarget } else { Self::NotMeasured };
        };
        let error = settled / target - 1.0;
        let is_limited = flow.limited_share.is_some_and(|share| share >= LIMITED_FROM);
        let is_near = error.abs() <= HELD_WITHIN;
        let is_right = is_near || (error < 0.0 && is_limited);
        if !is_right {
            Self::Missed
        } else if flow.excursions.is_some_and(|found| found.longest_s > LONGEST_EXCURSION.as_secs_f64()) {
            Self::Excursion
        } else if is_near {
            Self::Held
        } else {
            Self::Limited
        }
    }

    /// Whether the flow kept its target delay; `None` if it has no target.
    pub const fn is_held(self) -> Option<bool> {
        match self {
            Self::NoTarget => None,
            Self::Held | Self::Limited => Some(true),
            Self::NotMeasured | Self::Missed | Self::Excursion => Some(false),
        }
    }
}

/// Whether a flow held its target in several runs, and a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether the flow held its target in all runs; `None` if it has no target.
    pub is_held: Option<bool>,
    /// The judgement as a sentence for the reader.
    pub sentence: String,
}

/// The judgement of one flow in all simulated or all live runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowJudgement {
    /// Whether the judged runs are simulated or live.
    pub world: World,
    /// The flow's name.
    pub flow: String,
    /// The judgement over all these runs.
    pub judgement: Judgement,
}

/// Returns the judgements of all flows that have a target, separately for all simulated and all live runs.
pub fn judge(runs: &[Run]) -> Vec<FlowJudgement> {
    let in_world = |world| {
        let runs: Vec<_> = runs.iter().filter(|run| run.world == world).collect();
        let flows = runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
        let judged = |(index, flow): (usize, &FlowResult)| {
            let results: Vec<_> = runs.iter().filter_map(|run| run.flows.get(index)).collect();
            FlowJudgement { world, flow: flow.name.clone(), judgement: Judgement::of(&results) }
        };
        flows.iter().enumerate().map(judged).filter(|judged| judged.judgement.is_held.is_some()).collect::<Vec<_>>()
    };
    [World::Sim, World::Live].into_iter().flat_map(in_world).collect()
}

impl Judgement {
    /// Returns the judgement of a flow from its results in all simulated runs, or in all live runs.
    pub fn of(runs: &[&FlowResult]) -> Self {
        let verdicts: Vec<_> = runs.iter().map(|flow| Verdict::of(flow)).collect();
        let is_held = verdicts.iter().filter_map(|verdict| verdict.is_held()).reduce(|all, held| all && held);
        let settled: Vec<_> = runs.iter().filter_map(|flow| flow.settled_delay_s).collect();
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        let over_runs = if runs.len() == 1 { "" } else { " on average" };
        let sentence = match runs.iter().find_map(|flow| flow.target_s) {
            _ if settled.is_empty() => "nothing was measured after the warm-up.".to_owned(),
            None => format!("settled at {}{over_runs}; it has no target.", millis(mean)),
            Some(target) => {
                let error = signed_percent(mean / target - 1.0);
                let (mean, target) = (millis(mean), millis(target));
                let (held, excursions) = (held(&verdicts), excursions(runs));
                format!("settled at {mean}{over_runs} against a target of {target} ({error}): {held}.{excursions}")
            }
        };
        Self { is_held, sentence }
    }
}

/// Returns whether the target was held, and the reason if it was not, in words.
fn held(verdicts: &[Verdict]) -> String {
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (within, longest) = (HELD_WITHIN * 100.0, LONGEST_EXCURSION);
    let (limited, excursion) = (count(Verdict::Limited), count(Verdict::Excursion));
    if let [verdict] = verdicts {
        return match verdict {
            Verdict::Held => format!("held within {within:.0} %"),
            Verdict::Limited => format!("held; {LIMITED}"),
            Verdict::Excursion => format!("not held: an excursion lasted longer than {longest}"),
            _ => format!("not held within {within:.0} %"),
        };
    }
    let held = verdicts.iter().filter(|verdict| verdict.is_held() == Some(true)).count();
    let mut words = format!("held in {held} of {} runs within {within:.0} %", verdicts.len());
    if limited > 0 {
        words.push_str(&format!("; in {limited} of them {LIMITED}"));
    }
    if excursion > 0 {
        words.push_str(&format!("; in {excursion} others an excursion lasted longer than {longest}"));
    }
    words
}

const LIMITED: &str = "less delay than asked for, because what it has to send or its highest rate limits it";

/// Returns a text about how long the delay was far above the target. The text is empty if the delay was never far above
/// the target.
fn excursions(runs: &[&FlowResult]) -> String {
    let all: Vec<ExcursionResult> = runs.iter().filter_map(|flow| flow.excursions).collect();
    let longest = all.iter().map(|found| found.longest_s).fold(0.0, f64::max);
    let total = all.iter().map(|found| found.total_s).sum::<f64>() / all.len() as f64;
    if longest <= 0.0 {
        return String::new();
    }
    let (in_total, at_most) = if runs.len() == 1 { ("in total", "") } else { ("per run on average", "at most ") };
    format!(
        " Above {EXCURSION_FROM} times the target for {total:.1} s {in_total}, for {at_most}{longest:.1} s at a stretch."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::flow;

    /// Returns the result of a session with a target of 40 ms.
    fn session(settled_ms: f64, limited_share: f64, excursion_s: f64) -> FlowResult {
        FlowResult {
            target_s: Some(0.04),
            settled_delay_s: Some(settled_ms / 1e3),
            limited_share: Some(limited_share),
            excursions: Some(ExcursionResult { total_s: excursion_s, longest_s: excursion_s }),
            ..flow(&[])
        }
    }

    #[test]
    fn less_delay_than_asked_for_is_a_failure_only_if_nothing_but_the_law_limits_the_rate() {
        let cases = [
            (session(41.0, 0.0, 0.0), Verdict::Held),
            (session(17.0, 0.9, 0.0), Verdict::Limited),
            (session(17.0, 0.1, 0.0), Verdict::Missed),
            (session(60.0, 0.9, 0.0), Verdict::Missed),
            (session(41.0, 0.0, 1.0), Verdict::Held),
            (session(41.0, 0.0, 18.0), Verdict::Excursion),
            (session(17.0, 0.9, 18.0), Verdict::Excursion),
            (FlowResult { settled_delay_s: None, ..session(41.0, 0.0, 0.0) }, Verdict::NotMeasured),
            (FlowResult { target_s: None, excursions: None, ..session(41.0, 0.0, 0.0) }, Verdict::NoTarget),
        ];
        for (flow, expected) in cases {
            assert_eq!(Verdict::of(&flow), expected, "{:?}, {:?}", flow.settled_delay_s, flow.excursions);
        }
    }

    #[test]
    fn a_judgement_says_how_long_the_delay_was_far_above_the_target() {
        let one = Judgement::of(&[&session(41.0, 0.0, 18.0)]);
        assert_eq!(one.is_held, Some(false));
        assert_eq!(
            one.sentence,
            "settled at 41.00 ms against a target of 40.00 ms (+2.5 %): not held: an excursion lasted longer \
             than 2 s. Above 2 times the target for 18.0 s in total, for 18.0 s at a stretch."
        );
        let many = Judgement::of(&[&session(40.0, 0.0, 0.0), &session(20.0, 0.8, 1.0), &session(40.0, 0.0, 5.0)]);
        assert_eq!(many.is_held, Some(false));
        assert_eq!(
            many.sentence,
            "settled at 33.33 ms on average against a target of 40.00 ms (−16.7 %): held in 2 of 3 runs within 15 %; in 1 of \
             them less delay than asked for, because what it has to send or its highest rate limits it; in 1 others an \
             excursion lasted longer than 2 s. Above 2 times the target for 2.0 s per run on average, for at most \
             5.0 s at a stretch."
        );
        let none = Judgement::of(&[&FlowResult { target_s: None, ..session(40.0, 0.0, 0.0) }]);
        assert_eq!((none.is_held, none.sentence.as_str()), (None, "settled at 40.00 ms; it has no target."));
    }
}
