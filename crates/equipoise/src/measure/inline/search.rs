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
/// The search range reaches so far to either side of the mean at least, as a part of the capacity (ours): as far as one
/// stream's result scatters where others send at random.
const LEAST_HALF_WIDTH: f64 = 0.2;
/// And so far where there is no history (ours).
const FIRST_HALF_WIDTH: f64 = 0.3;
/// No stream is slower than this part of the capacity (ours): it would take too long.
const LEAST_RATE: f64 = 0.05;
/// Available bandwidth is never taken to be below this part of the capacity (ours): an adaptive sender gets some.
const LEAST_AVAILABLE: f64 = 0.01;

impl Search {
    /// The rates that the next stream is to cover.
    ///
    /// The first range lies between the connection's own rate and the capacity.
    pub(super) fn sub_range(&self, capacity: f64, own_rate: f64) -> (f64, f64) {
        let (low, high) = self.range.unwrap_or((own_rate.min(capacity / 2.0), capacity));
        let low = low.clamp(capacity * LEAST_RATE, capacity * (1.0 - LEAST_RATE));
        let width = (high.clamp(low, capacity) - low) / SUB_RANGES as f64;
        let from = low + width * self.count as f64;
        (from, from + width)
    }

    /// Takes a stream's outcome: its rate and the growth of its delay.
    ///
    /// The fluid model of a link that is never idle in the time of the stream: what comes in, `R + c`, less what it
    /// carries, `K`, is what the queue grows by, `K g`. So `A = K - c = R - K g`.
    ///
    /// True when the measurement is finished.
    pub(super) fn push(&mut self, rate: f64, growth: f64, capacity: f64) -> bool {
        if let Some(slot) = self.found.get_mut(self.count) {
            *slot = Found { rate, available: rate - capacity * growth };
            self.count += 1;
        }
        if self.count < SUB_RANGES {
            return false;
        }
        self.count = 0;
        self.conclude(capacity);
        true
    }

    /// The available bandwidth by the recent measurements.
    pub(super) fn available(&self, capacity: f64) -> Option<Measured> {
        self.available.measured(capacity * LEAST_AVAILABLE, capacity)
    }

    fn conclude(&mut self, capacity: f64) {
        let known = self.available.mean().filter(|_| self.available.set_aside().is_none()).map(|(mean, _)| mean);
        let result = self.pooled(known).clamp(-capacity, 2.0 * capacity);
        let fastest = self.found.iter().fold(0.0, |most: f64, found| most.max(found.rate));
        let far = capacity * LEAST_HALF_WIDTH;
        let clear = result >= fastest && fastest < capacity * (1.0 - LEAST_RATE);
        match known {
            // No stream was fast enough to be held up, and the mean said that much before: nothing new.
            Some(mean) if clear && result < mean => return,
            Some(mean) if clear && result > mean + far => {
                self.available.restart(result);
                self.range = Some((result, capacity));
                return;
            }
            None if clear => {
                self.available.restart(result);
                self.range = Some((result, capacity));
                return;
            }
            _ => self.available.push(result, far),
        }
        let (centre, half) = match (self.available.set_aside(), self.available.mean()) {
            (Some(aside), _) => (aside, FIRST_HALF_WIDTH),
            (None, Some((mean, Some(half)))) => (mean, (half / capacity).max(LEAST_HALF_WIDTH)),
            (None, Some((mean, None))) => (mean, FIRST_HALF_WIDTH),
            (None, None) => (result, FIRST_HALF_WIDTH),
        };
        self.range = Some((centre - half * capacity, centre + half * capacity));
    }

    /// The mean over the streams above the available bandwidth.
    ///
    /// A slower stream finds the link idle in between and says no more than "at least my own rate". Which ones these
    /// are is judged by what was known before, or else by all of the faster streams together, and never by the stream
    /// itself: the noise of the others' traffic would choose its own sign.
    fn pooled(&self, known: Option<f64>) -> f64 {
        let mut found = self.found;
        found.sort_unstable_by(|a, b| b.rate.total_cmp(&a.rate));
        let (mut sum, mut count) = (0.0, 0.0);
        for stream in found {
            if count > 0.0 && stream.rate < known.unwrap_or(sum / count) {
                break;
            }
            sum += stream.available;
            count += 1.0;
        }
        sum / count
    }
}
