use super::drops::{BUFFER, BUFFERS, Cell, DROPS, cell, cells};
use super::readings::Way;
use super::scenarios::STRENGTHS;
use super::{Found, Lab, Options, Rule, Spec, fig16, read};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

/// Number of runs for each strength m of the oscillation, each drop of the available bandwidth and each buffer size.
/// The thesis does not state its number of runs.
const RUNS: u32 = 100;
/// Number of runs in the other interpretations of the thesis, for each strength m of the oscillation and each drop of
/// the available bandwidth.
const RUNS_OF_READINGS: u32 = 50;
/// The strengths m of the oscillation for other interpretations of the thesis.
const STRENGTHS_OF_READINGS: [f64; 4] = [0.0, 0.1, 0.3, 0.5];
/// The strength m of the self-induced oscillation in Fig. 14 of the thesis. The results for this strength are compared
/// with the results for m = 0.
const STRENGTH: f64 = 0.3;

pub(super) const CLAIMS: &[Spec] = &[PROBABILITY, COST, COST_FALLS, MEAN_UTILISATION, GAIN];
const PROBABILITY: Spec = Spec::new(
    "fig15.timeout_probability",
    "Fig. 15(a)",
    "Oscillation makes a timeout behind a drop less likely, whatever the drop: m = 0.3 against none, at each of the four drops.",
    Rule::below(0.0).in_every_cell(),
)
.unit("difference of shares");
const COST: Spec = Spec::new(
    "fig15.cost_of_a_timeout",
    "Fig. 15(b)",
    "To avoid the timeout improves the utilisation: runs without one, at each drop and m that has both, against runs with one at \
     m = 0.",
    Rule::above(0.0).in_every_cell(),
)
.unit("difference of shares");
const COST_FALLS: Spec = Spec::new(
    "fig15.gain_falls_with_m",
    "Fig. 15(b)",
    "That improvement is larger the smaller the oscillation is: from each m to the next the utilisation of runs without a timeout \
     falls, at each drop.",
    Rule::below(0.0).in_every_cell(),
)
.unit("difference of shares");
const MEAN_UTILISATION: Spec = Spec::new(
    "fig15.mean_utilisation",
    "Fig. 15(c)",
    "The mean utilisation of all runs behind a drop is higher the larger m is: it rises from each m to the next, at each drop.",
    Rule::above(0.0).in_every_cell(),
)
.unit("difference of shares");
const GAIN: Spec = Spec::new(
    "abstract.utilisation_gain",
    "Abstract",
    "Oscillation improves the utilisation, in the thesis from 75 to 99 %: over all runs, m = 0.3 against none, by at least half as \
     much at one drop at least.",
    Rule::above(0.12).in_some_cell(),
)
.paper(0.24)
.unit("difference of shares");

pub(super) fn planned(options: &Options) -> u32 {
    let by_other_readings = (Way::OTHERS.len() * DROPS.len() * STRENGTHS_OF_READINGS.len()) as u32;
    (DROPS.len() * STRENGTHS.len() * BUFFERS.len()) as u32 * options.runs(RUNS, 2)
        + by_other_readings * options.runs(RUNS_OF_READINGS, 1)
        + fig16::planned(options)
}

/// Runs Fig. 15 and 16, which show how often a drop of the available bandwidth causes a timeout.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let main = cells(lab, Way::Main, &STRENGTHS, (&BUFFERS, 1), runs)?;
    found.claims.extend(claims(&main, runs));
    found.figures.push(figure(&main));
    fig16::run(lab, &main, runs, found)?;
    let runs = lab.options.runs(RUNS_OF_READINGS, 1);
    let mut rows = Vec::new();
    for way in Way::OTHERS {
        let cells = cells(lab, way, &STRENGTHS_OF_READINGS, (&[BUFFER], 1), runs)?;
        read(found, way.name(), claims(&cells, runs));
        rows.extend(DROPS.map(|drop| row_of_reading(way, drop, &cells)));
    }
    found.figures.push(figure_of_readings(rows));
    Ok(())
}

/// Returns, for each drop of the bandwidth, a value at the oscillation strength `m`, minus the value without
/// oscillation.
fn against_none(cells: &[Cell], m: f64, of: impl Fn(&Cell) -> Option<Estimate>) -> Vec<Estimate> {
    let at = |drop, m| cell(cells, drop, m, BUFFER).and_then(&of);
    DROPS.iter().filter_map(|&drop| Some(difference(at(drop, m)?, at(drop, 0.0)?))).collect()
}

/// Returns, for each drop of the bandwidth, the changes of a value from each oscillation strength m to the next larger
/// one. The values of m before the index `first` are left out.
fn steps(cells: &[Cell], first: usize, of: impl Fn(&Cell) -> Option<Estimate>) -> Vec<Estimate> {
    let of_drop = |&drop: &u32| {
        let here = cells.iter().filter(|cell| cell.place.available_mbps == drop && cell.place.buffer == BUFFER);
        let values: Vec<_> = here.skip(first).map(&of).collect();
        values.windows(2).filter_map(|pair| Some(difference(pair[1]?, pair[0]?))).collect::<Vec<_>>()
    };
    DROPS.iter().flat_map(of_drop).collect()
}

/// Returns one value for each drop of the available bandwidth and each oscillation strength m > 0: the utilisation in
/// the runs with this m and without a timeout, minus the utilisation in the runs with m = 0 and with a timeout.
fn costs(cells: &[Cell]) -> Vec<Estimate> {
    let with_one = |drop| cell(cells, drop, 0.0, BUFFER)?.utilisation_if(true);
    let gained = |cell: &Cell| {
        let place = cell.place;
        let counts = place.buffer == BUFFER && place.m > 0.0;
        Some(difference(cell.utilisation_if(false).filter(|_| counts)?, with_one(place.available_mbps)?))
    };
    cells.iter().filter_map(gained).collect()
}

/// Returns a text with two values for each drop of the available bandwidth: one value without oscillation of the
/// window, and one value with oscillation.
fn each(cells: &[Cell], of: impl Fn(&Cell) -> Option<Estimate>) -> String {
    let each = DROPS.map(|drop| {
        let of = |m| with_interval(cell(cells, drop, m, BUFFER).and_then(&of), 2);
        format!("80 to {drop} Mbit/s: {} without, {} with m = {STRENGTH}", of(0.0), of(STRENGTH))
    });
    format!("{}.", each.join("; "))
}

/// Returns the claims of Fig. 15, computed from the cells with the buffer size of this figure.
fn claims(cells: &[Cell], runs: u32) -> Vec<Claim> {
    let without_one = |cell: &Cell| cell.utilisation_if(false);
    let costs = costs(cells);
    let known = format!("Both kinds of runs are there at {} drops and m.", costs.len());
    vec![
        PROBABILITY.decide_cells(
            runs,
            &against_none(cells, STRENGTH, Cell::timed_out),
            format!("{} {REASON}", each(cells, Cell::timed_out)),
        ),
        COST.decide_cells(runs, &costs, known),
        COST_FALLS.decide_cells(runs, &steps(cells, 1, without_one), ""),
        MEAN_UTILISATION.decide_cells(runs, &steps(cells, 0, Cell::utilisation), each(cells, Cell::utilisation)),
        GAIN.decide_cells(runs, &against_none(cells, STRENGTH, Cell::utilisation), ""),
    ]
}

/// A note for a claim: what decides whether a drop of the available bandwidth causes a timeout.
const REASON: &str = "What decides is the window at the drop. With a buffer of 1000 packets (114 to 118 ms) a window above A · 0.235 s, which \
     is about 390, 590, 780 and 970 packets for 20, 30, 40 and 50 Mbit/s, overfills the queue unless it is let down in time. By Eq. 9 \
     it is 810 at each drop without oscillation.";

fn figure(cells: &[Cell]) -> Figure {
    let cells: Vec<_> = cells.iter().filter(|cell| cell.place.buffer == BUFFER).collect();
    let layer = |drop: u32, of: &dyn Fn(&Cell) -> Option<Estimate>| {
        let points = cells.iter().filter(|cell| cell.place.available_mbps == drop);
        let points = points.filter_map(|cell| Some((cell.place.m, of(cell)?.value))).collect();
        PlotLayer { name: format!("80 to {drop} Mbit/s"), data: PlotData::Line(points) }
    };
    let plot = |title: &str, y, limits, of: &dyn Fn(&Cell) -> Option<Estimate>| Plot {
        title: title.to_owned(),
        x: "m (1/√s)",
        y,
        y_limits: Some(limits),
        layers: DROPS.map(|drop| layer(drop, of)).into(),
        marks: Vec::new(),
    };
    let row = |cell: &&Cell| {
        vec![
            format!("80 to {} Mbit/s", cell.place.available_mbps),
            cell.place.m.to_string(),
            with_interval(cell.timed_out(), 2),
            with_interval(cell.early(), 2),
            with_interval(cell.utilisation_if(false), 3),
            with_interval(cell.utilisation_if(true), 3),
            with_interval(cell.utilisation(), 3),
        ]
    };
    let columns = [
        "drop",
        "m",
        "runs with a timeout",
        "runs with losses before the drop",
        "utilisation without a timeout",
        "utilisation with one",
        "utilisation of all",
    ];
    Figure {
        name: "Fig. 15".to_owned(),
        title: "How often the timer runs out behind a drop".to_owned(),
        text: "Buffer 1000 packets. A timeout and the utilisation are those of the 4 s behind the drop; runs that lost packets before \
               it count only among all."
            .to_owned(),
        charts: vec![
            plot("Timeout behind the drop", "share of the runs", (0.0, 1.0), &Cell::timed_out),
            plot("Utilisation without a timeout", "utilisation", (0.75, 1.0), &|cell| cell.utilisation_if(false)),
            plot("Utilisation of all runs", "utilisation", (0.75, 1.0), &Cell::utilisation),
        ],
        tables: vec![Table {
            caption: "Shares and means with 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: cells.iter().map(row).collect(),
        }],
    }
}

fn row_of_reading(way: Way, drop: u32, cells: &[Cell]) -> Vec<String> {
    let mut row = vec![way.name().to_owned(), format!("80 to {drop} Mbit/s")];
    row.extend(STRENGTHS_OF_READINGS.map(|m| {
        let cell = cell(cells, drop, m, BUFFER);
        let [share, used] = [cell.and_then(Cell::timed_out), cell.and_then(Cell::utilisation)];
        format!("{} / {}", with_interval(share, 2), used.map_or("–".to_owned(), |used| format!("{:.3}", used.value)))
    }));
    row
}

fn figure_of_readings(rows: Vec<Vec<String>>) -> Figure {
    let columns = ["reading".to_owned(), "drop".to_owned()];
    Figure {
        name: "Beyond Fig. 15".to_owned(),
        title: "What it hangs on".to_owned(),
        text: "What the thesis does not say, each thing changed alone or as its name says. Buffer 1000 packets; all else as in Fig. 15."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Shares of runs with a timeout within 4 s behind the drop, with 95 % intervals / mean utilisation of all"
                .to_owned(),
            columns: columns.into_iter().chain(STRENGTHS_OF_READINGS.map(|m| format!("m = {m}"))).collect(),
            rows,
        }],
    }
}
