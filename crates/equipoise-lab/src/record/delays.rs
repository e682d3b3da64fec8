use std::iter::once;

use equipoise::units::Span;

use super::histogram::Histogram;
use crate::result::{DelayResult, DelayShare};

/// Collects one-way delays. Mean and variance are exact; quantiles have three significant digits.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    moments: Moments,
    histogram: Histogram,
}

/// Shortest delay in the quantiles, in nanoseconds. A shorter delay counts as this value.
const LEAST_NS: u64 = 1_000;
/// The shares of packets in a delay distribution go from 1 down to 0.001. This range has three decades, with 20 points
/// per decade.
const DECADES: u32 = 3;
const POINTS_A_DECADE: u32 = 20;

impl Delays {
    /// Adds a delay. In the quantiles, a delay below a microsecond counts as one microsecond.
    #[inline]
    pub fn push(&mut self, delay: Span) {
        self.push_all(once(delay));
    }

    /// Adds several delays in one call, so that the sums of the moments stay in processor registers.
    #[inline]
    pub(super) fn push_all(&mut self, delays: impl Iterator<Item = Span> + Clone) {
        let Some(first) = delays.clone().next() else { return };
        let mut moments = self.moments.begun(first.as_nanos());
        self.histogram.push_all(delays.map(|delay| {
            moments.add(delay.as_nanos());
            u64::try_from(delay.as_nanos()).unwrap_or(0).max(LEAST_NS)
        }));
        self.moments = moments;
    }

    /// Adds all delays of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
    }

    /// Returns mean, variance and quantiles of all delays. Each of them is `None` if no delay was added. The variance
    /// is also `None` for a single delay.
    pub fn result(&self) -> DelayResult {
        let total = self.histogram.count();
        let ranks = [0.5, 0.95, 0.99, 1.0].map(|share: f64| (share * total as f64).ceil() as u64);
        let [p50_s, p95_s, p99_s, max_s] =
            self.histogram.longest_of(ranks).map(|nanos| (total > 0).then(|| nanos as f64 / 1e9));
        let (mean_s, variance_s2) = (self.moments.mean_s(), self.moments.variance_s2());
        DelayResult { mean_s, variance_s2, p50_s, p95_s, p99_s, max_s }
    }

    /// Returns delays in ascending order, each with the share of the packets that had this delay or a longer one. The
    /// shares go from 1 down to 0.001 or, with fewer than 1000 packets, to the share of one packet.
    pub(super) fn distribution(&self) -> Vec<DelayShare> {
        let total = self.histogram.count();
        let rank = |step: u32| {
            let share = 10f64.powf(-f64::from(step) / f64::from(POINTS_A_DECADE));
            // The number of packets in this share, rounded, and at least one.
            let reaching = ((share * total as f64).round() as u64).max(1);
            total - reaching.min(total)
        };
        let mut ranks: Vec<_> = (0..=DECADES * POINTS_A_DECADE).map(rank).filter(|rank| *rank < total).collect();
        ranks.dedup();
        let mut ranks = ranks.into_iter().peekable();
        let mut points = Vec::new();
        let mut below = 0;
        for (longest, count) in self.histogram.found() {
            below += count;
            while let Some(rank) = ranks.next_if(|rank| *rank < below) {
                points.push(DelayShare { delay_s: longest as f64 / 1e9, share: (total - rank) as f64 / total as f64 });
            }
        }
        points
    }
}

/// Count, mean and variance of times in nanoseconds. The sums are integers, and only the results are rounded. So
/// merging the sums of several parts has the same result as adding all numbers to one sum, unless a sum saturates.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    /// The first number that was added. All other numbers are expected to be near it.
    from: i64,
    /// The sum of the differences between the added numbers and `from`.
    sum: i128,
    /// The sum of the squares of the differences between the added numbers and `from`. The sum saturates.
    squares: u128,
}

impl Moments {
    /// Returns these moments. If no number was added so far, their field `from` is set to `first`.
    const fn begun(self, first: i64) -> Self {
        if self.count == 0 { Self { from: first, ..self } } else { self }
    }

    /// Adds a number; [`Moments::begun`] must have been called before.
    #[inline]
    fn add(&mut self, nanos: i64) {
        let distance = nanos.saturating_sub(self.from);
        self.count += 1;
        self.sum += i128::from(distance);
        let square = i128::from(distance) * i128::from(distance);
        self.squares = self.squares.saturating_add(square.cast_unsigned());
    }

    fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (shift, count) = (i128::from(other.from.saturating_sub(self.from)), i128::from(other.count));
        let moved = (shift * 2).saturating_mul(other.sum).saturating_add((shift * shift).saturating_mul(count));
        self.squares = self.squares.saturating_add(other.squares).saturating_add_signed(moved);
        self.sum = self.sum.saturating_add(other.sum.saturating_add(shift.saturating_mul(count)));
        self.count += other.count;
    }

    /// Divides `sum` by `count`. Returns the quotient, rounded down, and the remainder. The quotient is the mean
    /// difference between the added numbers and `from`.
    fn division(&self) -> (i128, i128) {
        let count = i128::from(self.count).max(1);
        (self.sum.div_euclid(count), self.sum.rem_euclid(count))
    }

    /// Returns the mean, in seconds; `None` if no number was added.
    fn mean_s(&self) -> Option<f64> {
        let (whole, rest) = self.division();
        let nanos = (i128::from(self.from) + whole) as f64 + rest as f64 / self.count as f64;
        (self.count > 0).then_some(nanos / 1e9)
    }

    /// Returns the variance with divisor n − 1, in s²; `None` for fewer than two numbers.
    fn variance_s2(&self) -> Option<f64> {
        let (whole, rest) = self.division();
        // `around` is the sum of the squared deviations from the rounded-down mean. It is computed in integers, because
        // a difference of two large floating-point numbers would be inexact. `less` can be negative.
        let less = whole.saturating_mul(self.sum.saturating_add(rest));
        let around = self.squares.saturating_sub_signed(less);
        let squares = around as f64 - rest as f64 * rest as f64 / self.count as f64;
        (self.count > 1).then(|| squares / (self.count - 1) as f64 / 1e18)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of the delays 1 to n ms, exactly n − k + 1 are at least k ms.
    #[test]
    fn the_distribution_goes_down_to_one_in_a_thousand_or_to_the_last_packet() {
        for (packets, last_share, last_ms) in [(2000, 1e-3, 1999.0), (100, 0.01, 100.0), (1, 1.0, 1.0)] {
            let mut delays = Delays::default();
            (1..=packets).for_each(|ms| delays.push(Span::from_millis(ms)));
            let points = delays.distribution();
            let (first, last) = (points.first().expect("the least"), points.last().expect("the longest"));
            assert!((first.share - 1.0).abs() < 1e-12 && (first.delay_s - 1e-3).abs() < 1e-5, "{first:?}");
            assert!((last.share - last_share).abs() < 1e-12, "{last:?}");
            assert!((last.delay_s * 1e3 / last_ms - 1.0).abs() < 2e-3, "{last:?}");
            for DelayShare { delay_s, share } in &points {
                let expected_ms = packets as f64 * (1.0 - share) + 1.0;
                assert!((delay_s * 1e3 / expected_ms - 1.0).abs() < 2e-3, "{share}: {delay_s}");
            }
            assert!(points.windows(2).all(|pair| pair[0].share > pair[1].share));
        }
        assert!(Delays::default().distribution().is_empty());
    }

    proptest! {
        /// If this test fails, merged parts do not have the mean and variance of the two-pass formula over all numbers.
        #[test]
        fn moments_of_parts_are_those_of_the_whole(
            far in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000,
            delays in proptest::collection::vec(-1_000_000_000i64..1_000_000_000, 2..200),
            cut in 0usize..200,
        ) {
            let cut = cut.min(delays.len());
            let moments = |part: &[i64]| {
                let mut moments = Moments::default().begun(far + part.first().unwrap_or(&0));
                for delay in part {
                    moments.add(far + delay);
                }
                moments
            };
            let mut parts = moments(&delays[..cut]);
            parts.merge(&moments(&delays[cut..]));
            let n = delays.len() as f64;
            let mean = delays.iter().sum::<i64>() as f64 / n;
            let variance = delays.iter().map(|delay| (*delay as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0) / 1e18;
            let (found, expected) = (parts.mean_s().unwrap(), (far as f64 + mean) / 1e9);
            prop_assert!((found - expected).abs() <= expected.abs() * 1e-15 + 1e-15, "{found} {expected}");
            prop_assert!((parts.variance_s2().unwrap() - variance).abs() <= 1e-12 * variance.max(1e-18));
            prop_assert_eq!(parts.variance_s2(), moments(&delays).variance_s2());
        }
    }

    /// If this test fails, the variance of numbers whose mean lies just below the first number can be negative.
    #[test]
    fn a_mean_just_below_the_first_number_has_a_right_variance() {
        let cases: [(&[i64], f64); 4] =
            [(&[0, 0, -1], 1.0 / 3.0), (&[0, 0, 0, -1], 0.25), (&[7, 7, 6], 1.0 / 3.0), (&[0, 3, -4], 37.0 / 3.0)];
        for (numbers, expected_ns2) in cases {
            let mut moments = Moments::default().begun(numbers[0]);
            for nanos in numbers {
                moments.add(*nanos);
            }
            let found_ns2 = moments.variance_s2().expect("several numbers") * 1e18;
            assert!((found_ns2 - expected_ns2).abs() < 1e-9, "{numbers:?}: {found_ns2}");
        }
    }

    #[test]
    fn too_few_numbers_are_a_value_and_the_farthest_do_no_harm() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean_s(), moments.variance_s2()), (None, None));
        moments = moments.begun(i64::MIN);
        moments.add(i64::MIN);
        assert_eq!(moments.variance_s2(), None);
        (0..10).for_each(|_| moments.add(i64::MAX));
        moments.merge(&moments.clone());
        assert!(moments.mean_s().is_some_and(f64::is_finite) && moments.variance_s2().is_some_and(f64::is_finite));
    }
}
