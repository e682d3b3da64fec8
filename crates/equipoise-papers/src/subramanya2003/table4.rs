use super::cases::{Compared, Printed, claims, compared, over_time, table};
use super::outcome::{Outcome, Row};
use super::rows::case2;
use super::scenarios::{CASE2, MAIN, METHODS, UNLIMITED, unlimited};
use super::traces::{self, RECORDED};
use super::{Found, Lab, Options, Rule, Spec, read, sensitivity};
use crate::{Claim, Figure};
use equipoise_lab::sim::SimError;

const RUNS: u32 = 30;
pub(super) const PAPER: Printed =
    Printed { table: "Table 4", values: [[0.087, 0.2783, 16.5701], [0.443, 0.4110, 11.2162]] };
/// Minimum transmission delay if Link0's rate is low between 3 s and 27 s of the run. The delay is the time from the
/// end of the contents (30 s) to the end of the transmission, as a share of 30 s. Of 138.3 Mbit of contents, 43.83 Mbit
/// can be sent before 27 s. The rest takes 9.447 s at 10 Mbit/s, so the delay is `(27 + 9.447) / 30 - 1`.
pub(super) const LEAST_DELAY: f64 = 0.2149;
/// The part of a run in which Link0 has its lowest rate, in seconds.
const LEAST: (f64, f64) = (6.0, 24.0);
/// The parts of a run in which Link0 does not have its lowest rate, in seconds. The contents end at 30 s.
const REST: [(f64, f64); 2] = [(0.0, 6.0), (24.0, 30.0)];

pub(super) const COMPARED: Compared = compared(["table4.plr", "table4.td", "table4.power"], PAPER.table, &PAPER);
const PEAK_TQ: Spec = Spec::new(
    "fig5.tq_most_loss_at_least_rate",
    "Fig. 5",
    "The packet loss ratio of TQ is largest while Link0 has 1 Mbit/s, from 6 to 24 s; shown is by how much it is above those before \
     and behind.",
    Rule::above(0.001),
)
.unit("% of packets");
const PEAK_NEWRENO: Spec =
    Spec::new("fig5.newreno_most_loss_at_least_rate", "Fig. 5", "The same of NewReno.", Rule::above(0.001))
        .unit("% of packets");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 2] = [PEAK_TQ, PEAK_NEWRENO];

/// Returns the number of packets of 1000 bytes that Link0 can send per second at a given time.
fn packets_a_second(at_s: f64) -> f64 {
    match at_s {
        at if !(3.0..27.0).contains(&at) => 1250.0,
        at if !(6.0..24.0).contains(&at) => 250.0,
        _ => 125.0,
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    let recorded = if traces::found().is_some() { 2 } else { 0 };
    (3 + recorded) * options.runs(RUNS, 2) + sensitivity::planned(options, sensitivity::Case::Two)
}

/// Returns the claims that are tested under every interpretation of the paper.
pub(super) fn judged(rows: [&Row; 2], runs: u32) -> Vec<Claim> {
    let peak = |row: &Row| {
        row.mean(|outcome: &Outcome| {
            let loss = |stretch| outcome.loss_percent_within(stretch, packets_a_second);
            Some(loss(LEAST) - REST.map(loss).into_iter().fold(0.0, f64::max))
        })
    };
    let lost = |row: &Row| format!("Its whole packet loss ratio is {} %.", row.loss_percent().words(3));
    let mut found = claims(&COMPARED, rows, runs);
    found.push(PEAK_TQ.decide(runs, peak(rows[0]), lost(rows[0])));
    found.push(PEAK_NEWRENO.decide(runs, peak(rows[1]), lost(rows[1])));
    found
}

/// Runs Table 4 and Fig. 5: six sources over one bottleneck, with each method.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let rows = [case2(lab, METHODS[0], CASE2[0], &[], runs)?, case2(lab, METHODS[1], CASE2[1], &[], runs)?];
    let mut more = vec![case2(lab, UNLIMITED, CASE2[1], &[unlimited()], runs)?];
    let both = [&rows[0], &rows[1]];
    found.claims.extend(judged(both, runs));
    read(found, MAIN, judged(both, runs));
    read(found, UNLIMITED, judged([&rows[0], &more[0]], runs));
    if let Some(recorded) = traces::found() {
        let row =
            |method: usize| case2(lab, &format!("{}, {RECORDED}", METHODS[method]), CASE2[method], &recorded, runs);
        let [tq, newreno] = [row(0)?, row(1)?];
        read(found, RECORDED, judged([&tq, &newreno], runs));
        more.extend([tq, newreno]);
    }
    found.figures.push(Figure {
        name: "Table 4, Fig. 5".to_owned(),
        title: "Case II: six sources over one bottleneck".to_owned(),
        text: format!(
            "10, 2, 1, 2 and 10 Mbit/s from 0, 3, 6, 24 and 27 s on. The cuts alone cost a transmission delay of {LEAST_DELAY:.3}. The \
             first run of each. {}",
            traces::words()
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
        tables: vec![table(&PAPER, &rows, &more)],
    });
    sensitivity::run(lab, sensitivity::Case::Two, &rows[1], found)
}
