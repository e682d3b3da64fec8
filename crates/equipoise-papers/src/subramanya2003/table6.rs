use super::cases::{Compared, Printed, claims, compared, over_time, table};
use super::outcome::{Outcome, Row};
use super::scenarios::{CASE3, MAIN, METHODS, UNLIMITED, unlimited};
use super::{Found, Lab, Options, Rule, Spec, parse_with, read, sensitivity};
use crate::{Claim, Figure};
use equipoise_lab::scenario::{Override, Value};
use equipoise_lab::sim::SimError;

const RUNS: u32 = 20;
pub(super) const PAPER: Printed = Printed { table: "Table 6", values: [[0.0, 0.6587, 6.9984], [0.42, 0.6643, 6.968]] };
/// Minimum transmission delay (Eq. 7) with the routing in our scenarios, as a share of the contents' duration of 30 s.
/// It was computed with a fluid model.
#[cfg(feature = "live")]
pub(super) const LEAST_DELAY: f64 = 0.987;

pub(super) const COMPARED: Compared = compared(["table6.plr", "table6.td", "table6.power"], PAPER.table, &PAPER);
const LOSSLESS: Spec =
    Spec::new("table6.tq_lossless", "Table 6", "The packet loss ratio of TQ is zero.", Rule::within(0.0, 0.0))
        .paper(0.0)
        .unit("% of packets");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 1] = [LOSSLESS];

/// An interpretation of case III that differs from the main one.
struct Change {
    name: &'static str,
    /// The overrides for each method in [`METHODS`]; `None` if the method is the same as in the main interpretation.
    overrides: [Option<Vec<Override>>; 2],
    /// Whether the interpretation was chosen because its results fit the paper.
    is_fitted: bool,
}

/// Returns the override for a parking-lot topology. The sources of 2 and 1 Mbit/s use all four links. Each video, and
/// the source of 0.5 Mbit/s, shares its only link with these two sources.
///
/// In this topology, the minimum transmission delay is 0.645 of the contents' duration. Table 6 has 0.6587 for TQ.
/// About a hundred other topologies come equally close to Table 6. This topology is the simplest.
fn parking_lot() -> Override {
    Override::set("flow.\"cbr-0.5\".path", ["S6", "Link3", "D6"].map(Value::from).to_vec())
}

fn changes() -> [Change; 8] {
    let slow = Override::set("flow.*.report_interval", "400 ms");
    let accumulated = Override::set("flow.*.controller.queue", "accumulated");
    let tq = |name, overrides| Change { name, overrides: [Some(overrides), None], is_fitted: false };
    let fitted = |name, tq: Vec<Override>, newreno: Vec<Override>| {
        let with_lot = |overrides: Vec<Override>| Some([vec![parking_lot()], overrides].concat());
        Change { name, overrides: [with_lot(tq), with_lot(newreno)], is_fitted: true }
    };
    let calm = vec![Override::set("flow.*.controller.occupancy", 1), Override::set("flow.*.controller.gain", 0.9)];
    [
        Change { name: UNLIMITED, overrides: [None, Some(vec![unlimited()])], is_fitted: false },
        tq("T = 400 ms", vec![slow.clone()]),
        tq(sensitivity::ESTIMATED, vec![Override::set("flow.*.controller.queue", "adaptive")]),
        tq("q accumulated", vec![accumulated.clone()]),
        tq("q accumulated, T = 400 ms", vec![accumulated, slow]),
        fitted("a parking lot", vec![], vec![]),
        fitted("a parking lot, NewReno's window without a limit", vec![], vec![unlimited()]),
        fitted("a parking lot, x_d = 1, k_v = 0.9", calm, vec![]),
    ]
}

pub(super) fn planned(options: &Options) -> u32 {
    let more = changes().iter().flat_map(|change| &change.overrides).flatten().count();
    (METHODS.len() + more) as u32 * options.runs(RUNS, 2)
}

fn judged(rows: [&Row; 2], runs: u32, is_fitted: bool) -> Vec<Claim> {
    let read_as = |spec: Spec| if is_fitted { spec.fitted() } else { spec };
    let mut found = claims(&COMPARED.map(read_as), rows, runs);
    found.push(read_as(LOSSLESS).decide(runs, rows[0].loss_percent(), ""));
    found
}

/// Runs the experiments of Table 6 and Fig. 10, and adds their claims under all interpretations.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let row = |name: &str, method: usize, overrides: &[Override]| {
        let scenario = parse_with(CASE3[method], overrides);
        let outcomes = lab.runs(&scenario, runs, |run| Outcome::of(run, 0.0, "Link3"))?;
        Ok::<_, SimError>(Row::new(name, &scenario, outcomes))
    };
    let rows = [row(METHODS[0], 0, &[])?, row(METHODS[1], 1, &[])?];
    let both = [&rows[0], &rows[1]];
    found.claims.extend(judged(both, runs, false));
    read(found, MAIN, judged(both, runs, false));
    let mut more = Vec::new();
    for Change { name, overrides, is_fitted } in changes() {
        let mut of = rows.clone();
        for (method, overrides) in overrides.iter().enumerate() {
            if let Some(overrides) = overrides {
                of[method] = row(&format!("{}, {name}", METHODS[method]), method, overrides)?;
                more.push(of[method].clone());
            }
        }
        read(found, name, judged([&of[0], &of[1]], runs, is_fitted));
    }
    found.figures.push(Figure {
        name: "Table 6, Fig. 10".to_owned(),
        title: "Case III: four bottlenecks in a row".to_owned(),
        text: "Link0 to Link3 cut to 4, 3, 2 and 1 Mbit/s at 3, 6, 24 and 27 s. The first run of each. The paper does not print which \
               source goes where. A parking lot, in which each link has one source of its own, was chosen because it fits."
            .to_owned(),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &both, |outcome| &outcome.losses, Vec::new()),
            over_time(("Packets waiting in front of Link3", "packets"), &both, |outcome| &outcome.queue, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &more)],
    });
    Ok(())
}

#[cfg(test)]
pub(super) fn readings() -> Vec<(&'static str, [Option<Vec<Override>>; 2])> {
    changes().into_iter().map(|change| (change.name, change.overrides)).collect()
}
