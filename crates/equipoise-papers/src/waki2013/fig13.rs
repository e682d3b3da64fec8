use super::criteria::{Outcome, TRANSIENT, five_numbers, kept, medians_ratio, of_all, runaways};
use super::fig12::{Row, table};
use super::scenarios::{AIMD, AP_300};
use super::{BOTH_WAYS, Found, Lab, MAIN, Options, Rule, Spec, parse, parse_with, read};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, median_95};

/// Number of runs, as in the paper.
const RUNS: u32 = 100;

const LARGE_WORSE: Spec = Spec::new(
    "fig13.aimd_large_a_worse",
    "Fig. 13",
    "AIMD becomes worse in every criterion as A becomes large: from A = 0.1 to 1 Mbit/s.",
    Rule::above(1.0).in_every_cell(),
)
.unit("ratio of medians");
const SMALL_STEADIER: Spec = Spec::new(
    "fig13.aimd_small_a_steadier",
    "Fig. 13",
    "AIMD with A of 0.4, 0.2 and 0.1 Mbit/s outperforms AP, in every criterion.",
    Rule::below(1.0).in_every_cell(),
)
.unit("ratio of medians");
const LARGE_LESS_STEADY: Spec = Spec::new(
    "fig13.aimd_large_a_less_steady",
    "Fig. 13",
    "AIMD with A of 1 and 0.8 Mbit/s has larger fluctuations than AP, in every criterion.",
    Rule::above(1.0).in_every_cell(),
)
.unit("ratio of medians");
pub(super) const CLAIMS_13: &[Spec] = &[LARGE_WORSE, SMALL_STEADIER, LARGE_LESS_STEADY];

// The bounds of the rules are 1.5 percentage points below and above the paper's number. The uncertainty of our medians
// over 100 runs is about as large.
const GAIN_LEAST: Spec = Spec::new(
    "fig14.rate_gain_least",
    "Fig. 14",
    "AP's rate before the step is higher than that of AIMD with A = 1 Mbit/s by 10.29 % of the latter.",
    Rule::within(8.79, 11.79),
)
.paper(10.29)
.unit("% of AIMD's");
const GAIN_MOST: Spec = Spec::new(
    "fig14.rate_gain_most",
    "Fig. 14",
    "AP's rate before the step is higher than that of AIMD with A = 0.1 Mbit/s by 25.00 % of the latter.",
    Rule::within(23.5, 26.5),
)
.paper(25.0)
.unit("% of AIMD's");
const GAIN_MEAN: Spec = Spec::new(
    "fig14.rate_gain_mean",
    "abstract",
    "AP's rate is higher than AIMD's by nearly 20 %, in the mean over the five A.",
    Rule::within(18.5, 21.5),
)
.paper(20.0)
.unit("% of AIMD's");
const BELOW_LEAST: Spec = Spec::new(
    "fig14.rate_below_ap_least",
    "Fig. 14",
    "The same with AP's rate as the base, which was chosen because it fits: AIMD with A = 1 Mbit/s is 10.29 % below AP.",
    Rule::within(8.79, 11.79),
)
.paper(10.29)
.unit("% of AP's")
.fitted();
const BELOW_MOST: Spec = Spec::new(
    "fig14.rate_below_ap_most",
    "Fig. 14",
    "The same with AP's rate as the base, which was chosen because it fits: AIMD with A = 0.1 Mbit/s is 25.00 % below AP.",
    Rule::within(23.5, 26.5),
)
.paper(25.0)
.unit("% of AP's")
.fitted();
const BELOW_MEAN: Spec = Spec::new(
    "fig14.rate_below_ap_mean",
    "abstract",
    "The same with AP's rate as the base, which was chosen because it fits: nearly 20 %, in the mean over the five A.",
    Rule::within(18.5, 21.5),
)
.paper(20.0)
.unit("% of AP's")
.fitted();
const SMALLER_SLOWER: Spec = Spec::new(
    "fig14.smaller_a_smaller_rate",
    "Fig. 14",
    "Before the step AP is faster than each AIMD, and each AIMD faster than that with the next smaller A.",
    Rule::above(1.0).in_every_cell(),
)
.unit("ratio of medians");
const AFTER: Spec = Spec::new(
    "fig14.rate_after_as_high",
    "Fig. 14",
    "After the step AP's rate is as high as that of AIMD with A of 1 and 0.8 Mbit/s: within a tenth.",
    Rule::within(0.9, 1.1).in_every_cell(),
)
.unit("ratio of medians");
pub(super) const CLAIMS_14: &[Spec] =
    &[GAIN_LEAST, GAIN_MOST, GAIN_MEAN, SMALLER_SLOWER, AFTER, BELOW_LEAST, BELOW_MOST, BELOW_MEAN];

/// An interpretation of the paper: how long the runs of AIMD are, and in which directions media are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// AIMD first runs for 600 s, until it is in its steady state. Then the 400 s of the paper begin.
    Steady,
    /// AIMD runs only for the 400 s of the paper.
    Within400S,
    /// The same as [`Steady`](Self::Steady), but one session sends media in both directions.
    BothWays,
}

impl Course {
    const ALL: [Self; 3] = [Self::Steady, Self::Within400S, Self::BothWays];

    fn scenario(self, text: &str) -> Scenario {
        match self {
            Self::BothWays => BOTH_WAYS.scenario(text),
            Self::Within400S => parse_with(text, &within_400_s()),
            Self::Steady => parse(text),
        }
    }
}

/// An interpretation of Sec. 5 and 6.1.2. `course` is how the runs of AIMD proceed. `transient` is the number of
/// intervals of 10 s that the results leave out, at the start of the paper's 400 s.
struct Setting {
    name: &'static str,
    course: Course,
    transient: usize,
}

/// All interpretations. The main interpretation is the first.
const READINGS: [Setting; 5] = [
    Setting { name: MAIN, course: Course::Steady, transient: TRANSIENT },
    Setting { name: "Fig. 12 to 14: a transient of 100 s", course: Course::Steady, transient: 10 },
    Setting {
        name: "Fig. 13, 14: AIMD within the paper's 400 s, 50 s of transient",
        course: Course::Within400S,
        transient: TRANSIENT,
    },
    Setting {
        name: "Fig. 13, 14: AIMD within the paper's 400 s, 100 s of transient",
        course: Course::Within400S,
        transient: 10,
    },
    Setting { name: BOTH_WAYS.name, course: Course::BothWays, transient: TRANSIENT },
];

pub(super) fn planned(options: &Options) -> u32 {
    // AP always runs for only 400 s. So `Steady` and `Within400S` share their runs of AP, and the factor for AP is `2`
    // instead of `Course::ALL.len()`.
    options.runs(RUNS, 8) * (2 + Course::ALL.len() as u32 * AIMD.len() as u32)
}

/// Which of the two figures the user requested.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) fig13: bool,
    pub(super) fig14: bool,
}

/// Runs Fig. 13 and 14, which show the criteria and the rates of AP and AIMD.
pub(super) fn run(lab: &Lab<'_>, wanted: Wanted, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 8);
    let outcomes = |course: Course, text: &str| lab.runs(&course.scenario(text), runs, Outcome::of);
    let mut lots = Vec::new();
    let ap = Row { name: "AP", outcomes: outcomes(Course::Steady, AP_300)? };
    for course in Course::ALL {
        let mut rows = vec![match course {
            Course::BothWays => Row { name: ap.name, outcomes: outcomes(course, AP_300)? },
            Course::Steady | Course::Within400S => ap.with(Outcome::clone),
        }];
        for (name, text) in NAMES.into_iter().zip(AIMD.map(|(_, text)| text)) {
            rows.push(Row { name, outcomes: outcomes(course, text)? });
        }
        lots.push((course, rows));
    }
    for setting in &READINGS {
        let lot = lots.iter().filter(|(course, _)| *course == setting.course).flat_map(|(_, rows)| rows);
        let rows: Vec<_> = lot.map(|row| row.with(|outcome| outcome.with_transient(setting.transient))).collect();
        let [ap, aimd @ ..] = rows.as_slice() else { continue };
        let mut claims = if wanted.fig13 { criteria(ap, aimd, runs) } else { Vec::new() };
        if wanted.fig14 {
            claims.extend(rates(ap, aimd, runs));
        }
        if setting.name == MAIN {
            found.claims.extend(claims.clone());
            found.figures.extend(wanted.fig13.then(|| criteria_figure(&rows)));
            found.figures.extend(wanted.fig14.then(|| rate_figure(&rows)));
        }
        read(found, setting.name, claims);
    }
    Ok(())
}

const NAMES: [&str; 5] = ["AIMD 1", "AIMD 0.8", "AIMD 0.4", "AIMD 0.2", "AIMD 0.1"];

/// Returns the overrides that remove the 600 s in which AIMD reaches its steady state.
pub(super) fn within_400_s() -> [Override; 3] {
    [
        Override::set("duration", "400 s"),
        Override::set("warm_up", "50 s"),
        Override::set("flow.background.source.steps.0.at", "200 s"),
    ]
}

type Criterion = (&'static str, fn(&Outcome) -> f64);
const CRITERIA: [Criterion; 3] = [
    ("mean squared error (ms²)", Outcome::mse_ms2),
    ("coefficient of variation", Outcome::cv),
    ("delay jitter (ms)", Outcome::jitter_ms),
];

/// Returns, for each row of `over` and each criterion, the median in this row divided by the median in `under`.
fn in_each_criterion<'a>(over: impl IntoIterator<Item = &'a Row>, under: &Row) -> Cells {
    let mut cells = Cells::default();
    for row in over {
        for (_, number) in CRITERIA {
            cells.push(row.name, medians_ratio(&row.outcomes, &under.outcomes, number));
        }
    }
    cells
}

/// The numbers of one claim, each a ratio of two medians. `words` has the text of each number for the claim's note.
#[derive(Default)]
struct Cells {
    estimates: Vec<Estimate>,
    words: Vec<String>,
}

impl Cells {
    fn push(&mut self, name: &str, cell: Option<Estimate>) {
        if let Some(cell) = cell {
            self.words.push(format!("{name} {:.3}", cell.value));
            self.estimates.push(cell);
        }
    }

    fn decide(&self, spec: &Spec, runs: u32, note: &str) -> Claim {
        spec.decide_cells(runs, &self.estimates, format!("{note} {}.", self.words.join(", ")))
    }
}

/// Returns the claims of Fig. 13.
fn criteria(ap: &Row, aimd: &[Row], runs: u32) -> Vec<Claim> {
    let (Some(large), Some(small)) = (aimd.first(), aimd.last()) else { return Vec::new() };
    let away = runaways(&ap.outcomes);
    let note = format!(
        "{away} of {runs} runs of AP ran away; medians hardly notice. Ratios to AP in squared error, coefficient of variation, jitter:"
    );
    vec![
        in_each_criterion([large], small).decide(
            &LARGE_WORSE,
            runs,
            "In squared error, coefficient of variation, jitter:",
        ),
        in_each_criterion(&aimd[2..], ap).decide(&SMALL_STEADIER, runs, &note),
        in_each_criterion(&aimd[..2], ap).decide(&LARGE_LESS_STEADY, runs, &note),
    ]
}

/// Returns the claims of Fig. 14.
fn rates(ap: &Row, aimd: &[Row], runs: u32) -> Vec<Claim> {
    let before = Outcome::rate_before_mbps;
    // During a runaway (a long time with a delay above twice the target), AP sends too fast. This must not count as a
    // gain, so runs with a runaway are left out.
    let of_ap = kept(&ap.outcomes);
    let gain = |row: &Row| medians_ratio(&of_ap, &row.outcomes, before);
    let gains: Vec<_> = aimd.iter().map(gain).collect();
    let [least, .., most] = gains.as_slice() else { return Vec::new() };
    let percent = |ratio: Option<Estimate>, of: fn(f64) -> f64| {
        let ends = |ratio: Estimate| {
            let [one, other] = ratio.ci95.map(of);
            Estimate { value: of(ratio.value), ci95: [one.min(other), one.max(other)] }
        };
        ratio.map(ends)
    };
    let above: fn(f64) -> f64 = |ratio| 100.0 * (ratio - 1.0);
    let below: fn(f64) -> f64 = |ratio| 100.0 * (1.0 - 1.0 / ratio);
    // For each run in which AP does not run away, AP's gain in rate over AIMD is averaged over all values of A. A is
    // the increase of AIMD's rate in each interval. The result is the median over these runs.
    let mean = |of: fn(f64) -> f64| {
        let run = |(number, ap): (usize, &Outcome)| {
            let gains = aimd.iter().filter_map(|row| Some(of(before(ap) / before(row.outcomes.get(number)?))));
            ap.runs_away_at().is_none().then(|| gains.sum::<f64>() / aimd.len() as f64)
        };
        median_95(&ap.outcomes.iter().enumerate().filter_map(run).collect::<Vec<_>>())
    };
    let each = |of: fn(f64) -> f64| {
        let words = aimd
            .iter()
            .zip(&gains)
            .filter_map(|(row, gain)| Some(format!("{} {:.1} %", row.name, of(gain.as_ref()?.value))));
        format!("Medians: {}.", words.collect::<Vec<_>>().join(", "))
    };
    let (mut slower, mut after) = (Cells::default(), Cells::default());
    slower.push(aimd[0].name, *least);
    for pair in aimd.windows(2) {
        slower.push(pair[1].name, medians_ratio(&pair[0].outcomes, &pair[1].outcomes, before));
    }
    for row in &aimd[..2] {
        after.push(row.name, medians_ratio(&of_ap, &row.outcomes, Outcome::rate_after_mbps));
    }
    let away = format!("{} runs of AP that ran away are left out.", ap.outcomes.len() - of_ap.len());
    vec![
        GAIN_LEAST.decide(runs, percent(*least, above), format!("{} {away}", each(above))),
        GAIN_MOST.decide(runs, percent(*most, above), each(above)),
        GAIN_MEAN.decide(runs, mean(above), "Median of the runs' means."),
        slower.decide(&SMALLER_SLOWER, runs, "The next faster one over:"),
        after.decide(&AFTER, runs, "AP over:"),
        BELOW_LEAST.decide(runs, percent(*least, below), each(below)),
        BELOW_MOST.decide(runs, percent(*most, below), each(below)),
        BELOW_MEAN.decide(runs, mean(below), "Median of the runs' means."),
    ]
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
