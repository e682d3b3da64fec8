use super::plan::{MOST_SEGMENTS, Plan};
use crate::units::{Instant, SenderClock, Span};

/// A stream of the connection's own segments: their departure times, and the arrival times of their acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    plan: Plan,
    /// Number of the first segment of the stream.
    first: u64,
    sent: [Instant<SenderClock>; MOST_SEGMENTS],
    sent_count: usize,
    acks: [Ack; MOST_SEGMENTS],
    ack_count: usize,
}

/// An acknowledgement whose last segment belongs to the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Ack {
    at: Instant<SenderClock>,
    /// The last segment that the acknowledgement covers, as an index within the stream.
    index: usize,
    /// Number of segments that the acknowledgement newly covers.
    covered: u64,
}

/// The measured sending rate and delay growth of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Mean sending rate of the stream, including the burst at its start, in segments per nanosecond.
    pub(super) rate: f64,
    /// Growth of the delay over the sending time, in seconds per second.
    pub(super) growth: f64,
}

/// The time between the acknowledgements of two segments of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) nanos: u64,
    /// Difference between the numbers of the two acknowledged segments.
    pub(super) segments: u64,
}

/// An [`Outcome`] needs at least this many acknowledgements of segments after the burst at the stream's start (our
/// choice).
const LEAST_ACKS: usize = 2;
/// The delay at the end of a stream is the mean delay over the last 1/`END_SHARE` of the acknowledgements of segments
/// after the burst, but over at least one acknowledgement (our choice). With a larger part, the delay is less precise
/// under random cross traffic. With a smaller part, single packets of cross traffic change the delay.
const END_SHARE: usize = 8;
/// Two segments count as sent back to back if the interval of their acknowledgements is at least this many times their
/// sending interval (our choice).
const CLOSE: u64 = 4;

impl Stream {
    pub(super) fn new(plan: Plan, first: u64) -> Self {
        Self {
            plan,
            first,
            sent: [Instant::ZERO; MOST_SEGMENTS],
            sent_count: 0,
            acks: [Ack::default(); MOST_SEGMENTS],
            ack_count: 0,
        }
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of the segment after the last one sent.
    pub(super) const fn end(&self) -> u64 {
        self.first.saturating_add(self.sent_count as u64)
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.sent_count >= self.plan.total
    }

    /// Returns the time from the last segment sent to the next segment.
    pub(super) fn interval(&self) -> Span {
        self.plan.interval_before(self.sent_count)
    }

    /// Records that the next segment left.
    pub(super) fn push_sent(&mut self, now: Instant<SenderClock>) {
        if let Some(slot) = self.sent.get_mut(self.sent_count) {
            *slot = now;
            self.sent_count += 1;
        }
    }

    /// Records an acknowledgement of all segments below `up_to`, which newly covers `covered` segments.
    pub(super) fn push_ack(&mut self, now: Instant<SenderClock>, up_to: u64, covered: u64) {
        let Some(index) = up_to.checked_sub(self.first.saturating_add(1)) else { return };
        if index >= self.sent_count as u64 {
            return;
        }
        if let Some(slot) = self.acks.get_mut(self.ack_count) {
            *slot = Ack { at: now, index: index as usize, covered };
            self.ack_count += 1;
        }
    }

    /// Returns the acknowledgements that the receiver sent at once when their last segment arrived.
    ///
    /// If most acknowledgements cover two or more segments, the receiver delays acknowledgements. In this case, an
    /// acknowledgement of a single segment may have been sent by the receiver's timer (RFC 9293, Sec. 3.8.6.3), and is
    /// ignored.
    fn timely(&self) -> impl DoubleEndedIterator<Item = &Ack> + Clone {
        let acks = self.acks.get(..self.ack_count).unwrap_or_default();
        let single = acks.iter().filter(|ack| ack.covered == 1).count();
        let delayed = 2 * single < acks.len();
        acks.iter().filter(move |ack| !delayed || ack.covered > 1)
    }

    fn sent_at(&self, ack: &Ack) -> Option<Instant<SenderClock>> {
        self.sent.get(ack.index).copied()
    }

    /// Returns the gaps between acknowledgements of segments that left back to back.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Gap> {
        let acks = self.timely();
        acks.clone().zip(acks.skip(1)).filter_map(|(one, two)| {
            let segments = two.index.checked_sub(one.index)? as u64;
            let nanos = (two.at - one.at).as_nanos().unsigned_abs();
            let sent = (self.sent_at(two)? - self.sent_at(one)?).as_nanos().unsigned_abs();
            (segments > 0 && sent.saturating_mul(CLOSE) <= nanos).then_some(Gap { nanos, segments })
        })
    }

    /// Returns the rate of the stream, and the growth of the delay from the stream's first acknowledgement to its last
    /// ones; `None` if there are too few acknowledgements.
    ///
    /// Of the burst, only the first acknowledgement is used, because it shows the queue before the stream. The
    /// acknowledgements of the burst's other segments are ignored, because cross traffic on the sender's own link may
    /// have delayed these segments.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let acks = self.timely();
        let spaced = acks.clone().filter(|ack| ack.index >= self.plan.burst);
        let count = spaced.clone().count();
        if count < LEAST_ACKS {
            return None;
        }
        let head = self.mean_of(acks.take(1).filter(|ack| ack.index < self.plan.burst))?;
        let tail = self.mean_of(spaced.rev().take((count / END_SHARE).max(1)))?;
        let time = tail.sent_ns - head.sent_ns;
        (time > 0.0 && tail.index > head.index)
            .then(|| Outcome { rate: (tail.index - head.index) / time, growth: (tail.delay_ns - head.delay_ns) / time })
    }

    fn mean_of<'a>(&'a self, acks: impl Iterator<Item = &'a Ack>) -> Option<Point> {
        let origin = *self.sent.first()?;
        let mut sum = Point::default();
        let mut count = 0.0;
        for ack in acks {
            let sent = self.sent_at(ack)?;
            sum.index += ack.index as f64;
            sum.sent_ns += (sent - origin).as_nanos() as f64;
            sum.delay_ns += (ack.at - sent).as_nanos() as f64;
            count += 1.0;
        }
        (count > 0.0).then(|| Point {
            index: sum.index / count,
            sent_ns: sum.sent_ns / count,
            delay_ns: sum.delay_ns / count,
        })
    }
}

/// Means over some segments at the start or at the end of a stream: their index, sending time and delay.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    index: f64,
    sent_ns: f64,
    delay_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * MILLI)
    }

    /// Returns a stream of four segments at once, followed by eight segments at intervals of 2 ms.
    fn stream() -> Stream {
        let interval = Span::from_millis(2);
        let mut stream = Stream::new(Plan { burst: 4, total: 12, intervals: (interval, interval) }, 100);
        for index in 0..12_u64 {
            stream.push_sent(at(2 * index.saturating_sub(3)));
        }
        stream
    }

    #[test]
    fn a_queue_that_grows_gives_the_rate_and_the_growth() {
        let mut stream = stream();
        for index in 0..12_u64 {
            stream.push_ack(at(10 + 3 * index), 101 + index, 1);
        }
        // The last segment left 16 ms after the first segment, and its acknowledgement arrived 33 ms after that of the
        // first segment.
        let Outcome { rate, growth } = stream.outcome().unwrap();
        assert!((rate * 16e6 - 11.0).abs() < 1e-9, "{rate}");
        assert!((growth - (33.0 - 16.0) / 16.0).abs() < 1e-9, "{growth}");
        assert!(stream.gaps().take(3).all(|gap| gap == Gap { nanos: 3 * MILLI, segments: 1 }));
    }

    #[test]
    fn an_acknowledgement_from_the_receivers_timer_is_left_out() {
        let mut stream = stream();
        for index in [1, 3, 5, 7, 9, 11_u64] {
            stream.push_ack(at(10 + index), 101 + index, 2);
        }
        let clean = stream.outcome();
        assert!(clean.is_some());
        stream.push_ack(at(500), 112, 1);
        assert_eq!(stream.outcome(), clean);
        assert!(stream.gaps().all(|gap| gap == Gap { nanos: 2 * MILLI, segments: 2 }));
    }

    #[test]
    fn one_acknowledgement_for_the_whole_stream_tells_nothing() {
        let mut stream = stream();
        stream.push_ack(at(40), 112, 12);
        assert_eq!(stream.outcome(), None);
        assert_eq!(stream.gaps().count(), 0);
    }
}
