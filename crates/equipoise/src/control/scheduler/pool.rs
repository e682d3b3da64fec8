//! Combines delay statistics of several intervals, or of several paths, into one summary.

use super::PathView;
use crate::measure::{DelaySummary, Moments};

/// The delay statistics of a path over all reports in a period.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeriodDelay(Moments);

impl PeriodDelay {
    /// Adds the delay statistics of a report.
    pub fn push(&mut self, report: &DelaySummary) {
        self.0.merge(&Moments::from_summary(report));
    }

    /// Returns the delay statistics so far and resets them; `None` if there are too few samples.
    pub fn take(&mut self) -> Option<DelaySummary> {
        let all = core::mem::take(&mut self.0);
        Some(DelaySummary { mean_s: all.mean()?, variance_s2: all.variance()?, samples: all.count() })
    }
}

/// Combines the delays of all paths into the delay of a single path, for a controller of the total rate.
///
/// Path i carries the share `w_i` of the total rate, and its delay has the mean `x_i` and the variance `σ_i²`. The
/// combined mean is that of all packets: `x = Σ w_i x_i`. A change dA of the total changes the rate of path i by
/// `w_i dA`, and its mean delay by `b σ_i² w_i dA`, where b is the coefficient of response (Asvarujanon 2014, Eq. 1).
/// Therefore x changes by `b (Σ w_i² σ_i²) dA`, and the combined variance is `Σ w_i² σ_i²`. The variance over all
/// packets is not used, because it includes the differences between the paths' delays. A change of the total rate does
/// not alter these differences.
///
/// Returns `None` if no path that carries traffic has statistics.
pub fn pooled(paths: &[PathView]) -> Option<DelaySummary> {
    let known = || paths.iter().filter_map(|view| view.delay.map(|delay| (view.rate.as_mbps_f64(), delay)));
    let total: f64 = known().map(|(rate, _)| rate).sum();
    let samples = known().map(|(_, delay)| delay.samples).fold(0u64, u64::saturating_add);
    let weighted = |of: fn(f64, &DelaySummary) -> f64| known().map(|(rate, delay)| of(rate / total, &delay)).sum();
    (total > 0.0).then(|| DelaySummary {
        mean_s: weighted(|weight, delay| weight * delay.mean_s),
        variance_s2: weighted(|weight, delay| weight * weight * delay.variance_s2),
        samples,
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::PathId;
    use super::*;
    use crate::units::Rate;

    #[test]
    fn reports_of_a_period_add_up_to_those_of_all_their_packets() {
        let delays: Vec<f64> = (0..100u32).map(|at| f64::from(at * at % 37) / 1e3).collect();
        let summary = |part: &[f64]| {
            let all: Moments = part.iter().copied().collect();
            let (mean_s, variance_s2) = (all.mean().expect("some"), all.variance().expect("some"));
            DelaySummary { mean_s, variance_s2, samples: all.count() }
        };
        let mut pool = PeriodDelay::default();
        for part in [&delays[..30], &delays[30..32], &delays[32..]] {
            pool.push(&summary(part));
        }
        let (found, expected) = (pool.take().expect("some"), summary(&delays));
        assert_eq!(found.samples, 100);
        assert!(
            (found.mean_s - expected.mean_s).abs() < 1e-12 && (found.variance_s2 - expected.variance_s2).abs() < 1e-12
        );
        assert_eq!(pool.take(), None);
    }

    /// If the total rate changes, the combined mean delay of two paths must change by the amount that the combined
    /// variance predicts.
    #[test]
    fn the_pooled_variance_says_how_the_pooled_mean_answers_to_the_total() {
        let view = |number, rate: u64, mean_s, variance_s2| PathView {
            path: PathId(number),
            alive: true,
            rate: Rate::from_bps(rate),
            delay: Some(DelaySummary { mean_s, variance_s2, samples: 50 }),
            most: None,
        };
        let (b, shares) = (300.0, [0.75, 0.25]);
        let (means, variances) = ([0.030, 0.080], [4e-6, 9e-6]);
        let all = pooled(&[view(0, 3_000_000, means[0], variances[0]), view(1, 1_000_000, means[1], variances[1])]);
        let all = all.expect("both have spoken");
        assert!((all.mean_s - 0.0425).abs() < 1e-12, "{}", all.mean_s);
        let mean_at = |step: f64| -> f64 {
            (0..2).map(|path| shares[path] * (means[path] + b * variances[path] * shares[path] * step)).sum()
        };
        assert!((b * all.variance_s2 * 0.1 - (mean_at(0.1) - mean_at(0.0))).abs() < 1e-12);
        let one = pooled(&[view(0, 3_000_000, means[0], variances[0])]).expect("it has spoken");
        assert!((one.variance_s2 - variances[0]).abs() < 1e-15);
        assert_eq!(pooled(&[view(0, 0, 0.1, 0.1)]), None);
    }
}
