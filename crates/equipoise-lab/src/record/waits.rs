use std::iter::once;

use equipoise::units::Span;

use super::histogram::Histogram;
use crate::result::QueueingResult;

/// Queueing delays of packets. The mean is exact; quantiles are rounded to three significant digits or to a
/// microsecond, whichever is coarser.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    sum_ns: u64,
    histogram: Histogram,
}

/// In quantiles, a queueing delay shorter than this number of nanoseconds counts as zero.
const LEAST_NS: u64 = 1024;

impl Waits {
    #[inline]
    pub(crate) fn push(&mut self, wait: Span) {
        self.push_all(once(wait));
    }

    /// Adds queueing delays.
    #[inline]
    pub(super) fn push_all(&mut self, waits: impl Iterator<Item = Span>) {
        let mut sum_ns = self.sum_ns;
        self.histogram.push_all(waits.map(|wait| {
            let nanos = u64::try_from(wait.as_nanos()).unwrap_or(0);
            sum_ns = sum_ns.saturating_add(nanos);
            nanos
        }));
        self.sum_ns = sum_ns;
    }

    /// Merges the delays of all parts; `None` if there are no parts.
    pub(super) fn all<'a>(mut parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut all = parts.next()?.clone();
        for part in parts {
            all.sum_ns = all.sum_ns.saturating_add(part.sum_ns);
            all.histogram.merge(&part.histogram);
        }
        Some(all)
    }

    pub(crate) fn result(&self) -> QueueingResult {
        let count = self.histogram.count();
        let ranks = [0.95, 0.99].map(|share: f64| (share * count as f64).ceil() as u64);
        let [p95_s, p99_s] = self.histogram.longest_of(ranks).map(|nanos| {
            let seconds = if nanos < LEAST_NS { 0.0 } else { nanos as f64 / 1e9 };
            (count > 0).then_some(seconds)
        });
        QueueingResult { mean_s: (count > 0).then(|| self.sum_ns as f64 / 1e9 / count as f64), p95_s, p99_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the queueing delays 1 to 1000 ms, 5 % are above 950 ms and 1 % are above 990 ms.
    #[test]
    fn quantiles_are_right_to_three_digits_and_zero_stays_zero() {
        let mut waits = Waits::default();
        (1..=1000).for_each(|ms| waits.push(Span::from_millis(ms)));
        let found = waits.result();
        assert!((found.mean_s.expect("packets") - 0.5005).abs() < 1e-12, "{found:?}");
        for (found, expected) in [(found.p95_s, 0.95), (found.p99_s, 0.99)] {
            assert!((found.expect("packets") / expected - 1.0).abs() < 2e-3, "{found:?}");
        }
        let mut calm = Waits::default();
        (0..100).for_each(|_| calm.push(Span::ZERO));
        assert_eq!(calm.result(), QueueingResult { mean_s: Some(0.0), p95_s: Some(0.0), p99_s: Some(0.0) });
        let both = Waits::all([&waits, &calm].into_iter()).expect("two").result();
        assert!((both.mean_s.expect("packets") - 500.5 / 1100.0).abs() < 1e-12);
        assert!(Waits::all(std::iter::empty()).is_none());
        assert_eq!(Waits::default().result(), QueueingResult::default());
    }
}
