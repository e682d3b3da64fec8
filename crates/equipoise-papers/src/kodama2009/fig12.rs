use super::readings::Way;
use super::scenarios::{FIG12, STRENGTHS};
use super::series::{dropped_within, goodput_mbps, mean_of_link, mean_window, samples};
use super::{Found, Lab, Options, Rule, Spec, parse_with, read};
use crate::experiment::{difference, ratio, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// Number of runs with each strength m of the oscillation. The thesis shows one run for each m.
const RUNS: u32 = 40;
/// Number of runs with each value of m (strength of the oscillation) in [`Way::Known`], an alternative interpretation
/// of the thesis.
const RUNS_OF_READINGS: u32 = 20;
/// The part of a run that is evaluated, in seconds. The window has converged before this part.
const CONVERGED: (f64, f64) = (10.0, 60.0);
/// The window to which Symbiosis converges without oscillation, in packets of 1500 bytes (Eq. 9):
/// `(0.95 · 60 + 0.05 · 100) Mbit/s · 120 ms`. 0.95 is γ, the weight of cross traffic. Of 100 Mbit/s, 60 Mbit/s are
/// available. 120 ms is the round-trip time.
const WINDOW: f64 = 620.0;

pub(super) const CLAIMS: &[Spec] = &[MEAN_WINDOW, THROUGHPUT_KEPT, UTILISATION_FALLS, THROUGHPUT_FALLS, LOSSES];
const MEAN_WINDOW: Spec = Spec::new(
    "fig12.mean_window",
    "Fig. 12",
    "The mean window with oscillation is close to that without, within 5 % for each m.",
    Rule::within(0.95, 1.05).in_every_cell(),
)
.unit("ratio");
const THROUGHPUT_KEPT: Spec = Spec::new(
    "sec4.average_throughput",
    "Sec. 4.2",
    "The average throughput does not change with oscillation, within 5 % for each m.",
    Rule::within(0.95, 1.05).in_every_cell(),
)
.unit("ratio");
const UTILISATION_FALLS: Spec = Spec::new(
    "fig13.utilisation_falls",
    "Fig. 13",
    "The link's utilisation is lower the larger m is: it falls from each m to the next.",
    Rule::below(0.0).in_every_cell(),
)
.unit("difference of shares");
const THROUGHPUT_FALLS: Spec = Spec::new(
    "fig13.throughput_falls",
    "Fig. 13",
    "The throughput is lower the larger m is: it falls from each m to the next.",
    Rule::below(0.0).in_every_cell(),
)
.unit("Mbit/s of difference");
const LOSSES: Spec = Spec::new(
    "fig12.losses_at_half",
    "Fig. 12",
    "With m = 0.5 packets are lost, in most runs of 60 s.",
    Rule::above(0.5),
)
.unit("share of the runs");

pub(super) fn planned(options: &Options) -> u32 {
    STRENGTHS.len() as u32 * (options.runs(RUNS, 2) + options.runs(RUNS_OF_READINGS, 1))
}

/// Values from one run, for the claims and figures.
struct Outcome {
    window: f64,
    utilisation: f64,
    goodput_mbps: f64,
    dropped: u64,
    line: Vec<(f64, f64)>,
}

/// All runs with the same value of m.
struct Row {
    strength: f64,
    outcomes: Vec<Outcome>,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        Self {
            window: mean_window(run, 0, CONVERGED),
            utilisation: mean_of_link(run, "E0-E1", CONVERGED, |sample| sample.utilisation),
            goodput_mbps: goodput_mbps(run, 0, CONVERGED),
            dropped: dropped_within(run, "E0-E1", CONVERGED),
            line: samples(run, 0).iter().map(|sample| (sample.at_s, sample.window_segments)).collect(),
        }
    }
}

impl Row {
    fn mean(&self, of: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
        mean_95(&self.outcomes.iter().map(of).collect::<Vec<_>>())
    }

    fn with_losses(&self) -> Option<Estimate> {
        share_95(self.outcomes.iter().filter(|outcome| outcome.dropped > 0).count(), self.outcomes.len())
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.strength.to_string(),
            with_interval(self.mean(|outcome| outcome.window), 0),
            with_interval(self.mean(|outcome| outcome.utilisation), 4),
            with_interval(self.mean(|outcome| outcome.goodput_mbps), 2),
            with_interval(self.with_losses(), 2),
        ]
    }
}

/// Runs Fig. 12 and 13: the window oscillates with a strength m from 0 to 0.5, and the path's available bandwidth is
/// constant.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let main = rows(lab, Way::Main, runs)?;
    found.claims.extend(claims(&main, runs));
    found.figures.push(figure(&main));
    let runs = lab.options.runs(RUNS_OF_READINGS, 1);
    let known = rows(lab, Way::Known, runs)?;
    read(found, Way::Known.name(), claims(&known, runs));
    Ok(())
}

fn rows(lab: &Lab<'_>, way: Way, runs: u32) -> Result<Vec<Row>, SimError> {
    let row = |strength: f64| {
        let mut overrides = way.overrides("symbiosis");
        overrides.push(Override::set("flow.symbiosis.window.oscillation", strength));
        Ok(Row { strength, outcomes: lab.runs(&parse_with(FIG12, &overrides), runs, Outcome::of)? })
    };
    STRENGTHS.into_iter().map(row).collect()
}

fn claims(rows: &[Row], runs: u32) -> Vec<Claim> {
    let [without, others @ .., most] = rows else { return Vec::new() };
    let ratios = |of: fn(&Outcome) -> f64| -> Vec<_> {
        rows[1..].iter().filter_map(|with| ratio(with.mean(of)?, without.mean(of)?)).collect()
    };
    let steps = |of: fn(&Outcome) -> f64| -> Vec<_> {
        rows.windows(2).filter_map(|pair| Some(difference(pair[1].mean(of)?, pair[0].mean(of)?))).collect()
    };
    let each = |of: fn(&Outcome) -> f64, decimals| {
        let each = rows.iter().map(|row| format!("{} at m = {}", with_interval(row.mean(of), decimals), row.strength));
        format!("{}.", each.collect::<Vec<_>>().join(", "))
    };
    let (window, goodput) = (|outcome: &Outcome| outcome.window, |outcome: &Outcome| outcome.goodput_mbps);
    let utilisation = |outcome: &Outcome| outcome.utilisation;
    let losses = others.iter().map(|row| format!("{} with m = {}", with_interval(row.with_losses(), 2), row.strength));
    vec![
        MEAN_WINDOW.decide_cells(runs, &ratios(window), each(window, 0)),
        THROUGHPUT_KEPT.decide_cells(runs, &ratios(goodput), each(goodput, 2)),
        UTILISATION_FALLS.decide_cells(runs, &steps(utilisation), each(utilisation, 4)),
        THROUGHPUT_FALLS.decide_cells(runs, &steps(goodput), each(goodput, 2)),
        LOSSES.decide(runs, most.with_losses(), format!("{}.", losses.collect::<Vec<_>>().join(", "))),
    ]
}

fn figure(rows: &[Row]) -> Figure {
    let window = |row: &Row| {
        let line = row.outcomes.first().map(|outcome| outcome.line.clone()).unwrap_or_default();
        Plot {
            title: format!("Congestion window, m = {}", row.strength),
            x: "time (s)",
            y: "window (packets)",
            y_limits: Some((0.0, 1400.0)),
            layers: vec![PlotLayer { name: format!("m = {}", row.strength), data: PlotData::Line(line) }],
            marks: vec![(WINDOW, "converged window without oscillation".to_owned())],
        }
    };
    let against_strength = |title: &str, y, limits, of: fn(&Outcome) -> f64| {
        let points = rows.iter().filter_map(|row| Some((row.strength, row.mean(of)?.value))).collect();
        Plot {
            title: title.to_owned(),
            x: "m (1/√s)",
            y,
            y_limits: Some(limits),
            layers: vec![PlotLayer { name: "mean of the runs".to_owned(), data: PlotData::Line(points) }],
            marks: Vec::new(),
        }
    };
    let mut charts: Vec<_> = rows.iter().map(window).collect();
    charts.push(against_strength("Utilisation", "utilisation", (0.8, 1.0), |outcome| outcome.utilisation));
    charts.push(against_strength("Throughput", "throughput (Mbit/s)", (40.0, 60.0), |outcome| outcome.goodput_mbps));
    Figure {
        name: "Fig. 12, 13".to_owned(),
        title: "What oscillation costs".to_owned(),
        text:
            "60 Mbit/s available all the time; the first run of each m. Throughput is new data at the receiver without \
               headers, of which 60 Mbit/s hold 58.4."
                .to_owned(),
        charts,
        tables: vec![Table {
            caption: "Means of all runs from 10 to 60 s".to_owned(),
            columns: ["m", "window (packets)", "utilisation", "throughput (Mbit/s)", "runs with losses"]
                .map(str::to_owned)
                .to_vec(),
            rows: rows.iter().map(Row::cells).collect(),
        }],
    }
}
