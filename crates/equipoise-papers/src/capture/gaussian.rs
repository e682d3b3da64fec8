//! Fits a Gaussian with three parameters to a histogram by least squares.
//!
//! Source: Marquardt 1963. Each step solves the normal equations of the linearised problem. If a step does not
//! reduce the sum of squares, it is rejected, and a larger damping shortens the next one. The numbers are scaled so
//! that the height and the width are about one, and the position is near zero.

use serde::Serialize;

/// `f(x) = a exp(-(x - b)² / (2c²))`, fitted to a histogram by least squares (Waki 2013, Eq. 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GaussianFit {
    /// Height of the peak, in samples per histogram bar.
    pub a: f64,
    /// Position of the peak, in seconds.
    pub b_s: f64,
    /// Standard deviation of the Gaussian, in seconds; above zero.
    pub c_s: f64,
    /// Standard errors of `a`, `b_s` and `c_s`, each in the unit of its parameter.
    pub standard_errors: [f64; 3],
    /// Share of the variance of the histogram's counts that the fit explains.
    pub r2: f64,
}

impl GaussianFit {
    /// Returns the value of the fitted curve at `x_s` seconds, in samples per histogram bar.
    pub fn at(&self, x_s: f64) -> f64 {
        let z = (x_s - self.b_s) / self.c_s;
        self.a * (-z * z / 2.0).exp()
    }
}

/// A histogram with bars of equal width, and the moments of its samples.
pub(super) struct Histogram<'a> {
    pub(super) counts: &'a [u64],
    pub(super) first_s: f64,
    pub(super) bin_s: f64,
    pub(super) mean_s: f64,
    /// Standard deviation of the samples; above zero.
    pub(super) deviation_s: f64,
}

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Width of a Gaussian at half its height, as a multiple of its standard deviation.
const WIDTH_AT_HALF: f64 = 2.354_820_045;
/// Number of steps after which the search fails. Our choice.
const MOST_STEPS: usize = 1000;
/// The search succeeds if a step changes the height and the standard deviation by at most this share, and the position
/// by at most this share of the standard deviation. Our choice.
const SMALLEST_STEP: f64 = 1e-10;
/// The damping of the first step (Marquardt 1963).
const FIRST_DAMPING: f64 = 1e-2;
/// The minimum damping. Our choice. With a smaller minimum, too many steps may be rejected before the damping has
/// grown enough.
const LEAST_DAMPING: f64 = 1e-9;
/// The damping is multiplied by the first factor after an accepted step, and by the second after a rejected step. Our
/// choice. With larger changes of the damping, the search takes too many steps if the sum of squares has a narrow
/// valley, for example if the histogram has only one flank.
const DAMPING_KEPT: f64 = 1.0 / 3.0;
const DAMPING_REFUSED: f64 = 2.0;

impl Histogram<'_> {
    /// Returns the least-squares fit. Returns `None` if there are fewer than four bars, if the search does not
    /// converge, or if the counts do not determine all three parameters. Equal counts, or a peak far narrower than a
    /// bar, do not determine all parameters.
    pub(super) fn fit(&self) -> Option<GaussianFit> {
        let highest = self.counts.iter().max().copied().unwrap_or(0) as f64;
        let place = |bar: usize| (self.first_s + (bar as f64 + 0.5) * self.bin_s - self.mean_s) / self.deviation_s;
        let bars: Vec<_> =
            self.counts.iter().enumerate().map(|(bar, &count)| (place(bar), count as f64 / highest)).collect();
        let mode = self.counts.iter().enumerate().max_by_key(|(_, count)| **count).map(|(bar, _)| place(bar))?;
        let freedom = bars.len().checked_sub(3).filter(|freedom| *freedom > 0)? as f64;
        // The search starts with a peak at the highest bar. The initial width of the peak at half height is the total
        // width of the bars that have at least half the highest count. With a far larger initial width, the search
        // might end outside the histogram.
        let high = bars.iter().filter(|bar| bar.1 >= 0.5).count() as f64;
        let found = search(&bars, [1.0, mode, high * self.bin_s / self.deviation_s / WIDTH_AT_HALF])?;
        let [a, b, c] = found.parameters;
        let covariance = inverse(&found.normal)?;
        let error = |index: usize| (covariance[index][index] * found.squares / freedom).sqrt();
        let mean = bars.iter().map(|bar| bar.1).sum::<f64>() / bars.len() as f64;
        let total: f64 = bars.iter().map(|bar| (bar.1 - mean) * (bar.1 - mean)).sum();
        let has_variances = (0..3).all(|index| covariance[index][index] > 0.0);
        let is_determined = total > 0.0 && has_variances && error(2) < c.abs();
        is_determined.then(|| GaussianFit {
            a: a * highest,
            b_s: self.mean_s + b * self.deviation_s,
            c_s: c.abs() * self.deviation_s,
            standard_errors: [error(0) * highest, error(1) * self.deviation_s, error(2) * self.deviation_s],
            r2: 1.0 - found.squares / total,
        })
    }
}

/// One set of parameters, with the sum of squares and its derivatives.
struct Point {
    /// Height, position and standard deviation of the Gaussian, in scaled units.
    parameters: Vector,
    /// Sum of the squared residuals r.
    squares: f64,
    /// Half the gradient of `squares`: `Jᵀr`, where J is the Jacobian matrix and r are the residuals.
    gradient: Vector,
    /// Matrix of the normal equations: `JᵀJ`, where J is the Jacobian matrix.
    normal: Matrix,
}

impl Point {
    fn new(bars: &[(f64, f64)], parameters: Vector) -> Self {
        let [a, b, c] = parameters;
        let mut point = Self { parameters, squares: 0.0, gradient: [0.0; 3], normal: [[0.0; 3]; 3] };
        for (x, y) in bars {
            let z = (x - b) / c;
            let shape = (-z * z / 2.0).exp();
            let residual = a * shape - y;
            let slopes = [shape, a * shape * z / c, a * shape * z * z / c];
            point.squares += residual * residual;
            for row in 0..3 {
                point.gradient[row] += slopes[row] * residual;
                for column in 0..3 {
                    point.normal[row][column] += slopes[row] * slopes[column];
                }
            }
        }
        point
    }

    /// Returns the step that solves `(JᵀJ + damping · diag(JᵀJ)) step = -Jᵀr`, where J is the Jacobian matrix and r are
    /// the residuals. Returns `None` if the matrix on the left is singular.
    fn step(&self, damping: f64) -> Option<Vector> {
        let mut damped = self.normal;
        for (index, row) in damped.iter_mut().enumerate() {
            row[index] *= 1.0 + damping;
        }
        let inverse = inverse(&damped)?;
        let dot = |row: &Vector| row.iter().zip(&self.gradient).map(|(one, other)| one * other).sum::<f64>();
        Some([-dot(&inverse[0]), -dot(&inverse[1]), -dot(&inverse[2])])
    }
}

/// Searches the parameters with the smallest sum of squares. Returns `None` if the search does not converge.
fn search(bars: &[(f64, f64)], start: Vector) -> Option<Point> {
    let mut here = Point::new(bars, start);
    let mut damping = FIRST_DAMPING;
    for _ in 0..MOST_STEPS {
        let step = here.step(damping)?;
        let [a, b, c] = here.parameters;
        let there = Point::new(bars, [a + step[0], b + step[1], c + step[2]]);
        // The position may be zero, so the step of the position is divided by the standard deviation.
        let share = (step[0] / a).abs().max((step[1] / c).abs()).max((step[2] / c).abs());
        if there.squares < here.squares {
            here = there;
            damping = (damping * DAMPING_KEPT).max(LEAST_DAMPING);
        } else {
            damping *= DAMPING_REFUSED;
        }
        if share <= SMALLEST_STEP {
            return Some(here);
        }
    }
    None
}

/// Returns the inverse of a matrix, computed by cofactors; `None` if an element of the inverse is not finite.
fn inverse(matrix: &Matrix) -> Option<Matrix> {
    let cofactor = |row: usize, column: usize| {
        let [r, s, c, d] = [(row + 1) % 3, (row + 2) % 3, (column + 1) % 3, (column + 2) % 3];
        matrix[r][c] * matrix[s][d] - matrix[r][d] * matrix[s][c]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * cofactor(0, column)).sum();
    let mut inverse = [[0.0; 3]; 3];
    for (row, values) in inverse.iter_mut().enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            *value = cofactor(column, row) / determinant;
        }
    }
    inverse.iter().flatten().all(|value| value.is_finite()).then_some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts are the rounded values of a Gaussian. If the test fails, the fit does not find the parameters of this
    /// Gaussian.
    #[test]
    fn counts_of_a_gaussian_give_its_parameters() {
        for (middle, width) in [(0.04, 0.005), (0.0371, 0.0014), (1e-4, 2e-5), (250.0, 31.0)] {
            let (bin, height) = (width / 3.1, 1e12);
            let first = middle - 14.7 * bin;
            let count = |bar: u32| {
                let z = (first + (f64::from(bar) + 0.5) * bin - middle) / width;
                (height * (-z * z / 2.0).exp()).round() as u64
            };
            let counts: Vec<_> = (0..30).map(count).collect();
            let histogram = Histogram {
                counts: &counts,
                first_s: first,
                bin_s: bin,
                mean_s: middle + 0.3 * width,
                deviation_s: 1.2 * width,
            };
            let fit = histogram.fit().expect("a fit");
            for (found, exact) in [(fit.a, height), (fit.b_s, middle), (fit.c_s, width), (fit.r2, 1.0)] {
                assert!((found / exact - 1.0).abs() < 1e-9, "{found}, exactly {exact}");
            }
            assert!(fit.standard_errors[2] < 1e-9 * width, "{fit:?}");
        }
    }

    #[test]
    fn shapes_without_a_width_have_no_fit() {
        let fit = |counts: &[u64]| {
            Histogram { counts, first_s: 0.0, bin_s: 1.0, mean_s: counts.len() as f64 / 2.0, deviation_s: 1.0 }.fit()
        };
        assert_eq!(fit(&[10, 20, 10]), None, "three bars leave no degree of freedom");
        assert_eq!(fit(&[0, 0, 0, 100, 0, 0, 0]), None, "a single bar");
        assert_eq!(fit(&[100, 0, 0, 0, 0, 3, 100]), None, "two bars");
        assert_eq!(fit(&[10; 8]), None, "no peak");
        assert!(fit(&[1, 9, 20, 9, 1]).is_some());
    }
}
