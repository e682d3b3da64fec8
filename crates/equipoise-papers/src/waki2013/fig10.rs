use super::criteria::{Outcome, TARGET_S, kept, median};
use super::scenarios::{AP_300, AP_407, AP_LOAD, AP_ROBUST, CBR_3, CBR_08};
use super::{
    AT_ZERO, BOTH_WAYS, Found, Lab, MAIN, Options, Rule, SEC_5_2, Spec, parse, parse_with, read, scaled, with_interval,
};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::share_95;

/// The delay, in ms, counts as equal to the target of 8.2 ms if it differs by at most 1 %. At the target, about 0.65 ms
/// of the delay is queueing.
const AT_TARGET: Rule = Rule::within(8.118, 8.282);
/// The paper's single run counts as typical if its value lies between these percentiles of our runs.
const ORDINARY: Rule = Rule::within(2.5, 97.5);

const RATE_BEFORE: Spec = Spec::new(
    "fig11.rate_before_step",
    "Fig. 11",
    "AP sends at about 3 Mbit/s before the load step.",
    Rule::within(2.85, 3.15),
)
.paper(3.0)
.unit("Mbit/s");
const BACK: Spec =
    Spec::new("fig10.back_at_target", "Fig. 10", "The delay of AP is back at the target after the step.", AT_TARGET)
        .paper(8.2)
        .unit("ms");
const CBR3_BEFORE: Spec = Spec::new(
    "fig10.cbr3_before",
    "Fig. 10",
    "CBR of 3 Mbit/s has a delay close to the target before the step.",
    AT_TARGET,
)
.paper(8.2)
.unit("ms");
const CBR3_AFTER: Spec = Spec::new(
    "fig10.cbr3_after",
    "Fig. 10",
    "The delay of CBR of 3 Mbit/s becomes larger after the step.",
    Rule::above(8.282),
)
.unit("ms");
const CBR08_BEFORE: Spec = Spec::new(
    "fig10.cbr08_before",
    "Fig. 10",
    "The delay of CBR of 0.8 Mbit/s is smaller than the target before the step.",
    Rule::below(8.118),
)
.unit("ms");
const CBR08_AFTER: Spec = Spec::new(
    "fig10.cbr08_after",
    "Fig. 10",
    "The delay of CBR of 0.8 Mbit/s is as low as the target after the step.",
    AT_TARGET,
)
.paper(8.2)
.unit("ms");
const SHARE: &str = "% of our runs have less";
const DECREASE_201: Spec = Spec::new(
    "fig11.decrease_at_201",
    "Fig. 11",
    "AP's rate falls by 0.33 Mbit/s at 201 s, in the run that the paper prints.",
    ORDINARY,
)
.unit(SHARE);
const DECREASE_211: Spec = Spec::new(
    "fig11.decrease_at_211",
    "Fig. 11",
    "AP's rate falls by 0.90 Mbit/s at 211 s, in the run that the paper prints.",
    ORDINARY,
)
.unit(SHARE);
const DELAY_211: Spec = Spec::new(
    "fig11.delay_at_211",
    "Sec. 7.1",
    "The mean delay that is reported then is 9.07 ms, in that run.",
    ORDINARY,
)
.unit(SHARE);
const VARIANCE_211: Spec = Spec::new(
    "fig11.variance_at_211",
    "Sec. 7.1",
    "The variance that is reported then is 3.23 ms², in that run.",
    ORDINARY,
)
.unit(SHARE);
const SECOND_LARGER: Spec = Spec::new(
    "fig11.second_decrease_larger",
    "Fig. 11",
    "The decrease at 211 s is larger than that at 201 s, whose report is of the time before the step.",
    Rule::above(0.0),
)
.unit("Mbit/s more");

pub(super) const CLAIMS: &[Spec] = &[
    RATE_BEFORE,
    BACK,
    DECREASE_201,
    DECREASE_211,
    DELAY_211,
    VARIANCE_211,
    SECOND_LARGER,
    CBR3_BEFORE,
    CBR3_AFTER,
    CBR08_BEFORE,
    CBR08_AFTER,
];

/// Returns the curves of Fig. 10 and 11, and a curve of the robust variant of AP with a report every second.
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

/// Returns the override for a report every second. The scenario files have a report every 10 s.
pub(super) fn every_second() -> Override {
    Override::set("flow.media.report_interval", "1 s")
}

/// Number of runs for the claims, as for Fig. 14. For the charts, one run of each curve is computed separately.
const RUNS: u32 = 100;

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 8) * 6 + curves().len() as u32
}

/// Runs the simulations of Fig. 10 and 11: one run of each curve for the charts, and many runs for the claims.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut drawn = Vec::new();
    for (name, scenario) in curves() {
        let outcome = lab.runs(&scenario, 1, Outcome::of)?;
        drawn.extend(outcome.into_iter().map(|outcome| (name, outcome)));
    }
    let runs = lab.options.runs(RUNS, 8);
    let of = |scenario: &Scenario| lab.runs(scenario, runs, Outcome::of);
    let main = claims(&of(&parse(AP_300))?, runs);
    found.claims.extend(main.clone());
    found.claims.extend(of_cbr(&of(&parse(CBR_3))?, &of(&parse(CBR_08))?, runs));
    read(found, MAIN, main);
    for other in [AT_ZERO, SEC_5_2, BOTH_WAYS] {
        let outcomes = of(&other.scenario(AP_300))?;
        let outcomes: Vec<_> = outcomes.iter().map(|outcome| other.outcome(outcome)).collect();
        read(found, other.name, claims(&outcomes, runs));
    }
    found.figures.push(figure(&drawn));
    Ok(())
}

/// Returns the claims about AP with a coefficient of response of 300/(s·Mbit/s).
fn claims(all: &[Outcome], runs: u32) -> [Claim; 7] {
    let kept = kept(all);
    let note = format!("{} of {runs} runs ran away and are left out.", all.len() - kept.len());
    let middle = |number: fn(&Outcome) -> f64| median(&kept, number);
    // Decides a claim by the percentile of the paper's run among our runs.
    let share = |spec: &Spec, printed: f64, number: fn(&Outcome) -> f64| {
        let less = kept.iter().filter(|outcome| number(outcome) < printed).count();
        let place = share_95(less, kept.len()).map(|share| scaled(share, 100.0));
        spec.decide(runs, place, format!("The median of our runs is {}. {note}", with_interval(middle(number), 3)))
    };
    [
        RATE_BEFORE.decide(runs, middle(Outcome::rate_before_mbps), note.clone()),
        BACK.decide(runs, middle(Outcome::settled_after_ms), note.clone()),
        share(&DECREASE_201, 0.33, |outcome| outcome.decreases_mbps()[0]),
        share(&DECREASE_211, 0.90, |outcome| outcome.decreases_mbps()[1]),
        share(&DELAY_211, 9.07, Outcome::first_behind_ms),
        share(&VARIANCE_211, 3.23, |outcome| outcome.variance_s2 * 1e6),
        SECOND_LARGER.decide(
            runs,
            middle(|outcome| outcome.decreases_mbps()[1] - outcome.decreases_mbps()[0]),
            format!("Median of the differences. {note}"),
        ),
    ]
}

/// Returns the claims about constant rates.
fn of_cbr(three: &[Outcome], less: &[Outcome], runs: u32) -> [Claim; 4] {
    let before = Outcome::settled_before_ms;
    let after = Outcome::settled_after_ms;
    [
        CBR3_BEFORE.decide(runs, median(three, before), ""),
        CBR3_AFTER.decide(runs, median(three, after), ""),
        CBR08_BEFORE.decide(runs, median(less, before), ""),
        CBR08_AFTER.decide(runs, median(less, after), ""),
    ]
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
