//! Statistics over several runs: confidence intervals, quantiles and regression.

/// Returns half the width of the 95 % confidence interval of the mean of `values`, computed from their standard
/// deviation; `None` for fewer than two values.
pub fn half_width_95(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (n >= 2).then(|| student_975(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt())
}

/// Returns the 97.5 % quantile of Student's t with ν degrees of freedom. For ν up to 30, the quantile comes from a
/// table. Above 30, it is computed from a series in 1/ν, up to the term with 1/ν².
fn student_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let normal: f64 = 1.959_964;
    degrees.checked_sub(1).and_then(|row| TABLE.get(row)).copied().unwrap_or_else(|| {
        let (z, n) = (normal, degrees as f64);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
        z + (z.powi(3) + z) / (4.0 * n) + second
    })
}

/// Returns the mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the standard deviation divided by the mean (Waki 2013, Eq. 19 to 21). The variance has the divisor n instead
/// of n - 1. `None` if there are no values or if the mean is not above zero.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|centre| *centre > 0.0)?;
    let squares: Vec<_> = values.iter().map(|value| (value - centre) * (value - centre)).collect();
    Some(mean(&squares)?.sqrt() / centre)
}

/// Returns the mean of `values` and its 95 % confidence interval by Student's t; `None` for fewer than two values.
pub fn mean_95(values: &[f64]) -> Option<Estimate> {
    let half = half_width_95(values)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Estimate { value: mean, ci95: [mean - half, mean + half] })
}

/// Returns the median of `values` and its 95 % confidence interval, without an assumption about the distribution of the
/// values. The ends of the interval are two of the sorted values. Their ranks follow from the normal approximation of
/// the binomial distribution. `None` for fewer than six values, which are too few for such an interval.
pub fn median_95(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let n = sorted.len();
    if n < 6 {
        return None;
    }
    let reach = 1.959_964 * (n as f64).sqrt() / 2.0;
    let low = ((n as f64 / 2.0 - reach).floor().max(1.0) as usize).saturating_sub(1);
    let high = ((n as f64 / 2.0 + reach).ceil() as usize).min(n - 1);
    Some(Estimate { value: quantile(&sorted, 0.5), ci95: [sorted[low], sorted[high]] })
}

/// An estimate, and the interval that contains the true value with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated value.
    pub value: f64,
    /// Lower and upper end of the confidence interval.
    pub ci95: [f64; 2],
}

/// Returns the share of `hits` among `trials` with Wilson's 95 % interval (Wilson 1927), which is also correct for
/// rare events. `None` if there are no trials.
pub fn share_95(hits: usize, trials: usize) -> Option<Estimate> {
    let (z2, n) = (1.959_964f64 * 1.959_964, trials as f64);
    let p = hits as f64 / n;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = 1.959_964 / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    (trials > 0).then_some(Estimate { value: p, ci95: [(centre - half).max(0.0), (centre + half).min(1.0)] })
}

/// Returns Jain's index of fairness (Jain 1984): 1 if all shares are equal, 1/n if one of n flows has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Returns the values in rising order, without NaN.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<_> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns a quantile of sorted values by linear interpolation between neighbours (type 7 of Hyndman 1996); NaN if
/// there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, rest) = (place.floor() as usize, place.fract());
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if rest > 0.0 { at(below) + rest * (at(below + 1) - at(below)) } else { at(below) }
}

/// Quantiles over several runs at one position on the x-axis. The quantiles are NaN if fewer than half of the runs have
/// a value at this position.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    /// The position on the x-axis.
    pub at: f64,
    /// 10th percentile over the runs.
    pub low: f64,
    /// Median over the runs.
    pub median: f64,
    /// 90th percentile over the runs.
    pub high: f64,
}

/// Returns the quantiles over the runs at every position at which some run has a point. Positions that differ by less
/// than 1e-9 count as the same position.
pub fn quantiles_over<R: AsRef<[(f64, f64)]>>(runs: &[R]) -> Vec<Quantiles> {
    const SAME: f64 = 1e-9;
    let mut all: Vec<_> = runs.iter().flat_map(AsRef::as_ref).copied().filter(|(x, _)| x.is_finite()).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let places = all.chunk_by(|one, other| (one.0 - other.0).abs() < SAME);
    let quantiles = |place: &[(f64, f64)]| {
        let finite: Vec<_> = place.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).collect();
        let values = if 2 * finite.len() < runs.len() { Vec::new() } else { sorted(&finite) };
        let [low, median, high] = [0.1, 0.5, 0.9].map(|share| quantile(&values, share));
        Quantiles { at: place.first().map_or(f64::NAN, |(x, _)| *x), low, median, high }
    };
    places.map(quantiles).collect()
}

/// The least-squares line `y = intercept + slope x`, with the 95 % confidence interval of the slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Slope of the line, with its confidence interval.
    pub slope: Estimate,
    /// Value of the line at x = 0.
    pub intercept: f64,
    /// Share of the variance of y that the line explains.
    pub r2: f64,
}

/// Returns the line of ordinary least squares; `None` for fewer than three points, or if all x are equal.
pub fn regression(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - mx, p.1 - my)).sum::<f64>();
    let (sxx, sxy, syy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if points.len() < 3 || sxx <= 0.0 {
        return None;
    }
    let slope = sxy / sxx;
    let residual = (syy - slope * sxy).max(0.0);
    let half = student_975(points.len() - 2) * (residual / (n - 2.0) / sxx).sqrt();
    let slope_estimate = Estimate { value: slope, ci95: [slope - half, slope + half] };
    Some(Line {
        slope: slope_estimate,
        intercept: my - slope * mx,
        r2: if syy > 0.0 { 1.0 - residual / syy } else { 1.0 },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_quantile_goes_on_smoothly_where_the_table_ends() {
        // Published values of the quantile are 2.0395 at 31 and 1.9840 at 100 degrees of freedom.
        assert!((student_975(31) - 2.0395).abs() < 2e-4);
        assert!((student_975(100) - 1.9840).abs() < 1e-4);
    }

    #[test]
    fn the_interval_of_two_known_values() {
        // Half the width of the interval is t s / √n. Here, t is 12.706 for one degree of freedom, the standard
        // deviation s is √2, and n is 2.
        assert!((half_width_95(&[1.0, 3.0]).unwrap() - 12.706).abs() < 1e-9);
        assert_eq!(half_width_95(&[1.0]), None);
    }

    /// The first data set of Anscombe 1973. Published values: slope 0.500, intercept 3.00, standard error of the slope
    /// 0.118, R² 0.667.
    #[test]
    fn the_line_through_anscombes_first_set() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let line = regression(&x.into_iter().zip(y).collect::<Vec<_>>()).expect("eleven points");
        assert!((line.slope.value - 0.5001).abs() < 5e-5 && (line.intercept - 3.0001).abs() < 5e-5, "{line:?}");
        // 2.262 is the 97.5 % quantile of Student's t at nine degrees of freedom.
        assert!(((line.slope.ci95[1] - line.slope.value) / 2.262 - 0.1179).abs() < 5e-5, "{line:?}");
        assert!((line.r2 - 0.6665).abs() < 5e-5, "{line:?}");
    }

    /// Published calculators return Wilson's interval 1.8 % to 6.0 % for 10 of 300. For 0 of n, the interval ends at
    /// z²/(n + z²) with z = 1.96, which is 0.0384 % for n = 10 000.
    #[test]
    fn shares_of_rare_events() {
        let some = share_95(10, 300).expect("trials");
        assert!((some.ci95[0] - 0.0182).abs() < 1e-4 && (some.ci95[1] - 0.0603).abs() < 1e-4, "{some:?}");
        let none = share_95(0, 10_000).expect("trials");
        assert!(none.ci95[0].abs() < 1e-12 && (none.ci95[1] - 3.84e-4).abs() < 1e-6, "{none:?}");
        assert_eq!(share_95(0, 0), None);
    }

    /// By type 7 of Hyndman 1996, the quartiles of 1 to 5 are 2, 3 and 4; the quartiles of 1 to 4 are 1.75, 2.5 and
    /// 3.25.
    #[test]
    fn quantiles_between_neighbours() {
        let cases = [([5.0, 3.0, 1.0, 2.0, 4.0], [2.0, 3.0, 4.0]), ([4.0, 3.0, 1.0, 2.0, f64::NAN], [1.75, 2.5, 3.25])];
        for (values, quartiles) in cases {
            let values = sorted(&values);
            for (share, expected) in [0.25, 0.5, 0.75].into_iter().zip(quartiles) {
                assert!((quantile(&values, share) - expected).abs() < 1e-12, "{share} of {values:?}");
            }
        }
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn jain_is_one_for_equal_shares_and_their_share_for_one_that_has_all() {
        assert!((jain(&[3.0, 3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }

    /// For 100 values, published tables have the 40th and the 61st sorted value as bounds of the median's interval.
    #[test]
    fn the_medians_interval_is_that_of_the_tables() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let median = median_95(&values).expect("enough");
        assert_eq!((median.value, median.ci95), (50.5, [40.0, 61.0]));
        assert_eq!(median_95(&values[..5]), None);
    }

    /// If this test fails, the quantiles of the few runs that have values at a later time look like quantiles of all
    /// runs.
    #[test]
    fn a_moment_that_fewer_than_half_of_the_runs_have_is_a_gap() {
        let runs = [vec![(0.0, 1.0), (1.0, 1.0)], vec![(0.0, 2.0), (1.0, f64::NAN)], vec![(0.0, 3.0)]];
        let points = quantiles_over(&runs);
        assert_eq!(points.len(), 2);
        assert!((points[0].median - 2.0).abs() < 1e-12 && points[1].median.is_nan(), "{points:?}");
    }

    proptest! {
        #[test]
        fn the_median_lies_in_the_band_and_the_band_among_the_runs(runs in proptest::collection::vec(proptest::collection::vec(-1e6..1e6f64, 1..9), 2..30)) {
            let timed: Vec<Vec<_>> = runs.iter().map(|run| run.iter().enumerate().map(|(at, y)| (at as f64, *y)).collect()).collect();
            for (at, point) in quantiles_over(&timed).into_iter().enumerate() {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.get(at)).copied().collect();
                if 2 * values.len() >= runs.len() {
                    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    prop_assert!(least <= point.low && point.low <= point.median && point.median <= point.high && point.high <= largest);
                } else {
                    prop_assert!(point.median.is_nan());
                }
            }
        }
    }
}
