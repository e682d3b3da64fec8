use super::criteria::{Outcome, runaways};
use super::scenarios::AP_300;
use super::{Found, Lab, Options, Spec, parse, parse_with, scaled};
use crate::{Figure, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::share_95;

const PRINTED: Spec = Spec::shown(
    "runaway.probability_printed",
    "Sec. 6.1",
    "The paper shows no run of the printed law that stays congested, and gives no number.",
)
.unit("%");

pub(super) const CLAIMS: &[Spec] = &[PRINTED];

/// Number of runs in the paper's setting. If 3 % of the runs have a runaway (the delay stays above twice the target),
/// the half-width of the 95 % confidence interval of this share is below 1 percentage point.
const RUNS: u32 = 1500;
/// Number of runs of each variation of the setting.
const VARIED: u32 = 150;

/// If a runaway begins before the interval with this index, it counts as a runaway at the start.
const FIRST: usize = 5;

/// A variation: the paper's setting with one change, or without a change.
pub(super) struct Variation {
    pub(super) name: &'static str,
    pub(super) change: Option<Override>,
}

/// Returns the variations of the setting. They show which parameters influence runaways. A runaway is a delay that
/// stays above twice the target.
pub(super) fn variations() -> [Variation; 8] {
    let variation = |name, change| Variation { name, change: Some(change) };
    [
        Variation { name: "as in the paper: from 0.1 Mbit/s, b = 300, a report every 10 s", change: None },
        variation("from 0.3 Mbit/s", Override::set("flow.media.controller.min_rate", "0.3 Mbit/s")),
        variation("from 1 Mbit/s", Override::set("flow.media.controller.min_rate", "1 Mbit/s")),
        variation("b = 407.63", Override::set("flow.media.controller.b", 407.63)),
        variation("b = 600", Override::set("flow.media.controller.b", 600)),
        variation(
            "highest rate 6 Mbit/s, all of what the background leaves",
            Override::set("flow.media.controller.max_rate", "6 Mbit/s"),
        ),
        variation("a report every 20 s", Override::set("flow.media.report_interval", "20 s")),
        variation("a report every 5 s", Override::set("flow.media.report_interval", "5 s")),
    ]
}

pub(super) fn planned(options: &Options) -> u32 {
    // The first `RUNS` runs use the unchanged setting, so the variation without a change is not run again.
    options.runs(RUNS, 60) + options.runs(VARIED, 20) * (variations().len() - 1) as u32
}

/// Runs the control law as printed in the paper, to find how often it has a runaway (the delay stays above twice the
/// target), and which parameters this depends on. Returns the results in the paper's setting.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<Vec<Outcome>, SimError> {
    let runs = lab.options.runs(RUNS, 60);
    let printed = lab.runs(&parse(AP_300), runs, Outcome::of)?;
    let away = runaways(&printed);
    let at_first = printed.iter().filter(|outcome| outcome.runs_away_at().is_some_and(|at| at < FIRST)).count();
    let share = share_95(away, printed.len()).map(|share| scaled(share, 100.0));
    let note = format!(
        "{away} of {runs} runs stayed congested, {at_first} of them from the first steps on: with 125 packets in the first \
         interval, mean and variance scatter so that the step overshoots the link, and then the variance is that of a ramp."
    );
    found.claims.push(PRINTED.decide(runs, share, note));
    let varied = lab.options.runs(VARIED, 20);
    let mut rows = Vec::new();
    for Variation { name, change } in variations() {
        let outcomes = match change {
            None => printed.iter().take(varied as usize).cloned().collect(),
            Some(change) => lab.runs(&parse_with(AP_300, &[change]), varied, Outcome::of)?,
        };
        let away = runaways(&outcomes);
        let early = outcomes.iter().filter(|outcome| outcome.runs_away_at().is_some_and(|at| at < FIRST)).count();
        let share = share_95(away, outcomes.len()).map(|share| scaled(share, 100.0));
        rows.push(vec![
            name.to_owned(),
            super::with_interval(share, 1),
            format!("{early} of {away}"),
            format!("{varied}"),
        ]);
    }
    found.figures.push(Figure {
        name: "Runaways".to_owned(),
        title: "When the printed law runs away".to_owned(),
        text: "The setting of Sec. 6.1 with one thing changed at a time. A run has run away where the mean delay stays above \
               twice the target for 30 s."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Share of runs that run away".to_owned(),
            columns: ["setting", "runs away (%) [95 %]", "within the first 50 s", "runs"].map(str::to_owned).to_vec(),
            rows,
        }],
    });
    Ok(printed)
}
