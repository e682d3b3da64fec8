use super::outcome::Row;
use super::rows::case2;
use super::scenarios::{CASE2, METHODS};
use super::{Found, Lab, Mean, Options, difference, drafts};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

const RUNS: u32 = 10;
/// Sizes of Link0's buffer, in packets. The paper's text does not have those of its axes.
const SIZES: [u32; 6] = [20, 40, 60, 80, 100, 120];
/// Sources that share it; each is to hold its part of half of the buffer.
const SOURCES: u32 = 6;

pub(super) fn planned(options: &Options) -> u32 {
    2 * SIZES.len() as u32 * options.runs(RUNS, 2)
}

type Number = fn(&Row) -> Mean;

/// Fig. 6 to 8: what the buffer's size does to both.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut sizes = Vec::new();
    for size in SIZES {
        let queue = Override::set("link.Link0.queue", format!("{size} packets"));
        let each = format!("{:.2}", f64::from(size) / 2.0 / f64::from(SOURCES));
        let tq = [queue.clone(), Override::set("flow.*.controller.occupancy", each)];
        // NewReno has no occupancy to hold.
        let newreno = [queue];
        let row = |method: usize, overrides: &[Override]| case2(lab, METHODS[method], CASE2[method], overrides, runs);
        sizes.push((size, [row(0, &tq)?, row(1, &newreno)?]));
    }
    let better = |of: Number, sign: f64| {
        let apart = sizes.iter().map(|(_, [tq, newreno])| Some(difference(of(tq).estimate?, of(newreno).estimate?)));
        let apart: Option<Vec<_>> = apart.collect();
        apart.map(|apart| apart.iter().filter(|apart| apart.ci95.iter().all(|end| end * sign > 0.0)).count())
    };
    let counts = [better(Row::loss_percent, -1.0), better(Row::delay, -1.0), better(Row::power, 1.0)];
    let all: Option<Vec<usize>> = counts.into_iter().collect();
    let least = all.as_ref().and_then(|counts| counts.iter().min().copied());
    let share = least.map(|least| least as f64 / SIZES.len() as f64);
    let note = all.map_or("Too few runs for intervals, or some were not complete.".to_owned(), |counts| {
        let [loss, delay, power] = counts.as_slice() else { return String::new() };
        format!("Of {} sizes: loss is lower at {loss}, delay at {delay}, power higher at {power}.", SIZES.len())
    });
    found.claims.push(
        drafts("Fig. 6 to 8", planned(&lab.options))("fig6.buffer_sweep", "With every buffer size TQ has less delay and loss, and more power, than NewReno. Rule: at each size the \
                        intervals of all three differences lie on that side of zero; shown is the share of sizes of the worst \
                        of the three."
                , Some(1.0), "share of the sizes")
        .decide(share.map(|value| Estimate { value, ci95: [value; 2] }), |ours| ours.value >= 1.0, note),
    );
    found.figures.push(figure(&sizes));
    Ok(())
}

fn figure(sizes: &[(u32, [Row; 2])]) -> Figure {
    let chart = |title: &str, y, of: Number| Plot {
        title: title.to_owned(),
        x: "buffer of Link0 (packets)",
        y,
        y_limits: None,
        layers: (0..METHODS.len())
            .map(|method| {
                let points = sizes.iter().filter_map(|(size, rows)| Some((f64::from(*size), of(&rows[method]).value?)));
                PlotLayer { name: METHODS[method].to_owned(), data: PlotData::Line(points.collect()) }
            })
            .collect(),
        marks: Vec::new(),
    };
    let rows = sizes.iter().flat_map(|(size, rows)| {
        rows.iter().map(move |row| {
            let mut cells = row.cells();
            cells[0] = format!("{size} packets, {}", row.name);
            cells
        })
    });
    Figure {
        name: "Fig. 6 to 8".to_owned(),
        title: "Case II with other buffers".to_owned(),
        text: "x_d of all sources together is half of the buffer.".to_owned(),
        charts: vec![
            chart("Transmission delay", "T_c/T_o - 1", Row::delay),
            chart("Packet loss ratio", "%", Row::loss_percent),
            chart("Power", "Mbit/s", Row::power),
        ],
        tables: vec![Table {
            caption: "Means with 95 % intervals".to_owned(),
            columns: Row::COLUMNS.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
    }
}
