use crate::measure::{Measured, Moments};
use crate::units::Rate;

/// The recent results of a measured quantity that is constant for a while and then jumps.
///
/// A result far from the others is set aside. If the next result is also far from them, in the same direction, the
/// quantity has jumped: the old results are discarded, and these two start the new history. Otherwise the first of the
/// two results was an outlier and has no effect.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    results: [f64; KEPT],
    count: usize,
    next: usize,
    set_aside: Option<f64>,
}

/// Number of results that are kept (our choice). At four round trips per result, eight results cover 32 round trips.
const KEPT: usize = 8;
/// A result is far from the other results if its distance from their mean exceeds this number of standard deviations
/// (our choice).
const FAR: f64 = 3.0;
/// Minimum number of results for a meaningful standard deviation (our choice).
const LEAST: usize = 3;
/// Two-sided 95 % quantiles of Student's t at 2 to 7 degrees of freedom, that is for 3 to 8 results.
const T_QUANTILES: [f64; KEPT + 1 - LEAST] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365];

impl Recent {
    /// Adds a result. A result within `least` of the mean is never set aside as a possible outlier.
    pub(super) fn push(&mut self, result: f64, least: f64) {
        let moments = self.moments();
        let distance = moments.mean().map_or(0.0, |mean| result - mean);
        let spread = moments.standard_deviation().filter(|_| self.count >= LEAST).unwrap_or(f64::INFINITY);
        if distance.abs() <= (FAR * spread).max(least) {
            self.set_aside = None;
            self.keep(result);
            return;
        }
        match self.set_aside.take() {
            Some(first) if moments.mean().is_some_and(|mean| (first > mean) == (result > mean)) => {
                (self.count, self.next) = (0, 0);
                self.keep(first);
                self.keep(result);
            }
            _ => self.set_aside = Some(result),
        }
    }

    /// Returns the last result, if it is a possible outlier.
    pub(super) const fn set_aside(&self) -> Option<f64> {
        self.set_aside
    }

    /// Returns the mean, and half the width of its 95 % confidence interval; no width if there are too few results.
    pub(super) fn mean(&self) -> Option<(f64, Option<f64>)> {
        let moments = self.moments();
        let quantile = self.count.checked_sub(LEAST).and_then(|index| T_QUANTILES.get(index));
        let half = quantile.zip(moments.standard_deviation());
        let half = half.map(|(quantile, deviation)| quantile * deviation / libm::sqrt(self.count as f64));
        moments.mean().map(|mean| (mean, half))
    }

    /// Returns the mean and its confidence interval as a [`Measured`], clamped to the bounds `least` and `most`.
    pub(super) fn measured(&self, least: f64, most: f64) -> Option<Measured> {
        let (mean, half) = self.mean()?;
        let rate = |bps: f64| Rate::from_bps_f64(bps.max(least).min(most));
        let interval = half.and_then(|half| rate(mean - half).zip(rate(mean + half)));
        Some(Measured { rate: rate(mean)?, interval })
    }

    fn keep(&mut self, result: f64) {
        if let Some(slot) = self.results.get_mut(self.next) {
            *slot = result;
            self.next = (self.next + 1) % KEPT;
            self.count = KEPT.min(self.count + 1);
        }
    }

    fn moments(&self) -> Moments {
        self.results.iter().take(self.count).copied().collect()
    }
}

/// Creates a history with a single result.
impl From<f64> for Recent {
    fn from(result: f64) -> Self {
        let mut recent = Self::default();
        recent.keep(result);
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(results: &[f64]) -> Recent {
        let mut recent = Recent::default();
        for &result in results {
            recent.push(result, 5.0);
        }
        recent
    }

    #[test]
    fn the_interval_is_students() {
        // The four results have a mean of 50 and a standard deviation of 2, so the half-width is 3.182 · 2 / √4.
        let (mean, half) =
            recent(&[50.0 - 3.0_f64.sqrt(), 50.0 + 3.0_f64.sqrt(), 50.0 - 3.0_f64.sqrt(), 50.0 + 3.0_f64.sqrt()])
                .mean()
                .unwrap();
        assert!((mean - 50.0).abs() < 1e-9);
        assert!((half.unwrap() - 3.182).abs() < 1e-9, "{half:?}");
        assert_eq!(recent(&[50.0, 51.0]).mean(), Some((50.5, None)), "two are too few");
    }

    #[test]
    fn a_stray_result_is_dropped_and_a_second_one_is_a_step() {
        let mut recent = recent(&[50.0, 51.0, 50.0, 49.0, 20.0]);
        assert_eq!(recent.set_aside(), Some(20.0));
        assert_eq!(recent.mean().map(|(mean, _)| mean), Some(50.0));
        let stepped = {
            let mut recent = recent.clone();
            recent.push(22.0, 5.0);
            recent
        };
        assert_eq!(stepped.mean().map(|(mean, _)| mean), Some(21.0));
        recent.push(50.0, 5.0);
        assert_eq!((recent.set_aside(), recent.mean().map(|(mean, _)| mean)), (None, Some(50.0)));
    }
}
