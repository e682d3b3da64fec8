use super::criteria::{Outcome, five_numbers, median, of_all, plain_mean, runaways};
use super::fig10::curves;
use super::{Found, Lab, Options, drafts, ratio, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

/// The paper's number of runs.
const RUNS: u32 = 30;

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 8) * curves().len() as u32
}

/// Fig. 12: criteria of AP and CBR.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 8);
    let mut rows: Vec<Row> = Vec::new();
    for (name, scenario) in curves() {
        rows.push(Row { name, outcomes: lab.runs(&scenario, runs, Outcome::of)? });
    }
    let [b300, b407, load, cbr3, cbr08, _] = rows.as_slice() else { return Ok(()) };
    found.claims.extend([
        below("fig12.mse_ap_vs_cbr08", [b300, cbr08], (1.0, "below"), runs),
        below("fig12.mse_ap_vs_cbr3", [b300, cbr3], (0.5, "far below"), runs),
        insensitive(&[b300, b407, load], runs),
        jitter(b300, cbr08, runs),
    ]);
    found.figures.push(figure(&rows));
    Ok(())
}

/// A controller's outcomes.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    fn mse(&self) -> Option<Estimate> {
        median(&self.outcomes, Outcome::mse_ms2)
    }

    /// What the row says of its runaways.
    fn note(&self) -> String {
        let mean = plain_mean(&self.outcomes, Outcome::mse_ms2);
        let (away, all) = (runaways(&self.outcomes), self.outcomes.len());
        format!(
            "Medians; {away} of {all} runs of {} ran away, its mean squared error is {mean:.3} ms² on average.",
            self.name
        )
    }
}

/// The claim that AP is so far below another controller.
fn below(id: &'static str, [ap, other]: [&Row; 2], (bound, words): (f64, &str), runs: u32) -> Claim {
    let statement = format!(
        "The mean squared error of AP (b = 300) is {words} that of {}. Rule: the ratio of the medians lies below {bound}.",
        other.name
    );
    let draft = drafts("Fig. 12", runs)(id, &statement, None, "ratio");
    let over = |number: fn(&Outcome) -> f64| {
        median(&ap.outcomes, number).zip(median(&other.outcomes, number)).and_then(|(ap, other)| ratio(ap, other))
    };
    let early = with_interval(over(Outcome::mse_early_ms2), 3);
    let note = format!(
        "{} With a transient of 20 s instead of 50 the ratio is {early}: the paper does not state it, and it decides how much \
         the one interval behind the step counts.",
        ap.note()
    );
    draft.decide(over(Outcome::mse_ms2), |ours| ours.ci95[1] < bound, note)
}

fn insensitive(rows: &[&Row], runs: u32) -> Claim {
    let estimates: Vec<_> = rows.iter().filter_map(|row| row.mse()).collect();
    let by = |a: &&Estimate, b: &&Estimate| a.value.total_cmp(&b.value);
    let ends = estimates.iter().max_by(by).zip(estimates.iter().min_by(by));
    let statement = "The choice of b makes no difference: the points of b = 300, 407.63 and b(ρ) overlap. Rule: the largest \
                    median of the mean squared error is less than 1.5 times the smallest.";
    let draft = drafts("Fig. 12", runs)("fig12.b_insensitive", statement, None, "ratio");
    let ours = ends.and_then(|(largest, smallest)| ratio(*largest, *smallest));
    let away =
        rows.iter().map(|row| format!("{} {}", row.name, runaways(&row.outcomes))).collect::<Vec<_>>().join(", ");
    draft.decide(ours, |ours| ours.ci95[1] < 1.5, format!("Runaways: {away}."))
}

fn jitter(ap: &Row, cbr: &Row, runs: u32) -> Claim {
    let (ours, theirs) = (median(&ap.outcomes, Outcome::jitter_ms), median(&cbr.outcomes, Outcome::jitter_ms));
    let statement = "The delay jitter of AP is as much as 1.2 ms, above that of CBR 0.8 Mbit/s. Rule: the median's interval \
                    lies below 1.2 ms and above that of CBR.";
    let draft = drafts("Fig. 12", runs)("fig12.jitter", statement, Some(1.2), "ms");
    let [.., upper, largest] = five_numbers(&of_all(&ap.outcomes, Outcome::jitter_ms));
    let note = format!("b = 300; a quarter of the runs lies above {upper:.2} ms, the largest is {largest:.1} ms.");
    let over = theirs.map_or(f64::INFINITY, |theirs| theirs.ci95[1]);
    draft.decide(ours, |ours| ours.ci95[1] <= 1.2 && ours.ci95[0] > over, note)
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

/// Medians with intervals, and plain means, of the criteria and the rates.
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
