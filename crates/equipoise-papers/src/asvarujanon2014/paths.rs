//! Repeats the checks of Asvarujanon 2014, Sec. 3, on the simulated paths: the delays are nearly Gaussian, and the mean
//! delay is a linear function of the rate.

use super::setting::{METHODS, Method, SINGLES, session};
use super::{Found, Lab, Mean, Options, Rule, Spec};
use crate::{Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::result::{DelayShare, FlowResult, Run};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::regression;

const RUNS: u32 = 10;
/// Number of tested rates: one tenth to nine tenths of the bandwidth that is available to the session.
const TENTHS: u32 = 9;
/// Bandwidth that is available to the session on each path, in Mbit/s, in the order of [`SINGLES`].
const LEFT: [f64; 2] = [4.1, 1.5];
/// The rate at which the distribution of the delays is checked, in tenths of the available bandwidth.
const LOOKED_AT: u32 = 5;

const GAUSSIAN: [Spec; 2] = [
    gaussian(
        "sec3.gaussian_wimax",
        "The delays of our WiMAX path, at half of the capacity that the cross traffic leaves, are roughly those of a Gaussian.",
    ),
    gaussian(
        "sec3.gaussian_lte",
        "The delays of our LTE path, at half of the capacity that the cross traffic leaves, are roughly those of a Gaussian.",
    ),
];
const LINEAR: [Spec; 2] = [
    linear(
        "sec3.linear_wimax",
        "On our WiMAX path the mean delay is linear in the rate, up to nine tenths of the capacity that the cross traffic leaves.",
    ),
    linear(
        "sec3.linear_lte",
        "On our LTE path the mean delay is linear in the rate, up to nine tenths of the capacity that the cross traffic leaves.",
    ),
];
pub(super) const CLAIMS: &[Spec] = &[GAUSSIAN[0], LINEAR[0], GAUSSIAN[1], LINEAR[1]];

/// Defines a claim that delays are roughly Gaussian. The largest distance between the distribution functions of the
/// delays and of the Gaussian with the same mean and variance must be below 0.1. For comparison, this distance is 0.16
/// for an exponential distribution.
const fn gaussian(id: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, "Sec. 3", statement, Rule::below(0.1)).unit("largest distance")
}

const fn linear(id: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, "Sec. 3", statement, Rule::above(0.9)).unit("R²")
}

pub(super) fn planned(options: &Options) -> u32 {
    SINGLES.len() as u32 * TENTHS * options.runs(RUNS, 2)
}

/// For each path, checks that the delays are nearly Gaussian, and that the mean delay is a linear function of the rate.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut layers = Vec::new();
    for (path, place) in SINGLES.into_iter().enumerate() {
        let method = METHODS[place];
        let mut distances = Vec::new();
        // For each run, a list of points: the rate in Mbit/s, and the mean delay in ms.
        let mut lines = vec![Vec::new(); runs as usize];
        for tenth in 1..=TENTHS {
            let mbps = f64::from(tenth) / 10.0 * LEFT[path];
            let delays = at_rate(lab, method, mbps, runs)?;
            for (line, delay) in lines.iter_mut().zip(&delays) {
                line.push((mbps, delay.mean_ms));
            }
            if tenth == LOOKED_AT {
                distances = delays.iter().map(|delay| delay.distance).collect();
            }
        }
        let r2: Vec<_> = lines.iter().filter_map(|line| regression(line)).map(|line| line.r2).collect();
        let note = "Largest distance between the distribution of a run's delays and that of a Gaussian of their mean and variance.";
        found.claims.push(GAUSSIAN[path].decide(runs, Mean::of(&distances), note));
        found.claims.push(LINEAR[path].decide(
            runs,
            Mean::of(&r2),
            "The mean over the runs of R² of a line through nine rates.",
        ));
        let line = lines.into_iter().next().unwrap_or_default();
        layers.push(PlotLayer { name: method.name.to_owned(), data: PlotData::Line(line) });
    }
    found.figures.push(Figure {
        name: "Sec. 3".to_owned(),
        title: "Mean delay of either path over the rate".to_owned(),
        text: "One run at each rate, with the same traffic of others.".to_owned(),
        charts: vec![Plot {
            title: "Mean delay over the rate, first run".to_owned(),
            x: "rate (Mbit/s)",
            y: "mean delay (ms)",
            y_limits: None,
            layers,
            marks: Vec::new(),
        }],
        tables: Vec::new(),
    });
    Ok(())
}

/// The results of a run at one rate: the mean delay in ms, and the distance of the delay distribution from a Gaussian.
#[derive(Clone, Copy)]
struct Delays {
    mean_ms: f64,
    distance: f64,
}

fn at_rate(lab: &Lab<'_>, method: Method, mbps: f64, runs: u32) -> Result<Vec<Delays>, SimError> {
    lab.runs(&session(&format!("{mbps:.3}"), method), runs, |run: &Run| {
        let none = Delays { mean_ms: f64::NAN, distance: f64::NAN };
        run.flows.first().map_or(none, |flow: &FlowResult| {
            let (mean_s, variance_s2) =
                (flow.delay.mean_s.unwrap_or(f64::NAN), flow.delay.variance_s2.unwrap_or(f64::NAN));
            Delays { mean_ms: 1e3 * mean_s, distance: distance(&flow.distribution, mean_s, variance_s2.sqrt()) }
        })
    })
}

/// Returns the largest distance between a measured complementary distribution function and that of a Gaussian
/// (Kolmogorov distance).
///
/// The measured distribution function is known only at a few points, so the true distance may be larger.
fn distance(distribution: &[DelayShare], mean_s: f64, deviation_s: f64) -> f64 {
    let at = |point: &DelayShare| {
        let gaussian = 0.5 * libm::erfc((point.delay_s - mean_s) / deviation_s / 2f64.sqrt());
        (point.share - gaussian).abs()
    };
    distribution.iter().map(at).fold(f64::NAN, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At zero, an exponential distribution differs most from the Gaussian with the same mean and variance. The
    /// difference is Φ(-1), the Gaussian's probability below zero.
    #[test]
    fn distances_to_a_gaussian_are_those_of_the_hand() {
        let shares = || (1..1000).map(|permille| 1.0 - f64::from(permille - 1) / 1000.0);
        let exponential: Vec<_> = shares().map(|share| DelayShare { delay_s: -share.ln(), share }).collect();
        assert!((distance(&exponential, 1.0, 1.0) - 0.158_655).abs() < 1e-5);
        let step = vec![DelayShare { delay_s: 1.0, share: 1.0 }, DelayShare { delay_s: 3.0, share: 0.5 }];
        // The mean is 2 and the standard deviation 1. At 1, the measured share is 1 and the Gaussian's is Φ(1) = 0.841;
        // at 3, they are 0.5 and Φ(-1) = 0.159.
        assert!((distance(&step, 2.0, 1.0) - 0.341_345).abs() < 1e-5);
    }
}
