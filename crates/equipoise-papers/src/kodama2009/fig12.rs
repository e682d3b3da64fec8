use super::scenarios::{FIG12, STRENGTHS};
use super::series::{dropped_within, goodput_mbps, mean_of, mean_of_link, samples};
use super::{Found, Lab, Options, drafts, parse_with};
use crate::experiment::{difference, ratio, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// The thesis shows one run of each m.
const RUNS: u32 = 20;
/// The part of the run that counts: the window has converged.
const CONVERGED: (f64, f64) = (10.0, 60.0);
/// `(0.95 · 60 + 0.05 · 100) Mbit/s · 120 ms` in packets of 1500 bytes.
const WINDOW: f64 = 620.0;

pub(super) fn planned(options: &Options) -> u32 {
    STRENGTHS.len() as u32 * options.runs(RUNS, 2)
}

/// What counts of a run.
struct Outcome {
    window: f64,
    utilisation: f64,
    goodput_mbps: f64,
    dropped: u64,
    line: Vec<(f64, f64)>,
}

/// All runs of one m.
struct Row {
    strength: f64,
    outcomes: Vec<Outcome>,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        Self {
            window: mean_of(run, 0, CONVERGED, |sample| Some(sample.window_segments)),
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

/// Fig. 12 and 13: m from 0 to 0.5 where nothing changes.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for strength in STRENGTHS {
        let scenario = parse_with(FIG12, &[Override::set("flow.symbiosis.window.oscillation", strength)]);
        rows.push(Row { strength, outcomes: lab.runs(&scenario, runs, Outcome::of)? });
    }
    found.claims.extend(claims(&rows, runs));
    found.figures.push(figure(&rows));
    Ok(())
}

fn claims(rows: &[Row], runs: u32) -> Vec<Claim> {
    let [without, .., with, most] = rows else { return Vec::new() };
    let windows = with.mean(|outcome| outcome.window).zip(without.mean(|outcome| outcome.window));
    let lost = |of: fn(&Outcome) -> f64| {
        let steps = rows.windows(2).map(|pair| Some(difference(pair[1].mean(of)?, pair[0].mean(of)?)));
        // The step that falls least decides for all.
        let steps: Option<Vec<_>> = steps.collect();
        steps?.into_iter().max_by(|a, b| a.ci95[1].total_cmp(&b.ci95[1]))
    };
    let each = |of: fn(&Outcome) -> f64, decimals| {
        let each = rows.iter().map(|row| format!("{} at m = {}", with_interval(row.mean(of), decimals), row.strength));
        format!("{}.", each.collect::<Vec<_>>().join(", "))
    };
    vec![
        drafts("Fig. 12", runs)(
            "fig12.mean_window",
            "The mean window with oscillation is close to that without. Rule: at m = 0.3 within 5 %.",
            None,
            "ratio",
        )
        .decide(
            windows.and_then(|(with, without)| ratio(with, without)),
            |ours| ours.ci95.iter().all(|end| (end - 1.0).abs() < 0.05),
            each(|outcome| outcome.window, 0),
        ),
        drafts("Fig. 13", runs)(
            "fig13.utilisation_falls",
            "The link's utilisation is lower the larger m is. Rule: it falls from each m to the next; the step that is nearest \
             to rising is shown.",
            None,
            "difference of shares",
        )
        .decide(lost(|outcome| outcome.utilisation), |ours| ours.ci95[1] < 0.0, each(|outcome| outcome.utilisation, 4)),
        drafts("Fig. 13", runs)(
            "fig13.throughput_falls",
            "The throughput is lower the larger m is. Rule: as for the utilisation.",
            None,
            "Mbit/s of difference",
        )
        .decide(lost(|outcome| outcome.goodput_mbps), |ours| ours.ci95[1] < 0.0, each(|outcome| outcome.goodput_mbps, 2)),
        drafts("Fig. 12", runs)(
            "fig12.losses_at_half",
            "With m = 0.5 packets are lost. Rule: in more than half of the runs of 60 s.",
            None,
            "share of the runs",
        )
        .decide(
            most.with_losses(),
            |ours| ours.ci95[0] > 0.5,
            format!("With m = 0.3 in {}.", with_interval(with.with_losses(), 2)),
        ),
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
