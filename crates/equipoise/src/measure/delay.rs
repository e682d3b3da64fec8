use alloc::collections::VecDeque;

use super::moments::Moments;
use super::summary::DelaySummary;
use crate::units::{Instant, SenderClock, Span};

/// Records one-way delays with the packets' sending times, so that the packets of an interval can be selected later.
///
/// A receiver learns only from the sender report when the interval of the current rate began (Waki 2013, Eq. 13, 14).
/// By then, packets of the interval have already arrived. The meter therefore keeps runs of consecutive packets in
/// arrival order. For each run, it keeps the count, mean, variance and minimum of the delays, and the earliest and
/// latest sending time.
///
/// The number of runs is limited to [`DelayMeter::RUNS`], so memory is bounded. While the meter holds no more packets
/// than this limit, each packet is a run, and packets are selected exactly. With more packets, adjacent runs are merged
/// in pairs, and only whole runs are selected. The meter allocates only if it holds more runs than ever before.
#[derive(Clone, Debug, Default)]
pub struct DelayMeter {
    runs: VecDeque<Run>,
    /// Number of packets in a full run of consecutive packets. After a full run, the next packet begins a new run.
    run_length: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    earliest: Instant<SenderClock>,
    latest: Instant<SenderClock>,
    least: Span,
    delay_s: Moments,
}

impl DelayMeter {
    /// Maximum number of runs of consecutive packets that the meter keeps. At 15 Mbit/s and 1000 bytes per packet, the
    /// meter can keep two seconds with one run per packet.
    pub const RUNS: usize = 4096;

    /// Creates a meter without packets.
    pub fn new() -> Self {
        Self { runs: VecDeque::new(), run_length: 1 }
    }

    /// Records a packet that left at `sent` and took `delay`.
    pub fn push(&mut self, sent: Instant<SenderClock>, delay: Span) {
        if self.runs.len() >= Self::RUNS {
            self.join_pairs();
        }
        let delay_s = delay.as_secs_f64();
        match self.runs.back_mut() {
            Some(run) if run.delay_s.count() < self.run_length => {
                run.earliest = run.earliest.min(sent);
                run.latest = run.latest.max(sent);
                run.least = run.least.min(delay);
                run.delay_s.push(delay_s);
            }
            _ => self.runs.push_back(Run {
                earliest: sent,
                latest: sent,
                least: delay,
                delay_s: [delay_s].into_iter().collect(),
            }),
        }
    }

    /// Returns the summary of the packets that left after `cut`; `None` if there are fewer than two. A run of merged
    /// packets counts only if all its packets left after `cut`.
    pub fn summary_after(&self, cut: Instant<SenderClock>) -> Option<DelaySummary> {
        let mut all = Moments::EMPTY;
        self.runs.iter().filter(|run| run.earliest > cut).for_each(|run| all.merge(&run.delay_s));
        Some(DelaySummary { mean_s: all.mean()?, variance_s2: all.variance()?, samples: all.count() })
    }

    /// Returns the minimum delay of the packets that left after `cut`; `None` if there are none. If runs of packets
    /// were merged, only runs that lie entirely after `cut` count.
    pub fn least_after(&self, cut: Instant<SenderClock>) -> Option<Span> {
        self.runs.iter().filter(|run| run.earliest > cut).map(|run| run.least).min()
    }

    /// Removes all packets. Needed after a clock has been set, because delays before and after the change of the clock
    /// cannot be compared.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Removes each run of consecutive packets whose latest departure is not after `cut`.
    pub fn forget_until(&mut self, cut: Instant<SenderClock>) {
        self.runs.retain(|run| run.latest > cut);
        if self.runs.len() < Self::RUNS / 4 {
            self.run_length = 1;
        }
    }

    fn join_pairs(&mut self) {
        let half = self.runs.len() / 2;
        for index in 0..half {
            let (Some(&first), Some(&second)) = (self.runs.get(2 * index), self.runs.get(2 * index + 1)) else { break };
            let mut joined = first;
            joined.earliest = first.earliest.min(second.earliest);
            joined.latest = first.latest.max(second.latest);
            joined.least = first.least.min(second.least);
            joined.delay_s.merge(&second.delay_s);
            if let Some(slot) = self.runs.get_mut(index) {
                *slot = joined;
            }
        }
        self.runs.truncate(half);
        self.run_length = self.run_length.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_least_delay_is_that_of_the_packets_after_the_cut_however_runs_are_joined() {
        let mut meter = DelayMeter::new();
        for number in 0..10_000u64 {
            // The minimum delay is 3 ms in the first half, and 5 ms in the second half.
            meter.push(at(number), Span::from_millis(if number < 5000 { 3 } else { 5 + (number % 7) as i64 }));
        }
        assert_eq!(meter.least_after(at(4)), Some(Span::from_millis(3)));
        assert_eq!(meter.least_after(at(5100)), Some(Span::from_millis(5)));
        assert_eq!(meter.least_after(at(10_000)), None);
    }

    #[test]
    fn only_packets_after_the_cut_count_wherever_they_stand_in_the_order_of_arrival() {
        let mut meter = DelayMeter::new();
        for (sent, delay) in [(10, 5), (30, 7), (20, 100), (40, 9)] {
            meter.push(at(sent), Span::from_millis(delay));
        }
        let summary = meter.summary_after(at(20)).expect("two packets left after 20 ms");
        assert_eq!(summary.samples, 2);
        assert!((summary.mean_s - 0.008).abs() < 1e-12);
        assert!((summary.variance_s2 - 2e-6).abs() < 1e-15);
        assert_eq!(meter.summary_after(at(30)), None, "a single packet has no variance");
    }

    #[test]
    fn memory_is_bounded_and_the_moments_of_a_flood_are_still_right() {
        let mut meter = DelayMeter::new();
        let packets = 10 * DelayMeter::RUNS as u64;
        (0..packets).for_each(|i| meter.push(at(i), Span::from_millis((i % 3) as i64)));
        assert!(meter.runs.len() <= DelayMeter::RUNS);
        let whole: Moments = (1..packets).map(|i| (i % 3) as f64 / 1e3).collect();
        let summary = meter.summary_after(at(0)).expect("many packets");
        assert!((summary.mean_s - whole.mean().unwrap()).abs() < 1e-6);
        assert!((summary.variance_s2 / whole.variance().unwrap() - 1.0).abs() < 1e-3);
        meter.forget_until(at(packets));
        assert_eq!((meter.runs.len(), meter.run_length), (0, 1), "the next interval is cut exactly again");
    }

    proptest! {
        #[test]
        fn below_the_bound_the_cut_is_exact(sends in proptest::collection::vec((0u64..1000, -50i64..500), 0..300), cut in 0u64..1000) {
            let mut meter = DelayMeter::new();
            for &(sent, delay) in &sends {
                meter.push(at(sent), Span::from_millis(delay));
            }
            let kept: Moments = sends.iter().filter(|&&(sent, _)| sent > cut).map(|&(_, d)| d as f64 / 1e3).collect();
            let summary = meter.summary_after(at(cut));
            prop_assert_eq!(summary.map_or(0, |s| s.samples), if kept.count() < 2 { 0 } else { kept.count() });
            if let Some(summary) = summary {
                prop_assert!((summary.mean_s - kept.mean().unwrap()).abs() < 1e-12);
                prop_assert!((summary.variance_s2 - kept.variance().unwrap()).abs() < 1e-12);
            }
        }
    }
}
