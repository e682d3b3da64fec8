use crate::units::{Instant, SenderClock, Span};

/// The losses reported since the last adaptation point. An adaptation point is a time at which the rate is adapted
/// (Tobe 1999, Fig. 2; Sisalem 1998).
#[derive(Clone, Copy, Debug, Default)]
pub struct AdaptationPoints {
    since: Option<Instant<SenderClock>>,
    sum: f64,
    reports: u32,
    /// Number of report intervals since the last adaptation point. The first report of the session only sets the start
    /// time, so it ends no interval.
    intervals: u32,
}

impl AdaptationPoints {
    /// Records a report that arrived at `now`. If `now` is an adaptation point, returns the mean fraction lost since
    /// the previous adaptation point. The time between two adaptation points is at least `adapt` minus half of the mean
    /// report interval. If reports are evenly spaced, this time is the multiple of the report interval that is nearest
    /// to `adapt`.
    pub fn push(&mut self, now: Instant<SenderClock>, fraction_lost: f64, adapt: Span) -> Option<f64> {
        self.sum += if fraction_lost.is_finite() { fraction_lost.clamp(0.0, 1.0) } else { 0.0 };
        self.reports += 1;
        self.intervals += u32::from(self.since.is_some());
        let elapsed = now - *self.since.get_or_insert(now);
        let half_interval = Span::from_nanos(elapsed.as_nanos() / i64::from(self.intervals.max(1)) / 2);
        if elapsed == Span::ZERO || elapsed + half_interval < adapt {
            return None;
        }
        let mean = self.sum / f64::from(self.reports);
        *self = Self { since: Some(now), ..Self::default() };
        Some(mean)
    }
}

/// Returns the rate after losses, `r (1 - p R_f)`, in bit/s, from the rate r, the fraction lost p and the reduction
/// factor `R_f` (Tobe 1999, Sec. 4 and Fig. 2).
pub fn reduced(bps: f64, fraction_lost: f64, reduction_factor: f64) -> f64 {
    bps * (1.0 - fraction_lost * reduction_factor)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Simulates a report every `interval_ms`. Returns the first ten adaptation points, in ms since the first report.
    fn points(interval_ms: i64, adapt_ms: i64) -> Vec<i64> {
        let mut losses = AdaptationPoints::default();
        (0..)
            .map(|report| report * interval_ms)
            .filter(|at_ms| {
                let now = Instant::ZERO + Span::from_millis(*at_ms);
                losses.push(now, 0.0, Span::from_millis(adapt_ms)).is_some()
            })
            .take(10)
            .collect()
    }

    /// The first two periods are those of Tobe 1999, Table 4: 3 s with a report every 1 s, and 1 s with a report every
    /// 0.5 s. If the test fails, LDA and TPBA adapt their rates at other times than in the paper.
    #[test]
    fn all_periods_have_the_length_that_is_set() {
        for (interval_ms, adapt_ms) in [(1000, 3000), (500, 1000), (3000, 3000), (100, 3000)] {
            let expected: Vec<_> = (1..=10).map(|point| point * adapt_ms).collect();
            assert_eq!(points(interval_ms, adapt_ms), expected, "a report every {interval_ms} ms");
        }
    }

    /// With a report every 0.7 s, the report at 2.8 s is nearer to 3 s than the reports at 2.1 s and 3.5 s. With a
    /// report every 0.8 s, the report at 3.2 s is nearer to 3 s than the reports at 2.4 s and 4 s.
    #[test]
    fn a_point_is_at_the_report_nearest_to_the_end_of_the_period() {
        assert_eq!(points(700, 3000)[..3], [2800, 5600, 8400]);
        assert_eq!(points(800, 3000)[..3], [3200, 6400, 9600]);
    }

    /// If the test fails, a loss counts in two periods, or the mean includes a report of another period.
    #[test]
    fn the_mean_is_over_the_reports_of_one_period() {
        let mut losses = AdaptationPoints::default();
        let found: Vec<_> = [0.4, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0]
            .iter()
            .zip(0..)
            .filter_map(|(lost, second)| {
                losses.push(Instant::ZERO + Span::from_secs(second), *lost, Span::from_secs(3))
            })
            .collect();
        assert!(found.len() == 2 && (found[0] - 0.1).abs() < 1e-12 && (found[1] - 0.1).abs() < 1e-12, "{found:?}");
    }
}
