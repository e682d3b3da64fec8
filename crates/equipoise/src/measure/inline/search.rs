use super::recent::Recent;
use crate::measure::Measured;

/// The search for the available bandwidth: which rates the next stream covers, and how the streams are combined.
///
/// Rates are in bits per second.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    range: Option<(f64, f64)>,
    found: [Found; SUB_RANGES],
    count: usize,
    available: Recent,
    /// Whether the result is only a lower bound so far. The first result that is not a lower bound replaces it.
    bound: bool,
}

/// The result of one stream: its rate, and the available bandwidth that follows from the growth of its delay.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    rate: f64,
    available: f64,
}

/// Number of sub-ranges of the search range. A result needs one stream for each sub-range, and a stream takes about one
/// round trip. Without pauses between streams, there is a result every three to four round trips (Kodama 2009, Sec.
/// 2.2.1).
const SUB_RANGES: usize = 3;
/// The search range begins and ends at least these distances below and above the estimate, as parts of the capacity
/// (our choice). Random cross traffic changes the result of a single stream by approximately the upper distance. The
/// lower distance is smaller, because streams slower than the available bandwidth yield little information and delay
/// the connection most.
const LEAST_WIDTH: (f64, f64) = (0.1, 0.3);
/// A result can be an outlier only if it differs from the mean of the recent results by more than this part of the
/// capacity (our choice).
const FAR: f64 = 0.15;
/// A lower bound of the available bandwidth is a new result if it exceeds the mean of the recent results by more than
/// this part of the capacity (our choice).
const NEWS: f64 = 0.05;
/// A queue does not count as growing if its delay grows by less than this part of the duration of the stream (our
/// choice).
const CLEAR: f64 = 0.02;
/// Minimum rate of a stream, as a part of the capacity (our choice): a slower stream would take too long.
const LEAST_RATE: f64 = 0.05;
/// The lower end of the search range is at most this part of the capacity (our choice).
const MOST_LOW: f64 = 0.95;
/// Minimum available bandwidth, as a part of the capacity (our choice): an adaptive sender always gets some rate.
const LEAST_AVAILABLE: f64 = 0.01;

impl Search {
    /// Returns the lowest and the highest rate of the next stream of segments, which covers one of [`SUB_RANGES`] equal
    /// parts of the search range.
    ///
    /// The first search range is between the connection's own rate and the capacity. A stream that is slower than the
    /// connection would delay the segments after the stream. So no stream is slower than the connection, unless the
    /// connection uses more than [`MOST_LOW`] of the capacity.
    pub(super) fn sub_range(&self, capacity: f64, own_rate: f64) -> (f64, f64) {
        let (low, high) = self.range.unwrap_or((own_rate.min(capacity / 2.0), capacity));
        let low = low.max(own_rate).clamp(capacity * LEAST_RATE, capacity * MOST_LOW);
        let width = (high.clamp(low, capacity) - low) / SUB_RANGES as f64;
        let from = low + width * self.count as f64;
        (from, from + width)
    }

    /// Records a stream's outcome: its rate `R`, and the growth `g` of its delay in seconds per second.
    ///
    /// The evaluation uses a fluid model of a link that is never idle during the stream. The input is `R` plus the rate
    /// `c` of cross traffic. The input minus the capacity `K` is the growth of the queue, `K g`. Therefore the
    /// available bandwidth is `A = K - c = R - K g`.
    ///
    /// Returns true if the measurement is finished and has a new result.
    pub(super) fn push(&mut self, rate: f64, growth: f64, capacity: f64) -> bool {
        if let Some(slot) = self.found.get_mut(self.count) {
            *slot = Found { rate, available: rate - capacity * growth };
            self.count += 1;
        }
        if self.count < SUB_RANGES {
            return false;
        }
        self.count = 0;
        self.conclude(capacity)
    }

    /// Whether there is a result that is not merely a lower bound, and that the last measurement did not contradict.
    pub(super) fn is_settled(&self) -> bool {
        self.available.mean().is_some() && self.available.set_aside().is_none() && !self.bound
    }

    /// Returns the available bandwidth from the recent measurements.
    pub(super) fn available(&self, capacity: f64) -> Option<Measured> {
        self.available.measured(capacity * LEAST_AVAILABLE, capacity)
    }

    fn conclude(&mut self, capacity: f64) -> bool {
        self.found.sort_unstable_by(|a, b| b.rate.total_cmp(&a.rate));
        let known = self.available.mean().filter(|_| self.available.set_aside().is_none()).map(|(mean, _)| mean);
        let far = capacity * FAR;
        if let Some(bound) = self.lower_bound(capacity) {
            // The streams were slower than the available bandwidth. This is a new result only if the previous estimate
            // is missing, in doubt or clearly lower.
            let news = known.is_none_or(|mean| bound > mean + capacity * NEWS);
            if news {
                (self.available, self.bound) = (Recent::from(bound), true);
                self.range = Some((bound, capacity));
            }
            return news;
        }
        let result = self.pooled(known).clamp(-capacity, 2.0 * capacity);
        if self.bound {
            (self.available, self.bound) = (Recent::from(result), false);
        } else {
            self.available.push(result, far);
        }
        let (centre, half) = match (self.available.set_aside(), self.available.mean()) {
            (Some(aside), _) => (aside, 0.0),
            (None, Some((mean, half))) => (mean, half.unwrap_or(0.0)),
            (None, None) => (result, 0.0),
        };
        let (below, above) = LEAST_WIDTH;
        self.range = Some((centre - half.max(below * capacity), centre + half.max(above * capacity)));
        true
    }

    /// Returns the rate of the fastest stream, if the two fastest streams built no queue and the fastest was clearly
    /// below the capacity; otherwise `None`.
    fn lower_bound(&self, capacity: f64) -> Option<f64> {
        let fastest = self.found.first().filter(|found| found.rate < capacity * MOST_LOW)?;
        let clear = |found: &Found| found.available > found.rate - capacity * CLEAR;
        self.found.iter().take(2).all(clear).then_some(fastest.rate)
    }

    /// Returns the mean result of the streams that were faster than the available bandwidth.
    ///
    /// A slower stream builds no queue, so its result is its own rate, which is only a lower bound of the available
    /// bandwidth. A stream counts as slower if its rate is below the previous estimate. Without an estimate, a stream
    /// counts as slower if its rate is below the mean result of the faster streams. A comparison with the stream's own
    /// result would select streams by the noise of the cross traffic.
    fn pooled(&self, known: Option<f64>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for stream in self.found {
            if count > 0.0 && stream.rate < known.unwrap_or(sum / count) {
                break;
            }
            sum += stream.available;
            count += 1.0;
        }
        sum / count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: f64 = 100.0;

    /// Makes one measurement on an ideal link: the delay of a stream faster than `available` grows as in the fluid
    /// model.
    fn measure(search: &mut Search, available: f64) -> bool {
        (0..SUB_RANGES).fold(false, |_, _| {
            let (from, to) = search.sub_range(K, 10.0);
            let rate = f64::midpoint(from, to);
            search.push(rate, (rate - available).max(0.0) / K, K)
        })
    }

    fn found(search: &Search) -> f64 {
        search.available(K).map_or(f64::NAN, |measured| measured.rate.as_bps_f64())
    }

    #[test]
    fn the_first_measurement_finds_any_available_bandwidth_in_the_range() {
        for available in [12.0, 30.0, 50.0, 69.0] {
            let mut search = Search::default();
            assert!(measure(&mut search, available));
            assert!((found(&search) - available).abs() <= 1.0, "{available}: {}", found(&search));
        }
    }

    #[test]
    fn a_step_is_found_within_three_measurements_and_a_lower_bound_is_told_on_the_way() {
        for (before, after) in [(70.0, 20.0), (20.0, 70.0), (20.0, 95.0), (90.0, 11.0)] {
            let mut search = Search::default();
            (0..10).for_each(|_| _ = measure(&mut search, before));
            (0..3).for_each(|_| _ = measure(&mut search, after));
            assert!((found(&search) - after).abs() <= 5.0, "{before} to {after}: {}", found(&search));
        }
    }

    #[test]
    fn streams_that_were_too_slow_say_nothing_new() {
        let mut search = Search::default();
        (0..10).for_each(|_| _ = measure(&mut search, 70.0));
        // The application has little to send. Therefore the streams have only 20 bit/s, but 70 bit/s are available.
        assert!(!(0..SUB_RANGES).any(|_| search.push(20.0, 0.0, K)));
        assert!((found(&search) - 70.0).abs() <= 1.0);
    }

    #[test]
    fn no_stream_is_slower_than_the_connection_nor_faster_than_the_link() {
        let mut search = Search::default();
        (0..10).for_each(|_| _ = measure(&mut search, 70.0));
        let (from, to) = search.sub_range(K, 68.0);
        assert!(from >= 68.0 && to <= K);
    }
}
