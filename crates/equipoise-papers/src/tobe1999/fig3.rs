use super::measures::mean_rate;
use super::setting::{FIG3, Testbed, Trace, run_all};
use super::{Found, Lab, Options, Spec, mean_of, parse, rates_chart, read_all};
use crate::{Claim, Figure};
use equipoise_lab::sim::SimError;

/// Number of runs. The paper shows one run.
const RUNS: u32 = 10;
const EARLY: (f64, f64) = (5.0, 15.0);
const LATE: (f64, f64) = (50.0, 60.0);

const GROWS: Spec = Spec::shown(
    "fig3.difference_grows",
    "Fig. 3",
    "LDA that starts above its share is not reduced to it. Shown is by how much its excess over TCP from 50 to 60 s is above that \
     from 5 to 15 s: it depends on the queue's length, which the paper does not print.",
)
.unit("kbit/s");
const NO_LOSS: Spec = Spec::shown(
    "fig3.no_loss_reported",
    "Fig. 3",
    "No report tells of a loss although LDA has more than its share. The queue's length was chosen by this sentence, so that it is \
     no finding.",
)
.unit("share of the reports");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 2] = [GROWS, NO_LOSS];

pub(super) fn planned(options: &Options) -> u32 {
    Testbed::runs_of_all(options, RUNS)
}

/// Returns LDA's rate minus the mean rate of the two TCP flows, in kbit/s.
fn excess(trace: &Trace, stretch: (f64, f64)) -> f64 {
    let [first, second, media] = [0, 1, 2].map(|flow| mean_rate(trace, flow, stretch));
    (media - f64::midpoint(first, second)) / 1e3
}

/// Runs Fig. 3: LDA, which starts at 600 kbit/s, with two TCP flows.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut first = None;
    read_all(found, |testbed| {
        let runs = testbed.runs(&lab.options, RUNS);
        let traces = run_all(lab, &testbed.of(parse(FIG3)), runs, |trace| trace)?;
        let claims = claims(&traces);
        first = first.take().or(traces.into_iter().next());
        Ok(claims)
    })?;
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, LDA"];
    found.figures.push(Figure {
        name: "Fig. 3".to_owned(),
        title: "Rates with LDA".to_owned(),
        text: "LDA starts at 600 kbit/s; a fair share is 400 kbit/s.".to_owned(),
        charts: first.iter().map(|trace| rates_chart("Rates", trace, 1.0, &names)).collect(),
        tables: Vec::new(),
    });
    Ok(())
}

fn claims(traces: &[Trace]) -> Vec<Claim> {
    let runs = traces.len() as u32;
    let lossy = |trace: &Trace| {
        let lossy = trace.reported_losses.iter().filter(|lost| **lost > 0.0).count();
        lossy as f64 / trace.reported_losses.len() as f64
    };
    let late = mean_of(traces.iter().map(|trace| excess(trace, LATE)));
    vec![
        GROWS.decide(
            runs,
            mean_of(traces.iter().map(|trace| excess(trace, LATE) - excess(trace, EARLY))),
            format!("The excess from 50 to 60 s is {} kbit/s.", super::with_interval(late, 0)),
        ),
        NO_LOSS.decide(runs, mean_of(traces.iter().map(lossy)), ""),
    ]
}
