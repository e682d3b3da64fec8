use super::Sample;

/// The queueing delay by pairs of packets (our choice). Flows of different rates on one path measure the same value.
///
/// With jitter, the smallest delay in a report is lower if the report covers more packets. A fast flow would therefore
/// measure a shorter queue than a slow flow. This meter samples packets that left at least `APART_S` apart. Of every
/// two successive samples, the meter takes the smaller delay, whatever the rate of the flow.
#[derive(Clone, Copy, Debug)]
pub struct PairedDelay {
    /// `departed_s` is the departure time of the last sample, in s. If this sample is the first of a pair, `first_s` is
    /// the sample's delay above the base delay, in s.
    departed_s: f64,
    first_s: Option<f64>,
    /// The sum of the smaller delays of the pairs since the last [`take`](Self::take), in s, and the number of pairs.
    sum_s: f64,
    pairs: f64,
}

impl PairedDelay {
    /// Minimum time between the departures of two samples, in s. At 1.2 Mbit/s, packets of 1200 bytes leave this far
    /// apart. With 16 ms, unequal rates of flows are more frequent on our test suite's random paths. With 4 ms, slow
    /// and fast flows measure different queueing delays.
    const APART_S: f64 = 0.008;

    /// Creates a meter without packets.
    pub const fn new() -> Self {
        Self { departed_s: f64::NEG_INFINITY, first_s: None, sum_s: 0.0, pairs: 0.0 }
    }

    /// Records the next packet that arrived.
    pub fn push(&mut self, sample: &Sample) {
        if sample.departed_s - self.departed_s < Self::APART_S {
            return;
        }
        self.departed_s = sample.departed_s;
        match self.first_s.take() {
            None => self.first_s = Some(sample.over_s),
            Some(first_s) => {
                self.sum_s += first_s.min(sample.over_s);
                self.pairs += 1.0;
            }
        }
    }

    /// Returns the mean delay of the pairs that were completed since the last call, in s above the base delay. The
    /// delay of a pair is the smaller delay of its two packets. Returns `None` if no pair was completed.
    pub fn take(&mut self) -> Option<f64> {
        let (sum_s, pairs) = (core::mem::take(&mut self.sum_s), core::mem::take(&mut self.pairs));
        (pairs > 0.0).then(|| sum_s / pairs)
    }
}

impl Default for PairedDelay {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream_seed;

    /// Simulates 60 s with a report every 0.1 s. A packet leaves every `every_ms` and is delayed by a uniform jitter of
    /// at most 15 ms. Returns the mean of the reports' smallest delays, and the mean of the values of [`PairedDelay`],
    /// both in s.
    fn measured(every_ms: u32) -> (f64, f64) {
        let (mut paired, mut sums, mut reports) = (PairedDelay::new(), (0.0, 0.0), 0.0);
        for report in 0..600u32 {
            let mut least_s = f64::INFINITY;
            for at_ms in (0..100).step_by(every_ms as usize) {
                let number = u64::from(report * 100 + at_ms);
                let over_s = 0.015 * (stream_seed(7, number) as f64 / u64::MAX as f64);
                let departed_s = 0.001 * number as f64;
                paired.push(&Sample { number, departed_s, arrived_s: departed_s + over_s, bits: 9600.0, over_s });
                least_s = least_s.min(over_s);
            }
            sums = (sums.0 + least_s, sums.1 + paired.take().expect("at least one pair"));
            reports += 1.0;
        }
        (sums.0 / reports, sums.1 / reports)
    }

    /// If this test fails, a flow measures a longer queue than a faster flow on the same path, and so keeps a lower
    /// rate.
    #[test]
    fn fast_and_slow_flows_measure_the_same_queue() {
        let (fast, slow) = (measured(1), measured(20));
        assert!(slow.0 > fast.0 + 0.002, "the smallest delays differ: {fast:?} {slow:?}");
        // The mean of the smaller of two values that are uniform from 0 to 15 ms is 5 ms.
        assert!((fast.1 - 0.005).abs() < 0.0004 && (slow.1 - 0.005).abs() < 0.0004, "{fast:?} {slow:?}");
    }

    #[test]
    fn a_pair_may_span_two_reports() {
        let mut paired = PairedDelay::new();
        let sample = |number: u64, over_s: f64| {
            let departed_s = 0.010 * number as f64;
            Sample { number, departed_s, arrived_s: departed_s, bits: 9600.0, over_s }
        };
        paired.push(&sample(0, 0.004));
        assert_eq!(paired.take(), None);
        paired.push(&sample(1, 0.002));
        paired.push(&Sample { departed_s: 0.012, ..sample(2, 0.0) });
        paired.push(&sample(3, 0.001));
        assert_eq!(paired.take(), Some(0.002), "the third packet left too early, the fourth begins a pair");
        assert_eq!(paired.take(), None);
    }
}
