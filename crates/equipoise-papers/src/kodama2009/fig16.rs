use super::drops::{BUFFERS, Cell, DROPS};
use super::scenarios::STRENGTHS;
use super::{Found, drafts};
use crate::experiment::{difference, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::statistics::{Estimate, share_95};

/// Unit of the claims.
const UNIT: &str = "difference of shares";

/// The claims of Fig. 16 from the runs of Fig. 15 and those with other buffers.
pub(super) fn judge(cells: &[Cell], runs: u32, found: &mut Found) {
    found.claims.push(falls(cells, runs));
    found.claims.extend(turns(cells, runs));
    found.figures.push(figure(cells));
}

fn share(cells: &[Cell], drop: u32, strength: f64, buffer: u32) -> Option<Estimate> {
    let is =
        |cell: &&Cell| cell.available_mbps == drop && cell.buffer == buffer && (cell.strength - strength).abs() < 1e-9;
    cells.iter().find(is)?.timed_out()
}

/// Share of the runs that lost packets before the drop, over all drops.
fn early(cells: &[Cell], buffer: u32, strength: f64) -> Option<Estimate> {
    let is = |cell: &&Cell| cell.buffer == buffer && (cell.strength - strength).abs() < 1e-9;
    let outcomes: Vec<_> = cells.iter().filter(is).flat_map(|cell| &cell.outcomes).collect();
    share_95(outcomes.iter().filter(|outcome| outcome.early).count(), outcomes.len())
}

/// What m = 0.5 adds to the share without oscillation.
fn added(cells: &[Cell], drop: u32, buffer: u32) -> Option<Estimate> {
    Some(difference(share(cells, drop, 0.5, buffer)?, share(cells, drop, 0.0, buffer)?))
}

/// The step from one buffer to the next that is most surely a rise: its drop, its m, the longer buffer and the rise.
fn worst_rise(cells: &[Cell]) -> Option<(u32, f64, u32, Estimate)> {
    let lines = DROPS.iter().flat_map(|&drop| STRENGTHS.map(|strength| (drop, strength)));
    let rises = lines.flat_map(|(drop, strength)| {
        BUFFERS.windows(2).filter_map(move |buffers| {
            let [longer, shorter] = [buffers[1], buffers[0]].map(|buffer| share(cells, drop, strength, buffer));
            Some((drop, strength, buffers[1], difference(longer?, shorter?)))
        })
    });
    rises.max_by(|a, b| a.3.ci95[0].total_cmp(&b.3.ci95[0]))
}

fn falls(cells: &[Cell], runs: u32) -> Claim {
    let worst = worst_rise(cells);
    let statement = "The probability of a timeout falls with the buffer, whatever m. Rule: for no m and drop does it rise from one \
                     buffer to the next by more than the interval of the difference allows for; the step that rises most is \
                     shown.";
    let note = worst.map_or(String::new(), |(drop, strength, buffer, _)| {
        format!(
            "80 to {drop} Mbit/s, m = {strength}, up to {buffer} packets. With 250 packets and m = 0.5, {} of the runs lose \
             packets before the drop already, and the drop finds a small window.",
            with_interval(early(cells, 250, 0.5), 2)
        )
    });
    drafts("Fig. 16", runs)("fig16.falls_with_buffer", statement, None, UNIT).decide(
        worst.map(|(.., rise)| rise),
        |ours| ours.ci95[0] <= 0.0,
        note,
    )
}

/// What m = 0.5 adds at each drop and buffer whose share without oscillation is as asked.
fn gains(cells: &[Cell], are: impl Fn(f64) -> bool) -> Vec<(u32, u32, Estimate)> {
    let places = DROPS.iter().flat_map(|&drop| BUFFERS.map(|buffer| (drop, buffer)));
    places
        .filter(|&(drop, buffer)| share(cells, drop, 0.0, buffer).is_some_and(|without| are(without.value)))
        .filter_map(|(drop, buffer)| Some((drop, buffer, added(cells, drop, buffer)?)))
        .collect()
}

fn turns(cells: &[Cell], runs: u32) -> [Claim; 2] {
    let draft = drafts("Fig. 16", runs);
    let least = gains(cells, |without| without > 0.5).into_iter().max_by(|a, b| a.2.ci95[1].total_cmp(&b.2.ci95[1]));
    let largest = gains(cells, |without| without < 0.05).into_iter().max_by(|a, b| a.2.ci95[0].total_cmp(&b.2.ci95[0]));
    let said = |shown: Option<(u32, u32, Estimate)>| {
        shown.map_or(String::new(), |(drop, buffer, _)| {
            let of = |strength| with_interval(share(cells, drop, strength, buffer), 2);
            format!("80 to {drop} Mbit/s, {buffer} packets: {} at m = 0.5, {} without.", of(0.5), of(0.0))
        })
    };
    [
        draft(
            "fig16.small_buffers",
            "With a small buffer more oscillation makes the timeout less likely. Rule: m = 0.5 against none, with every drop and \
             buffer at which most runs have a timeout without oscillation; the one that gains least is shown.",
            None,
            UNIT,
        )
        .decide(least.map(|(.., added)| added), |ours| ours.ci95[1] < 0.0, said(least)),
        draft(
            "fig16.large_buffers",
            "With a large buffer the trend is reversed. Rule: m = 0.5 against none, where fewer than 5 % of the runs have a \
             timeout without oscillation: more likely with it at one drop and buffer at least; the largest is shown.",
            None,
            UNIT,
        )
        .decide(largest.map(|(.., added)| added), |ours| ours.ci95[0] > 0.0, said(largest)),
    ]
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
        row.extend(BUFFERS.map(|buffer| with_interval(share(cells, drop, strength, buffer), 2)));
        row
    };
    Figure {
        name: "Fig. 16".to_owned(),
        title: "The buffer's part in it".to_owned(),
        text: "The bandwidth-delay product (BDP) is 1000 packets.".to_owned(),
        charts: DROPS.map(chart).into(),
        tables: vec![Table {
            caption: "Shares of runs with a timeout within 4 s behind the drop, with 95 % intervals".to_owned(),
            columns,
            rows: DROPS.iter().flat_map(|&drop| STRENGTHS.map(|strength| row((drop, strength)))).collect(),
        }],
    }
}
