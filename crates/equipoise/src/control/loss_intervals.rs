/// Counts the packets between loss events, and computes the weighted mean of these counts (loss intervals).
///
/// Source: RFC 5348, Sec. 5.4. The mean covers at most eight intervals. The four oldest of eight intervals have smaller
/// weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossIntervals {
    /// Number of packets in each interval, the newest interval first. The first interval is still open: no loss event
    /// has ended it.
    intervals: [f64; INTERVALS],
    /// Number of closed intervals.
    closed: usize,
}

/// Number of intervals: the open one, and n = 8 closed ones (RFC 5348, Sec. 5.4).
const INTERVALS: usize = 9;
/// Weights of the intervals in a mean, the newest interval first (RFC 5348, Sec. 5.4).
const WEIGHTS: [f64; INTERVALS - 1] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

impl LossIntervals {
    /// Creates an open interval without packets, and no closed intervals.
    pub(super) const fn new() -> Self {
        Self { intervals: [0.0; INTERVALS], closed: 0 }
    }

    /// Returns the number of closed intervals: zero before the first loss event, at most eight.
    pub(super) const fn closed(&self) -> usize {
        self.closed
    }

    /// Returns the number of packets since the last loss event.
    pub(super) const fn open(&self) -> f64 {
        self.intervals[0]
    }

    /// Adds `packets` to the open interval, without a new loss event.
    pub(super) fn grow(&mut self, packets: f64) {
        self.intervals[0] += packets;
    }

    /// Sets the length of the open interval to `packets`.
    pub(super) const fn replace_open(&mut self, packets: f64) {
        self.intervals[0] = packets;
    }

    /// Records a loss event: closes the open interval and opens an empty one.
    pub(super) fn close(&mut self) {
        self.intervals.rotate_right(1);
        self.intervals[0] = 0.0;
        self.closed = (self.closed + 1).min(INTERVALS - 1);
    }

    /// Returns the weighted mean of the closed intervals; `None` before the first closed interval.
    pub(super) fn mean_closed(&self) -> Option<f64> {
        (self.closed > 0).then(|| self.mean(&self.intervals[1..]))
    }

    /// Returns the larger of two weighted means: the mean of the closed intervals, and the mean with the open interval
    /// in place of the oldest closed one. Returns `None` before the first closed interval.
    pub(super) fn mean_longer(&self) -> Option<f64> {
        self.mean_closed().map(|closed| self.mean(&self.intervals[..INTERVALS - 1]).max(closed))
    }

    fn mean(&self, intervals: &[f64]) -> f64 {
        let known = &intervals[..intervals.len().min(self.closed)];
        let (sum, weight) = known
            .iter()
            .zip(WEIGHTS)
            .fold((0.0, 0.0), |(s, w), (interval, weight)| (s + interval * weight, w + weight));
        sum / weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights sum to 6. For intervals of 1 to 8 packets, the newest first, the weighted sum is
    /// `1+2+3+4 + 4 + 3.6 + 2.8 + 1.6 = 22`.
    #[test]
    fn the_mean_has_the_weights_of_the_standard() {
        let mut intervals = LossIntervals::new();
        for packets in [99.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
            intervals.grow(packets);
            intervals.close();
        }
        assert!((intervals.mean_closed().expect("eight of them") - 22.0 / 6.0).abs() < 1e-12, "the ninth is forgotten");
        assert_eq!(intervals.mean_longer(), intervals.mean_closed(), "an empty open one makes it no longer");
        intervals.grow(600.0);
        assert!(intervals.mean_longer() > Some(100.0));
        assert!((intervals.open() - 600.0).abs() < 1e-12 && intervals.closed() == 8);
    }

    #[test]
    fn before_the_first_loss_event_there_is_no_mean() {
        let mut intervals = LossIntervals::new();
        intervals.grow(1e6);
        assert_eq!((intervals.mean_closed(), intervals.mean_longer()), (None, None));
    }
}
