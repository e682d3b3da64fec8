use super::measures::mean_rate;
use super::setting::{FIG3, Trace, run_all};
use super::{Found, Lab, Options, drafts, mean_of, parse, rates_chart};
use crate::Figure;
use equipoise_lab::sim::SimError;

/// The paper shows one run.
const RUNS: u32 = 10;
const EARLY: (f64, f64) = (5.0, 15.0);
const LATE: (f64, f64) = (50.0, 60.0);

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2)
}

/// How far LDA's rate is above the mean of both TCP flows', in kbit/s.
fn excess(trace: &Trace, stretch: (f64, f64)) -> f64 {
    let [first, second, media] = [0, 1, 2].map(|flow| mean_rate(trace, flow, stretch));
    (media - f64::midpoint(first, second)) / 1e3
}

/// LDA from 600 kbit/s on beside two TCP flows.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = planned(&lab.options);
    let traces = run_all(lab, &parse(FIG3), runs, |trace| trace)?;
    let draft = |id, statement: &str, unit| drafts("Fig. 3", runs)(id, statement, None, unit);
    found.claims.push(
        draft(
            "fig3.difference_grows",
            "LDA that starts above its share is not reduced to it; the difference to TCP becomes slightly larger. Rule: the \
             difference of the rates from 50 to 60 s is above that from 5 to 15 s.",
            "kbit/s",
        )
        .decide(
            mean_of(traces.iter().map(|trace| excess(trace, LATE) - excess(trace, EARLY))),
            |ours| ours.ci95[0] > 0.0,
            "",
        ),
    );
    found.claims.push(
        draft(
            "fig3.no_loss_reported",
            "No report tells of a loss although LDA has more than its share. Rule: below one report in a hundred.",
            "share of the reports",
        )
        .decide(
            mean_of(traces.iter().map(|trace| {
                let lossy = trace.reported_losses.iter().filter(|lost| **lost > 0.0).count();
                lossy as f64 / trace.reported_losses.len() as f64
            })),
            |ours| ours.ci95[1] < 0.01,
            "The length of the queue was chosen by this sentence of the paper: it is no finding. A queue of 50 packets overflows, \
             a third of the reports tell of it, and LDA then comes down.",
        ),
    );
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, LDA"];
    found.figures.push(Figure {
        name: "Fig. 3".to_owned(),
        title: "Rates with LDA".to_owned(),
        text: "LDA starts at 600 kbit/s; a fair share is 400 kbit/s.".to_owned(),
        charts: traces.first().map(|trace| rates_chart("Rates", trace, 1.0, &names)).into_iter().collect(),
        tables: Vec::new(),
    });
    Ok(())
}
