use super::super::scenarios::BEYOND_RIVALS;
use super::super::series::goodput_mbps;
use super::super::{Found, Lab, Options, Rule, Spec, parse_with, with_interval};
use super::laws::OURS;
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// Number of runs. In each run, the competing connection joins at a different time.
const RUNS: u32 = 5;
const SETTLED: (f64, f64) = (50.0, 200.0);
/// The control laws that compete with Symbiosis: the name in scenario files, and the name in tables.
const RIVALS: [(&str, &str); 2] = [("reno", "Reno"), ("cubic", "CUBIC")];
/// One claim for each control law in [`RIVALS`], in this order.
pub(in super::super) const CLAIMS: &[Spec] = &[
    share_of(
        "beyond.share_against_reno",
        "Symbiosis with γ = 0.95 keeps about half of 100 Mbit/s beside one connection of Reno: 120 ms, a buffer of one bandwidth-delay \
         product.",
    ),
    share_of(
        "beyond.share_against_cubic",
        "Symbiosis with γ = 0.95 keeps about half of 100 Mbit/s beside one connection of CUBIC: 120 ms, a buffer of one bandwidth-delay \
         product.",
    ),
];

/// Defines a claim that Symbiosis has 40 to 60 % of the total goodput of the two connections.
const fn share_of(id: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, OURS, statement, Rule::within(40.0, 60.0)).unit("%").ours()
}

const ROUND_TRIPS_MS: [u32; 2] = [40, 120];
/// Sizes of the buffer, as multiples of the bandwidth-delay product.
const BUFFERS: [f64; 3] = [0.25, 1.0, 4.0];
/// Number of packets of 1500 bytes that a link of 100 Mbit/s sends per millisecond.
const PACKETS_A_MS: f64 = 100e6 / 12e3 / 1e3;

struct Case {
    rival: &'static str,
    round_trip_ms: u32,
    buffer: f64,
    aware: &'static str,
}

impl Case {
    /// Runs the case, and returns the share of Symbiosis in the total goodput, in percent.
    fn share(&self, lab: &Lab<'_>, runs: u32) -> Result<Option<Estimate>, SimError> {
        let round_trip_ms = f64::from(self.round_trip_ms);
        // In each direction, the access links delay packets by 10 ms. The bottleneck has the rest of the path's delay.
        let delay = self.round_trip_ms / 2 - 10;
        let buffer = (PACKETS_A_MS * round_trip_ms * self.buffer).round();
        let joins = |place: f64| {
            let start = 10.0 + round_trip_ms / 1e3 * place;
            let overrides = [
                Override::set("link.E0-E1.delay", format!("{delay} ms")),
                Override::set("link.E0-E1.queue", format!("{buffer} packets")),
                Override::set("flow.symbiosis.bandwidth.interval", format!("{} ms", 3.5 * round_trip_ms)),
                Override::set("flow.symbiosis.window.noise_aware", self.aware),
                Override::set("flow.rival.window.name", self.rival),
                Override::set("flow.rival.start", format!("{start:.3} s")),
            ];
            parse_with(BEYOND_RIVALS, &overrides)
        };
        Ok(mean_95(&lab.spread(runs, joins, share)?))
    }
}

fn share(run: &Run) -> f64 {
    let [ours, theirs] = [0, 1].map(|flow| goodput_mbps(run, flow, SETTLED));
    100.0 * ours / (ours + theirs)
}

pub(super) fn planned(options: &Options) -> u32 {
    let cells = RIVALS.len() * ROUND_TRIPS_MS.len() * BUFFERS.len() * 2;
    options.runs(RUNS, 2) * cells as u32
}

/// Runs Symbiosis in competition with Reno and with CUBIC, for several round-trip times and buffer sizes.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut rows, mut charts) = (Vec::new(), Vec::new());
    for ((rival, name), claim) in RIVALS.into_iter().zip(CLAIMS) {
        let (mut layers, mut middle) = (Vec::new(), [None; 2]);
        for round_trip_ms in ROUND_TRIPS_MS {
            let mut points = [Vec::new(), Vec::new()];
            for buffer in BUFFERS {
                let mut cells = vec![name.to_owned(), round_trip_ms.to_string(), buffer.to_string()];
                for (place, aware) in ["off", "on"].into_iter().enumerate() {
                    let share = Case { rival, round_trip_ms, buffer, aware }.share(lab, runs)?;
                    cells.push(with_interval(share, 1));
                    points[place].extend(share.map(|share| (buffer, share.value)));
                    if (round_trip_ms, buffer.to_bits()) == (120, 1f64.to_bits()) {
                        middle[place] = share;
                    }
                }
                rows.push(cells);
            }
            for (points, heeds) in points.into_iter().zip(["γ = 0.95", "γ heeds noise"]) {
                layers.push(PlotLayer { name: format!("{round_trip_ms} ms, {heeds}"), data: PlotData::Line(points) });
            }
        }
        let note = format!("With a γ that heeds noise {} %. An equal share is 50 %.", with_interval(middle[1], 1));
        found.claims.push(claim.decide(runs, middle[0], note));
        charts.push(chart(name, layers));
    }
    found.figures.push(figure(charts, rows));
    Ok(())
}

fn chart(rival: &str, layers: Vec<PlotLayer>) -> Plot {
    Plot {
        title: format!("Share of Symbiosis beside {rival}"),
        x: "buffer (bandwidth-delay products)",
        y: "share of both goodputs (%)",
        y_limits: Some((0.0, 70.0)),
        layers,
        marks: vec![(50.0, "equal shares".to_owned())],
    }
}

fn figure(charts: Vec<Plot>, rows: Vec<Vec<String>>) -> Figure {
    let columns = [
        "rival",
        "round trip (ms)",
        "buffer (bandwidth-delay products)",
        "share with γ = 0.95 (%)",
        "share with a γ that heeds noise (%)",
    ];
    Figure {
        name: "Rivals".to_owned(),
        title: "Symbiosis beside Reno and CUBIC".to_owned(),
        text: "100 Mbit/s, one connection each, means from 50 to 200 s. The rival fills the buffer; what it takes is no longer \
               available, and Symbiosis yields: it converges to γ A + (1 - γ) K times the least round-trip time, while the \
               buffer makes the true one longer."
            .to_owned(),
        charts,
        tables: vec![Table {
            caption: "Share of Symbiosis, means over the runs with their 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
    }
}
