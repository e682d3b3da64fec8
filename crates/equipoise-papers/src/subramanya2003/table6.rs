use super::cases::{Printed, claims, over_time, table};
use super::outcome::{Outcome, Row};
use super::scenarios::{CASE3, METHODS, WINDOWED, ns2_window};
use super::{Found, Lab, Options, parse_with};
use crate::Figure;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 20;
const PAPER: Printed = Printed {
    ids: ["table6.plr", "table6.td", "table6.power"],
    table: "Table 6",
    values: [[0.0, 0.6587, 6.9984], [0.42, 0.6643, 6.968]],
};

/// A method with something changed in the scenario.
struct Change {
    name: &'static str,
    /// Its place in [`METHODS`].
    method: usize,
    overrides: Vec<Override>,
}

/// What is run in addition to the two methods.
fn changes() -> [Change; 4] {
    let tq = |name, overrides| Change { name, method: 0, overrides };
    let slow = Override::set("flow.*.report_interval", "400 ms");
    let accumulated = Override::set("flow.*.controller.queue", "accumulated");
    [
        tq("TQ, T = 400 ms", vec![slow.clone()]),
        tq("TQ, q accumulated", vec![accumulated.clone()]),
        tq("TQ, q accumulated, T = 400 ms", vec![accumulated, slow]),
        Change { name: WINDOWED, method: 1, overrides: vec![ns2_window()] },
    ]
}

pub(super) fn planned(options: &Options) -> u32 {
    (METHODS.len() + changes().len()) as u32 * options.runs(RUNS, 2)
}

/// Table 6 and Fig. 10, with another q and a slower T beside.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let row = |name: &str, method: usize, overrides: &[Override]| {
        let scenario = parse_with(CASE3[method], overrides);
        let outcomes = lab.runs(&scenario, runs, |run| Outcome::of(run, 0.0, "Link3"))?;
        Ok::<_, SimError>(Row::new(name, &scenario, outcomes))
    };
    let rows = [row(METHODS[0], 0, &[])?, row(METHODS[1], 1, &[])?];
    let mut more = Vec::new();
    for Change { name, method, overrides } in changes() {
        more.push(row(name, method, &overrides)?);
    }
    found.claims.extend(claims(&PAPER, &rows, runs));
    let all: Vec<&Row> = rows.iter().chain(more.get(2)).collect();
    found.figures.push(Figure {
        name: "Table 6, Fig. 10".to_owned(),
        title: "Case III: four bottlenecks in a row".to_owned(),
        text: "Link0 to Link3 cut to 4, 3, 2 and 1 Mbit/s at 3, 6, 24 and 27 s. The first run of each. The paper does not print which \
               source goes where, so that its numbers are not ours to meet."
            .to_owned(),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &all, |outcome| &outcome.losses, Vec::new()),
            over_time(("Packets waiting in front of Link3", "packets"), &all, |outcome| &outcome.queue, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &more)],
    });
    Ok(())
}
