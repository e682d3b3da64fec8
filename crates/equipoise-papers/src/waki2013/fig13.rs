use super::criteria::{Outcome, five_numbers, median, of_all, runaways};
use super::fig12::{Row, table};
use super::scenarios::{AIMD, AP_300};
use super::{Found, Lab, Options, drafts, parse, ratio, scaled};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, median_95};

/// The paper's number of runs.
const RUNS: u32 = 100;
/// What the paper says AP's rate before the step is above AIMD's, in percent: least and most.
const PAPER_GAIN: [f64; 2] = [10.29, 25.0];
/// How near our interval must lie to the paper's percentage, in points.
const NEAR: f64 = 5.0;

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 8) * (1 + AIMD.len() as u32)
}

/// Fig. 13 and 14: criteria and rates of AP and AIMD.
pub(super) fn run(lab: &Lab<'_>, (fig13, fig14): (bool, bool), found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 8);
    let mut rows = vec![Row { name: "AP", outcomes: lab.runs(&parse(AP_300), runs, Outcome::of)? }];
    for (a, text) in AIMD {
        let name = match a {
            "1" => "AIMD 1",
            "0.8" => "AIMD 0.8",
            "0.4" => "AIMD 0.4",
            "0.2" => "AIMD 0.2",
            _ => "AIMD 0.1",
        };
        rows.push(Row { name, outcomes: lab.runs(&parse(text), runs, Outcome::of)? });
    }
    let [ap, aimd @ ..] = rows.as_slice() else { return Ok(()) };
    if fig13 {
        found.claims.extend([large_a_worse(aimd, runs), small_a_steadier(ap, aimd, runs)]);
        found.figures.push(criteria_figure(&rows));
    }
    if fig14 {
        found.claims.extend(gains(ap, aimd, runs));
        found.figures.push(rate_figure(&rows));
    }
    Ok(())
}

type Criterion = (&'static str, fn(&Outcome) -> f64);
const CRITERIA: [Criterion; 3] = [
    ("mean squared error (ms²)", Outcome::mse_ms2),
    ("coefficient of variation", Outcome::cv),
    ("delay jitter (ms)", Outcome::jitter_ms),
];

fn large_a_worse(aimd: &[Row], runs: u32) -> Claim {
    let ours = aimd.first().zip(aimd.last()).and_then(|(large, small)| {
        let ratios = CRITERIA.iter().filter_map(|(_, number)| {
            median(&large.outcomes, number)
                .zip(median(&small.outcomes, number))
                .and_then(|(over, under)| ratio(over, under))
        });
        ratios.min_by(|a, b| a.ci95[0].total_cmp(&b.ci95[0]))
    });
    let statement = "AIMD with a large A is worse in every criterion. Rule: the medians for A = 1 Mbit/s are larger than those \
                    for 0.1 Mbit/s; the least of the three ratios lies above one.";
    let draft = drafts("Fig. 13", runs)("fig13.aimd_large_a_worse", statement, None, "ratio");
    draft.decide(ours, |ours| ours.ci95[0] > 1.0, "The ratio given is that of the criterion that differs least.")
}

fn small_a_steadier(ap: &Row, aimd: &[Row], runs: u32) -> Claim {
    let number = Outcome::mse_ms2;
    let ratios = aimd.iter().skip(2).filter_map(|row| {
        median(&row.outcomes, number).zip(median(&ap.outcomes, number)).and_then(|(over, under)| ratio(over, under))
    });
    let statement = "AIMD with A of 0.4, 0.2 and 0.1 Mbit/s is steadier than AP. Rule: the largest of the three ratios of the \
                    median squared errors lies below one.";
    let draft = drafts("Fig. 13", runs)("fig13.aimd_small_a_steadier", statement, None, "ratio");
    let ours = ratios.max_by(|a, b| a.ci95[1].total_cmp(&b.ci95[1]));
    let away = runaways(&ap.outcomes);
    draft.decide(
        ours,
        |ours| ours.ci95[1] < 1.0,
        format!(
            "The ratio given is that of the A for which it is largest. {away} of {runs} runs of AP ran away; medians hardly \
             notice. What AIMD does at the step depends on where its sawtooth stands, so that its criteria scatter."
        ),
    )
}

fn gains(ap: &Row, aimd: &[Row], runs: u32) -> [Claim; 2] {
    let number = Outcome::rate_before_mbps;
    // Runs that have run away send too fast for a while, which is no achievement.
    let kept: Vec<_> = ap.outcomes.iter().filter(|o| o.runs_away_at().is_none()).map(number).collect();
    let ours = median_95(&kept);
    let gains: Vec<(&str, Estimate)> = aimd
        .iter()
        .filter_map(|row| {
            let gain = ratio(ours?, median(&row.outcomes, number)?)?;
            let percent = scaled(gain, 100.0);
            Some((row.name, Estimate { value: percent.value - 100.0, ci95: percent.ci95.map(|end| end - 100.0) }))
        })
        .collect();
    let all = gains.iter().map(|(name, gain)| format!("{name} {:+.1} %", gain.value)).collect::<Vec<_>>().join(", ");
    let by = |a: &&(&str, Estimate), b: &&(&str, Estimate)| a.1.value.total_cmp(&b.1.value);
    let ends = [gains.iter().min_by(by), gains.iter().max_by(by)];
    let words = [("fig14.rate_gain_min", "least"), ("fig14.rate_gain_max", "most")];
    [0, 1].map(|end| {
        let ((id, word), paper) = (words[end], PAPER_GAIN[end]);
        let statement = format!(
                "AP's rate before the step is above AIMD's by {paper:.2} % at the {word}. Rule: our interval lies within {NEAR} \
                 points of that."
            );
        let draft = drafts("Fig. 14", runs)(id, &statement, Some(paper), "%");
        let near = |ours: &Estimate| ours.ci95.iter().all(|end| (end - paper).abs() <= NEAR);
        let note = format!(
            "Medians: {all}. With B = 1/2 and a small A the steady state is a sawtooth between a peak and its half, three \
             quarters of the peak on average: AP at that peak is a third above it, which is what we see."
        );
        draft.decide(ends[end].map(|(_, gain)| *gain), near, note)
    })
}

fn boxes(rows: &[Row], number: fn(&Outcome) -> f64) -> Vec<PlotLayer> {
    let layer = |row: &Row| {
        let values = of_all(&row.outcomes, number);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        PlotLayer { name: row.name.to_owned(), data: PlotData::Box { five: five_numbers(&values), mean } }
    };
    rows.iter().map(layer).collect()
}

fn criteria_figure(rows: &[Row]) -> Figure {
    let limits = [(0.0, 0.2), (0.0, 0.05), (0.0, 3.0)];
    let plot = |((name, number), limits): (Criterion, (f64, f64))| Plot {
        title: name.to_owned(),
        x: "",
        y: name,
        y_limits: Some(limits),
        layers: boxes(rows, number),
        marks: Vec::new(),
    };
    Figure {
        name: "Fig. 13".to_owned(),
        title: "Criteria of AP and AIMD".to_owned(),
        text: "Box: quartiles and median; whiskers: least and most; cross: mean. AP is the printed law with b = 300, the \
               number behind AIMD its A in Mbit/s. What exceeds the axis, such as a mean that runs away, lies at its edge."
            .to_owned(),
        charts: CRITERIA.into_iter().zip(limits).map(plot).collect(),
        tables: vec![table("Criteria over all runs", rows)],
    }
}

fn rate_figure(rows: &[Row]) -> Figure {
    let plot = |title: &str, y, number| Plot {
        title: title.to_owned(),
        x: "",
        y,
        y_limits: None,
        layers: boxes(rows, number),
        marks: Vec::new(),
    };
    Figure {
        name: "Fig. 14".to_owned(),
        title: "Sending rates of AP and AIMD".to_owned(),
        text: "Mean rate of a run before and after the background's step; boxes as in Fig. 13.".to_owned(),
        charts: vec![
            plot("Before the step", "sending rate (Mbit/s)", Outcome::rate_before_mbps),
            plot("After the step", "sending rate (Mbit/s)", Outcome::rate_after_mbps),
        ],
        tables: Vec::new(),
    }
}
