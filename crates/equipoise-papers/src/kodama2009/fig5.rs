use std::collections::BTreeMap;

use super::scenarios::FIG5;
use super::series::{PACKET, PAYLOAD, goodput_mbps, resent_within, samples};
use super::{Found, Lab, Options, Rule, Spec, parse_with, ratio, read, scaled, with_interval};
use crate::experiment::difference;
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// Number of runs. The thesis shows one run. In each run, the connection starts at a different time, and random
/// background traffic is different.
const RUNS: u32 = 10;
/// The whole run, as the thesis shows it: its start and end, in seconds.
pub(super) const WHOLE: (f64, f64) = (0.0, 120.0);
/// Start and end of the time in which 30 Mbit/s are available, in seconds.
const AT_30: (f64, f64) = (40.0, 80.0);
/// Start and end of the time in which 50 Mbit/s are available, in seconds.
const AT_50: (f64, f64) = (80.0, 120.0);
/// 90 % of the goodput at a rate of 50 Mbit/s, in Mbit/s.
const NEARLY_50: f64 = 0.9 * 50.0 * DATA_SHARE;
/// Payload of a packet of the simulator's TCP, as a share of the packet size.
pub(super) const DATA_SHARE: f64 = PAYLOAD as f64 / PACKET as f64;
/// Mean available bandwidth in Mbit/s: 70, 30 and 50 Mbit/s are available for 40 s each.
pub(super) const AVAILABLE_MBPS: f64 = 50.0;
/// The mean share of the capacity that Reno uses on a path without a buffer. Reno's window varies between half of the
/// bandwidth-delay product and the whole product, so the mean window is three quarters of the product.
const RENO_WITHOUT_BUFFER: f64 = 0.75;
/// Parameters that the thesis does not state: how the background packets are spaced (the source's `kind` in a
/// scenario), the length of the bottleneck's queue in packets, and whether the connection measures the bandwidth
/// inline. The first row is the main interpretation, which has Dummynet's default queue.
const ROWS: [Row; 9] = [
    Row { background: "constant", queue: 50, inline: false },
    Row { background: "constant", queue: 100, inline: false },
    Row { background: "constant", queue: 250, inline: false },
    Row { background: "constant", queue: 1000, inline: false },
    Row { background: "poisson", queue: 50, inline: false },
    Row { background: "poisson", queue: 100, inline: false },
    Row { background: "poisson", queue: 250, inline: false },
    Row { background: "poisson", queue: 1000, inline: false },
    Row { background: "constant", queue: 50, inline: true },
];

pub(super) const CLAIMS: &[Spec] = &[BOTH_USE_IT, MORE_THAN_RENO, NO_LESS_FAR_AWAY, LOSSES, LATE];
const FIG: &str = "Fig. 5";
pub(super) const BOTH_USE_IT: Spec = Spec::new(
    "fig5.rtt30_both",
    FIG,
    "Over 30 ms both laws use the available bandwidth: the lesser goodput, which has to be above what Reno uses of a path without \
     any buffer.",
    Rule::above(RENO_WITHOUT_BUFFER),
)
.unit("share of what is available");
pub(super) const MORE_THAN_RENO: Spec =
    Spec::new("fig5.rtt150_gain_over_reno", FIG, "Over 150 ms Symbiosis has more goodput than Reno.", Rule::above(1.0))
        .unit("ratio");
pub(super) const NO_LESS_FAR_AWAY: Spec = Spec::new(
    "fig5.rtt_independent",
    FIG,
    "Symbiosis has almost the same goodput over 150 ms as over 30 ms.",
    Rule::within(0.9, 1.1),
)
.unit("ratio");
pub(super) const LOSSES: Spec = Spec::new(
    "fig5.rtt150_losses",
    FIG,
    "Over 150 ms Symbiosis loses packets while 30 Mbit/s are available.",
    Rule::above(0.0),
)
.unit("segments sent again");
const LATE: Spec = Spec::new(
    "fig5.rtt150_late",
    FIG,
    "Over 150 ms the increase after 80 s is delayed: until 90 % of 50 Mbit/s are used it takes longer than over 30 ms.",
    Rule::above(0.0),
)
.unit("s longer");

#[derive(Clone, Copy)]
struct Row {
    background: &'static str,
    queue: u32,
    inline: bool,
}

#[derive(Clone, Copy)]
struct Case {
    round_trip_ms: u32,
    law: Law,
    row: Row,
}

#[derive(Clone, Copy, PartialEq)]
enum Law {
    Symbiosis,
    Reno,
}

/// Returns the overrides that replace Symbiosis by another control law, which does not use the available bandwidth.
pub(super) fn other_law(name: &str) -> [Override; 2] {
    [Override::set("flow.tcp.window", BTreeMap::from([("name", name)])), Override::remove("flow.tcp.bandwidth")]
}

/// Returns the override of the bottleneck's delay for a given round-trip time of the path. The access links contribute
/// 2 ms to this round-trip time.
pub(super) fn delay(round_trip_ms: u32) -> Override {
    Override::set("link.E0-E1.delay", format!("{} ms", round_trip_ms / 2 - 1))
}

/// Returns the override for a bandwidth measurement every 3.5 round-trip times.
pub(super) fn interval(round_trip_ms: u32) -> Override {
    Override::set("flow.tcp.bandwidth.interval", format!("{} ms", 3.5 * f64::from(round_trip_ms)))
}

/// The control laws and round-trip times of the figure, in the order of the table's columns.
const CASES: [(Law, u32); 4] = [(Law::Symbiosis, 30), (Law::Reno, 30), (Law::Symbiosis, 150), (Law::Reno, 150)];

/// Values from one run, for the claims and the table.
struct Outcome {
    goodput_mbps: f64,
    /// Number of segments that were retransmitted while 30 Mbit/s were available.
    again: f64,
    /// Time from 80 s, when 50 Mbit/s become available, until the goodput reaches [`NEARLY_50`], in seconds.
    late_s: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let full = samples(run, 1).iter().find(|sample| {
            sample.at_s > AT_50.0 + 1e-6 && sample.goodput_bps.is_some_and(|goodput| goodput >= NEARLY_50 * 1e6)
        });
        Self {
            goodput_mbps: goodput_mbps(run, 1, WHOLE),
            again: resent_within(run, 1, AT_30) as f64,
            late_s: full.map_or(AT_50.1, |sample| sample.at_s) - AT_50.0,
        }
    }
}

impl Row {
    fn name(self) -> String {
        let background = if self.background == "constant" { "even" } else { "Poisson" };
        let inline = if self.inline { ", measured inline" } else { "" };
        format!("Fig. 5: {background} background, queue of {} packets{inline}", self.queue)
    }
}

impl Case {
    /// Returns the scenario in which the connection starts `start_ms` milliseconds after the background traffic.
    fn scenario(self, start_ms: f64) -> Scenario {
        let mut overrides = vec![
            delay(self.round_trip_ms),
            Override::set("link.E0-E1.queue", format!("{} packets", self.row.queue)),
            Override::set("flow.background.source.kind", self.row.background),
            Override::set("flow.tcp.start", format!("{start_ms:.3} ms")),
        ];
        match self.law {
            Law::Symbiosis if self.row.inline => {
                overrides.push(Override::set("flow.tcp.bandwidth", BTreeMap::from([("kind", "inline")])));
            }
            Law::Symbiosis => overrides.push(interval(self.round_trip_ms)),
            Law::Reno => overrides.extend(other_law("reno")),
        }
        parse_with(FIG5, &overrides)
    }

    fn outcomes(self, lab: &Lab<'_>, runs: u32) -> Result<Vec<Outcome>, SimError> {
        let begins = |place: f64| self.scenario(10.0 + f64::from(self.round_trip_ms) * place);
        lab.spread(runs, begins, Outcome::of)
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * (ROWS.len() * CASES.len()) as u32 + CASES.len() as u32
}

fn mean(outcomes: &[Outcome], of: fn(&Outcome) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(of).collect::<Vec<_>>())
}

fn goodput(outcomes: &[Outcome]) -> Option<Estimate> {
    mean(outcomes, |outcome| outcome.goodput_mbps)
}

/// Runs Fig. 5: Symbiosis and Reno, each over a short and over a long path. In each run, the available bandwidth
/// changes.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for row in ROWS {
        let of = |(law, round_trip_ms)| Case { round_trip_ms, law, row }.outcomes(lab, runs);
        let outcomes = CASES.into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let claims = claims(&outcomes, runs);
        if rows.is_empty() {
            found.claims.extend(claims);
        } else {
            read(found, &row.name(), claims);
        }
        rows.push(outcomes.iter().map(|outcomes| goodput(outcomes)).collect::<Vec<_>>());
    }
    let mut charts = Vec::new();
    for round_trip_ms in [30, 150] {
        let mut layers = vec![PlotLayer { name: "available".to_owned(), data: PlotData::Line(available()) }];
        for (law, name) in [(Law::Symbiosis, "Symbiosis"), (Law::Reno, "Reno")] {
            let scenario = Case { round_trip_ms, law, row: ROWS[0] }.scenario(10.0);
            layers.extend(lab.runs(&scenario, 1, |run| line(run, name))?);
        }
        charts.push(chart(round_trip_ms, layers));
    }
    found.figures.push(figure(charts, &rows));
    Ok(())
}

/// Returns the claims of the figure. `outcomes` is in the order of [`CASES`].
fn claims(outcomes: &[Vec<Outcome>], runs: u32) -> Vec<Claim> {
    let [near, reno_near, far, reno_far] = outcomes else { return Vec::new() };
    let beside =
        |symbiosis, reno| format!("Symbiosis {}, Reno {} Mbit/s.", with_interval(symbiosis, 1), with_interval(reno, 1));
    let least =
        goodput(near).zip(goodput(reno_near)).map(|(own, reno)| if own.value < reno.value { own } else { reno });
    let over = |over: &[Outcome], under: &[Outcome]| {
        goodput(over).zip(goodput(under)).and_then(|(over, under)| ratio(over, under))
    };
    let late = |outcomes: &[Outcome]| mean(outcomes, |outcome| outcome.late_s);
    let later = late(far).zip(late(near)).map(|(far, near)| difference(far, near));
    vec![
        BOTH_USE_IT.decide(
            runs,
            least.map(|least| scaled(least, 1.0 / AVAILABLE_MBPS)),
            beside(goodput(near), goodput(reno_near)),
        ),
        MORE_THAN_RENO.decide(runs, over(far, reno_far), beside(goodput(far), goodput(reno_far))),
        NO_LESS_FAR_AWAY.decide(runs, over(far, near), QUEUE_DECIDES),
        LOSSES.decide(runs, mean(far, |outcome| outcome.again), ""),
        LATE.decide(
            runs,
            later,
            format!("{} s over 150 ms, {} s over 30 ms.", with_interval(late(far), 1), with_interval(late(near), 1)),
        ),
    ]
}

/// A note that a claim shows: why the result on the long path depends on the queue.
const QUEUE_DECIDES: &str = "The queue, which the thesis does not print, decides: the readings have others. Slow start leaves the window in \
     one clump, with silence for the rest of the round trip; t of Eq. 10 is the time between two acknowledgements, so that the first \
     one behind the silence brings the growth of a whole round trip at once. It is the burst of a large ε of which Sec. 2.2.2 warns.";

/// Returns the available bandwidth over time, as points: time in seconds, and rate in Mbit/s.
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
    let columns = [
        "background",
        "queue (packets)",
        "bandwidth",
        "Symbiosis, 30 ms",
        "Reno, 30 ms",
        "Symbiosis, 150 ms",
        "Reno, 150 ms",
    ];
    let row = |(row, means): (&Row, &Vec<Option<Estimate>>)| {
        let cells = means.iter().map(|mean| with_interval(*mean, 1));
        let inline = if row.inline { "inline" } else { "known" };
        [row.background.to_owned(), row.queue.to_string(), inline.to_owned()].into_iter().chain(cells).collect()
    };
    Figure {
        name: "Fig. 5".to_owned(),
        title: "Symbiosis and Reno where the available bandwidth changes".to_owned(),
        text: format!(
            "100 Mbit/s with a queue of 50 packets, of which UDP leaves 70, 30 and 50 Mbit/s; of these, {:.1} Mbit/s \
             on average are data.",
            AVAILABLE_MBPS * DATA_SHARE
        ),
        charts,
        tables: vec![Table {
            caption: "Mean goodput in Mbit/s, with its 95 % interval, by the bottleneck's queue".to_owned(),
            columns: columns.iter().map(|&head| head.to_owned()).collect(),
            rows: ROWS.iter().zip(rows).map(row).collect(),
        }],
    }
}
