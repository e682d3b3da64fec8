use equipoise::measure::Moments;
use equipoise::units::Span;
use hdrhistogram::Histogram;

use crate::result::{DelayResult, DelayShare};

/// One-way delays: exact moments, and quantiles to three digits.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    moments: Moments,
    /// In nanoseconds.
    histogram: Histogram<u64>,
}

/// What the histogram tells apart: 1 µs to 1000 s. What lies outside counts at the edge.
const LEAST_NS: u64 = 1_000;
const MOST_NS: u64 = 1_000_000_000_000;
const DIGITS: u8 = 3;
/// How far down a distribution goes, in powers of ten, and how many points each of them has.
const DECADES: u32 = 3;
const POINTS_A_DECADE: u32 = 20;

impl Delays {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(LEAST_NS, MOST_NS, DIGITS).expect("constant bounds are in order");
        Self { moments: Moments::EMPTY, histogram }
    }

    pub(super) fn push(&mut self, delay: Span) {
        self.moments.push(delay.as_secs_f64());
        self.histogram.saturating_record(u64::try_from(delay.as_nanos()).unwrap_or(LEAST_NS).max(LEAST_NS));
    }

    pub(super) const fn count(&self) -> u64 {
        self.moments.count()
    }

    pub(super) fn quantile_s(&self, quantile: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(quantile) as f64 / 1e9)
    }

    pub(super) fn result(&self) -> DelayResult {
        DelayResult {
            mean_s: self.moments.mean(),
            variance_s2: self.moments.variance(),
            p50_s: self.quantile_s(0.5),
            p95_s: self.quantile_s(0.95),
            p99_s: self.quantile_s(0.99),
            max_s: self.quantile_s(1.0),
        }
    }

    /// The complementary distribution: for shares from all packets down to one in a thousand, the delay that this share of them
    /// reached or exceeded. It ends with the longest delay if there are fewer packets.
    pub(super) fn distribution(&self) -> Vec<DelayShare> {
        let total = self.count();
        let rank = |step: u32| {
            let share = 10f64.powf(-f64::from(step) / f64::from(POINTS_A_DECADE));
            // The number of packets that reach it: a whole number, and one at the least.
            let reaching = ((share * total as f64).round() as u64).max(1);
            total - reaching.min(total)
        };
        let mut ranks: Vec<_> = (0..=DECADES * POINTS_A_DECADE).map(rank).filter(|rank| *rank < total).collect();
        ranks.dedup();
        let mut ranks = ranks.into_iter().peekable();
        let mut points = Vec::new();
        let mut below = 0;
        for value in self.histogram.iter_recorded() {
            below += value.count_at_value();
            while let Some(rank) = ranks.next_if(|rank| *rank < below) {
                let delay_s = self.histogram.highest_equivalent(value.value_iterated_to()) as f64 / 1e9;
                points.push(DelayShare { delay_s, share: (total - rank) as f64 / total as f64 });
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to n ms, those of k ms or more are n - k + 1.
    #[test]
    fn the_distribution_goes_down_to_one_in_a_thousand_or_to_the_last_packet() {
        for (packets, last_share, last_ms) in [(2000, 1e-3, 1999.0), (100, 0.01, 100.0), (1, 1.0, 1.0)] {
            let mut delays = Delays::new();
            (1..=packets).for_each(|ms| delays.push(Span::from_millis(ms)));
            let points = delays.distribution();
            let (first, last) = (points.first().expect("the least"), points.last().expect("the longest"));
            assert!((first.share - 1.0).abs() < 1e-12 && (first.delay_s - 1e-3).abs() < 1e-5, "{first:?}");
            assert!((last.share - last_share).abs() < 1e-12, "{last:?}");
            assert!((last.delay_s * 1e3 / last_ms - 1.0).abs() < 2e-3, "{last:?}");
            for DelayShare { delay_s, share } in &points {
                let expected_ms = packets as f64 * (1.0 - share) + 1.0;
                assert!((delay_s * 1e3 / expected_ms - 1.0).abs() < 2e-3, "{share}: {delay_s}");
            }
            assert!(points.windows(2).all(|pair| pair[0].share > pair[1].share));
        }
        assert!(Delays::new().distribution().is_empty());
    }
}
