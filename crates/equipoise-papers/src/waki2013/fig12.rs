use super::criteria::{Outcome, TRANSIENT, kept, median, medians_ratio, of_all, plain_mean, runaways};
use super::fig10::curves;
use super::scenarios::{AP_300, AP_407, AP_LOAD, CBR_3, CBR_08};
use super::{AT_ZERO, BOTH_WAYS, Found, Lab, MAIN, Options, Rule, SEC_5_2, Spec, read, scaled, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{median_95, share_95};

/// Number of runs, as in the paper.
const RUNS: u32 = 30;
/// Number of sets of `RUNS` runs. The largest jitter is determined for each set.
const LOTS: u32 = 10;

const BELOW_CBR08: Spec = Spec::new(
    "fig12.mse_ap_vs_cbr08",
    "Fig. 12(a)",
    "The mean squared error of AP (b = 300) is smaller than that of CBR of 0.8 Mbit/s.",
    Rule::below(1.0),
)
.unit("ratio of medians");
const BELOW_CBR3: Spec = Spec::new(
    "fig12.mse_ap_vs_cbr3",
    "Fig. 12(a)",
    "The mean squared error of AP (b = 300) is much smaller than that of CBR of 3 Mbit/s.",
    Rule::below(0.5),
)
.unit("ratio of medians");
const INSENSITIVE: Spec = Spec::new(
    "fig12.b_insensitive",
    "Fig. 12(a)",
    "The points of b = 300, 407.63 and b(ρ) overlap: their mean squared errors differ by less than half, pair by pair.",
    Rule::within(0.667, 1.5).in_every_cell(),
)
.unit("ratio of medians");
const CV_SOME: Spec = Spec::new(
    "fig12.cv_larger_in_some",
    "Fig. 12",
    "In some runs AP (b = 300) has a larger coefficient of variation than CBR of 0.8 Mbit/s.",
    Rule::within(5.0, 95.0),
)
.unit("% of the runs");
const JITTER_ABOVE: Spec = Spec::new(
    "fig12.jitter_above_cbr08",
    "Fig. 12(b)",
    "With each b the delay jitter of AP is larger than that of CBR of 0.8 Mbit/s.",
    Rule::above(1.0).in_every_cell(),
)
.unit("ratio of medians");
const JITTER: Spec = Spec::new(
    "fig12.jitter",
    "Sec. 7.1",
    "The delay jitter of AP is as much as 1.2 ms: the largest of 30 runs, which the paper shows none of that runs away.",
    Rule::within(1.0, 1.4),
)
.paper(1.2)
.unit("ms");

pub(super) const CLAIMS: &[Spec] = &[BELOW_CBR08, BELOW_CBR3, INSENSITIVE, CV_SOME, JITTER_ABOVE, JITTER];

/// Lengths of the initial transient, in intervals of 10 s, each with the name of its interpretation. The main
/// interpretation is the first.
const TRANSIENTS: [(usize, &str); 3] =
    [(TRANSIENT, MAIN), (2, "Fig. 12: a transient of 20 s"), (10, "Fig. 12 to 14: a transient of 100 s")];

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 8) * (curves().len() as u32 + LOTS - 1 + 3 * 5)
}

/// Runs Fig. 12, which compares AP with constant rates by the error, the variation and the jitter of the delay.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 8);
    let mut rows = Vec::new();
    for (name, scenario) in curves() {
        rows.push(Row { name, outcomes: lab.runs(&scenario, many(name, runs), Outcome::of)? });
    }
    for (intervals, name) in TRANSIENTS {
        let rows: Vec<_> = rows.iter().map(|row| row.with(|outcome| outcome.with_transient(intervals))).collect();
        let claims = claims(&rows, runs);
        if name == MAIN {
            found.claims.extend(claims.clone());
        }
        read(found, name, claims);
    }
    for other in [AT_ZERO, SEC_5_2, BOTH_WAYS] {
        let mut rows = Vec::new();
        for ((name, _), text) in curves().into_iter().zip([AP_300, AP_407, AP_LOAD, CBR_3, CBR_08]) {
            let outcomes = lab.runs(&other.scenario(text), runs, Outcome::of)?;
            rows.push(Row { name, outcomes }.with(|outcome| other.outcome(outcome)));
        }
        read(found, other.name, claims(&rows, runs));
    }
    for row in &mut rows {
        row.outcomes.truncate(runs as usize);
    }
    found.figures.push(figure(&rows));
    Ok(())
}

/// Returns the number of runs of a curve. It is larger for the curve whose largest jitter is used in a claim.
fn many(name: &str, runs: u32) -> u32 {
    if name == FIRST { runs * LOTS } else { runs }
}

/// Name of the curve whose largest jitter is used in a claim.
const FIRST: &str = "AP, b = 300";

fn claims(rows: &[Row], runs: u32) -> Vec<Claim> {
    let [all, b407, load, cbr3, cbr08, ..] = rows else { return Vec::new() };
    let b300 = Row { name: all.name, outcomes: all.outcomes.iter().take(runs as usize).cloned().collect() };
    let (mse, jitter) = (Outcome::mse_ms2, Outcome::jitter_ms);
    let over = |over: &Row, under: &Row, number| medians_ratio(&over.outcomes, &under.outcomes, number);
    let away = [&b300, b407, load].map(|row| format!("{} {}", row.name, runaways(&row.outcomes))).join(", ");
    let some = b300.outcomes.iter().zip(&cbr08.outcomes).filter(|(ap, cbr)| ap.cv() > cbr.cv()).count();
    let cvs = [&b300, cbr08].map(|row| with_interval(median(&row.outcomes, Outcome::cv), 4));
    let mut claims = vec![
        BELOW_CBR08.decide(runs, over(&b300, cbr08, mse), b300.note()),
        BELOW_CBR3.decide(runs, over(&b300, cbr3, mse), b300.note()),
        INSENSITIVE.decide_cells(
            runs,
            &[over(b407, &b300, mse), over(load, &b300, mse), over(load, b407, mse)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
            format!("Runaways: {away}."),
        ),
        CV_SOME.decide(
            runs,
            share_95(some, b300.outcomes.len().min(cbr08.outcomes.len())).map(|share| scaled(share, 100.0)),
            format!("Both meet the same background. Medians: AP {}, CBR {}.", cvs[0], cvs[1]),
        ),
        JITTER_ABOVE.decide_cells(
            runs,
            &[&b300, b407, load].into_iter().filter_map(|row| over(row, cbr08, jitter)).collect::<Vec<_>>(),
            "",
        ),
    ];
    // If there is only one set of runs, the median over the sets has no confidence interval, and the claim is left out.
    claims.extend((all.outcomes.len() > b300.outcomes.len()).then(|| largest_jitter(&all.outcomes, runs)));
    claims
}

/// Returns the claim about the largest jitter in a set of `runs` runs. The value of the claim is the median over all
/// sets. Runs with a runaway are left out.
fn largest_jitter(outcomes: &[Outcome], runs: u32) -> Claim {
    let largest = |lot: &[Outcome]| of_all(&kept(lot), Outcome::jitter_ms).into_iter().fold(f64::NAN, f64::max);
    let lots: Vec<_> = outcomes.chunks(runs.max(1) as usize).map(largest).collect();
    let first = lots.first().map_or("–".to_owned(), |first| format!("{first:.2}"));
    let note = format!(
        "Median over {} lots of {runs} runs, runaways left out; in the first lot it is {first} ms. A half of all runs has less than {} ms.",
        lots.len(),
        with_interval(median(outcomes, Outcome::jitter_ms), 3)
    );
    JITTER.decide(outcomes.len() as u32, median_95(&lots), note)
}

/// The results of all runs of one controller.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    pub(super) fn with(&self, change: impl Fn(&Outcome) -> Outcome) -> Self {
        Self { name: self.name, outcomes: self.outcomes.iter().map(change).collect() }
    }

    /// Returns a note with the number of runs that ran away, and with the mean squared error averaged over all runs. A
    /// run ran away if its mean delay was above twice the target in three successive intervals.
    fn note(&self) -> String {
        let mean = plain_mean(&self.outcomes, Outcome::mse_ms2);
        let (away, all) = (runaways(&self.outcomes), self.outcomes.len());
        format!(
            "Medians; {away} of {all} runs of {} ran away, its mean squared error is {mean:.3} ms² on average.",
            self.name
        )
    }
}

fn figure(rows: &[Row]) -> Figure {
    let points = |y: fn(&Outcome) -> f64| {
        let layer = |row: &Row| PlotLayer {
            name: row.name.to_owned(),
            data: PlotData::Points(row.outcomes.iter().map(|outcome| (outcome.cv(), y(outcome))).collect()),
        };
        rows.iter().map(layer).collect()
    };
    let plot = |title: &str, y, limits, layers| Plot {
        title: title.to_owned(),
        x: "coefficient of variation",
        y,
        y_limits: Some(limits),
        layers,
        marks: Vec::new(),
    };
    Figure {
        name: "Fig. 12".to_owned(),
        title: "Criteria of AP and CBR".to_owned(),
        text: "A point is a run; the nearer to the origin, the steadier the delay is at its target. Runs that have run away \
               lie at the upper edge."
            .to_owned(),
        charts: vec![
            plot("Mean squared error", "mean squared error (ms²)", (0.0, 0.8), points(Outcome::mse_ms2)),
            plot("Delay jitter", "delay jitter (ms)", (0.0, 3.0), points(Outcome::jitter_ms)),
        ],
        tables: vec![table("Criteria over all runs", rows)],
    }
}

/// Returns a table with one row for each controller. The columns show how steady the delay is, the rates, and the
/// number of runaways. For the delay and the rates, the table shows the median with its confidence interval, and the
/// mean.
pub(super) fn table(caption: &str, rows: &[Row]) -> Table {
    type Column = (&'static str, fn(&Outcome) -> f64, usize);
    let columns: [Column; 5] = [
        ("mean squared error (ms²)", Outcome::mse_ms2, 4),
        ("coefficient of variation", Outcome::cv, 4),
        ("delay jitter (ms)", Outcome::jitter_ms, 3),
        ("rate before (Mbit/s)", Outcome::rate_before_mbps, 3),
        ("rate after (Mbit/s)", Outcome::rate_after_mbps, 3),
    ];
    let row = |row: &Row| {
        let mut cells = vec![row.name.to_owned()];
        for (_, number, decimals) in columns {
            let middle = with_interval(median(&row.outcomes, number), decimals);
            cells.push(format!("{middle}; {:.decimals$}", plain_mean(&row.outcomes, number)));
        }
        cells.push(format!("{} of {}", runaways(&row.outcomes), row.outcomes.len()));
        cells
    };
    let mut heads = vec!["controller".to_owned()];
    heads.extend(columns.iter().map(|(name, ..)| format!("{name}: median [95 %]; mean")));
    heads.push("runaways".to_owned());
    Table { caption: caption.to_owned(), columns: heads, rows: rows.iter().map(row).collect() }
}
