use equipoise::units::Span;

/// `CLASS`: width of a histogram bin. `CLASSES`: number of bins. Values above 100 ms have no bin.
const CLASS: Span = Span::from_micros(1);
const CLASSES: usize = 100_000;

/// How late packets left, compared with the times at which they were due.
///
/// Percentiles up to 100 ms are exact to 1 µs. For a percentile above 100 ms, the maximum is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Median of the lateness.
    pub p50: Span,
    /// 99th percentile of the lateness.
    pub p99: Span,
    /// 99.9th percentile of the lateness.
    pub p999: Span,
    /// Maximum lateness.
    pub max: Span,
}

/// A histogram of how late packets left, compared with their planned departure times.
#[derive(Clone, Debug)]
pub(crate) struct LatenessMeter {
    classes: Vec<u64>,
    count: u64,
    max: Span,
}

impl LatenessMeter {
    pub(crate) fn new() -> Self {
        Self { classes: vec![0; CLASSES], count: 0, max: Span::ZERO }
    }

    /// Records a packet that left `late` after it was due.
    pub(crate) fn record(&mut self, late: Span) {
        let class = (late / CLASS).and_then(|class| usize::try_from(class).ok()).unwrap_or(0);
        // A value above the last bin changes only the count and the maximum. If a percentile is above all bins, the
        // maximum is returned instead.
        if let Some(class) = self.classes.get_mut(class) {
            *class += 1;
        }
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// Number of recorded packets.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The percentiles; `None` if no packet was recorded.
    pub(crate) fn summary(&self) -> Option<Lateness> {
        (self.count > 0).then(|| Lateness {
            p50: self.per_mille(500),
            p99: self.per_mille(990),
            p999: self.per_mille(999),
            max: self.max,
        })
    }

    /// Returns the quantile `per_mille`/1000, by nearest rank. It is rounded up to the upper edge of its bin, but is at
    /// most the recorded maximum.
    fn per_mille(&self, per_mille: u64) -> Span {
        let rank = (self.count * per_mille).div_ceil(1000);
        let mut below = 0;
        let class = self.classes.iter().position(|count| {
            below += count;
            below >= rank
        });
        class.map_or(self.max, |class| (CLASS * (class as i64 + 1)).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_ranks() {
        let mut meter = LatenessMeter::new();
        assert_eq!(meter.summary(), None);
        for micros in (1..=100).rev() {
            meter.record(Span::from_nanos(micros * 1000 - 500));
        }
        let (p50, p99, max) = (Span::from_micros(50), Span::from_micros(99), Span::from_nanos(99_500));
        assert_eq!(meter.summary(), Some(Lateness { p50, p99, p999: max, max }));
    }

    #[test]
    fn a_stall_beyond_the_classes_is_the_largest() {
        let mut meter = LatenessMeter::new();
        meter.record(Span::from_secs(3));
        let three = Span::from_secs(3);
        assert_eq!(meter.summary(), Some(Lateness { p50: three, p99: three, p999: three, max: three }));
    }
}
