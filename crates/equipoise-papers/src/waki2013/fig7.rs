use equipoise::control::ap::md1;
use equipoise::units::{Rate, Schedule, Size};

use super::scenarios::FIG7;
use super::{Found, Lab, Options, drafts, parse};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::{FlowKind, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, regression};

/// Session rates: 0.1 to 4.5 Mbit/s.
const RATES: u32 = 45;
/// Traffic patterns, each a seed.
const PATTERNS: u32 = 10;
/// What one rate adds to the one before, in Mbit/s.
const STEP: f64 = 0.1;
/// The thesis's slope.
const PAPER_SLOPE: f64 = 407.63;

pub(super) fn planned(options: &Options) -> u32 {
    RATES * options.runs(PATTERNS, 3)
}

/// Mean in seconds and variance in s² of the session's one-way delay.
#[derive(Clone, Copy)]
struct Delay {
    mean_s: f64,
    variance_s2: f64,
}

/// Fig. 7: 0.1σ² against the shift of the mean for each rate and pattern, and a line through all.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let patterns = lab.options.runs(PATTERNS, 3);
    let base = parse(FIG7);
    // By rate, then by pattern.
    let mut delays: Vec<Vec<Delay>> = Vec::new();
    for tenth in 1..=RATES {
        delays.push(lab.runs(&at_rate(&base, tenth), patterns, |run| {
            let delay = run.flows.first().map(|session| session.delay).unwrap_or_default();
            let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
            Delay { mean_s: number(delay.mean_s), variance_s2: number(delay.variance_s2) }
        })?);
    }
    let pairs = |pattern: usize| -> Vec<(f64, f64)> {
        let next = delays.iter().skip(1);
        delays.iter().zip(next).map(|(here, there)| pair(here[pattern], there[pattern])).collect()
    };
    let points: Vec<(f64, f64)> = (0..patterns as usize).flat_map(pairs).collect();
    let slopes: Vec<f64> =
        (0..patterns as usize).filter_map(|pattern| regression(&pairs(pattern))).map(|line| line.slope.value).collect();
    claims(&points, &slopes, patterns, found);
    found.figures.push(figure(&points, &delays));
    Ok(())
}

/// 0.1σ² in Mbit/s·s² and the shift of the mean in seconds from one rate to the next.
fn pair(here: Delay, there: Delay) -> (f64, f64) {
    (STEP * here.variance_s2, there.mean_s - here.mean_s)
}

fn at_rate(base: &Scenario, tenth: u32) -> Scenario {
    let mut scenario = base.clone();
    if let Some(FlowKind::Background { rate, .. }) = scenario.flows.first_mut().map(|flow| &mut flow.kind) {
        *rate = Schedule::constant(Rate::from_bps(u64::from(tenth) * 100_000));
    }
    scenario
}

fn claims(points: &[(f64, f64)], slopes: &[f64], patterns: u32, found: &mut Found) {
    let runs = RATES * patterns;
    let line = regression(points);
    // Rates of one pattern share their traffic, so that a pattern, not a point, is what repeats.
    let by_pattern = mean_95(slopes);
    let slope = line.zip(by_pattern).map(|(line, spread)| {
        let half = (spread.ci95[1] - spread.ci95[0]) / 2.0;
        Estimate { value: line.slope.value, ci95: [line.slope.value - half, line.slope.value + half] }
    });
    let draft = drafts("Fig. 7", runs);
    let r2 = line.map_or(f64::NAN, |line| line.r2);
    found.claims.push(
        draft(
            "fig7.linear",
            "The shift of the mean grows linearly with 0.1σ². Rule: the slope's interval lies above zero, and the line \
             explains at least half of the variance.",
            None,
            "1/(s·Mbit/s)",
        )
        .decide(slope, |ours| ours.ci95[0] > 0.0 && r2 >= 0.5, format!("R² = {r2:.3}.")),
    );
    // The paper's number comes from ten patterns of its own, which scatter as ours do.
    let widened = 2f64.sqrt();
    found.claims.push(
        draft(
            "fig7.slope",
            "The slope of the line is 407.63. Rule: that lies within our interval, widened by √2 because the paper's ten \
             patterns are a sample, too.",
            Some(PAPER_SLOPE),
            "1/(s·Mbit/s)",
        )
        .decide(
            slope,
            |ours| (ours.value - PAPER_SLOPE).abs() <= widened * (ours.ci95[1] - ours.ci95[0]) / 2.0,
            "The interval comes from the slopes of the single patterns: rates of one pattern share their traffic. The same \
             scenario in ns-2, which the paper used, gives a larger slope than in ns-3, which agrees with ours; the book's \
             chapter on validation has the numbers.",
        ),
    );
    beside_md1(slope, runs, found);
}

/// The claims on the slope of M/D/1.
fn beside_md1(slope: Option<Estimate>, runs: u32, found: &mut Found) {
    let (md1, draft) = (md1_slope(), drafts("Fig. 7", runs));
    found.claims.push(
        draft(
            "fig7.md1_slope",
            "M/D/1 gives a slope of about 300 for 0.6 < ρ < 0.9. Rule: within 5 %.",
            Some(300.0),
            "1/(s·Mbit/s)",
        )
        .decide(
            Some(Estimate { value: md1, ci95: [md1, md1] }),
            |ours| (ours.value / 300.0 - 1.0).abs() <= 0.05,
            "Mean of b(ρ) over that range, closed form.",
        ),
    );
    found.claims.push(
        draft(
            "fig7.above_md1",
            "The simulated slope is above that of M/D/1. Rule: the whole interval is.",
            None,
            "1/(s·Mbit/s)",
        )
        .decide(
            slope,
            |ours| ours.ci95[0] > md1,
            "A CBR session smooths a part of the arrivals, which M/D/1 has at random.",
        ),
    );
}

/// Mean of b(ρ) over 0.6 to 0.9.
fn md1_slope() -> f64 {
    let steps = 1000u32;
    let at = |step: u32| md1::response(0.6 + 0.3 * (f64::from(step) + 0.5) / f64::from(steps), Size::from_bytes(1000));
    (0..steps).map(at).sum::<f64>() / f64::from(steps)
}

fn figure(points: &[(f64, f64)], delays: &[Vec<Delay>]) -> Figure {
    // In ms and ms²: 0.1σ² times b, in 1/(s·Mbit/s), is then b/1000 times as large in ms.
    let scaled = |x: f64, y: f64| (x * 1e6, y * 1e3);
    let largest = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    let mut layers = vec![PlotLayer {
        name: "a rate and a pattern".to_owned(),
        data: PlotData::Points(points.iter().map(|&(x, y)| scaled(x, y)).collect()),
    }];
    if let Some(line) = regression(points) {
        let at = |x: f64| scaled(x, line.intercept + line.slope.value * x);
        layers.push(PlotLayer {
            name: format!("least squares, slope {:.1}", line.slope.value),
            data: PlotData::Line(vec![at(0.0), at(largest)]),
        });
    }
    let mu = 1875.0;
    let md1 = (60..=90).filter(|percent| STEP * md1::variance(f64::from(*percent) / 100.0 * mu, mu) <= largest).map(
        |percent| {
            let lambda = f64::from(percent) / 100.0 * mu;
            let x = STEP * md1::variance(lambda, mu);
            scaled(x, md1::response(lambda / mu, Size::from_bytes(1000)) * x)
        },
    );
    layers.push(PlotLayer { name: "M/D/1, y = b(ρ)x".to_owned(), data: PlotData::Line(md1.collect()) });
    Figure {
        name: "Fig. 7".to_owned(),
        title: "Shift of the mean delay against its variance".to_owned(),
        text: "Each point is a session rate and a traffic pattern: the variance of the one-way delay, times 0.1 Mbit/s, and \
               the shift of the mean at the next rate."
            .to_owned(),
        charts: vec![Plot {
            title: "Shift of the mean delay against its variance".to_owned(),
            x: "0.1 Mbit/s × variance (Mbit/s·ms²)",
            y: "shift of the mean (ms)",
            y_limits: None,
            layers,
            marks: Vec::new(),
        }],
        tables: vec![table(delays)],
    }
}

fn table(delays: &[Vec<Delay>]) -> Table {
    let rows = delays.iter().enumerate().map(|(index, patterns)| {
        let estimate = |of: fn(&Delay) -> f64| mean_95(&patterns.iter().map(of).collect::<Vec<_>>());
        let text = |estimate: Option<Estimate>, scale: f64| {
            estimate.map_or("–".to_owned(), |found| {
                format!("{:.4} ± {:.4}", found.value * scale, (found.ci95[1] - found.value) * scale)
            })
        };
        vec![
            format!("{:.1}", (index + 1) as f64 * STEP),
            text(estimate(|delay| delay.mean_s), 1e3),
            text(estimate(|delay| delay.variance_s2), 1e6),
        ]
    });
    Table {
        caption: "One-way delay of the session at each rate, with the 95 % interval over the patterns".to_owned(),
        columns: ["rate (Mbit/s)", "mean (ms)", "variance (ms²)"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
