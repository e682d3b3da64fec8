use alloc::vec::Vec;

use super::slope::Slope;
use super::windows::{Window, Windows};
use crate::units::Span;

/// How much faster the receiver's clock runs than the sender's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The estimate in parts per million, within ±500; positive if the receiver's clock runs faster.
    pub ppm: f64,
    /// Distance from the estimate to the farther end of its 95 % interval, in parts per million; zero or more.
    pub uncertainty_ppm: f64,
}

/// Estimates the drift of the clocks from points. Each window of successive reports gives one point: the time and the
/// delay of the window's report with the minimum delay.
///
/// The estimate is the median of the slopes of all [comparable](Window::compares_with) pairs of points (Sen 1968).
///
/// The confidence interval follows from the variance of `S`. `S` is the number of slopes above the true drift minus the
/// number of slopes below it. The noise is assumed to have the same distribution at all points. Then two pairs that
/// share a point contribute to `S` with a correlation of ±1/3, so `Var S = (pairs + sum of (a - b)²) / 3`. The sum is
/// over all points. Here `a` is the number of pairs whose later point is this point, and `b` is the number of pairs
/// whose earlier point is this point. If all pairs of the `n` points are comparable, `Var S` is Sen's
/// `n (n - 1) (2n + 5) / 18`.
#[derive(Clone, Debug)]
pub(super) struct DriftFinder {
    slopes: Vec<f64>,
}

impl DriftFinder {
    /// Maximum number of pairs: all pairs of 64 points.
    const MOST_PAIRS: usize = Windows::MOST * (Windows::MOST - 1) / 2;
    /// Minimum number of pairs for an estimate of the drift. Our choice: the number of pairs of eight points. The
    /// confidence interval is a normal approximation, which needs about this number of pairs.
    const FEWEST_PAIRS: usize = 28;
    /// 97.5 % quantile of the normal distribution, for an interval of 95 %.
    const QUANTILE: f64 = 1.959_964;

    pub(super) fn new() -> Self {
        Self { slopes: Vec::with_capacity(Self::MOST_PAIRS) }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slopes.capacity()
    }

    /// Returns the drift and its uncertainty; `None` if there are too few comparable pairs of points. Each window has
    /// one point.
    pub(super) fn drift(&mut self, windows: &Windows) -> Option<Drift> {
        self.slopes.clear();
        let mut squares = 0.0;
        for (place, point) in windows.iter().enumerate() {
            let mut balance = 0.0;
            for (other_place, other) in windows.iter().enumerate().filter(|(_, other)| other.compares_with(point)) {
                balance += if other_place < place { 1.0 } else { -1.0 };
                if other_place < place && self.slopes.len() < Self::MOST_PAIRS {
                    let rise = (point.shown - other.shown).as_nanos() as f64;
                    self.slopes.push(rise / (point.at - other.at).as_nanos() as f64);
                }
            }
            squares += balance * balance;
        }
        if self.slopes.len() < Self::FEWEST_PAIRS {
            return None;
        }
        self.slopes.sort_unstable_by(f64::total_cmp);
        let pairs = self.slopes.len() as f64;
        let reach = Self::QUANTILE * libm::sqrt((pairs + squares) / 3.0);
        let lowest = libm::round((pairs - reach) / 2.0) - 1.0;
        let highest = libm::round(f64::midpoint(pairs, reach));
        if lowest < 0.0 {
            return None;
        }
        let (low, high) = (*self.slopes.get(lowest as usize)?, *self.slopes.get(highest as usize)?);
        let middle = median(&self.slopes)?;
        let most = Slope::STEEPEST.per_second();
        Some(Drift { ppm: middle.clamp(-most, most) * 1e6, uncertainty_ppm: (high - middle).max(middle - low) * 1e6 })
    }

    /// Returns the median over all windows of the distance by which a window's minimum delay is above a line. The line
    /// goes through `lowest` and has the slope `slope`.
    pub(super) fn spread(&mut self, windows: &Windows, lowest: &Window, slope: Slope) -> Span {
        self.slopes.clear();
        self.slopes.extend(windows.iter().map(|window| window.above(lowest, slope).as_nanos() as f64));
        self.slopes.sort_unstable_by(f64::total_cmp);
        median(&self.slopes).map_or(Span::ZERO, |nanos| Span::from_nanos(nanos as i64))
    }
}

/// Returns the middle of sorted numbers, or the mean of the two middle ones.
fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(half.checked_sub(1)?)?, upper))
}
