//! What Fig. 15 hangs on that the thesis does not say: each thing changed alone.

use super::drops::{BUFFER, Cell, DROPS, Outcome, scenario};
use super::fig10::{SACK, sack};
use super::{Found, Lab};
use crate::experiment::with_interval;
use crate::{Figure, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

/// A change of the scenario.
struct Change {
    name: &'static str,
    overrides: Vec<Override>,
}

fn changes() -> [Change; 4] {
    let change = |name, change| Change { name, overrides: vec![change] };
    [
        change("a measurement every 1260 ms", Override::set("flow.symbiosis.bandwidth.interval", "1260 ms")),
        change("three times ε: 5.85 per second", Override::set("flow.symbiosis.window.epsilon", 5.85)),
        change("UDP packets of 1000 bytes", Override::set("flow.UDP.packet_size", "1000 B")),
        Change { name: SACK, overrides: sack() },
    ]
}

const STRENGTHS: [f64; 3] = [0.0, 0.3, 0.5];

pub(super) fn planned(runs: u32) -> u32 {
    (changes().len() * DROPS.len() * STRENGTHS.len()) as u32 * runs
}

/// Fig. 15 with each change.
pub(super) fn run(lab: &Lab<'_>, runs: u32, found: &mut Found) -> Result<(), SimError> {
    let mut rows = Vec::new();
    for Change { name, overrides } in changes() {
        for available_mbps in DROPS {
            let mut shares = Vec::new();
            for strength in STRENGTHS {
                let of = |place| scenario((available_mbps, strength, BUFFER), place, &overrides);
                let outcomes = lab.spread(runs, of, Outcome::of)?;
                shares.push(Cell { available_mbps, strength, buffer: BUFFER, outcomes }.timed_out());
            }
            rows.push((name, available_mbps, shares));
        }
    }
    found.figures.push(figure(&rows));
    Ok(())
}

fn figure(rows: &[(&str, u32, Vec<Option<Estimate>>)]) -> Figure {
    let mut columns = vec!["changed".to_owned(), "drop".to_owned()];
    columns.extend(STRENGTHS.map(|strength| format!("m = {strength}")));
    let row = |(name, drop, shares): &(&str, u32, Vec<Option<Estimate>>)| {
        let mut row = vec![(*name).to_owned(), format!("80 to {drop} Mbit/s")];
        row.extend(shares.iter().map(|share| with_interval(*share, 2)));
        row
    };
    Figure {
        name: "Beyond Fig. 15".to_owned(),
        title: "What it hangs on".to_owned(),
        text: "The thesis' TCP, its ε, the size of its UDP packets and how fast its measurement follows are not known. Buffer \
               1000 packets; all else as in Fig. 15."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Shares of runs with a timeout within 4 s behind the drop, with 95 % intervals".to_owned(),
            columns,
            rows: rows.iter().map(row).collect(),
        }],
    }
}
