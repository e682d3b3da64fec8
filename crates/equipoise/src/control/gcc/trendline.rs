use crate::units::{Instant, ReceiverClock};

/// Measures the slope of the queueing delay, by fitting a line to the delays of the last groups of packets.
///
/// ```text
/// s_i   = 0.9 s_{i-1} + 0.1 Σ d                           smoothed sum of the delay differences d, ms
/// slope = Σ (t - t̄)(s - s̄) / Σ (t - t̄)²                   least squares over the last 20 groups; t: arrival, ms
/// m     = 4 min(n, 60) slope                              compared with the threshold; n: number of groups so far
/// ```
///
/// For a queue that fills, the slope is `(rate - capacity) / rate`, without unit. Source: libwebrtc,
/// `trendline_estimator`, which replaces the draft's Kalman filter.
///
/// Special cases: with fewer than 20 groups, the slope is zero. If all groups arrived at the same time, the previous
/// slope is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Trendline {
    origin: Option<Instant<ReceiverClock>>,
    accumulated_ms: f64,
    smoothed_ms: f64,
    points: [Point; WINDOW],
    /// Number of groups so far, up to [`MOST`].
    count: usize,
    slope: f64,
}

/// Number of groups to which the line is fitted. With a larger value, the slope is steadier and reacts later
/// (libwebrtc, `trendline_estimator`).
const WINDOW: usize = 20;
/// Weight of the old value in the smoothed delay (libwebrtc, `trendline_estimator`).
const SMOOTHING: f64 = 0.9;
/// Gain of the slope. With a larger value, smaller overloads are detected, and more noise is mistaken for an overload
/// (libwebrtc, `trendline_estimator`).
const GAIN: f64 = 4.0;
/// Before the delay trend is compared with the threshold, the trend is multiplied by the number of packet groups so
/// far, but by at most this value (libwebrtc, `trendline_estimator`). Implementations of the draft, such as pion, use
/// the same value.
pub(super) const TRUSTED: usize = 60;
/// The count of groups stops at this number. Any number above [`TRUSTED`] is enough, because the estimate is multiplied
/// by the count or by `TRUSTED`, whichever is smaller.
const MOST: usize = 1000;

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    arrived_ms: f64,
    delay_ms: f64,
}

/// The result of a delay filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The value to compare with the threshold, in ms.
    pub compared_ms: f64,
    /// The trend of the delay; `compared_ms` is this trend times a factor. The detector compares this trend with the
    /// previous one.
    pub trend: f64,
}

impl Trendline {
    /// Processes a group of packets that took `delay_ms` longer than the previous group. The next group began to arrive
    /// at `arrived`.
    pub(super) fn push(&mut self, delay_ms: f64, arrived: Instant<ReceiverClock>) -> Estimate {
        let origin = *self.origin.get_or_insert(arrived);
        self.accumulated_ms += delay_ms;
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.accumulated_ms;
        self.points.rotate_left(1);
        if let Some(last) = self.points.last_mut() {
            *last = Point { arrived_ms: (arrived - origin).as_millis_f64(), delay_ms: self.smoothed_ms };
        }
        self.count = (self.count + 1).min(MOST);
        if self.count >= WINDOW {
            self.slope = slope(&self.points).unwrap_or(self.slope);
        }
        let compared_ms = self.count.min(TRUSTED) as f64 * self.slope * GAIN;
        Estimate { compared_ms, trend: self.slope }
    }
}

/// Returns the slope of the least squares line; `None` if all points have the same arrival time.
fn slope(points: &[Point]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.arrived_ms, y + point.delay_ms));
    let (x, y) = (x / count, y / count);
    let (over, under) = points.iter().fold((0.0, 0.0), |(over, under), point| {
        let from_mean = point.arrived_ms - x;
        (over + from_mean * (point.delay_ms - y), under + from_mean * from_mean)
    });
    let slope = over / under;
    slope.is_finite().then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimate after `count` delay differences, for groups that leave every 20 ms and arrive every
    /// `spacing_us`.
    fn estimate(spacing_us: u64, count: u64) -> Estimate {
        let mut line = Trendline::default();
        let delay_ms = spacing_us as f64 / 1e3 - 20.0;
        let mut last = Estimate { compared_ms: 0.0, trend: 0.0 };
        (1..=count).for_each(|number| last = line.push(delay_ms, Instant::from_nanos(number * spacing_us * 1000)));
        last
    }

    /// The slope converges to the overload: packets sent 20 ms apart that arrive 22 ms apart have a slope of 2/22.
    #[test]
    fn the_slope_tends_to_the_share_by_which_the_path_is_overloaded() {
        for (spacing_us, overload) in [(22_000, 2.0 / 22.0), (21_000, 1.0 / 21.0), (18_000, -2.0 / 18.0)] {
            let slope = estimate(spacing_us, 400).trend;
            assert!((slope - overload).abs() < 1e-6, "{slope} for {overload}");
        }
    }

    /// The expected values are computed by hand from the equations: for 24 delay differences of 2 ms, for 36
    /// differences of 1 ms, and for infinitely many differences of 0.4 ms.
    #[test]
    fn an_overload_has_the_estimate_that_was_computed_by_hand() {
        let found = estimate(22_000, 24);
        assert!((found.trend - 0.0701).abs() < 5e-5 && (found.compared_ms - 6.725).abs() < 1e-3, "{found:?}");
        let found = estimate(21_000, 36);
        assert!((found.trend - 0.0445).abs() < 5e-5 && (found.compared_ms - 6.413).abs() < 1e-3, "{found:?}");
        let found = estimate(20_400, 300);
        assert!((found.compared_ms - 240.0 * 0.4 / 20.4).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn too_few_groups_and_groups_that_arrive_at_once_have_no_slope() {
        assert_eq!(estimate(22_000, 19), Estimate { compared_ms: 0.0, trend: 0.0 });
        let mut line = Trendline::default();
        for _ in 0..40 {
            assert_eq!(line.push(-20.0, Instant::ZERO).trend.to_bits(), 0.0f64.to_bits());
        }
    }
}
