use super::cases::{Printed, claims, over_time, table};
use super::rows::case2;
use super::scenarios::{CASE2, METHODS, WINDOWED, ns2_window};
use super::{Found, Lab, Options, sensitivity};
use crate::Figure;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 30;
pub(super) const PAPER: Printed = Printed {
    ids: ["table4.plr", "table4.td", "table4.power"],
    table: "Table 4",
    values: [[0.087, 0.2783, 16.5701], [0.443, 0.4110, 11.2162]],
};
/// 138.3 Mbit, of which 43.83 go before 27 s, and then 10 Mbit/s: `(27 + 9.447) / 30 - 1`.
pub(super) const LEAST_DELAY: f64 = 0.2149;

pub(super) fn planned(options: &Options) -> u32 {
    3 * options.runs(RUNS, 2) + sensitivity::planned(options, sensitivity::Case::Two)
}

/// Table 4 and Fig. 5.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let rows = [case2(lab, METHODS[0], CASE2[0], &[], runs)?, case2(lab, METHODS[1], CASE2[1], &[], runs)?];
    let windowed = case2(lab, WINDOWED, CASE2[1], &[ns2_window()], runs)?;
    found.claims.extend(claims(&PAPER, &rows, runs));
    let both = [&rows[0], &rows[1]];
    found.figures.push(Figure {
        name: "Table 4, Fig. 5".to_owned(),
        title: "Case II: six sources over one bottleneck".to_owned(),
        text: format!(
            "10, 2, 1, 2 and 10 Mbit/s from 0, 3, 6, 24 and 27 s on. The cuts alone cost a transmission delay of {LEAST_DELAY:.3}. The \
             first run of each."
        ),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &both, |outcome| &outcome.losses, Vec::new()),
            over_time(
                ("Packets waiting in front of Link0", "packets"),
                &both,
                |outcome| &outcome.queue,
                vec![(60.0, "buffer".to_owned()), (30.0, "sum of all x_d".to_owned())],
            ),
            over_time(("Utilisation of Link0", "share"), &both, |outcome| &outcome.utilisation, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &[windowed])],
    });
    sensitivity::run(lab, sensitivity::Case::Two, found)
}
