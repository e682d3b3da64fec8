use super::cases::{Printed, claims, over_time, table};
use super::rows::case1;
use super::scenarios::{CASE1, METHODS, WINDOWED, ns2_window};
use super::{Found, Lab, Options, drafts, sensitivity};
use crate::Figure;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 20;
pub(super) const PAPER: Printed = Printed {
    ids: ["table1.plr", "table1.td", "table1.power"],
    table: "Table 1",
    values: [[0.517, 1.5033, 1.3304], [0.583, 1.5360, 1.3021]],
};
/// 30 s of 2 Mbit/s, of which half goes at a quarter: `(15 + 60) / 30 - 1`.
pub(super) const LEAST_DELAY: f64 = 1.5;

pub(super) fn planned(options: &Options) -> u32 {
    3 * options.runs(RUNS, 2) + sensitivity::planned(options, sensitivity::Case::One)
}

/// Table 1, Fig. 3 and 4.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let rows = [case1(lab, METHODS[0], CASE1[0], &[], runs)?, case1(lab, METHODS[1], CASE1[1], &[], runs)?];
    let windowed = case1(lab, WINDOWED, CASE1[1], &[ns2_window()], runs)?;
    found.claims.extend(claims(&PAPER, &rows, runs));
    let nearest = rows.iter().filter_map(|row| row.delay().value).reduce(f64::min);
    found.claims.push(
        drafts("Table 1", runs)("table1.td_absolute", &format!(
                "TQ's transmission delay is 1.5033, hardly above the {LEAST_DELAY} that the cut alone costs. Rule: within 1 %."
            ), Some(PAPER.values[0][1]), "T_c/T_o - 1")
        .decide(
            rows[0].delay().estimate,
            |ours| ours.ci95.iter().all(|end| (end / PAPER.values[0][1] - 1.0).abs() < 0.01),
            nearest.map_or(String::new(), |least| format!("The lower of the two is {least:.4}.")),
        ),
    );
    let both = [&rows[0], &rows[1]];
    found.figures.push(Figure {
        name: "Table 1, Fig. 3, 4".to_owned(),
        title: "Case I: one source, the bottleneck cut to a quarter at 15 s".to_owned(),
        text: "The first run of each. TQ loses packets until its first report after the cut; NewReno fills the buffer over and \
               over."
            .to_owned(),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &both, |outcome| &outcome.losses, Vec::new()),
            over_time(
                ("Packets waiting in front of Link0", "packets"),
                &both,
                |outcome| &outcome.queue,
                vec![(10.0, "buffer".to_owned()), (5.0, "x_d".to_owned())],
            ),
            over_time(("Utilisation of Link0", "share"), &both, |outcome| &outcome.utilisation, Vec::new()),
            over_time(("Congestion window", "segments"), &both, |outcome| &outcome.window, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &[windowed])],
    });
    sensitivity::run(lab, sensitivity::Case::One, found)
}
