use super::criteria::{Outcome, TARGET_S};
use super::scenarios::{AP_300, AP_407, AP_LOAD, AP_ROBUST, CBR_3, CBR_08};
use super::{Found, Lab, Options, drafts, parse, parse_with};
use crate::{Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::median_95;

/// What Fig. 10 and 11 show, and the robust law with a report every second.
pub(super) fn curves() -> [(&'static str, equipoise_lab::scenario::Scenario); 6] {
    [
        ("AP, b = 300", parse(AP_300)),
        ("AP, b = 407.63", parse(AP_407)),
        ("AP, b(ρ)", parse(AP_LOAD)),
        ("CBR 3 Mbit/s", parse(CBR_3)),
        ("CBR 0.8 Mbit/s", parse(CBR_08)),
        ("robust AP, a report a second", parse_with(AP_ROBUST, &[every_second()])),
    ]
}

/// A report every second, in place of every 10 s.
pub(super) fn every_second() -> Override {
    Override::set("flow.media.report_interval", "1 s")
}

/// Runs for the claims, beside the one that is drawn: as many as behind Fig. 14.
const RUNS: u32 = 100;

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 8) + curves().len() as u32
}

/// Fig. 10 and 11: delay and rate over time, one traffic pattern.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut drawn = Vec::new();
    for (name, scenario) in curves() {
        let outcome = lab.runs(&scenario, 1, Outcome::of)?;
        drawn.extend(outcome.into_iter().map(|outcome| (name, outcome)));
    }
    let runs = lab.options.runs(RUNS, 8);
    let many = lab.runs(&parse(AP_300), runs, Outcome::of)?;
    let kept: Vec<_> = many.iter().filter(|outcome| outcome.runs_away_at().is_none()).collect();
    let ran_away = many.len() - kept.len();
    let rates: Vec<f64> = kept.iter().map(|outcome| outcome.rate_before_mbps()).collect();
    let settled: Vec<f64> = kept.iter().map(|outcome| outcome.settled_after_ms()).collect();
    let note = format!("b = 300; {ran_away} of {runs} runs ran away and are left out.");
    let draft = drafts("Fig. 10, 11", runs);
    found.claims.push(
        draft(
            "fig10.rate_before_step",
            "AP sends at about 3 Mbit/s before the load step. Rule: the median's interval lies within 5 % of that.",
            Some(3.0),
            "Mbit/s",
        )
        .decide(
            median_95(&rates),
            |ours| ours.ci95.iter().all(|end| (end / 3.0 - 1.0).abs() <= 0.05),
            note.clone(),
        ),
    );
    found.claims.push(
        draft(
            "fig10.back_at_target",
            "The delay is back at the target after the step. Rule: the median of the runs' means from the fourth interval \
             behind it on lies, with its interval, within 5 % of 8.2 ms.",
            Some(8.2),
            "ms",
        )
        .decide(median_95(&settled), |ours| ours.ci95.iter().all(|end| (end / 8.2 - 1.0).abs() <= 0.05), note),
    );
    found.figures.push(figure(&drawn));
    Ok(())
}

fn figure(drawn: &[(&'static str, Outcome)]) -> Figure {
    let line = |values: &[f64], scale: f64| {
        let at = |index: usize| (index as f64 + 0.5) * 10.0;
        PlotData::Line(values.iter().enumerate().map(|(index, value)| (at(index), value * scale)).collect())
    };
    let layers = |of: fn(&Outcome) -> &[f64], scale: f64| {
        drawn
            .iter()
            .map(|(name, outcome)| PlotLayer { name: (*name).to_owned(), data: line(of(outcome), scale) })
            .collect()
    };
    let plot = |title: &str, y, limits, layers, marks| Plot {
        title: title.to_owned(),
        x: "time (s)",
        y,
        y_limits: Some(limits),
        layers,
        marks,
    };
    let target = vec![(TARGET_S * 1e3, "target".to_owned())];
    Figure {
        name: "Fig. 10, 11".to_owned(),
        title: "Delay and rate through the load step at 200 s".to_owned(),
        text: "Means over intervals of 10 s, the same traffic pattern for all. The background steps from 9 to 10.5 Mbit/s."
            .to_owned(),
        charts: vec![
            plot("Mean one-way delay", "mean one-way delay (ms)", (7.8, 9.8), layers(|o| &o.delays_s, 1e3), target),
            plot("Sending rate", "sending rate (Mbit/s)", (0.0, 4.0), layers(|o| &o.rates_mbps, 1.0), Vec::new()),
        ],
        tables: Vec::new(),
    }
}
