use std::collections::BTreeMap;

use super::scenarios::FIG3;
use super::series::{dropped, jain_of_means, mean_of_link, mean_window, samples, variation};
use super::{Found, Lab, Options, Rule, Spec, parse, parse_with, read};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// Number of runs. The thesis shows one run. In each run, the second connection joins at a different time.
const RUNS: u32 = 10;
/// Number of runs in which both connections measure the available bandwidth with their own segments (inline).
const RUNS_INLINE: u32 = 5;
/// The last part of a run, in seconds, in which both connections have settled.
const LAST: (f64, f64) = (150.0, 200.0);
/// The part of a run in which only the first connection is active, in seconds. It begins after the connection's start
/// phase.
const ALONE: (f64, f64) = (10.0, 50.0);
/// Time at which the second connection joins, in seconds.
const JOINS_S: f64 = 50.0;
/// The window that fills 100 Mbit/s over a round-trip time of 120 ms, in packets of 1500 bytes.
const PATH: f64 = 1000.0;
/// A window counts as near 1000 packets if it is at least this share of 1000 packets. Two windows count as equal if the
/// smaller one is at least this share of the larger one. Our choice.
const NEARLY: f64 = 0.9;

pub(super) const CLAIMS: &[Spec] = &[NO_LOSS, FIRST_RAPID, NEAR_1000, JAIN, RAPID, STABLE, UTILISATION];
const NO_LOSS: Spec =
    Spec::new("fig3.no_loss", "Fig. 3", "No packet is lost when the second connection joins.", Rule::within(0.0, 0.0))
        .paper(0.0)
        .unit("packets, the most of any run");
// The thesis does not state how fast "rapidly" and "quickly" are. We use 20 s, a tenth of the figure's time axis. No
// shorter time can be read from the figure.
const FIRST_RAPID: Spec = Spec::new(
    "fig3.first_rapid",
    "Fig. 3",
    "The first connection's window rapidly comes near 1000 packets: to 90 % within a tenth of the figure.",
    Rule::below(20.0),
)
.unit("s");
const NEAR_1000: Spec = Spec::new(
    "fig3.window_near_1000",
    "Fig. 3",
    "Alone, the first connection's mean window is close to 1000 packets.",
    Rule::within(0.95, 1.05),
)
.paper(1.0)
.unit("of 1000 packets");
const JAIN: Spec = Spec::new(
    "fig3.jain",
    "Fig. 3",
    "Both windows become the same: Jain's index of their means over the last 50 s.",
    Rule::above(0.999),
)
.paper(1.0)
.unit("Jain's index");
const RAPID: Spec = Spec::new(
    "fig3.rapid",
    "Fig. 3",
    "The first connection quickly makes room for the second: their windows are within 10 % of each other within a tenth of the \
     figure.",
    Rule::below(20.0),
)
.unit("s after the second's start");
const STABLE: Spec = Spec::new(
    "fig3.stable",
    "Fig. 3",
    "The windows are stable while nothing changes: standard deviation over mean, alone from 30 s on and together over the last \
     50 s, the larger.",
    Rule::below(0.05),
)
.unit("deviation over mean");
const UTILISATION: Spec = Spec::new(
    "fig3.utilisation",
    "Fig. 3",
    "The link is used almost fully, with one connection and with two.",
    Rule::above(0.95),
)
.paper(1.0)
.unit("share of the capacity");

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) + options.runs(RUNS_INLINE, 1) + 1
}

/// The values that the claims use, computed from one run.
struct Outcome {
    dropped: u64,
    first_s: f64,
    alone: f64,
    jain: f64,
    equal_s: f64,
    variation: f64,
    utilisation: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let utilisation = |stretch| mean_of_link(run, "E0-E1", stretch, |sample| sample.utilisation);
        let first = samples(run, 0).iter().find(|sample| sample.window_segments >= NEARLY * PATH);
        let together = samples(run, 0).iter().zip(samples(run, 1)).find(|(first, second)| {
            let [one, other] = [first, second].map(|sample| sample.window_segments);
            first.at_s > JOINS_S + 1.0 && one.min(other) >= NEARLY * one.max(other)
        });
        let steady = [(0, (30.0, JOINS_S)), (0, LAST), (1, LAST)];
        Self {
            dropped: dropped(run),
            first_s: first.map_or(run.lasted_s, |sample| sample.at_s),
            alone: mean_window(run, 0, ALONE) / PATH,
            jain: jain_of_means(run, 0..2, LAST),
            equal_s: together.map_or(run.lasted_s, |(sample, _)| sample.at_s) - JOINS_S,
            variation: steady.map(|(flow, stretch)| variation(run, flow, stretch)).into_iter().fold(0.0, f64::max),
            utilisation: utilisation(ALONE).min(utilisation(LAST)),
        }
    }
}

/// Runs Fig. 3 with additional overrides. In each run, the second connection joins at a different time within one
/// round-trip time.
pub(super) fn joins<T: Send>(
    lab: &Lab<'_>,
    runs: u32,
    overrides: &[Override],
    keep: impl Fn(&Run) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let scenario = |place: f64| {
        let start = Override::set("flow.second.start", format!("{:.3} s", JOINS_S + 0.12 * place));
        parse_with(FIG3, &[overrides, &[start]].concat())
    };
    lab.spread(runs, scenario, keep)
}

/// Returns the override with which both connections measure the available bandwidth inline.
fn inline() -> Override {
    Override::set("flow.*.bandwidth", BTreeMap::from([("kind", "inline")]))
}

/// Runs Fig. 3, in which a second connection starts at 50 s.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    found.claims.extend(claims(&joins(lab, runs, &[], Outcome::of)?, runs));
    found.figures.extend(lab.runs(&parse(FIG3), 1, figure)?);
    let runs = lab.options.runs(RUNS_INLINE, 1);
    let measured = joins(lab, runs, &[inline()], Outcome::of)?;
    read(found, "Fig. 3: measured inline", claims(&measured, runs));
    Ok(())
}

fn claims(outcomes: &[Outcome], runs: u32) -> Vec<Claim> {
    let lost = outcomes.iter().map(|outcome| outcome.dropped).max().unwrap_or(0) as f64;
    let of = |value: fn(&Outcome) -> f64| mean_95(&outcomes.iter().map(value).collect::<Vec<_>>());
    vec![
        NO_LOSS.decide(runs, Some(Estimate { value: lost, ci95: [lost, lost] }), ""),
        FIRST_RAPID.decide(runs, of(|outcome| outcome.first_s), ""),
        NEAR_1000.decide(runs, of(|outcome| outcome.alone), ""),
        JAIN.decide(runs, of(|outcome| outcome.jain), ""),
        RAPID.decide(runs, of(|outcome| outcome.equal_s), GROWS),
        STABLE.decide(runs, of(|outcome| outcome.variation), ""),
        UTILISATION.decide(runs, of(|outcome| outcome.utilisation), ""),
    ]
}

/// A note that a claim shows: why it takes long until both windows are equal.
const GROWS: &str = "While the first connection takes all, nothing is available to the second: by Eq. 8 its window grows at ε (1 - γ), by a \
     factor of e in 10 s.";

fn figure(run: &Run) -> Figure {
    let line = |flow: usize| {
        let points = samples(run, flow).iter().map(|sample| (sample.at_s, sample.window_segments)).collect();
        PlotLayer { name: format!("connection {}", flow + 1), data: PlotData::Line(points) }
    };
    Figure {
        name: "Fig. 3".to_owned(),
        title: "Two connections, the second from 50 s on".to_owned(),
        text: "100 Mbit/s, 120 ms; 1000 packets fill the path.".to_owned(),
        charts: vec![Plot {
            title: "Congestion window".to_owned(),
            x: "time (s)",
            y: "window (packets)",
            y_limits: Some((0.0, 1200.0)),
            layers: vec![line(0), line(1)],
            marks: vec![(PATH, "bandwidth-delay product".to_owned())],
        }],
        tables: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_lab::sim;

    #[test]
    fn two_connections_that_measure_share_a_link_nearly_equally_without_loss() {
        let run = sim::simulate(&parse_with(FIG3, &[inline()]), 1, &mut |_| {}).unwrap();
        assert!(jain_of_means(&run, 0..2, LAST) > 0.95);
        assert_eq!(dropped(&run), 0);
    }
}
