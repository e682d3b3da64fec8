//! Repeats Tables 1 and 4 with other values of the parameters of TQ that the paper does not state (`k_v`, T and `x_d`),
//! and with other estimates of the bottleneck queue q. Each repetition makes at most one of these changes.

use super::outcome::Row;
use super::rows::{case1, case2};
use super::scenarios::{CASE1, CASE2};
use super::{Found, Lab, Options, read, table1, table4};
use crate::{Figure, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

/// Name of the change in which the adaptive estimator of Eq. 6 is used.
pub(super) const ESTIMATED: &str = "q by the adaptive estimator (Eq. 6)";
const RUNS: u32 = 10;

/// A case of the paper that is repeated with changed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    One,
    Two,
}

/// A variant of the control law TQ. `change` overrides a parameter of all flows; it is `None` for the unchanged law.
pub(super) struct Change {
    pub(super) name: &'static str,
    pub(super) change: Option<Override>,
}

pub(super) fn changes() -> [Change; 13] {
    let change = |name, change| Change { name, change: Some(change) };
    let gain = |name, gain: f64| change(name, Override::set("flow.*.controller.gain", gain));
    let interval = |name, interval: &str| change(name, Override::set("flow.*.report_interval", interval));
    let occupancy = |name, packets: u32| change(name, Override::set("flow.*.controller.occupancy", packets));
    [
        Change { name: "as above", change: None },
        gain("k_v = 0.1", 0.1),
        gain("k_v = 0.3", 0.3),
        gain("k_v = 0.7", 0.7),
        gain("k_v = 0.9", 0.9),
        interval("T = 50 ms", "50 ms"),
        interval("T = 200 ms", "200 ms"),
        interval("T = 400 ms", "400 ms"),
        occupancy("x_d = 1 packet a source", 1),
        occupancy("x_d = 3 packets a source", 3),
        occupancy("x_d = 8 packets a source", 8),
        change(ESTIMATED, Override::set("flow.*.controller.queue", "adaptive")),
        change("q accumulated", Override::set("flow.*.controller.queue", "accumulated")),
    ]
}

pub(super) fn planned(options: &Options, _: Case) -> u32 {
    changes().len() as u32 * options.runs(RUNS, 2)
}

/// Runs a case of the paper with each change in `changes` to the control law TQ, and compares the results with those of
/// `NewReno`, which is not changed.
pub(super) fn run(lab: &Lab<'_>, case: Case, newreno: &Row, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for Change { name, change } in changes() {
        rows.push(match case {
            Case::One => case1(lab, name, CASE1[0], change.as_slice(), runs)?,
            Case::Two => case2(lab, name, CASE2[0], change.as_slice(), runs)?,
        });
    }
    for (row, Change { name, .. }) in rows.iter().zip(changes()).filter(|(_, of)| of.change.is_some()) {
        let both = [row, newreno];
        let claims = if case == Case::One { table1::judged(both, runs) } else { table4::judged(both, runs) };
        read(found, name, claims);
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
