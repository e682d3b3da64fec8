use equipoise::measure::Moments;
use equipoise::units::Span;
use hdrhistogram::Histogram;

use crate::result::{DelayResult, HistogramBin};

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
/// Bars of a distribution in a chart.
const BINS: u64 = 100;

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

    /// The distribution from the least delay to the 99th percentile, in bars of equal width.
    pub(super) fn bins(&self) -> Vec<HistogramBin> {
        if self.count() == 0 {
            return Vec::new();
        }
        let least = self.histogram.min();
        let most = self.histogram.value_at_quantile(0.99).max(least + BINS);
        let width = (most - least).div_ceil(BINS);
        let bins = (0..BINS).map(|bin| (least + bin * width, least + (bin + 1) * width));
        // The histogram counts whole classes of values; bars narrower than a class take its packets at its lower edge.
        let mut packets = vec![0u64; BINS as usize];
        for value in self.histogram.iter_recorded() {
            let low = self.histogram.lowest_equivalent(value.value_iterated_to());
            let bin = low.saturating_sub(least) / width;
            if let Some(slot) = packets.get_mut(bin as usize) {
                *slot += value.count_at_value();
            }
        }
        bins.zip(packets)
            .map(|((from, to), packets)| HistogramBin { from_s: from as f64 / 1e9, to_s: to as f64 / 1e9, packets })
            .collect()
    }
}
