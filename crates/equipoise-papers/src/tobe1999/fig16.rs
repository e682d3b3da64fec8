//! Fig. 16: a loss in the RTP flow causes a large inter-arrival time, and the next probing period restores the rate.

use std::collections::BTreeMap;

use super::fig10::{self, LONG};
use super::measures::{Stretch, mean_rate, running_periods};
use super::setting::{FIG10, Testbed, Trace, over, run_all};
use super::{Found, Lab, Options, Rule, Spec, mean_of, parse_with, read_all, with_interval};
use crate::Claim;
use equipoise_lab::scenario::{Override, Scenario, Value};
use equipoise_lab::sim::SimError;

/// Number of runs. The paper shows one run.
const RUNS: u32 = 10;
const DURATION_S: f64 = 40.0;
/// Start and end of a burst, in seconds. In the burst, the noise traffic has the rate of the bottleneck. The burst is
/// our choice, because the paper does not state the cause of the loss.
const BURST_S: f64 = 9.0;
const BURST_END_S: f64 = 10.0;
/// The parts of a run whose inter-arrival times are compared, in seconds: before the burst, and from the start of the
/// burst to 1 s after its end.
const BEFORE: Stretch = (7.0, BURST_S);
const BURST: Stretch = (BURST_S, BURST_END_S + 1.0);

const LOSS_JUMP: Spec = Spec::new(
    "fig16.jump_after_loss",
    "Fig. 16",
    "A loss of RTP shows as a large inter-arrival time of ADUs: the largest in a burst of other traffic over the largest in the three \
     seconds before.",
    Rule::above(2.0),
)
.unit("ratio");
const RECOVERS: Spec = Spec::new(
    "fig16.recovers_by_probing",
    "Fig. 16",
    "After a loss the rate of flow 3 recovers to a stable value in the following probing period: its rate in the next running period \
     over that before the loss.",
    Rule::within(0.9, 1.1),
)
.unit("ratio");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 2] = [LOSS_JUMP, RECOVERS];

pub(super) fn planned_with_gaps(options: &Options) -> u32 {
    fig10::planned(options) + Testbed::runs_of_all(options, RUNS)
}

/// Runs Fig. 12 and 16: the inter-arrival times of ADUs, and the effect of a loss.
pub(super) fn run_with_gaps(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    fig10::gaps(lab, found)?;
    read_all(found, |testbed| {
        let scenario = testbed.of(over(scenario(), LONG));
        let runs = testbed.runs(&lab.options, RUNS);
        Ok(claims(&run_all(lab, &scenario, runs, |trace| trace)?))
    })
}

/// Returns the scenario of Fig. 10 without flow 2, and with a burst of the noise traffic.
fn scenario() -> Scenario {
    let step = |at: f64, rate: &str| {
        let texts = [("at".to_owned(), Value::from(format!("{at} s"))), ("rate".to_owned(), Value::from(rate))];
        Value::from(BTreeMap::from(texts))
    };
    let steps = vec![step(BURST_S, "1.2 Mbit/s"), step(BURST_END_S, "12 kbit/s")];
    parse_with(FIG10, &[Override::remove("flow.\"flow 2\""), Override::set("flow.noise.source.steps", steps)])
}

/// Index of the flow pair in the scenario without flow 2. The flow with index 0 is TCP.
const PAIR: usize = 1;

/// Returns two running periods (in which RTP sends): the one that contains the whole time from 7 s to the end of the
/// burst of noise traffic, and the next one. Returns `None` if one of them does not exist.
fn periods(trace: &Trace) -> Option<[Stretch; 2]> {
    let periods = running_periods(trace, DURATION_S);
    let hit = periods.iter().position(|(from, to)| *from <= BEFORE.0 && *to >= BURST_END_S)?;
    Some([periods[hit], *periods.get(hit + 1)?])
}

fn largest_gap(trace: &Trace, (from, to): Stretch) -> f64 {
    let pairs = trace.adus.windows(2).filter(|pair| pair[1].at_s > from && pair[1].at_s <= to);
    pairs.map(|pair| pair[1].at_s - pair[0].at_s).fold(0.0, f64::max)
}

fn claims(traces: &[Trace]) -> Vec<Claim> {
    let hit: Vec<_> = traces.iter().filter_map(|trace| Some((trace, periods(trace)?))).collect();
    let jumps = hit.iter().map(|(trace, _)| largest_gap(trace, BURST) / largest_gap(trace, BEFORE));
    let rate = |trace, from: f64, to: f64| mean_rate(trace, PAIR, (from.ceil(), to.floor()));
    let back = hit
        .iter()
        .map(|(trace, [_, next])| rate(trace, next.0, next.1.min(next.0 + 5.0)) / rate(trace, BEFORE.0, BEFORE.1));
    let low = hit.iter().map(|(trace, [of, _])| rate(trace, of.1 - 2.0, of.1) / rate(trace, BEFORE.0, BEFORE.1));
    let note =
        format!("The burst met a running period, and another followed, in {} of {} runs.", hit.len(), traces.len());
    let runs = traces.len() as u32;
    vec![
        LOSS_JUMP.decide(runs, mean_of(jumps), note),
        RECOVERS.decide(
            runs,
            mean_of(back),
            format!("At the end of the running period of the loss it is {}.", with_interval(mean_of(low), 2)),
        ),
    ]
}
