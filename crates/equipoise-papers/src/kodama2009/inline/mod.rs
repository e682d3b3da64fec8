mod setting;
mod step;
mod transfer;

use super::{Found, Lab, Options, Rule, Spec};
use crate::{Figure, Table};
use equipoise_lab::result::Run;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};
use setting::{ACKS, Outcome, Own, RUNS, SECTION, Setting, runs};
use step::{STEP, is_stepped, steps};
use transfer::{EXTRA, extra_packets, transfers};

pub(super) const CLAIMS: &[Spec] = &[BIAS, INTERVAL, MEAN_RATE, STEP, EXTRA];
const BIAS: Spec = Spec::new(
    "inline.bias",
    SECTION,
    "The results are right on the mean: the bias of A, averaged over the settings without its sign.",
    Rule::below(3.0),
)
.unit("% of the capacity")
.ours();
const INTERVAL: Spec = Spec::new(
    "inline.interval",
    SECTION,
    "A result comes every three to four round trips, on the mean over the settings of 100 and 1000 Mbit/s in which the connection \
     takes what is available.",
    Rule::below(4.5),
)
.paper(3.5)
.unit("round trips");
const MEAN_RATE: Spec = Spec::new(
    "inline.mean_rate",
    SECTION,
    "Measuring has little effect on congestion control: a window-limited connection loses less than 2 % of its goodput on the mean \
     over the settings.",
    Rule::below(2.0),
)
.paper(0.0)
.unit("% of the goodput lost");

/// The mean results of all runs with one setting.
struct Row {
    setting: Setting,
    capacity_bias: f64,
    available_bias: f64,
    spread: f64,
    round_trips: f64,
    /// Loss of goodput that the measurement causes, in percent; `None` if the window depends on the measurement,
    /// because then the loss cannot be determined.
    cost: Option<f64>,
}

pub(super) fn planned(options: &Options) -> u32 {
    let limited = Setting::all().filter(|setting| setting.own != Own::Symbiosis).count() as u32;
    let steps = Setting::all().filter(is_stepped).count() as u32;
    let runs = options.runs(RUNS, 1);
    runs * (Setting::all().count() as u32 + limited + steps) + transfers().count() as u32
}

/// Runs all settings of the inline measurement, and adds the claims and a figure with a table.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let rows = Setting::all().map(|setting| row(lab, setting)).collect::<Result<Vec<_>, _>>()?;
    errors(lab, &rows, found);
    costs(lab, &rows, found);
    found.claims.push(steps(lab)?);
    found.claims.push(extra_packets(lab)?);
    found.figures.push(Figure {
        name: SECTION.to_owned(),
        title: "Inline measurement".to_owned(),
        text: "K and A as a connection finds them by its own segments, beside others at a known rate.".to_owned(),
        charts: Vec::new(),
        tables: vec![table(&rows)],
    });
    Ok(())
}

fn row(lab: &Lab<'_>, setting: Setting) -> Result<Row, SimError> {
    let runs = runs(lab);
    let outcome = |run: &Run| setting.outcome(run);
    let measured = lab.runs(&setting.scenario(true, &[]), runs, outcome)?;
    let mean =
        |outcomes: &[Outcome], of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
    let cost = if setting.own == Own::Symbiosis {
        None
    } else {
        let plain = lab.runs(&setting.scenario(false, &[]), runs, outcome)?;
        let goodput = |outcomes| mean(outcomes, |outcome| outcome.goodput);
        Some((1.0 - goodput(&measured) / goodput(&plain)) * 100.0)
    };
    let of = |of| mean(&measured, of);
    Ok(Row {
        setting,
        capacity_bias: of(|outcome| outcome.capacity_bias),
        available_bias: of(|outcome| outcome.available_bias),
        spread: of(|outcome| outcome.spread),
        round_trips: of(|outcome| outcome.round_trips),
        cost,
    })
}

/// Returns the mean of the finite values. A value is not finite if the window was too small for a measurement.
fn mean_of_rows(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    mean_95(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
}

fn errors(lab: &Lab<'_>, rows: &[Row], found: &mut Found) {
    let worst = |of: fn(&Row) -> f64| rows.iter().map(of).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let note = format!(
        "The largest of one setting is {:.1} %; of K, {:.1} %.",
        worst(|row| row.available_bias.abs()),
        worst(|row| row.capacity_bias.abs())
    );
    let ours = mean_of_rows(rows.iter().map(|row| row.available_bias.abs()));
    found.claims.push(BIAS.decide(runs(lab), ours, note));
    let large = |row: &&Row| row.setting.path.capacity >= 100 && row.setting.own != Own::Limited(50);
    let ours = mean_of_rows(rows.iter().filter(large).map(|row| row.round_trips));
    found.claims.push(INTERVAL.decide(
        runs(lab),
        ours,
        "Smaller windows wait longer: a stream is a larger part of them, and no more than a hundredth is held on the mean.",
    ));
}

fn costs(lab: &Lab<'_>, rows: &[Row], found: &mut Found) {
    let worst = rows.iter().filter_map(|row| row.cost).fold(0.0, f64::max);
    found.claims.push(MEAN_RATE.decide(
        runs(lab),
        mean_of_rows(rows.iter().filter_map(|row| row.cost)),
        format!("It costs the wait of the segments that are held, and is most in small windows: {worst:.1} %."),
    ));
}

/// Returns a table. Each row contains two settings, which differ only in delayed acknowledgements.
fn table(rows: &[Row]) -> Table {
    let cell = |pair: &[Row], of: &dyn Fn(&Row) -> Option<f64>, decimals: usize| {
        let number = |row: &Row| match of(row).filter(|value| value.is_finite()) {
            Some(value) => format!("{value:.decimals$}"),
            None => "–".to_owned(),
        };
        pair.iter().map(number).collect::<Vec<_>>().join(" / ")
    };
    let row = |pair: &[Row]| {
        vec![
            pair.first().map(|row| row.setting.name()).unwrap_or_default(),
            cell(pair, &|row| Some(row.capacity_bias), 1),
            cell(pair, &|row| Some(row.available_bias), 1),
            cell(pair, &|row| Some(row.spread), 1),
            cell(pair, &|row| Some(row.round_trips), 1),
            cell(pair, &|row| row.cost, 2),
        ]
    };
    Table {
        caption: "Delayed acknowledgements / one for every segment; per cent of the capacity".to_owned(),
        columns: [
            "setting",
            "bias of K (%)",
            "bias of A (%)",
            "spread of A (%)",
            "round trips per result",
            "goodput lost (%)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.chunks(ACKS.len()).map(row).collect(),
    }
}
