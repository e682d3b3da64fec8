use equipoise::units::Span;
use hdrhistogram::Histogram;

use crate::result::QueueingResult;

/// Times that packets waited in queues: the exact mean, and quantiles to a hundredth or a microsecond.
///
/// Coarser than [`Delays`](super::delays::Delays), and a fifteenth of their size: there is one for each stretch of a run.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    sum_ns: u64,
    /// In microseconds: zero is told from what is above it.
    histogram: Histogram<u32>,
}

/// 1000 s; what is longer counts as this.
const MOST_US: u64 = 1_000_000_000;
const DIGITS: u8 = 2;

impl Waits {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MOST_US, DIGITS).expect("constant bounds are in order");
        Self { sum_ns: 0, histogram }
    }

    pub(super) fn push(&mut self, wait: Span) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(0);
        self.sum_ns = self.sum_ns.saturating_add(nanos);
        self.histogram.saturating_record((nanos + 500) / 1000);
    }

    /// All of some; `None` of none.
    pub(super) fn all<'a>(mut parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut all = parts.next()?.clone();
        for part in parts {
            all.sum_ns = all.sum_ns.saturating_add(part.sum_ns);
            all.histogram.add(&part.histogram).expect("all have the same bounds");
        }
        Some(all)
    }

    pub(super) fn result(&self) -> QueueingResult {
        let count = self.histogram.len();
        let quantile = |share: f64| (count > 0).then(|| self.histogram.value_at_quantile(share) as f64 / 1e6);
        QueueingResult {
            mean_s: (count > 0).then(|| self.sum_ns as f64 / 1e9 / count as f64),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 1000 ms a twentieth is above 950 and a hundredth above 990.
    #[test]
    fn quantiles_are_right_to_a_hundredth_and_zero_stays_zero() {
        let mut waits = Waits::new();
        (1..=1000).for_each(|ms| waits.push(Span::from_millis(ms)));
        let found = waits.result();
        assert!((found.mean_s.expect("packets") - 0.5005).abs() < 1e-12, "{found:?}");
        for (found, expected) in [(found.p95_s, 0.95), (found.p99_s, 0.99)] {
            assert!((found.expect("packets") / expected - 1.0).abs() < 0.01, "{found:?}");
        }
        let mut calm = Waits::new();
        (0..100).for_each(|_| calm.push(Span::ZERO));
        assert_eq!(calm.result(), QueueingResult { mean_s: Some(0.0), p95_s: Some(0.0), p99_s: Some(0.0) });
        let both = Waits::all([&waits, &calm].into_iter()).expect("two").result();
        assert!((both.mean_s.expect("packets") - 500.5 / 1100.0).abs() < 1e-12);
        assert!(Waits::all(std::iter::empty()).is_none());
        assert_eq!(Waits::new().result(), QueueingResult::default());
    }
}
