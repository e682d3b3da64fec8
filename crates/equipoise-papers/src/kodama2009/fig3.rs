use super::scenarios::FIG3;
use super::series::{dropped, mean_of, mean_of_link, samples};
use super::{Found, Lab, Options, drafts, parse, parse_with};
use crate::{Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, mean_95};

/// The thesis shows one run. Runs differ in the moment at which the second connection joins.
const RUNS: u32 = 10;
/// The last part of the run.
const LAST: (f64, f64) = (150.0, 200.0);
/// The part of the run before the second connection joins, less the first one's beginning.
const ALONE: (f64, f64) = (10.0, 50.0);

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) + 1
}

/// What counts of a run.
struct Outcome {
    dropped: u64,
    jain: f64,
    utilisation: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let window = |flow| mean_of(run, flow, LAST, |sample| Some(sample.window_segments));
        let utilisation = |stretch| mean_of_link(run, "E0-E1", stretch, |sample| sample.utilisation);
        Self {
            dropped: dropped(run),
            jain: jain(&[window(0), window(1)]),
            utilisation: utilisation(ALONE).min(utilisation(LAST)),
        }
    }
}

/// Runs of Fig. 3 with overrides, in which the second connection joins at other moments of a round trip of
/// the first.
pub(super) fn joins<T: Send>(
    lab: &Lab<'_>,
    runs: u32,
    overrides: &[Override],
    keep: impl Fn(&Run) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let scenario = |place: f64| {
        let start = Override::set("flow.second.start", format!("{:.3} s", 50.0 + 0.12 * place));
        parse_with(FIG3, &[overrides, &[start]].concat())
    };
    lab.spread(runs, scenario, keep)
}

/// Fig. 3: two connections, the second from 50 s on.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let outcomes = joins(lab, runs, &[], Outcome::of)?;
    let drawn = lab.runs(&parse(FIG3), 1, figure)?;
    let lost = outcomes.iter().map(|outcome| outcome.dropped).max().unwrap_or(0) as f64;
    let of = |value: fn(&Outcome) -> f64| mean_95(&outcomes.iter().map(value).collect::<Vec<_>>());
    let draft = drafts("Fig. 3", runs);
    found.claims.push(
        draft(
            "fig3.no_loss",
            "No packet is lost when the second connection joins. Rule: none in any run.",
            Some(0.0),
            "packets, the most of any run",
        )
        .decide(Some(Estimate { value: lost, ci95: [lost, lost] }), |ours| ours.ci95[1] < 0.5, ""),
    );
    found.claims.push(
        draft(
            "fig3.jain",
            "Both windows become equal. Rule: Jain's index of their means over the last 50 s is above 0.99.",
            Some(1.0),
            "Jain's index",
        )
        .decide(
            of(|outcome| outcome.jain),
            |ours| ours.ci95[0] > 0.99,
            "The difference of two windows dies out by a factor of e every (1 + γ) / (ε (1 - γ)) = 20 s, which follows from \
             Eq. 9; by 100 s, 50 s behind the second's start, they are not equal yet.",
        ),
    );
    found.claims.push(
        draft(
            "fig3.utilisation",
            "The link is used almost fully, with one connection and with two. Rule: above 95 %.",
            Some(1.0),
            "share of the capacity",
        )
        .decide(of(|outcome| outcome.utilisation), |ours| ours.ci95[0] > 0.95, ""),
    );
    found.figures.extend(drawn);
    Ok(())
}

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
            marks: vec![(1000.0, "bandwidth-delay product".to_owned())],
        }],
        tables: Vec::new(),
    }
}
