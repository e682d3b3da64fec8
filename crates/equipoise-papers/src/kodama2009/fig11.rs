use super::scenarios::FIG11;
use super::series::{mean_of, samples, tcp};
use super::{Found, Lab, Options, drafts, parse_with};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, mean_95};

/// The thesis shows one run of each.
const RUNS: u32 = 5;
const CONNECTIONS: usize = 10;
/// From one connection to the next.
const EVERY_S: f64 = 200.0;
/// The part of each stretch that counts: its end, when the windows have had time to settle.
const SETTLED_S: f64 = 100.0;
/// The connections that the thesis finds to be treated unfairly.
const LATE: std::ops::Range<usize> = 3..CONNECTIONS;
/// The round trip without a queue, in ms.
const ROUND_TRIP_MS: f64 = 120.0;
/// A minimum that exceeds it by more is wrong: it moves a window by 0.8 %, against the (1 - γ) = 5 % that hold it. Ours.
const WRONG_MS: f64 = 1.0;
/// m where it is on (Kodama 2009, Fig. 17).
const STRENGTH: f64 = 0.3;
/// Connections drawn: more lines could not be told apart.
const DRAWN: [usize; 5] = [0, 2, 4, 6, 9];

pub(super) fn planned(options: &Options) -> u32 {
    2 * options.runs(RUNS, 2)
}

/// A line of points (x, y) for each connection.
type Lines = Vec<Vec<(f64, f64)>>;

/// What counts of a run.
struct Outcome {
    /// Fairness while one to ten connections are there.
    jain: Vec<f64>,
    /// How much the minimum round trip of each connection exceeds the path's, in ms.
    excess_ms: Vec<f64>,
    timeouts: u64,
    /// Window and minimum round trip of each connection over time.
    windows: Lines,
    round_trips: Lines,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let fairness = |count: usize| {
            let end = EVERY_S * count as f64;
            let window = |flow| mean_of(run, flow, (end - SETTLED_S, end), |sample| Some(sample.window_segments));
            jain(&(0..count).map(window).collect::<Vec<_>>())
        };
        let there = |flow: usize| {
            let last = 2.0 * CONNECTIONS as f64 - 1.0 - flow as f64;
            let stretch = EVERY_S * flow as f64..EVERY_S * last;
            samples(run, flow).iter().filter(move |sample| stretch.contains(&sample.at_s))
        };
        let minimum =
            |flow: usize| tcp(run, flow).and_then(|tcp| tcp.min_round_trip_s).map_or(f64::NAN, |least| least * 1e3);
        Self {
            jain: (1..=CONNECTIONS).map(fairness).collect(),
            excess_ms: (0..CONNECTIONS).map(|flow| minimum(flow) - ROUND_TRIP_MS).collect(),
            timeouts: (0..CONNECTIONS).filter_map(|flow| tcp(run, flow)?.timeouts).sum(),
            windows: (0..CONNECTIONS)
                .map(|flow| there(flow).map(|sample| (sample.at_s, sample.window_segments)).collect())
                .collect(),
            round_trips: (0..CONNECTIONS)
                .map(|flow| there(flow).filter_map(|at| Some((at.at_s, at.min_round_trip_s? * 1e3))).collect())
                .collect(),
        }
    }

    /// Mean fairness since the fourth joined.
    fn late_jain(&self) -> f64 {
        self.jain[LATE].iter().sum::<f64>() / LATE.len() as f64
    }

    /// Mean excess of the late connections' minimum.
    fn late_excess_ms(&self) -> f64 {
        self.excess_ms[LATE].iter().sum::<f64>() / LATE.len() as f64
    }

    /// Share of the late connections whose minimum is wrong.
    fn late_wrong(&self) -> f64 {
        self.excess_ms[LATE].iter().filter(|&&excess| excess > WRONG_MS).count() as f64 / LATE.len() as f64
    }
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(of).collect::<Vec<_>>())
}

/// Fig. 11 and 17: one to ten to one connections.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let of = |strength: f64| {
        let scenario = |place: f64| {
            // Without oscillation nothing is drawn: runs differ in when the second connection joins.
            let overrides = [
                Override::set("flow.*.window.oscillation", strength),
                Override::set("flow.connection 2.start", format!("{:.3} s", EVERY_S + 0.42 * place)),
            ];
            parse_with(FIG11, &overrides)
        };
        lab.spread(runs, scenario, Outcome::of)
    };
    let (without, with) = (of(0.0)?, of(STRENGTH)?);
    found.claims.extend(of_fig11(&without, runs));
    found.claims.extend(of_fig17(&without, &with, runs));
    found.figures.push(figure(&without, &with));
    Ok(())
}

fn fairness(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, Outcome::late_jain)
}

fn wrong(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, Outcome::late_wrong)
}

fn excess(outcomes: &[Outcome]) -> String {
    format!("Above 120 ms by {} ms in the mean.", with_interval(mean(outcomes, Outcome::late_excess_ms), 2))
}

fn of_fig11(without: &[Outcome], runs: u32) -> [Claim; 2] {
    let draft = drafts("Fig. 11", runs);
    [
        draft(
            "fig11.wrong_minimum",
            "Without oscillation late connections take a queue that never empties for part of the path. Rule: more than half of \
             the fourth to the tenth have a minimum round trip more than 1 ms above 120 ms, in the mean of the runs.",
            None,
            "share of late connections",
        )
        .decide(wrong(without), |ours| ours.ci95[0] > 0.5, excess(without)),
        draft(
            "fig11.unfair_without",
            "Without oscillation the windows are unfair once the fourth connection has joined. Rule: Jain's index of the mean \
             windows over the last 100 s of each number of connections, in the mean over four to ten, is below 0.95.",
            None,
            "Jain's index",
        )
        .decide(fairness(without), |ours| ours.ci95[1] < 0.95, ""),
    ]
}

fn of_fig17(without: &[Outcome], with: &[Outcome], runs: u32) -> [Claim; 3] {
    let draft = drafts("Fig. 17", runs);
    let better = fairness(with).zip(fairness(without)).map(|(with, without)| difference(with, without));
    [
        draft(
            "fig17.right_minimum",
            "With m = 0.3 every connection finds the right minimum. Rule: the same share is below 5 %.",
            Some(0.0),
            "share of late connections",
        )
        .decide(wrong(with), |ours| ours.ci95[1] < 0.05, excess(with)),
        draft(
            "fig17.fair_with",
            "With m = 0.3 the windows are fair, whatever the number of connections. Rule: the same index is above 0.95.",
            Some(1.0),
            "Jain's index",
        )
        .decide(
            fairness(with),
            |ours| ours.ci95[0] > 0.95,
            WANDER,
        ),
        draft(
            "fig17.fairer_with",
            "With m = 0.3 the windows are fairer than without. Rule: by the interval of the difference of the two indices.",
            None,
            "difference of Jain's indices",
        )
        .decide(better, |ours| ours.ci95[0] > 0.0, ""),
    ]
}

/// Why oscillation makes windows unequal.
const WANDER: &str = "What is unfair is no longer the order of joining, it is chance. By Eq. 7 the difference of two of n windows dies out at a \
     rate of ε (1 - γ) / (1 + γ (n - 1)), 1 / 20 s for two and 1 / 98 s for ten; noise of strength m keeps it at about \
     m / √(2 · rate) of a window, which is as much as the window itself for two, and twice that for ten.";

fn figure(without: &[Outcome], with: &[Outcome]) -> Figure {
    let plot = |title: String, y, limits, of: fn(&Outcome) -> &Lines, outcomes: &[Outcome]| Plot {
        title,
        x: "time (s)",
        y,
        y_limits: Some(limits),
        layers: outcomes.first().map_or(Vec::new(), |outcome| {
            let line = |flow: usize| PlotLayer {
                name: format!("connection {}", flow + 1),
                data: PlotData::Line(of(outcome)[flow].clone()),
            };
            DRAWN.map(line).into()
        }),
        marks: Vec::new(),
    };
    let charts = [(without, "without oscillation"), (with, "m = 0.3")].into_iter().flat_map(|(outcomes, kind)| {
        let window =
            plot(format!("Congestion window, {kind}"), "window (packets)", (0.0, 1200.0), |o| &o.windows, outcomes);
        let title = format!("Minimum round-trip time, {kind}");
        [window, plot(title, "minimum round trip (ms)", (100.0, 240.0), |o| &o.round_trips, outcomes)]
    });
    let row = |flow: usize| {
        let cells = [without, with].map(|outcomes| {
            [
                with_interval(mean(outcomes, |outcome| outcome.jain[flow]), 3),
                with_interval(mean(outcomes, |outcome| outcome.excess_ms[flow]), 2),
            ]
        });
        let mut row = vec![(flow + 1).to_string()];
        row.extend(cells.into_iter().flatten());
        row
    };
    let columns = [
        "connection",
        "Jain's index with so many, m = 0",
        "its minimum above 120 ms (ms), m = 0",
        "Jain's index with so many, m = 0.3",
        "its minimum above 120 ms (ms), m = 0.3",
    ];
    let timeouts = |outcomes: &[Outcome]| with_interval(mean(outcomes, |outcome| outcome.timeouts as f64), 0);
    Figure {
        name: "Fig. 11, 17".to_owned(),
        title: "One to ten to one connections".to_owned(),
        text: format!(
            "One more every 200 s, from 1800 s on ten, from 2000 s on one less every 200 s, the last first. Five of the ten \
             are drawn. Timeouts of all ten in a run: {} without oscillation, {} with.",
            timeouts(without),
            timeouts(with)
        ),
        charts: charts.collect(),
        tables: vec![Table {
            caption: "Fairness of the mean windows over the last 100 s of each number of connections, and minimum round trips"
                .to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: (0..CONNECTIONS).map(row).collect(),
        }],
    }
}
