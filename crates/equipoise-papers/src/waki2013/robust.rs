use super::criteria::{Outcome, median, medians_ratio, plain_mean, runaways};
use super::fig10::every_second;
use super::scenarios::{AP_300, AP_ROBUST};
use super::{Found, Lab, Options, Rule, Spec, parse, parse_with, scaled, with_interval};
use crate::{Claim, Figure, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, share_95};

/// Number of runs of the robust control law in the paper's setting. A runaway is a delay that stays above twice the
/// target. If no run has a runaway, the upper end of the 95 % confidence interval of its probability is below 0.1 %.
const RUNS: u32 = 4000;
/// Number of runs of the robust control law with a report every second.
const EVERY_SECOND_RUNS: u32 = 300;
/// Number of runs of the control law that the paper prints, with a report every second.
const PRINTED_EVERY_SECOND_RUNS: u32 = 200;

const PROBABILITY: Spec = Spec::new(
    "runaway.probability_robust",
    "ours",
    "The robust law does not run away in the paper's setting: in less than one run of a thousand.",
    Rule::below(0.1),
)
.unit("%")
.ours();
const MSE_AFTER: Spec = Spec::new(
    "robust.mse_after",
    "ours",
    "After the step the robust law, with a report every second, has at most half of the printed law's mean squared error.",
    Rule::below(0.5),
)
.unit("ratio of medians")
.ours();
const JITTER_AFTER: Spec = Spec::new(
    "robust.jitter_after",
    "ours",
    "After the step the robust law, with a report every second, has at most half of the printed law's delay jitter.",
    Rule::below(0.5),
)
.unit("ratio of medians")
.ours();
const RATE: Spec = Spec::new(
    "robust.rate",
    "ours",
    "Before the step the robust law, with a report every second, sends as fast as the printed one.",
    Rule::above(0.98),
)
.unit("ratio of medians")
.ours();
const RETURN: Spec = Spec::new(
    "robust.return",
    "ours",
    "The third report interval behind the step has its mean within 10 % of the target, with a report every second.",
    Rule::above(95.0),
)
.unit("% of the runs")
.ours();

pub(super) const CLAIMS: &[Spec] = &[PROBABILITY, MSE_AFTER, JITTER_AFTER, RATE, RETURN];

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 60) + options.runs(EVERY_SECOND_RUNS, 20) + options.runs(PRINTED_EVERY_SECOND_RUNS, 20)
}

/// Compares our robust control law with the law as printed in the paper. `printed` contains the results of the printed
/// law in the paper's setting.
pub(super) fn run(lab: &Lab<'_>, printed: &[Outcome], found: &mut Found) -> Result<(), SimError> {
    let robust = lab.runs(&parse(AP_ROBUST), lab.options.runs(RUNS, 60), Outcome::of)?;
    let quick =
        lab.runs(&parse_with(AP_ROBUST, &[every_second()]), lab.options.runs(EVERY_SECOND_RUNS, 20), Outcome::of)?;
    let printed_quick =
        lab.runs(&parse_with(AP_300, &[every_second()]), lab.options.runs(PRINTED_EVERY_SECOND_RUNS, 20), Outcome::of)?;
    found.claims.push(probability(&robust, &quick));
    found.claims.extend([
        against(&MSE_AFTER, Outcome::mse_after_ms2, [&quick, printed]),
        against(&JITTER_AFTER, Outcome::jitter_after_ms, [&quick, printed]),
        rate(&quick, printed),
        back(&quick),
    ]);
    let rows = [
        ("printed, a report every 10 s", printed),
        ("robust, a report every 10 s", robust.as_slice()),
        ("printed, a report every second", printed_quick.as_slice()),
        ("robust, a report every second", quick.as_slice()),
    ];
    found.figures.push(figure(&rows));
    Ok(())
}

fn probability(robust: &[Outcome], quick: &[Outcome]) -> Claim {
    let away = runaways(robust);
    let share = share_95(away, robust.len()).map(|share| scaled(share, 100.0));
    let note = format!(
        "{away} of {} runs with a report every 10 s ran away, {} of {} with one every second.",
        robust.len(),
        runaways(quick),
        quick.len()
    );
    PROBABILITY.decide(robust.len() as u32, share, note)
}

fn against(spec: &Spec, number: fn(&Outcome) -> f64, [robust, printed]: [&[Outcome]; 2]) -> Claim {
    let note = "With a report every 10 s no law can know of the step within the interval that decides this figure.";
    spec.decide(robust.len() as u32, medians_ratio(robust, printed, number), note)
}

fn rate(robust: &[Outcome], printed: &[Outcome]) -> Claim {
    let after = |outcomes: &[Outcome]| with_interval(median(outcomes, Outcome::rate_after_mbps), 3);
    let note = format!("After the step the medians are {} and {} Mbit/s.", after(robust), after(printed));
    RATE.decide(robust.len() as u32, medians_ratio(robust, printed, Outcome::rate_before_mbps), note)
}

fn back(robust: &[Outcome]) -> Claim {
    let count = robust.iter().filter(|outcome| outcome.is_back()).count();
    let share: Option<Estimate> = share_95(count, robust.len()).map(|share| scaled(share, 100.0));
    RETURN.decide(robust.len() as u32, share, "The mean of one second scatters even at a constant rate.")
}

fn figure(rows: &[(&str, &[Outcome])]) -> Figure {
    type Column = (&'static str, fn(&Outcome) -> f64, usize);
    let columns: [Column; 5] = [
        ("mean squared error after (ms²)", Outcome::mse_after_ms2, 4),
        ("delay jitter after (ms)", Outcome::jitter_after_ms, 3),
        ("rate before (Mbit/s)", Outcome::rate_before_mbps, 3),
        ("rate after (Mbit/s)", Outcome::rate_after_mbps, 3),
        ("delay settled after (ms)", Outcome::settled_after_ms, 3),
    ];
    let row = |(name, outcomes): &(&str, &[Outcome])| {
        let mut cells = vec![(*name).to_owned()];
        for (_, number, decimals) in columns {
            let middle = with_interval(median(outcomes, number), decimals);
            cells.push(format!("{middle}; {:.decimals$}", plain_mean(outcomes, number)));
        }
        let back = outcomes.iter().filter(|outcome| outcome.is_back()).count();
        cells.push(format!("{:.1} %", back as f64 / outcomes.len() as f64 * 100.0));
        cells.push(format!("{} of {}", runaways(outcomes), outcomes.len()));
        cells
    };
    let mut heads = vec!["law".to_owned()];
    heads.extend(columns.iter().map(|(name, ..)| format!("{name}: median [95 %]; mean")));
    heads.push("back within three intervals".to_owned());
    heads.push("runaways".to_owned());
    Figure {
        name: "Robust AP".to_owned(),
        title: "The printed and the robust law through the load step".to_owned(),
        text: "The setting of Sec. 6.1. All criteria are taken over intervals of 10 s, whatever the report interval."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "After the step".to_owned(),
            columns: heads,
            rows: rows.iter().map(row).collect(),
        }],
    }
}
