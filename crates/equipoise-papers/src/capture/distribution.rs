use equipoise::units::Span;
use serde::Serialize;

use super::gaussian::{GaussianFit, Histogram};
use equipoise_lab::statistics::quantile;

/// The distribution of a set of times, for example round-trip times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of samples.
    pub samples: u64,
    /// Smallest sample, in seconds.
    pub min_s: f64,
    /// Median, in seconds.
    pub p50_s: f64,
    /// 95th percentile, in seconds.
    pub p95_s: f64,
    /// Largest sample, in seconds.
    pub max_s: f64,
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Standard deviation (divisor n − 1), in seconds; `null` if there is only one sample.
    pub deviation_s: Option<f64>,
    /// Third central moment divided by the cube of the standard deviation (divisor n); `null` if all samples are equal.
    pub skewness: Option<f64>,
    /// Fourth central moment divided by the fourth power of the standard deviation (divisor n), minus 3; `null` if all
    /// samples are equal.
    pub excess_kurtosis: Option<f64>,
    /// Kolmogorov-Smirnov distance from the normal distribution that has the same mean and standard deviation; `null`
    /// if all samples are equal.
    pub ks_distance: Option<f64>,
    /// Width of the histogram's bars, in seconds.
    pub bin_s: f64,
    /// Lower edge of the first bar, in seconds; a multiple of the bar's width.
    pub first_s: f64,
    /// Number of samples in each bar.
    pub counts: Vec<u64>,
    /// The Gaussian that fits the histogram best by least squares; `null` if no fit was possible.
    pub fit: Option<GaussianFit>,
}

/// Minimum number of samples for a fit. With fewer samples, the shape of the histogram is not meaningful.
const FEWEST_FOR_A_FIT: usize = 30;
/// A histogram has at most about this number of bars. If a histogram would have more bars, the width of its bars is
/// multiplied by ten, several times if necessary.
const MOST_BARS: usize = 5000;
/// Number of bars that every histogram may have, even if the common limit of all histograms is reached.
const FEWEST_BARS: usize = 10;

impl Distribution {
    /// Computes the distribution of times in seconds. `bars` is clamped to the range from [`FEWEST_BARS`] to
    /// [`MOST_BARS`]. The histogram then has at most `bars + 1` bars. Returns `None` if there are no samples.
    pub(super) fn of(mut samples: Vec<f64>, bin: Option<Span>, bars: usize) -> Option<Self> {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let (&min_s, &max_s) = (samples.first()?, samples.last()?);
        let n = samples.len() as f64;
        let mean_s = samples.iter().sum::<f64>() / n;
        let moment = |power: i32| samples.iter().map(|sample| (sample - mean_s).powi(power)).sum::<f64>() / n;
        let (second, spread) = (moment(2), max_s > min_s);
        let deviation_s = (samples.len() > 1).then(|| (second * n / (n - 1.0)).sqrt());
        let bin_s = width(&samples, bin, bars.clamp(FEWEST_BARS, MOST_BARS));
        let (first_s, counts) = histogram(&samples, bin_s);
        let ks = deviation_s.filter(|_| spread).map(|deviation| ks_distance(&samples, mean_s, deviation));
        let drawn = Histogram { counts: &counts, first_s, bin_s, mean_s, deviation_s: second.sqrt() };
        let fit = (spread && samples.len() >= FEWEST_FOR_A_FIT).then(|| drawn.fit()).flatten();
        Some(Self {
            samples: samples.len() as u64,
            min_s,
            p50_s: quantile(&samples, 0.5),
            p95_s: quantile(&samples, 0.95),
            max_s,
            mean_s,
            deviation_s,
            skewness: spread.then(|| moment(3) / second.powf(1.5)),
            excess_kurtosis: spread.then(|| moment(4) / (second * second) - 3.0),
            ks_distance: ks,
            bin_s,
            first_s,
            fit,
            counts,
        })
    }

    /// Returns the middle of the bar with index `bar`, in seconds.
    pub fn middle_s(&self, bar: usize) -> f64 {
        self.first_s + (bar as f64 + 0.5) * self.bin_s
    }
}

/// Returns the width of a bar, in seconds: the requested width `asked`, or a width that is derived from the samples.
///
/// The derived width is twice the interquartile range divided by the cube root of the number of samples (Freedman
/// 1981). If the interquartile range is zero, the width is a tenth of the samples' range. In both cases, the width is
/// rounded down to one significant digit. If all samples are equal, the width is 1 ms.
///
/// A requested or derived width is multiplied by ten until the samples' range is at most `bars` widths.
fn width(sorted: &[f64], asked: Option<Span>, bars: usize) -> f64 {
    let range = sorted.last().copied().unwrap_or(0.0) - sorted.first().copied().unwrap_or(0.0);
    let spread = quantile(sorted, 0.75) - quantile(sorted, 0.25);
    let natural = 2.0 * spread / (sorted.len() as f64).cbrt();
    let chosen = match asked.map(Span::as_secs_f64).filter(|asked| *asked > 0.0) {
        Some(asked) => asked,
        None if natural > 0.0 => one_digit(natural),
        None if range > 0.0 => one_digit(range / 10.0),
        None => 1e-3,
    };
    let mut width = chosen;
    while range / width > bars as f64 {
        width *= 10.0;
    }
    width
}

fn one_digit(value: f64) -> f64 {
    let power = 10f64.powi(value.log10().floor() as i32);
    (value / power).floor().max(1.0) * power
}

fn histogram(sorted: &[f64], width: f64) -> (f64, Vec<u64>) {
    let bar = |sample: f64| (sample / width).floor();
    let first = sorted.first().map_or(0.0, |&least| bar(least));
    let last = sorted.last().map_or(first, |&largest| bar(largest));
    let mut counts = vec![0u64; (last - first) as usize + 1];
    for &sample in sorted {
        if let Some(count) = counts.get_mut((bar(sample) - first) as usize) {
            *count += 1;
        }
    }
    (first * width, counts)
}

/// Returns the largest difference between the samples' distribution function and that of the normal distribution.
fn ks_distance(sorted: &[f64], mean: f64, deviation: f64) -> f64 {
    let n = sorted.len() as f64;
    let distance = |(index, &sample): (usize, &f64)| {
        let normal = 0.5 * libm::erfc(-(sample - mean) / (deviation * std::f64::consts::SQRT_2));
        (normal - index as f64 / n).max((index + 1) as f64 / n - normal)
    };
    sorted.iter().enumerate().map(distance).fold(0.0, f64::max)
}
