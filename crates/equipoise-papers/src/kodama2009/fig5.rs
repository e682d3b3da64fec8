use std::collections::BTreeMap;

use super::scenarios::FIG5;
use super::series::{goodput_mbps, samples};
use super::{Found, Lab, Options, drafts, parse_with, ratio, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// The thesis shows one run. Runs differ in the moment at which the connection begins, and in the background where it is drawn.
const RUNS: u32 = 10;
/// The whole run, as the thesis draws it.
pub(super) const WHOLE: (f64, f64) = (0.0, 120.0);
/// What is left on average: 70, 30 and 50 Mbit/s, 40 s each.
pub(super) const AVAILABLE_MBPS: f64 = 50.0;
/// The least that Reno uses of a path whose buffer holds nothing: its window swings between a half and the whole.
pub(super) const RENO_WITHOUT_BUFFER: f64 = 0.75;
/// The bottleneck's queue, in packets: Dummynet's default first, then more, up to that of the thesis' simulations.
const QUEUES: [u32; 4] = [50, 100, 250, 1000];

#[derive(Clone, Copy)]
struct Case {
    round_trip_ms: u32,
    law: Law,
    queue: u32,
    background: Background,
}

/// How the background's packets are spaced: the `kind` of a scenario's source.
type Background = &'static str;
/// Evenly, as in the scenario, and at random.
const BACKGROUNDS: [Background; 2] = ["constant", "poisson"];

#[derive(Clone, Copy, PartialEq)]
enum Law {
    Symbiosis,
    Reno,
}

/// The law of another name, in place of Symbiosis; it does without the available bandwidth.
pub(super) fn other_law(name: &str) -> [Override; 2] {
    [Override::set("flow.tcp.window", BTreeMap::from([("name", name)])), Override::remove("flow.tcp.bandwidth")]
}

/// The bottleneck's delay for a round-trip time, of which 2 ms are in the access links.
pub(super) fn delay(round_trip_ms: u32) -> Override {
    Override::set("link.E0-E1.delay", format!("{} ms", round_trip_ms / 2 - 1))
}

/// A result of the measurement every 3.5 round-trip times.
pub(super) fn interval(round_trip_ms: u32) -> Override {
    Override::set("flow.tcp.bandwidth.interval", format!("{} ms", 3.5 * f64::from(round_trip_ms)))
}

/// The laws and round-trip times of the figure, in the order of the columns.
const CASES: [(Law, u32); 4] = [(Law::Symbiosis, 30), (Law::Reno, 30), (Law::Symbiosis, 150), (Law::Reno, 150)];

impl Case {
    /// The run that begins `start_ms` after the background.
    fn scenario(self, start_ms: f64) -> Scenario {
        let mut overrides = vec![
            delay(self.round_trip_ms),
            Override::set("link.E0-E1.queue", format!("{} packets", self.queue)),
            Override::set("flow.background.source.kind", self.background),
            Override::set("flow.tcp.start", format!("{start_ms:.3} ms")),
        ];
        match self.law {
            Law::Symbiosis => overrides.push(interval(self.round_trip_ms)),
            Law::Reno => overrides.extend(other_law("reno")),
        }
        parse_with(FIG5, &overrides)
    }

    fn goodputs(self, lab: &Lab<'_>, runs: u32) -> Result<Vec<f64>, SimError> {
        let begins = |place: f64| self.scenario(10.0 + f64::from(self.round_trip_ms) * place);
        lab.spread(runs, begins, |run| goodput_mbps(run, 1, WHOLE))
    }
}

/// What the thesis reads off the figure, with our rules.
pub(super) const BOTH_USE_IT: &str = "Over 30 ms both laws use the available bandwidth. Rule: the lesser goodput is above \
     75 % of it, which is what Reno uses of a path without any buffer.";
pub(super) const MORE_THAN_RENO: &str =
    "Over 150 ms Symbiosis has more goodput than Reno. Rule: the ratio of the means is above 1.";
pub(super) const NO_LESS_FAR_AWAY: &str =
    "Symbiosis has about the same goodput over 150 ms as over 30 ms. Rule: within 10 %.";

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * (BACKGROUNDS.len() * QUEUES.len() * CASES.len()) as u32 + CASES.len() as u32
}

/// Fig. 5: Symbiosis and Reno where the available bandwidth changes, over a short and a long path.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for background in BACKGROUNDS {
        for queue in QUEUES {
            let mut row = Vec::new();
            for (law, round_trip_ms) in CASES {
                row.push(mean_95(&Case { round_trip_ms, law, queue, background }.goodputs(lab, runs)?));
            }
            rows.push(row);
        }
    }
    let random = rows.get(QUEUES.len()).cloned().unwrap_or_default();
    if let [symbiosis_30, reno_30, symbiosis_150, reno_150] = rows[0][..] {
        found.claims.push(short(runs, [symbiosis_30, reno_30]));
        found.claims.push(gain(runs, [symbiosis_150, reno_150], &random));
        found.claims.push(independent(runs, symbiosis_150, symbiosis_30));
    }
    let mut charts = Vec::new();
    for round_trip_ms in [30, 150] {
        let mut layers = vec![PlotLayer { name: "available".to_owned(), data: PlotData::Line(available()) }];
        for (law, name) in [(Law::Symbiosis, "Symbiosis"), (Law::Reno, "Reno")] {
            let scenario = Case { round_trip_ms, law, queue: QUEUES[0], background: BACKGROUNDS[0] }.scenario(10.0);
            layers.extend(lab.runs(&scenario, 1, |run| line(run, name))?);
        }
        charts.push(chart(round_trip_ms, layers));
    }
    found.figures.push(figure(charts, &rows));
    Ok(())
}

fn short(runs: u32, [symbiosis, reno]: [Option<Estimate>; 2]) -> Claim {
    let least = symbiosis.zip(reno).map(|(a, b)| if a.value < b.value { a } else { b });
    let share = least.map(|least| super::scaled(least, 1.0 / AVAILABLE_MBPS));
    let note = format!("Symbiosis {}, Reno {} Mbit/s.", with_interval(symbiosis, 1), with_interval(reno, 1));
    drafts("Fig. 5", runs)("fig5.rtt30_both", BOTH_USE_IT, None, "share").decide(
        share,
        |ours| ours.ci95[0] > RENO_WITHOUT_BUFFER,
        note,
    )
}

fn gain(runs: u32, [symbiosis, reno]: [Option<Estimate>; 2], random: &[Option<Estimate>]) -> Claim {
    let at = |place: usize| with_interval(random.get(place).copied().flatten(), 1);
    let note = format!(
        "Symbiosis {}, Reno {} Mbit/s. It hangs on an even background: with Poisson background and so short a queue it is {} \
         and {} Mbit/s.",
        with_interval(symbiosis, 1),
        with_interval(reno, 1),
        at(2),
        at(3),
    );
    drafts("Fig. 5", runs)("fig5.rtt150_gain_over_reno", MORE_THAN_RENO, None, "ratio").decide(
        symbiosis.zip(reno).and_then(|(over, under)| ratio(over, under)),
        |ours| ours.ci95[0] > 1.0,
        note,
    )
}

fn independent(runs: u32, long: Option<Estimate>, short: Option<Estimate>) -> Claim {
    drafts("Fig. 5", runs)(
        "fig5.rtt_independent",
        NO_LESS_FAR_AWAY,
        None,
        "ratio",
    )
    .decide(
        long.zip(short).and_then(|(over, under)| ratio(over, under)),
        |ours| ours.ci95[0] > 0.9,
        "The queue decides. Slow start leaves the window in one clump, with silence for the rest of the round trip; t of Eq. 10 is \
         the time between two acknowledgements, so that the first one behind the silence brings the growth of a whole round \
         trip, 15 % in 150 ms, at once. At 250 packets Dummynet's default queue of 50 overflows, long before the clump fills \
         the path, time and again. It is the burst of a large ε of which Sec. 2.2.2 warns. Losses of Symbiosis are in the \
         thesis' figure, too, but fewer. From 100 packets of queue on the path fills; the table shows it. The thesis does not \
         print its queue.",
    )
}

/// The available bandwidth over time.
pub(super) fn available() -> Vec<(f64, f64)> {
    vec![(0.0, 70.0), (40.0, 70.0), (40.0, 30.0), (80.0, 30.0), (80.0, 50.0), (120.0, 50.0)]
}

pub(super) fn line(run: &Run, name: &str) -> PlotLayer {
    let points = samples(run, 1).iter().filter_map(|sample| Some((sample.at_s, sample.goodput_bps? / 1e6))).collect();
    PlotLayer { name: name.to_owned(), data: PlotData::Line(points) }
}

fn chart(round_trip_ms: u32, layers: Vec<PlotLayer>) -> Plot {
    Plot {
        title: format!("Goodput over {round_trip_ms} ms"),
        x: "time (s)",
        y: "goodput (Mbit/s)",
        y_limits: Some((0.0, 80.0)),
        layers,
        marks: Vec::new(),
    }
}

fn figure(charts: Vec<Plot>, rows: &[Vec<Option<Estimate>>]) -> Figure {
    let columns =
        ["background", "queue (packets)", "Symbiosis, 30 ms", "Reno, 30 ms", "Symbiosis, 150 ms", "Reno, 150 ms"];
    let cases = BACKGROUNDS.iter().flat_map(|background| QUEUES.iter().map(move |queue| (background, queue)));
    let row = |((background, queue), row): ((&Background, &u32), &Vec<Option<Estimate>>)| {
        let cells = row.iter().map(|mean| with_interval(*mean, 1));
        [(*background).to_owned(), queue.to_string()].into_iter().chain(cells).collect()
    };
    Figure {
        name: "Fig. 5".to_owned(),
        title: "Symbiosis and Reno where the available bandwidth changes".to_owned(),
        text:
            "100 Mbit/s with a queue of 50 packets, of which UDP leaves 70, 30 and 50 Mbit/s; of these, 48.3 Mbit/s on \
               average are data."
                .to_owned(),
        charts,
        tables: vec![Table {
            caption: "Mean goodput in Mbit/s, with its 95 % interval, by the bottleneck's queue".to_owned(),
            columns: columns.iter().map(|&head| head.to_owned()).collect(),
            rows: cases.zip(rows).map(row).collect(),
        }],
    }
}
