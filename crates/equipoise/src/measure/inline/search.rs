use super::recent::Recent;
use crate::measure::Measured;

/// The search for the available bandwidth: which rates the next stream covers, and what the streams say together.
///
/// Rates are in bits per second here.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    range: Option<(f64, f64)>,
    found: [Found; SUB_RANGES],
    count: usize,
    available: Recent,
    /// What is available is a lower bound so far, which the first proper result replaces.
    bound: bool,
}

/// What one stream found: its rate, and the available bandwidth that follows from the growth of its delay.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    rate: f64,
    available: f64,
}

/// Sub-ranges, each with a stream of its own, which takes a round trip: three give a result every three to four round
/// trips (Kodama 2009, Sec. 2.2.1).
const SUB_RANGES: usize = 3;
/// The search range reaches so far below and above the confidence interval's centre at least, as parts of the capacity
/// (ours). Above, as far as one stream's result scatters where others send at random; below, less, as streams slower than
/// the available bandwidth say little and hold up the connection most.
const LEAST_WIDTH: (f64, f64) = (0.1, 0.3);
/// A result so far from the others may be a step, as a part of the capacity (ours).
const FAR: f64 = 0.15;
/// A lower bound so far above the mean is news, as a part of the capacity (ours): two streams had to agree on it.
const NEWS: f64 = 0.05;
/// A queue that grows by less than this part of the time does not grow (ours): two segments in a hundred.
const CLEAR: f64 = 0.02;
/// No stream is slower than this part of the capacity (ours): it would take too long.
const LEAST_RATE: f64 = 0.05;
/// The search range begins below this part of the capacity (ours).
const MOST_LOW: f64 = 0.95;
/// Available bandwidth is never taken to be below this part of the capacity (ours): an adaptive sender gets some.
const LEAST_AVAILABLE: f64 = 0.01;

impl Search {
    /// The rates that the next stream is to cover.
    ///
    /// The first range lies between the connection's own rate and the capacity. No stream is slower than the connection:
    /// what comes behind it would have to wait.
    pub(super) fn sub_range(&self, capacity: f64, own_rate: f64) -> (f64, f64) {
        let (low, high) = self.range.unwrap_or((own_rate.min(capacity / 2.0), capacity));
        let low = low.max(own_rate).clamp(capacity * LEAST_RATE, capacity * MOST_LOW);
        let width = (high.clamp(low, capacity) - low) / SUB_RANGES as f64;
        let from = low + width * self.count as f64;
        (from, from + width)
    }

    /// Takes a stream's outcome: its rate and the growth of its delay.
    ///
    /// The fluid model of a link that is never idle in the time of the stream: what comes in, `R + c`, less what it
    /// carries, `K`, is what the queue grows by, `K g`. So `A = K - c = R - K g`.
    ///
    /// True when the measurement is finished and says something new.
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

    /// Whether there are results and the last one did not put them in doubt.
    pub(super) fn is_settled(&self) -> bool {
        self.available.mean().is_some() && self.available.set_aside().is_none() && !self.bound
    }

    /// The available bandwidth by the recent measurements.
    pub(super) fn available(&self, capacity: f64) -> Option<Measured> {
        self.available.measured(capacity * LEAST_AVAILABLE, capacity)
    }

    fn conclude(&mut self, capacity: f64) -> bool {
        self.found.sort_unstable_by(|a, b| b.rate.total_cmp(&a.rate));
        let known = self.available.mean().filter(|_| self.available.set_aside().is_none()).map(|(mean, _)| mean);
        let far = capacity * FAR;
        if let Some(bound) = self.lower_bound(capacity) {
            // The streams were not fast enough: nothing new, unless less was thought to be available.
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

    /// The rate of the fastest stream, where the two fastest ones met no growing queue and the link could be faster still.
    fn lower_bound(&self, capacity: f64) -> Option<f64> {
        let fastest = self.found.first().filter(|found| found.rate < capacity * MOST_LOW)?;
        let clear = |found: &Found| found.available > found.rate - capacity * CLEAR;
        self.found.iter().take(2).all(clear).then_some(fastest.rate)
    }

    /// The mean over the streams above the available bandwidth.
    ///
    /// A slower stream finds the link idle in between and says no more than "at least my own rate". Which ones these
    /// are is judged by what was known before, or else by all of the faster streams together, and never by the stream
    /// itself: the noise of the others' traffic would choose its own sign.
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

    /// One measurement on an ideal link: a stream faster than `available` grows by the fluid model.
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
        // The application had so little to send that the streams came out at 20.
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
