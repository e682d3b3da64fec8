use super::fig15::{BUFFERS, Cell, DROPS};
use super::{Draft, Found, STRENGTHS};
use crate::paper::experiment::{difference, with_interval};
use crate::paper::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use crate::statistics::{Estimate, share_95};

/// The claims of Fig. 16 from the runs of Fig. 15 and those with other buffers.
pub(super) fn judge(cells: &[Cell], runs: u32, found: &mut Found) {
    found.claims.extend(claims(cells, runs));
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

#[expect(clippy::too_many_lines, reason = "a list of claims reads best in one piece")]
fn claims(cells: &[Cell], runs: u32) -> Vec<Claim> {
    let draft = |id, statement: &str| Draft {
        id,
        figure: "Fig. 16",
        statement: statement.to_owned(),
        paper: None,
        unit: "difference of shares",
        runs,
    };
    let mut rises = Vec::new();
    for (drop, strength) in DROPS.iter().flat_map(|&drop| STRENGTHS.map(|strength| (drop, strength))) {
        for buffers in BUFFERS.windows(2) {
            let pair = share(cells, drop, strength, buffers[1]).zip(share(cells, drop, strength, buffers[0]));
            rises.extend(pair.map(|(longer, shorter)| (drop, strength, buffers[1], difference(longer, shorter))));
        }
    }
    let worst = rises.iter().max_by(|a, b| a.3.ci95[0].total_cmp(&b.3.ci95[0]));
    let said = |shown: Option<(u32, u32, Estimate)>| {
        shown.map_or(String::new(), |(drop, buffer, _)| {
            let of = |strength| with_interval(share(cells, drop, strength, buffer), 2);
            format!("80 to {drop} Mbit/s, {buffer} packets: {} at m = 0.5, {} without.", of(0.5), of(0.0))
        })
    };
    // Where most runs or hardly any have a timeout without oscillation.
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for (drop, buffer) in DROPS.iter().flat_map(|&drop| BUFFERS.map(|buffer| (drop, buffer))) {
        let pair = share(cells, drop, 0.0, buffer).zip(added(cells, drop, buffer));
        match pair {
            Some((without, added)) if without.value > 0.5 => small.push((drop, buffer, added)),
            Some((without, added)) if without.value < 0.05 => large.push((drop, buffer, added)),
            _ => {}
        }
    }
    let least = small.into_iter().max_by(|a, b| a.2.ci95[1].total_cmp(&b.2.ci95[1]));
    let largest = large.into_iter().max_by(|a, b| a.2.ci95[0].total_cmp(&b.2.ci95[0]));
    vec![
        draft(
            "fig16.falls_with_buffer",
            "The probability of a timeout falls with the buffer, whatever m. Rule: for no m and drop does it rise from one \
             buffer to the next by more than the interval of the difference allows for; the step that rises most is shown.",
        )
        .decide(
            worst.map(|(.., rise)| *rise),
            |ours| ours.ci95[0] <= 0.0,
            worst.map_or(String::new(), |(drop, strength, buffer, _)| {
                format!(
                    "80 to {drop} Mbit/s, m = {strength}, up to {buffer} packets. With 250 packets and m = 0.5, {} of the runs \
                     lose packets before the drop already, and the drop finds a small window.",
                    with_interval(early(cells, 250, 0.5), 2)
                )
            }),
        ),
        draft(
            "fig16.small_buffers",
            "With a small buffer more oscillation makes the timeout less likely. Rule: m = 0.5 against none, with every drop and \
             buffer at which most runs have a timeout without oscillation; the one that gains least is shown.",
        )
        .decide(least.map(|(.., added)| added), |ours| ours.ci95[1] < 0.0, said(least)),
        draft(
            "fig16.large_buffers",
            "With a large buffer the trend is reversed. Rule: m = 0.5 against none, where fewer than 5 % of the runs have a \
             timeout without oscillation: more likely with it at one drop and buffer at least; the largest is shown.",
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
