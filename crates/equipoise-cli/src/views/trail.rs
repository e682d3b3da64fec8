//! The history of a series, with a bounded number of points.

use super::told::Figures;

/// The measurements of a series over time. If there are too many points, each pair of neighbouring points is merged
/// into one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    points: Vec<Point>,
    /// The last point, if it is not complete yet, and the number of intervals that it covers so far.
    open: Option<(Point, u32)>,
    /// A complete point covers 2 to the power of `thinned` intervals.
    thinned: u32,
}

/// Maximum number of points in a history. Our choice: twice the width of a chart in pixels.
const MOST: usize = 2000;

/// The end of an interval (`at_s`, in seconds), and the values that were measured in the interval; `NaN` for values
/// that were not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) at_s: f64,
    pub(crate) rate_bps: f64,
    pub(crate) allowed_bps: f64,
    pub(crate) delay_mean_s: f64,
    pub(crate) delay_p95_s: f64,
    pub(crate) lost_share: f64,
    pub(crate) queue_packets: f64,
}

impl Point {
    fn new(at_s: f64, figures: &Figures) -> Self {
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Self {
            at_s,
            rate_bps: figures.rate_bps,
            allowed_bps: known(figures.allowed_bps),
            delay_mean_s: known(figures.delay_mean_s),
            delay_p95_s: known(figures.delay_p95_s),
            lost_share: known(figures.lost_share),
            queue_packets: known(figures.queue_packets),
        }
    }

    /// Merges two points with the weights `count` and `more`. The merged values are weighted means, except for the 95th
    /// percentile: the larger one of the two percentiles is kept.
    fn and(self, count: f64, other: Self, more: f64) -> Self {
        let mean = |one: f64, two: f64| match (one.is_nan(), two.is_nan()) {
            (false, false) => (one * count + two * more) / (count + more),
            (true, _) => two,
            (_, true) => one,
        };
        Self {
            at_s: other.at_s,
            rate_bps: mean(self.rate_bps, other.rate_bps),
            allowed_bps: mean(self.allowed_bps, other.allowed_bps),
            delay_mean_s: mean(self.delay_mean_s, other.delay_mean_s),
            delay_p95_s: self.delay_p95_s.max(other.delay_p95_s),
            lost_share: mean(self.lost_share, other.lost_share),
            queue_packets: mean(self.queue_packets, other.queue_packets),
        }
    }
}

impl Trail {
    pub(crate) fn push(&mut self, at_s: f64, figures: &Figures) {
        let new = Point::new(at_s, figures);
        let (point, count) = self.open.map_or((new, 1), |(open, count)| (open.and(count.into(), new, 1.0), count + 1));
        if count < 1 << self.thinned {
            self.open = Some((point, count));
            return;
        }
        self.open = None;
        self.points.push(point);
        if self.points.len() == MOST {
            let pairs = self.points.chunks_exact(2);
            self.points = pairs.map(|pair| pair[0].and(1.0, pair[1], 1.0)).collect();
            self.thinned += 1;
        }
    }

    /// Returns all points. The last point may cover fewer intervals than the others.
    pub(crate) fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.points.iter().copied().chain(self.open.map(|(point, _)| point))
    }

    /// Returns the number of measurement intervals that a complete point of the history covers.
    pub(crate) const fn intervals_a_point(&self) -> u64 {
        1 << self.thinned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, the report of a session of several months uses memory without limit, or lacks the session's
    /// beginning.
    #[test]
    fn a_trail_of_any_length_has_a_bounded_number_of_points_over_all_of_its_time() {
        let mut trail = Trail::default();
        for second in 1..=100_000u32 {
            let figures = Figures { rate_bps: f64::from(second % 2), ..Figures::default() };
            trail.push(f64::from(second), &figures);
        }
        let points: Vec<_> = trail.points().collect();
        assert!((MOST / 2..=MOST).contains(&points.len()), "{}", points.len());
        assert_eq!(trail.intervals_a_point(), 64);
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!((first.at_s - 64.0).abs() < 1e-9 && (last.at_s - 100_000.0).abs() < 1e-9, "{first:?} {last:?}");
        assert!(points.iter().all(|point| (point.rate_bps - 0.5).abs() < 1e-9 && point.lost_share.is_nan()));
    }
}
