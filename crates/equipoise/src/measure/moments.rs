use super::summary::DelaySummary;

/// Count, mean and variance of a stream of numbers, computed in one pass and without cancellation errors.
///
/// Source: Welford 1962 to add a single number; Chan 1983, Eq. 2.1 to merge two streams. NaN and infinities are
/// ignored, so that one invalid number does not make the statistics of an interval invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl Moments {
    /// The moments before any number was added.
    pub const EMPTY: Self = Self { count: 0, mean: 0.0, squares: 0.0 };

    /// Adds a number; infinities and NaN are ignored.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Adds all numbers of another stream.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let total = self.count + other.count;
        let distance = other.mean - self.mean;
        let share = other.count as f64 / total as f64;
        self.squares += other.squares + distance * distance * self.count as f64 * share;
        self.mean += distance * share;
        self.count = total;
    }

    /// Computes the moments from a summary.
    pub(crate) const fn from_summary(summary: &DelaySummary) -> Self {
        let count = summary.samples;
        Self { count, mean: summary.mean_s, squares: summary.variance_s2 * count.saturating_sub(1) as f64 }
    }

    /// Returns how many numbers were added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; `None` if no number was added.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Returns the unbiased variance (divisor n − 1), in the square of the numbers' unit; `None` for fewer than two
    /// numbers.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Returns the standard deviation; `None` for fewer than two numbers.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(libm::sqrt)
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::EMPTY;
        values.into_iter().for_each(|value| moments.push(value));
        moments
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes mean and variance by the textbook formulas, which need two passes, as a reference.
    fn two_pass(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0))
    }

    #[test]
    fn a_small_variance_on_a_large_mean_survives() {
        // 1e9 + {4, 7, 13, 16} have a variance of 30. With the naive sum of squares, rounding would destroy the result.
        let moments: Moments = [4.0, 7.0, 13.0, 16.0].iter().map(|v| v + 1e9).collect();
        assert_eq!(moments.variance(), Some(30.0));
    }

    #[test]
    fn too_few_numbers_are_a_value_and_bad_ones_are_left_out() {
        let mut moments = Moments::EMPTY;
        assert_eq!((moments.mean(), moments.variance()), (None, None));
        moments.push(f64::NAN);
        moments.push(f64::INFINITY);
        moments.push(2.0);
        assert_eq!((moments.count(), moments.mean(), moments.variance()), (1, Some(2.0), None));
    }

    proptest! {
        #[test]
        fn one_pass_agrees_with_two(values in proptest::collection::vec(-1e3f64..1e3, 2..200)) {
            let moments: Moments = values.iter().copied().collect();
            let (mean, variance) = two_pass(&values);
            prop_assert!((moments.mean().unwrap() - mean).abs() <= 1e-9);
            prop_assert!((moments.variance().unwrap() - variance).abs() <= 1e-9 * variance.max(1.0));
        }

        #[test]
        fn a_stream_cut_in_two_and_merged_is_the_stream(values in proptest::collection::vec(-1e3f64..1e3, 2..200), cut in 0usize..200) {
            let cut = cut.min(values.len());
            let whole: Moments = values.iter().copied().collect();
            let mut parts: Moments = values[..cut].iter().copied().collect();
            parts.merge(&values[cut..].iter().copied().collect());
            prop_assert_eq!(parts.count(), whole.count());
            prop_assert!((parts.mean().unwrap() - whole.mean().unwrap()).abs() <= 1e-9);
            prop_assert!((parts.variance().unwrap() - whole.variance().unwrap()).abs() <= 1e-6 * whole.variance().unwrap().max(1.0));
        }

        #[test]
        fn shifting_moves_the_mean_and_keeps_the_variance(values in proptest::collection::vec(-1.0f64..1.0, 2..100), shift in -1e3f64..1e3) {
            let here: Moments = values.iter().copied().collect();
            let there: Moments = values.iter().map(|v| v + shift).collect();
            prop_assert!((there.mean().unwrap() - here.mean().unwrap() - shift).abs() < 1e-9);
            prop_assert!((there.variance().unwrap() - here.variance().unwrap()).abs() < 1e-9);
        }
    }
}
