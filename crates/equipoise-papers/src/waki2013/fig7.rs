use equipoise::control::ap::md1;
use equipoise::units::{Rate, Schedule, Size};

use super::scenarios::FIG7;
use super::{Found, Lab, MAIN, Options, Rule, Spec, parse_with, read};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::{FlowKind, Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, regression};

/// Number of rates of the session. They are from 0.1 to 4.5 Mbit/s.
const RATES: u32 = 45;
/// Number of traffic patterns. Each pattern has its own seed.
const PATTERNS: u32 = 10;
/// Difference between two successive rates, in Mbit/s.
const STEP: f64 = 0.1;
/// Mean of the coefficient of response b(ρ) over the loads ρ from 0.6 to 0.9, in 1/(s·Mbit/s), for an M/D/1 queue with
/// packets of 1000 bytes. A test computes this mean.
const MD1_SLOPE: f64 = 311.15;
const UNIT: &str = "1/(s·Mbit/s)";

const LINEAR: Spec = Spec::new(
    "fig7.linear",
    "Fig. 7",
    "The shift of the mean grows linearly with 0.1σ²: there is a positive correlation.",
    Rule::above(0.7),
)
.unit("correlation");
// The bounds are 2 % below and above the paper's number. Our slopes for ten random traffic patterns vary by about 2 %,
// so the paper's slope may vary by 2 %, too.
const SLOPE: Spec = Spec::new("fig7.slope", "Fig. 7", "The slope of the line is 407.63.", Rule::within(399.5, 415.8))
    .paper(407.63)
    .unit(UNIT);
const MD1: Spec = Spec::shown(
    "fig7.md1_slope",
    "Fig. 7",
    "M/D/1 gives a slope of about 300 for 0.6 < ρ < 0.9: a closed form, which no run can contradict.",
)
.paper(300.0)
.unit(UNIT);
const ABOVE_MD1: Spec =
    Spec::new("fig7.above_md1", "Fig. 7", "The simulated slope is above that of M/D/1.", Rule::above(MD1_SLOPE))
        .unit(UNIT);

pub(super) const CLAIMS: &[Spec] = &[LINEAR, SLOPE, MD1, ABOVE_MD1];

/// An interpretation of details that Sec. 4.2 does not state.
struct Setting {
    name: &'static str,
    /// Length of a run, with its unit.
    duration: &'static str,
    /// Size of a packet on the link, in bytes. The rates count only 1000 bytes of each packet.
    packet_bytes: u32,
}

/// An interpretation without the highest rate: its name, and its number of rates. Ten traffic patterns with 43 pairs of
/// successive rates each are 430 pairs, as in the paper. This interpretation uses the runs of the main interpretation.
const FEWER: (&str, usize) = ("Fig. 7: 44 rates, to 4.4 Mbit/s, as 430 pairs want it", 44);

/// The interpretations that have their own runs. The main interpretation is the first.
const READINGS: [Setting; 4] = [
    Setting { name: MAIN, duration: "400 s", packet_bytes: 1000 },
    Setting { name: "Fig. 7: runs of 50 s", duration: "50 s", packet_bytes: 1000 },
    Setting { name: "Fig. 7: runs of 100 s", duration: "100 s", packet_bytes: 1000 },
    Setting { name: "Fig. 7: 1000 bytes are the payload of a packet of 1028", duration: "400 s", packet_bytes: 1028 },
];

pub(super) fn planned(options: &Options) -> u32 {
    READINGS.len() as u32 * RATES * options.runs(PATTERNS, 3)
}

/// Mean (in seconds) and variance (in s²) of the session's one-way delay.
#[derive(Clone, Copy)]
struct Delay {
    mean_s: f64,
    variance_s2: f64,
}

/// Runs Fig. 7, which shows a point for each rate and traffic pattern (see [`pair`]), and a line through all points.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    for (place, setting) in READINGS.iter().enumerate() {
        let delays = measure(lab, setting)?;
        let (points, claims) = judged(&delays);
        if place == 0 {
            found.claims.extend(claims.clone());
            found.figures.push(figure(&points, &delays));
        }
        read_all(found, setting.name, claims);
        if place == 0 {
            let (name, rates) = FEWER;
            read_all(found, name, judged(&delays[..rates]).1);
        }
    }
    Ok(())
}

/// Returns the points of all traffic patterns, and the claims about these points.
fn judged(delays: &[Vec<Delay>]) -> (Vec<(f64, f64)>, [Claim; 4]) {
    let count = delays.first().map_or(0, Vec::len);
    let patterns: Vec<_> = (0..count).map(|pattern| pairs(delays, pattern)).collect();
    let claims = claims(&patterns, (delays.len() * count) as u32);
    (patterns.concat(), claims)
}

/// Adds the claims to the interpretation named `name`, except the claim [`MD1`]. This claim does not depend on the
/// interpretation.
fn read_all(found: &mut Found, name: &str, claims: [Claim; 4]) {
    read(found, name, claims.into_iter().filter(|claim| claim.id != MD1.id));
}

/// Measures the delays. The result is ordered by rate, then by traffic pattern.
fn measure(lab: &Lab<'_>, setting: &Setting) -> Result<Vec<Vec<Delay>>, SimError> {
    let packet = format!("{} B", setting.packet_bytes);
    let overhead = f64::from(setting.packet_bytes) / 1000.0;
    let base = parse_with(
        FIG7,
        &[
            Override::set("duration", setting.duration),
            Override::set("flow.*.packet_size", packet),
            Override::set("flow.session 2.source.rate", format!("{} Mbit/s", 9.0 * overhead)),
        ],
    );
    let at = |tenth| {
        lab.runs(&at_rate(&base, f64::from(tenth) * STEP * overhead), lab.options.runs(PATTERNS, 3), |run| {
            let delay = run.flows.first().map(|session| session.delay).unwrap_or_default();
            let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
            Delay { mean_s: number(delay.mean_s), variance_s2: number(delay.variance_s2) }
        })
    };
    (1..=RATES).map(at).collect()
}

/// Returns the points of one traffic pattern.
fn pairs(delays: &[Vec<Delay>], pattern: usize) -> Vec<(f64, f64)> {
    let next = delays.iter().skip(1);
    delays.iter().zip(next).map(|(here, there)| pair(here[pattern], there[pattern])).collect()
}

/// Returns the point for two successive rates. x is the variance of the delay at the lower rate, times the difference
/// of 0.1 Mbit/s between the rates, in Mbit/s·s². y is the increase of the mean delay, in seconds.
fn pair(here: Delay, there: Delay) -> (f64, f64) {
    (STEP * here.variance_s2, there.mean_s - here.mean_s)
}

fn at_rate(base: &Scenario, mbps: f64) -> Scenario {
    let mut scenario = base.clone();
    if let Some(FlowKind::Background { rate, .. }) = scenario.flows.first_mut().map(|flow| &mut flow.kind) {
        *rate = Schedule::constant(Rate::from_bps((mbps * 1e6).round() as u64));
    }
    scenario
}

fn claims(patterns: &[Vec<(f64, f64)>], runs: u32) -> [Claim; 4] {
    let lines: Vec<_> = patterns.iter().filter_map(|pattern| regression(pattern)).collect();
    // The points of one traffic pattern are not independent samples, because their runs have the same cross traffic.
    // The lines of different patterns are independent samples, because each pattern has different cross traffic.
    let by_pattern = mean_95(&lines.iter().map(|line| line.slope.value).collect::<Vec<_>>());
    let slope = regression(&patterns.concat()).zip(by_pattern).map(|(line, spread)| {
        let half = (spread.ci95[1] - spread.ci95[0]) / 2.0;
        Estimate { value: line.slope.value, ci95: [line.slope.value - half, line.slope.value + half] }
    });
    let correlation = mean_95(&lines.iter().map(|line| line.r2.sqrt().copysign(line.slope.value)).collect::<Vec<_>>());
    let exact = Estimate { value: MD1_SLOPE, ci95: [MD1_SLOPE; 2] };
    let all: Vec<_> = lines.iter().map(|line| format!("{:.0}", line.slope.value)).collect();
    [
        LINEAR.decide(runs, correlation, "Mean over the patterns, each with its own line."),
        SLOPE.decide(
            runs,
            slope,
            format!(
                "The line goes through the points of all patterns, its interval comes from the slopes of the single ones: {}. The \
                 same scenario in ns-2, which the paper used, is in the book's chapter on validation.",
                all.join(", ")
            ),
        ),
        MD1.decide(runs, Some(exact), "Mean of b(ρ) over that range."),
        ABOVE_MD1.decide(runs, slope, "A CBR session smooths a part of the arrivals, which M/D/1 has at random."),
    ]
}

fn figure(points: &[(f64, f64)], delays: &[Vec<Delay>]) -> Figure {
    // The chart shows ms² and ms instead of s² and s, so the slope of its line is b/1000.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_md1_is_the_mean_of_b_over_the_papers_range() {
        // For packets of 1000 bytes, b(ρ) is 750/(ρ(4 - ρ)). Its integral is 187.5 ln(ρ/(4 - ρ)).
        let integral = |rho: f64| 187.5 * (rho / (4.0 - rho)).ln();
        assert!((MD1_SLOPE - (integral(0.9) - integral(0.6)) / 0.3).abs() < 0.01);
    }

    #[test]
    fn points_on_a_line_have_its_slope_and_a_correlation_of_one() {
        let pattern: Vec<_> = (0..10).map(|x| (f64::from(x), 400.0 * f64::from(x) + 1.0)).collect();
        let claims = claims(&vec![pattern; 3], 30);
        assert!(claims[0].ours.is_some_and(|ours| (ours - 1.0).abs() < 1e-9));
        assert!(claims[1].ours.is_some_and(|ours| (ours - 400.0).abs() < 1e-6) && claims[1].holds == Some(true));
    }
}
