use super::drops::{BUFFERS, Cell, DROPS, cell, cells};
use super::readings::Way;
use super::scenarios::STRENGTHS;
use super::{Found, Lab, Options, Rule, Spec};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

/// Unit of the claims.
const UNIT: &str = "difference of shares";
/// The largest strength m of the oscillation in the thesis. The results with this strength are compared with the
/// results with m = 0.
const LARGEST: f64 = 0.5;
/// If the share of runs with a timeout rises by less than this value, the rise cannot be seen in the figure of the
/// thesis. Our choice.
const UNSEEN: f64 = 0.1;
/// The rates are those of the thesis, multiplied by this factor. This doubles the bandwidth-delay product to 2000
/// packets.
const SCALE: u32 = 2;
/// Small buffers for a bandwidth-delay product of 2000 packets: a quarter and a half of it, in packets.
const SMALL_BUFFERS: [u32; 2] = [500, 1000];
/// The strength m of the oscillation in Fig. 14. With small buffers, the results for this m are compared with those for
/// m = 0.
const STRENGTH: f64 = 0.3;
/// Number of runs for each combination of a drop of the available bandwidth, a strength m of the oscillation and a
/// small buffer.
const RUNS: u32 = 50;

pub(super) const CLAIMS: &[Spec] = &[FALLS, SMALL, LARGE, CROSSING, LARGE_BDP];
const FALLS: Spec = Spec::new(
    "fig16.falls_with_buffer",
    "Fig. 16",
    "The probability of a timeout falls with the buffer, whatever m: it rises from no buffer to the next by a tenth, at any drop and m.",
    Rule::below(UNSEEN).in_every_cell(),
)
.unit(UNIT);
const SMALL: Spec = Spec::new(
    "fig16.small_buffers",
    "Fig. 16",
    "With a small buffer more oscillation makes the timeout less likely: m = 0.5 against none, at each drop and buffer at which most \
     runs have a timeout without oscillation.",
    Rule::below(0.0).in_every_cell(),
)
.unit(UNIT);
const LARGE: Spec = Spec::new(
    "fig16.large_buffers",
    "Fig. 16",
    "With a large buffer the trend is reversed: m = 0.5 against none, at each drop and buffer at which fewer than 5 % of the runs have \
     a timeout without oscillation.",
    Rule::above(0.0).in_every_cell(),
)
.unit(UNIT);
const CROSSING: Spec = Spec::new(
    "fig16.crossing",
    "Fig. 16",
    "The trend is reversed where the probability without oscillation changes: the same at the first such buffer of each drop.",
    Rule::above(0.0).in_every_cell(),
)
.unit(UNIT);
const LARGE_BDP: Spec = Spec::new(
    "sec5.large_bdp_small_buffer",
    "Sec. 4.3, 5",
    "Where the bandwidth-delay product is large and the buffer small, oscillation avoids timeouts: m = 0.3 against none, at each drop, \
     with twice the thesis' rates and buffers of a quarter and a half of the product.",
    Rule::below(0.0).in_every_cell(),
)
.unit(UNIT);

pub(super) fn planned(options: &Options) -> u32 {
    (DROPS.len() * SMALL_BUFFERS.len() * 2) as u32 * options.runs(RUNS, 1)
}

/// Adds the claims of Fig. 16. They use the runs of Fig. 15 with all buffer sizes, and runs with a larger
/// bandwidth-delay product.
pub(super) fn run(lab: &Lab<'_>, main: &[Cell], runs: u32, found: &mut Found) -> Result<(), SimError> {
    found.claims.push(falls(main, runs));
    found.claims.extend(turns(main, runs));
    let runs = lab.options.runs(RUNS, 1);
    let large = cells(lab, Way::Main, &[0.0, STRENGTH], (&SMALL_BUFFERS, SCALE), runs)?;
    found.claims.push(large_product(&large, runs));
    found.figures.push(figure(main));
    Ok(())
}

fn share(cells: &[Cell], drop: u32, m: f64, buffer: u32) -> Option<Estimate> {
    cell(cells, drop, m, buffer)?.timed_out()
}

/// Returns the share of runs with a timeout at the oscillation strength `m`, minus the share of runs with a timeout
/// without oscillation.
fn added(cells: &[Cell], m: f64, drop: u32, buffer: u32) -> Option<Estimate> {
    Some(difference(share(cells, drop, m, buffer)?, share(cells, drop, 0.0, buffer)?))
}

/// Compares each buffer size with the next larger one: returns how the share of runs with a timeout changes. Each item
/// contains the available bandwidth after the drop in Mbit/s, the strength m of the oscillation, the larger buffer size
/// in packets, and the change.
fn rises(cells: &[Cell]) -> Vec<(u32, f64, u32, Estimate)> {
    let lines = DROPS.iter().flat_map(|&drop| STRENGTHS.map(|m| (drop, m)));
    let rises = lines.flat_map(|(drop, m)| {
        BUFFERS.windows(2).filter_map(move |buffers| {
            let [longer, shorter] = [buffers[1], buffers[0]].map(|buffer| share(cells, drop, m, buffer));
            Some((drop, m, buffers[1], difference(longer?, shorter?)))
        })
    });
    rises.collect()
}

fn falls(cells: &[Cell], runs: u32) -> Claim {
    let rises = rises(cells);
    let worst = rises.iter().max_by(|a, b| a.3.value.total_cmp(&b.3.value));
    let early = |m| {
        let early = DROPS.iter().filter_map(|&drop| cell(cells, drop, m, BUFFERS[0])?.early());
        with_interval(early.max_by(|a, b| a.value.total_cmp(&b.value)), 2)
    };
    let note = worst.map_or(String::new(), |(drop, m, buffer, _)| {
        format!(
            "The largest rise is at 80 to {drop} Mbit/s, m = {m}, up to {buffer} packets. Runs that lost packets before the drop are \
             left out: with 250 packets {} of them at m = 0.5.",
            early(LARGEST)
        )
    });
    FALLS.decide_cells(runs, &rises.into_iter().map(|(.., rise)| rise).collect::<Vec<_>>(), note)
}

/// Returns the pairs whose share of runs with a timeout satisfies the condition `are`. A pair is the available
/// bandwidth after the drop, in Mbit/s, and the buffer size, in packets. Runs with oscillation do not count.
fn places(cells: &[Cell], are: impl Fn(f64) -> bool) -> Vec<(u32, u32)> {
    let places = DROPS.iter().flat_map(|&drop| BUFFERS.map(|buffer| (drop, buffer)));
    places.filter(|&(drop, buffer)| share(cells, drop, 0.0, buffer).is_some_and(|without| are(without.value))).collect()
}

fn turns(cells: &[Cell], runs: u32) -> [Claim; 3] {
    let small = places(cells, |without| without > 0.5);
    let large = places(cells, |without| without < 0.05);
    let mut first = large.clone();
    first.dedup_by_key(|(drop, _)| *drop);
    let decide = |spec: Spec, places: &[(u32, u32)]| {
        let cell = |&(drop, buffer): &(u32, u32)| {
            let of = |m| with_interval(share(cells, drop, m, buffer), 2);
            format!("80 to {drop} Mbit/s, {buffer} packets: {} and {}", of(LARGEST), of(0.0))
        };
        let said = places.iter().map(cell).collect::<Vec<_>>().join("; ");
        let added: Vec<_> = places.iter().filter_map(|&(drop, buffer)| added(cells, LARGEST, drop, buffer)).collect();
        spec.decide_cells(runs, &added, format!("With m = 0.5 and without, {said}."))
    };
    [decide(SMALL, &small), decide(LARGE, &large), decide(CROSSING, &first)]
}

fn large_product(cells: &[Cell], runs: u32) -> Claim {
    let places = DROPS.iter().flat_map(|&drop| SMALL_BUFFERS.map(|buffer| (drop, buffer)));
    let (mut added, mut said) = (Vec::new(), Vec::new());
    for (drop, buffer) in places {
        let of = |m| with_interval(share(cells, drop, m, buffer), 2);
        added.extend(self::added(cells, STRENGTH, drop, buffer));
        said.push(format!(
            "{} to {} Mbit/s, {buffer} packets: {} and {}",
            80 * SCALE,
            drop * SCALE,
            of(STRENGTH),
            of(0.0)
        ));
    }
    LARGE_BDP.decide_cells(runs, &added, format!("With m = 0.3 and without, {}.", said.join("; ")))
}

fn figure(cells: &[Cell]) -> Figure {
    let chart = |drop: u32| {
        let layer = |strength: f64| {
            let at = |buffer: u32| Some((f64::from(buffer) / 1000.0, share(cells, drop, strength, buffer)?.value));
            let points = BUFFERS.iter().filter_map(|&buffer| at(buffer)).collect();
            PlotLayer { name: format!("m = {strength}"), data: PlotData::Line(points) }
        };
        Plot {
            title: format!("80 to {drop} Mbit/s"),
            x: "buffer (bandwidth-delay products)",
            y: "share of runs with a timeout",
            y_limits: Some((0.0, 1.0)),
            layers: STRENGTHS.map(layer).into(),
            marks: Vec::new(),
        }
    };
    let mut columns = vec!["drop".to_owned(), "m".to_owned()];
    columns.extend(BUFFERS.map(|buffer| format!("{} BDP", f64::from(buffer) / 1000.0)));
    let row = |(drop, strength): (u32, f64)| {
        let mut row = vec![format!("80 to {drop} Mbit/s"), strength.to_string()];
        row.extend(BUFFERS.map(|buffer| {
            let early = cell(cells, drop, strength, buffer).and_then(Cell::early);
            let early = early.map_or("–".to_owned(), |early| format!("{:.2}", early.value));
            format!("{} / {early}", with_interval(share(cells, drop, strength, buffer), 2))
        }));
        row
    };
    Figure {
        name: "Fig. 16".to_owned(),
        title: "The buffer's part in it".to_owned(),
        text: "The bandwidth-delay product (BDP) is 1000 packets. Runs that lost packets before the drop are left out; how many they are \
               is behind the stroke."
            .to_owned(),
        charts: DROPS.map(chart).into(),
        tables: vec![Table {
            caption: "Shares of runs with a timeout within 4 s behind the drop, with 95 % intervals".to_owned(),
            columns,
            rows: DROPS.iter().flat_map(|&drop| STRENGTHS.map(|strength| row((drop, strength)))).collect(),
        }],
    }
}
