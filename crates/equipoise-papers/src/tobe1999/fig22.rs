//! Fig. 20 and 22 to 28: one run of each case, and the time until TPBA responds to the start of flow 4.

use super::fig29::{CASES, CHANGE_S};
use super::setting::{Testbed, Trace, run_all};
use super::{Found, Lab, Options, Rule, Spec, difference, mean_of, rates_chart, read_all, with_interval};
use crate::{Claim, Figure};
use equipoise_lab::result::PairTransport;
use equipoise_lab::sim::SimError;

/// Number of runs of each case: ten trials (Tobe 1999, Sec. 6.2).
const RUNS: u32 = 10;
/// Indices in [`CASES`] of the two cases that differ only in the length of the running period, 10 s and 30 s.
const LENGTHS: [usize; 2] = [0, 2];
/// Indices of the cases for which the paper shows a run, and the figure that shows it.
const SHOWN: [(usize, &str); 8] = [
    (8, "Fig. 20"),
    (0, "Fig. 22"),
    (2, "Fig. 23"),
    (5, "Fig. 24"),
    (7, "Fig. 25"),
    (10, "Fig. 26"),
    (12, "Fig. 27"),
    (15, "Fig. 28"),
];

const LATER: Spec = Spec::new(
    "fig22.longer_running_responds_later",
    "Fig. 22 and 23",
    "The response to the change is worse with a longer running period: from the change until the next running period begins it takes \
     longer with 30 s than with 10 s.",
    Rule::above(0.0),
)
.unit("s longer");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 1] = [LATER];

pub(super) fn planned(options: &Options) -> u32 {
    SHOWN.len() as u32 + LENGTHS.len() as u32 * Testbed::runs_of_all(options, RUNS)
}

pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    read_all(found, |testbed| Ok(vec![response(lab, testbed)?]))?;
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, media", "flow 4, TCP"];
    let mut charts = Vec::new();
    for (place, figure) in SHOWN {
        let case = CASES[place];
        let traces = run_all(lab, &case.scenario(), 1, |trace| trace)?;
        let title = format!("{figure}: {}", case.name());
        charts.extend(traces.iter().map(|trace| rates_chart(&title, trace, 1.0, &names)));
    }
    found.figures.push(Figure {
        name: "Fig. 20 and 22 to 28".to_owned(),
        title: "Rates in cases of Table 4".to_owned(),
        text: "Flow 4 begins at 200 s; in Fig. 24 at 400 s, as its case has not reached its cycle before. Rates are means over \
               seconds, those of Fig. 20 over 0.5 s in the paper."
            .to_owned(),
        charts,
        tables: Vec::new(),
    });
    Ok(())
}

fn response(lab: &Lab<'_>, testbed: &Testbed) -> Result<Claim, SimError> {
    let runs = testbed.runs(&lab.options, RUNS);
    let of = |place: usize| {
        let scenario = testbed.of(CASES[place].scenario());
        Ok::<_, SimError>(mean_of(run_all(lab, &scenario, runs, |trace| response_s(&trace, CHANGE_S as f64))?))
    };
    let [short, long] = LENGTHS.map(of);
    let (short, long) = (short?, long?);
    Ok(LATER.decide(
        2 * runs,
        long.zip(short).map(|(long, short)| difference(long, short)),
        format!("{} s with 30 s, {} s with 10 s.", with_interval(long, 1), with_interval(short, 1)),
    ))
}

/// Returns the time from `change_s` until the next running period begins, in seconds.
pub(super) fn response_s(trace: &Trace, change_s: f64) -> f64 {
    let next = trace.began.iter().find(|began| began.at_s > change_s && began.over == PairTransport::Rtp);
    next.map_or(f64::NAN, |began| began.at_s - change_s)
}
