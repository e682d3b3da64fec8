use equipoise::units::{Size, Span};

use super::delays::Delays;
use super::received::{Lot, Received};
use crate::result::{DelayResult, IntervalResult, Stall};
use crate::scenario::MOST_INTERVALS;

/// Counts the packets of a stream that were sent in each control interval, and collects the delays of these packets.
#[derive(Debug)]
pub(super) struct MediaRecord {
    start: Span,
    interval: Span,
    warm_up: Span,
    intervals: Vec<Interval>,
    /// Index of the first interval that is still open, and the time at which it may close.
    closed: usize,
    closes: Span,
    /// `sending` is the interval in which the last packet was sent. `receiving` is the interval in which the
    /// packet that arrived last was sent.
    sending: Place,
    receiving: Place,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Bytes sent after the warm-up.
    pub(super) settled_bytes: Size,
    /// Bytes sent after the warm-up that have arrived.
    delivered_bytes: Size,
    /// Delays of packets sent after the warm-up. The delays in intervals that start after the warm-up and are still
    /// open are not included yet.
    settled: Delays,
}

/// Index, start and end of an interval; the interval contains all packets sent from its start until its end.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    from: Span,
    until: Span,
}

/// The packets sent in one interval.
#[derive(Debug, Default)]
struct Interval {
    sent: u64,
    bytes: Size,
    received: u64,
    delays: Summary,
}

#[derive(Debug, Default)]
enum Summary {
    /// No packet has arrived.
    #[default]
    Empty,
    /// Packets of this interval may still arrive, so all delays are kept.
    Open(Box<Delays>),
    /// Only the results are kept; a packet that arrives later is counted as received, but its delay does not count in
    /// the interval's delays.
    Closed(DelayResult),
}

/// Time from the end of an interval until the interval closes. A packet that arrives later does not count in the
/// interval's delays.
const OPEN_FOR: Span = Span::from_secs(10);
impl MediaRecord {
    /// Returns the empty record of a stream that begins at `start` and is summarised in intervals. Only packets sent
    /// from `warm_up` on count as settled.
    pub(super) fn new(start: Span, interval: Span, warm_up: Span) -> Self {
        Self {
            start,
            interval,
            warm_up,
            intervals: Vec::new(),
            closed: 0,
            closes: start + interval + OPEN_FOR,
            sending: Place::NOWHERE,
            receiving: Place::NOWHERE,
            sent: 0,
            received: 0,
            settled_bytes: Size::ZERO,
            delivered_bytes: Size::ZERO,
            settled: Delays::default(),
        }
    }

    /// Records packets that were sent one after another, each with its time and size. All consecutive packets of one
    /// interval are counted together.
    #[inline]
    pub(super) fn on_sent(&mut self, mut packets: impl Lot<(Span, Size)>) {
        while let Some((first, _)) = packets.clone().next() {
            if !self.sending.has(first) {
                self.sending = self.place(first);
            }
            let is_settled = first >= self.warm_up;
            let until = if is_settled { self.sending.until } else { self.sending.until.min(self.warm_up) };
            // The packets are in order of time, so if the last packet is in this interval, all packets are.
            let alike = match packets.clone().next_back() {
                Some((last, _)) if last < until => packets.len(),
                _ => packets.clone().take_while(|(at, _)| *at < until).count().max(1),
            };
            let of_interval = packets.by_ref().take(alike);
            let (last, bytes) = of_interval.fold((first, Size::ZERO), |(_, sum), (at, size)| (at, sum + size));
            let sent = alike as u64;
            self.sent += sent;
            if is_settled {
                self.settled_bytes = self.settled_bytes + bytes;
            }
            if let Some(interval) = self.intervals.get_mut(self.sending.index) {
                interval.sent += sent;
                interval.bytes = interval.bytes + bytes;
            }
            if last >= self.closes {
                self.close_before(last - OPEN_FOR);
            }
        }
    }

    /// Records packets that arrived one after another. Consecutive packets that were sent in the same interval are
    /// counted together.
    #[inline]
    pub(super) fn on_received(&mut self, mut packets: impl Lot<Received>) {
        while let Some(first) = packets.clone().next() {
            if !self.receiving.has(first.sent) {
                self.receiving = self.place(first.sent);
            }
            let Place { index, from, until } = self.receiving;
            let is_settled = first.sent >= self.warm_up;
            let alike = if is_settled { from.max(self.warm_up)..until } else { from..until.min(self.warm_up) };
            let mut interval = self.intervals.get_mut(index);
            let mut open = interval.as_mut().and_then(|interval| interval.delays.open());
            // When an interval closes, its delays are merged into `settled`, but only if the interval starts after the
            // warm-up. A delay must be added to `settled` directly if its interval is already closed or starts in the
            // warm-up.
            let settles = is_settled && (open.is_none() || from < self.warm_up);
            let count = packets.clone().take_while(|packet| alike.contains(&packet.sent)).count().max(1);
            let delays = packets.clone().take(count).map(|packet| packet.delay);
            if let Some(open) = &mut open {
                open.push_all(delays.clone());
            }
            if settles {
                self.settled.push_all(delays);
            }
            let bytes = packets.by_ref().take(count).map(|packet| packet.size).sum();
            let received = count as u64;
            self.received += received;
            if is_settled {
                self.delivered_bytes = self.delivered_bytes + bytes;
            }
            if let Some(interval) = interval {
                interval.received += received;
            }
        }
    }

    /// Returns the interval of a packet sent at the time `at`; adds intervals if necessary.
    #[cold]
    fn place(&mut self, at: Span) -> Place {
        let index = ((at - self.start).max(Span::ZERO) / self.interval).and_then(|index| usize::try_from(index).ok());
        // A run has at most `MOST_INTERVALS` intervals. An index above this limit means that the clock of one of the
        // hosts is wrong.
        let Some(index) = index.filter(|index| (*index as u64) < MOST_INTERVALS) else { return Place::NOWHERE };
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        Place { index, from: self.start_of(index), until: self.start_of(index + 1) }
    }

    /// Returns the delays of all packets sent after the warm-up.
    pub(super) fn settled(&self) -> Delays {
        let mut settled = self.settled.clone();
        for (index, interval) in self.intervals.iter().enumerate().skip(self.closed) {
            self.settle(index, interval, &mut settled);
        }
        settled
    }

    /// Adds the delays of an interval to `settled`, if the interval is still open and starts after the warm-up.
    fn settle(&self, index: usize, interval: &Interval, settled: &mut Delays) {
        if let Summary::Open(delays) = &interval.delays
            && self.start_of(index) >= self.warm_up
        {
            settled.merge(delays);
        }
    }

    /// Returns the number of intervals so far, including the current one.
    pub(super) const fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Returns the start of an interval, relative to the run's start.
    pub(super) fn start_of(&self, index: usize) -> Span {
        self.start + self.interval * i64::try_from(index).unwrap_or(i64::MAX)
    }

    /// Closes the intervals that ended before `at`.
    #[cold]
    fn close_before(&mut self, at: Span) {
        while self.closed < self.intervals.len() && self.start_of(self.closed + 1) <= at {
            let closed = std::mem::take(&mut self.intervals[self.closed]);
            let mut settled = std::mem::take(&mut self.settled);
            self.settle(self.closed, &closed, &mut settled);
            self.settled = settled;
            self.intervals[self.closed] = Interval { delays: Summary::Closed(closed.delays.result()), ..closed };
            self.closed += 1;
        }
        self.closes = self.start_of(self.closed + 1) + OPEN_FOR;
    }

    pub(super) fn interval_result(&self, index: usize, stalls: &[Stall]) -> IntervalResult {
        let empty = Interval::default();
        let interval = self.intervals.get(index).unwrap_or(&empty);
        let delay = interval.delays.result();
        let (start_s, end_s) = (self.start_of(index).as_secs_f64(), self.start_of(index + 1).as_secs_f64());
        IntervalResult {
            start_s,
            end_s,
            rate_bps: interval.bytes.as_bits() as f64 / self.interval.as_secs_f64(),
            delay_mean_s: delay.mean_s,
            delay_variance_s2: delay.variance_s2,
            delay_p50_s: delay.p50_s,
            delay_p95_s: delay.p95_s,
            delay_p99_s: delay.p99_s,
            delay_max_s: delay.max_s,
            packets: interval.sent,
            packets_lost: interval.sent.saturating_sub(interval.received),
            stalled: stalls.iter().any(|stall| stall.start_s < end_s && stall.end_s > start_s),
        }
    }

    /// Returns the results of the intervals of a run of length `lasted`. If the end of the run cut the last interval
    /// short, that interval is left out.
    pub(super) fn interval_results(&self, lasted: Span, stalls: &[Stall]) -> Vec<IntervalResult> {
        let whole = ((lasted - self.start) / self.interval).and_then(|whole| usize::try_from(whole).ok()).unwrap_or(0);
        (0..whole.min(self.len())).map(|index| self.interval_result(index, stalls)).collect()
    }

    /// Returns the mean sending rate after the warm-up in a run of length `lasted`, in bit/s.
    pub(super) fn mean_rate_bps(&self, lasted: Span) -> Option<f64> {
        self.settled_rate_bps(self.settled_bytes, lasted)
    }

    /// Returns the mean rate of the bytes that were sent after the warm-up and arrived, in bit/s.
    pub(super) fn delivered_rate_bps(&self, lasted: Span) -> Option<f64> {
        self.settled_rate_bps(self.delivered_bytes, lasted)
    }

    fn settled_rate_bps(&self, bytes: Size, lasted: Span) -> Option<f64> {
        let measured = lasted - self.warm_up.max(self.start);
        (measured > Span::ZERO).then(|| bytes.as_bits() as f64 / measured.as_secs_f64())
    }
}

impl Place {
    /// A placeholder for "no interval": it contains no time, so no packet belongs to it.
    const NOWHERE: Self = Self { index: usize::MAX, from: Span::MAX, until: Span::MIN };

    fn has(&self, at: Span) -> bool {
        self.from <= at && at < self.until
    }
}

impl Summary {
    /// Returns the delays recorded so far, or `None` if the interval is closed.
    #[inline]
    fn open(&mut self) -> Option<&mut Delays> {
        if matches!(self, Self::Empty) {
            *self = Self::Open(Box::default());
        }
        match self {
            Self::Open(delays) => Some(delays),
            Self::Empty | Self::Closed(_) => None,
        }
    }

    fn result(&self) -> DelayResult {
        match self {
            Self::Empty => DelayResult::default(),
            Self::Open(delays) => delays.result(),
            Self::Closed(result) => *result,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// If this test fails, results depend on how many packets the simulator handles at once.
        #[test]
        fn packets_that_leave_together_count_as_one_by_one(
            gaps_ms in proptest::collection::vec(0i64..400, 1..200),
            warm_up_ms in 0i64..5_000,
            lot in 1usize..20,
        ) {
            let sent: Vec<_> = gaps_ms.iter().scan(0, |at_ms, gap_ms| {
                *at_ms += gap_ms;
                Some((Span::from_millis(*at_ms), Size::from_bytes(40 + *gap_ms as u64)))
            }).collect();
            let results = |lot: usize| {
                let mut record = MediaRecord::new(Span::from_millis(500), Span::from_secs(1), Span::from_millis(warm_up_ms));
                sent.chunks(lot).for_each(|lot| record.on_sent(lot.iter().copied()));
                let intervals = record.interval_results(Span::from_secs(100), &[]);
                (record.sent, record.settled_bytes, record.closed, record.closes, intervals)
            };
            let settled = sent.iter().filter(|(at, _)| *at >= Span::from_millis(warm_up_ms));
            let bytes: u64 = settled.map(|(_, size)| size.as_bytes()).sum();
            let found = results(lot);
            prop_assert_eq!((found.0, found.1), (sent.len() as u64, Size::from_bytes(bytes)));
            prop_assert_eq!(found, results(1));
        }

        /// If this test fails, results depend on how many arriving packets the simulator handles at once. Some packets
        /// arrive out of order.
        #[test]
        fn packets_that_arrive_together_count_as_one_by_one(
            gaps_ms in proptest::collection::vec((0i64..400, 0i64..900), 1..200),
            warm_up_ms in 0i64..5_000,
            lot in 1usize..20,
        ) {
            let mut arrived: Vec<_> = gaps_ms.iter().scan(0, |sent_ms, (gap_ms, delay_ms)| {
                *sent_ms += gap_ms;
                let (sent, delay) = (Span::from_millis(*sent_ms), Span::from_millis(*delay_ms));
                let size = Size::from_bytes(40 + *gap_ms as u64);
                Some(Received { at: sent + delay, sent, delay, size, ecn: equipoise_session::Ecn::NotCapable })
            }).collect();
            arrived.sort_by_key(|packet| packet.at);
            let results = |lot: usize| {
                let mut record = MediaRecord::new(Span::ZERO, Span::from_secs(1), Span::from_millis(warm_up_ms));
                arrived.chunks(lot).for_each(|lot| record.on_received(lot.iter().copied()));
                let intervals = record.interval_results(Span::from_secs(100), &[]);
                (record.received, record.delivered_bytes, record.settled().result(), intervals)
            };
            let found = results(lot);
            let settled: Vec<_> = arrived.iter().filter(|packet| packet.sent >= Span::from_millis(warm_up_ms)).collect();
            let mean = settled.iter().map(|packet| packet.delay.as_secs_f64()).sum::<f64>() / settled.len() as f64;
            let bytes: u64 = settled.iter().map(|packet| packet.size.as_bytes()).sum();
            prop_assert_eq!((found.0, found.1), (arrived.len() as u64, Size::from_bytes(bytes)));
            prop_assert!(found.2.mean_s.is_none_or(|found| (found - mean).abs() < 1e-9) && found.2.mean_s.is_some() != settled.is_empty());
            prop_assert_eq!(found, results(1));
        }
    }
}
