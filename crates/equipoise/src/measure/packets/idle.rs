use alloc::collections::VecDeque;

use super::{BaseDelay, SizeClass};

/// The delay that reports show while the path is empty.
///
/// The base delay is a minimum. With jitter, few packets come near to it: even without a queue, the smallest delay in a
/// report is some milliseconds longer. This excess differs between flows, even on equal paths. A flow that mistakes the
/// excess for a queue gets a rate that depends on its own jitter.
///
/// This meter computes the mean of the smallest delays in the reports of about 0.6 s. The idle delay is the minimum of
/// these means over the last [`BaseDelay::WINDOW_S`] seconds. Without jitter, the idle delay equals the base delay if
/// the queue was empty for about 0.6 s at least once in this window. If the queue was empty only for shorter times, a
/// part of the queue counts as idle delay. This measure is our choice.
#[derive(Clone, Debug)]
pub struct IdleDelay {
    /// The newest reports: the time of each one and the smallest delay in it, both in s.
    reports: VecDeque<(f64, f64)>,
    /// The minimum, over the last [`BaseDelay::WINDOW_S`] seconds, of the mean of the delays in `reports`.
    least: BaseDelay,
}

impl IdleDelay {
    /// For each report, the smallest delay of its packets is taken. These delays are averaged over about `MEAN_S`, in
    /// s, and at least `LEAST_REPORTS` reports. The idle delay is the smallest average. With a shorter time, the
    /// smallest average is smaller by chance; with a longer time, the queue is rarely empty for long enough.
    const MEAN_S: f64 = 0.6;
    const LEAST_REPORTS: usize = 3;
    /// Maximum number of reports that are kept, whatever the receiver sends.
    const MOST_REPORTS: usize = 64;
    /// Size of a large packet, in bits. All delays are converted to this size.
    const BITS: f64 = SizeClass::Large.usual_bits();

    /// Creates a meter without reports.
    pub const fn new() -> Self {
        Self { reports: VecDeque::new(), least: BaseDelay::new() }
    }

    /// Records a report at `now_s`, in s. `least_s` is the smallest delay in the report, converted to the delay of a
    /// large packet, in s. If `held` is set, the time since the previous report does not age the earlier results. A
    /// delay that is not finite is ignored.
    pub fn push(&mut self, now_s: f64, held: bool, least_s: f64) {
        self.least.come_to(now_s, held);
        if !least_s.is_finite() {
            return;
        }
        self.reports.push_back((now_s, least_s));
        while self.reports.len() > Self::MOST_REPORTS
            || self.reports.len() > Self::LEAST_REPORTS && self.reports[1].0 < now_s - Self::MEAN_S
        {
            self.reports.pop_front();
        }
        if self.reports.len() >= Self::LEAST_REPORTS {
            let sum_s: f64 = self.reports.iter().map(|report| report.1).sum();
            self.least.push(Self::BITS, sum_s / self.reports.len() as f64);
        }
    }

    /// Returns the delay that reports show while the path is empty, in s; `None` before the third report.
    pub fn delay_s(&self) -> Option<f64> {
        Some(self.least.of(Self::BITS)).filter(|delay_s| delay_s.is_finite())
    }

    /// Raises the idle delay by `by_s`, in s, as [`BaseDelay::shift`] does, and forgets the reports so far.
    pub fn shift(&mut self, by_s: f64) {
        self.least.shift(by_s);
        self.reports.clear();
    }

    /// Raises the delay after the bottleneck slowed, as [`BaseDelay::slowed`] does. Both rates are in bit/s.
    pub fn slowed(&mut self, before_bps: f64, now_bps: f64) {
        self.least.slowed(before_bps, now_bps);
    }
}

impl Default for IdleDelay {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream_seed;

    /// Simulates 30 s of reports, one every 50 ms, on `packets` packets each. A packet is delayed by 50 ms, by the
    /// queue, and by a uniform jitter of at most `jitter_s`. Returns the idle delay at the end, and the mean of the
    /// reports' smallest delays, both in s.
    fn measured(packets: u64, jitter_s: f64, queue_s: impl Fn(f64) -> f64) -> (f64, f64) {
        let (mut idle, mut sum_s) = (IdleDelay::new(), 0.0);
        for report in 0..600u64 {
            let now_s = report as f64 * 0.05;
            let late = |packet| stream_seed(report, packet) as f64 / u64::MAX as f64 * jitter_s;
            let least_s = 0.050 + (0..packets).map(late).fold(f64::INFINITY, f64::min) + queue_s(now_s);
            sum_s += least_s;
            idle.push(now_s, false, least_s);
        }
        (idle.delay_s().expect("600 reports"), sum_s / 600.0)
    }

    /// If this test fails, flows with few packets per report measure a longer queue than flows with many packets.
    #[test]
    fn flows_of_few_and_of_many_packets_measure_one_queue() {
        let queue = |now_s: f64| if now_s % 4.0 < 1.0 { 0.0 } else { 0.004 };
        let [few, many] = [3, 20].map(|packets| measured(packets, 0.015, queue));
        assert!(few.1 > many.1 + 0.002, "without correction they differ: {few:?} {many:?}");
        assert!((few.1 - few.0 - (many.1 - many.0)).abs() < 0.0015, "{few:?} {many:?}");
    }

    /// If this test fails, a part of the queue is taken for jitter on a path without jitter.
    #[test]
    fn without_jitter_it_is_the_delay_of_the_empty_path() {
        let queue = |now_s: f64| if now_s % 4.0 < 0.8 { 0.0 } else { 0.030 };
        assert!((measured(5, 0.0, queue).0 - 0.050).abs() < 1e-9);
    }

    /// If this test fails, the idle delay adapts to a longer path or a slower link later than the base delay does.
    /// Until then, the added delay counts as a queue.
    #[test]
    fn it_moves_with_the_base_delay() {
        let mut idle = IdleDelay::new();
        assert_eq!(idle.delay_s(), None);
        for report in 0..3 {
            idle.push(f64::from(report) * 0.1, false, 0.050);
        }
        idle.shift(0.020);
        assert!((idle.delay_s().expect("three reports") - 0.070).abs() < 1e-12);
        for report in 3..40 {
            idle.push(f64::from(report) * 0.1, false, 0.100);
        }
        idle.slowed(1.5e6, 0.6e6);
        assert!((idle.delay_s().expect("reports") - 0.0796).abs() < 1e-9);
    }

    /// If this test fails, reports of a receiver can make the delay NaN or infinite, or can make the sender use memory
    /// without limit.
    #[test]
    fn odd_reports_leave_a_plausible_delay() {
        let mut idle = IdleDelay::new();
        for report in 0..2000 {
            idle.push(0.0, false, [f64::INFINITY, 0.0, 0.040, f64::NAN][report % 4]);
            assert!(idle.delay_s().is_none_or(|delay_s| (0.0..=0.040).contains(&delay_s)), "{idle:?}");
        }
        assert!(idle.reports.len() <= IdleDelay::MOST_REPORTS);
    }
}
