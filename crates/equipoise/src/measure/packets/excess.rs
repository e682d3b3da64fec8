use alloc::collections::VecDeque;

/// By how much the smallest delay of a report usually exceeds the smallest delay of a whole second.
///
/// With jitter, the smallest delay of a report is longer than the delay of the empty path. The fewer packets a report
/// has, the longer it is. Flows that share a bottleneck therefore measure different delays of one queue. The smallest
/// delay of a second has many packets and is nearly equal for all of them. So a flow subtracts the mean excess of its
/// own reports. A queue that changes within a second also counts as excess. This measure is our choice.
#[derive(Clone, Debug, Default)]
pub struct Excess {
    /// The time of each report of the last `WINDOW_S`, and its smallest delay, both in s.
    reports: VecDeque<(f64, f64)>,
    mean_s: f64,
}

impl Excess {
    /// The excess of a report is its smallest delay less the smallest one of the last `WINDOW_S`, and counts as at most
    /// `MOST_S`. `MEAN_S` is the time constant of the mean. All values are in s.
    const WINDOW_S: f64 = 1.0;
    const MEAN_S: f64 = 3.0;
    const MOST_S: f64 = 0.020;
    /// Maximum number of reports that are kept, whatever the receiver sends.
    const MOST_REPORTS: usize = 256;

    /// Creates a meter without reports.
    pub const fn new() -> Self {
        Self { reports: VecDeque::new(), mean_s: 0.0 }
    }

    /// Records a report at `now_s`, whose smallest delay is `least_s`. The previous report arrived `elapsed_s` earlier.
    /// All times are in s. A delay that is not finite is ignored.
    pub fn push(&mut self, now_s: f64, elapsed_s: f64, least_s: f64) {
        if !least_s.is_finite() {
            return;
        }
        self.reports.push_back((now_s, least_s));
        while self.reports.len() > Self::MOST_REPORTS
            || self.reports.front().is_some_and(|oldest| oldest.0 < now_s - Self::WINDOW_S)
        {
            self.reports.pop_front();
        }
        let smallest_s = self.reports.iter().map(|report| report.1).fold(f64::INFINITY, f64::min);
        let excess_s = (least_s - smallest_s).clamp(0.0, Self::MOST_S);
        self.mean_s += (elapsed_s / Self::MEAN_S).clamp(0.0, 1.0) * (excess_s - self.mean_s);
    }

    /// Returns the mean excess, in s.
    pub const fn mean_s(&self) -> f64 {
        self.mean_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream_seed;

    /// The mean excess after 60 s of reports every 50 ms, each with `packets` packets. A packet is delayed by the queue
    /// and by a uniform jitter of at most `jitter_s`.
    fn measured(packets: u64, jitter_s: f64, queue_s: impl Fn(f64) -> f64) -> (f64, f64) {
        let (mut excess, mut sum_s) = (Excess::new(), 0.0);
        for report in 0..1200u64 {
            let now_s = report as f64 * 0.05;
            let late = |packet| stream_seed(report, packet) as f64 / u64::MAX as f64 * jitter_s;
            let least_s = (0..packets).map(late).fold(f64::INFINITY, f64::min) + queue_s(now_s);
            sum_s += least_s;
            excess.push(now_s, 0.05, least_s);
        }
        (excess.mean_s(), sum_s / 1200.0)
    }

    /// If it fails, flows with few packets per report measure a longer queue than flows with many.
    #[test]
    fn flows_of_few_and_of_many_packets_measure_one_queue() {
        let [few, many] = [3, 20].map(|packets| measured(packets, 0.015, |_| 0.004));
        assert!(few.1 > many.1 + 0.002, "without correction they differ: {few:?} {many:?}");
        assert!((few.1 - few.0 - (many.1 - many.0)).abs() < 0.0005, "{few:?} {many:?}");
    }

    /// If it fails, a queue that stands is taken for jitter.
    #[test]
    fn a_constant_queue_and_one_that_grows_slowly_have_no_excess() {
        assert!(measured(5, 0.0, |_| 0.050).0 < 1e-12);
        assert!(measured(5, 0.0, |now_s| 0.002 * now_s).0 < 0.0025);
    }

    /// If it fails, a receiver can make the excess negative, infinite or not a number, or use memory without limit.
    #[test]
    fn odd_reports_leave_a_plausible_excess() {
        let mut excess = Excess::new();
        for report in 0..2000 {
            let least_s = [f64::INFINITY, -1e9, 1e300, 0.0, f64::NAN][report % 5];
            excess.push(0.0, [1e9, -1.0, 0.0][report % 3], least_s);
            assert!((0.0..=Excess::MOST_S).contains(&excess.mean_s()), "{}", excess.mean_s());
        }
        assert!(excess.reports.len() <= Excess::MOST_REPORTS);
    }
}
