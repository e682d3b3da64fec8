use super::cases::apart;
use super::outcome::Row;
use super::rows::case2;
use super::scenarios::{CASE2, MAIN, METHODS, UNLIMITED, unlimited};
use super::{Found, Lab, Mean, Options, Rule, Spec, difference, read};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 10;
/// Sizes of the buffer of Link0, in packets. Our choice, because the text of the paper does not state the sizes that
/// its figures show.
const SIZES: [u32; 6] = [20, 40, 60, 80, 100, 120];
/// Number of sources that share the buffer. The target of TQ, half the buffer, is divided equally among them.
const SOURCES: u32 = 6;

const TD: Spec = Spec::new(
    "fig6.td",
    "Fig. 6",
    "With every size of the buffer TQ's transmission delay is below NewReno's; shown is TQ's less NewReno's.",
    Rule::below(0.0).in_every_cell(),
)
.unit("T_c/T_o - 1");
const PLR: Spec = Spec::new(
    "fig7.plr",
    "Fig. 7",
    "With every size of the buffer TQ's packet loss ratio is below NewReno's.",
    Rule::below(-0.001).in_every_cell(),
)
.unit("% of packets");
const SHRINKS: Spec = Spec::new(
    "fig7.loss_decreases",
    "Fig. 7",
    "Packet losses decrease with the buffer's size, for both; shown is the loss with the largest less that with the smallest.",
    Rule::below(-0.001).in_every_cell(),
)
.unit("% of packets");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 3] = [TD, PLR, SHRINKS];

pub(super) fn planned(options: &Options) -> u32 {
    3 * SIZES.len() as u32 * options.runs(RUNS, 2)
}

type Number = fn(&Row) -> Mean;

/// A buffer size in packets, and the results of both methods with this buffer.
type AtSize = (u32, [Row; 2]);

/// Runs Fig. 6 to 8, which show the effect of the buffer size on TQ and on `NewReno`.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut sizes, mut open) = (Vec::new(), Vec::new());
    for size in SIZES {
        let queue = Override::set("link.Link0.queue", format!("{size} packets"));
        let each = format!("{:.2}", f64::from(size) / 2.0 / f64::from(SOURCES));
        let occupancy = Override::set("flow.*.controller.occupancy", each);
        let row = |name: &str, method: usize, overrides: &[Override]| case2(lab, name, CASE2[method], overrides, runs);
        let tq = row(METHODS[0], 0, &[queue.clone(), occupancy])?;
        // NewReno has no target for its packets in the buffer, so only the buffer size is changed.
        let newreno = row(METHODS[1], 1, std::slice::from_ref(&queue))?;
        open.push((size, [tq.clone(), row(UNLIMITED, 1, &[queue, unlimited()])?]));
        sizes.push((size, [tq, newreno]));
    }
    found.claims.extend(judged(&sizes, runs));
    read(found, MAIN, judged(&sizes, runs));
    read(found, UNLIMITED, judged(&open, runs));
    found.figures.push(figure(&sizes, &open));
    Ok(())
}

fn judged(sizes: &[AtSize], runs: u32) -> [Claim; 3] {
    let at_sizes = |of: Number| -> Vec<_> {
        let cells: Option<Vec<_>> = sizes.iter().map(|(_, [tq, newreno])| apart([tq, newreno], of).estimate).collect();
        cells.unwrap_or_default()
    };
    let better = |of: Number| {
        let cells = at_sizes(of);
        let better = cells.iter().filter(|apart| apart.ci95[1] < 0.0).count();
        format!("Below at {better} of {} sizes.", SIZES.len())
    };
    let shrinks = |method: usize| {
        let [small, large] = [sizes.first()?, sizes.last()?];
        Some(difference(large.1[method].loss_percent().estimate?, small.1[method].loss_percent().estimate?))
    };
    let shrinks: Option<Vec<_>> = (0..METHODS.len()).map(shrinks).collect();
    let each = shrinks.iter().flatten().zip(METHODS);
    let note: Vec<_> = each.map(|(by, name)| format!("{name} {:.3}", by.value)).collect();
    [
        TD.decide_cells(runs, &at_sizes(Row::delay), better(Row::delay)),
        PLR.decide_cells(runs, &at_sizes(Row::loss_percent), better(Row::loss_percent)),
        SHRINKS.decide_cells(runs, shrinks.as_deref().unwrap_or_default(), format!("{}.", note.join(", "))),
    ]
}

fn figure(sizes: &[AtSize], open: &[AtSize]) -> Figure {
    let lines: [(&str, &[AtSize], usize); 3] = [(METHODS[0], sizes, 0), (METHODS[1], sizes, 1), (UNLIMITED, open, 1)];
    let chart = |title: &str, y, of: Number| Plot {
        title: title.to_owned(),
        x: "buffer of Link0 (packets)",
        y,
        y_limits: None,
        layers: lines
            .iter()
            .map(|(name, sizes, method)| {
                let points =
                    sizes.iter().filter_map(|(size, rows)| Some((f64::from(*size), of(&rows[*method]).value?)));
                PlotLayer { name: (*name).to_owned(), data: PlotData::Line(points.collect()) }
            })
            .collect(),
        marks: Vec::new(),
    };
    let rows = sizes.iter().zip(open).flat_map(|((size, both), (_, open))| {
        both.iter().chain(open.last()).map(move |row| {
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
