//! What TQ hangs on that the paper does not print: `k_v`, T, `x_d` and where it measures, each changed alone.

use super::outcome::Row;
use super::{CASE1, CASE2, Found, Lab, Options, table1, table4};
use crate::{Figure, Table};
use equipoise_lab::sim::SimError;

const RUNS: u32 = 10;

/// The case that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    One,
    Two,
}

/// A change: what it is called, what stands in the scenario, and what stands there instead, for every flow.
type Change = (&'static str, &'static str, &'static str);

const CHANGES: [Change; 12] = [
    ("as above", "gain = 0.5", "gain = 0.5"),
    ("k_v = 0.1", "gain = 0.5", "gain = 0.1"),
    ("k_v = 0.3", "gain = 0.5", "gain = 0.3"),
    ("k_v = 0.7", "gain = 0.5", "gain = 0.7"),
    ("k_v = 0.9", "gain = 0.5", "gain = 0.9"),
    ("T = 50 ms", "\"100 ms\"\ncontroller", "\"50 ms\"\ncontroller"),
    ("T = 200 ms", "\"100 ms\"\ncontroller", "\"200 ms\"\ncontroller"),
    ("T = 400 ms", "\"100 ms\"\ncontroller", "\"400 ms\"\ncontroller"),
    ("x_d = 1 packet a source", "occupancy = 5", "occupancy = 1"),
    ("x_d = 3 packets a source", "occupancy = 5", "occupancy = 3"),
    ("x_d = 8 packets a source", "occupancy = 5", "occupancy = 8"),
    ("q accumulated", "queue = \"printed\"", "queue = \"accumulated\""),
];

pub(super) fn planned(options: &Options, _: Case) -> u32 {
    CHANGES.len() as u32 * options.runs(RUNS, 2)
}

/// A case with each change.
pub(super) fn run(lab: &Lab<'_>, case: Case, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (name, from, to) in CHANGES {
        rows.push(match case {
            Case::One => table1::row(lab, name, &CASE1[0].replace(from, to), &[], runs)?,
            Case::Two => table4::row(lab, name, &CASE2[0].replace(from, to), &[], runs)?,
        });
    }
    let (table, number) = if case == Case::One { ("Table 1", "I") } else { ("Table 4", "II") };
    found.figures.push(Figure {
        name: format!("Beyond {table}"),
        title: format!("Case {number}: what TQ hangs on"),
        text: "The paper prints neither k_v nor T nor x_d. Each is changed alone, for all sources.".to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "TQ, means with 95 % intervals".to_owned(),
            columns: Row::COLUMNS.map(str::to_owned).to_vec(),
            rows: rows.iter().map(Row::cells).collect(),
        }],
    });
    Ok(())
}
