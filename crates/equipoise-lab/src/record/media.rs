use equipoise::units::{Size, Span};

use super::delays::Delays;
use crate::result::{DelayResult, IntervalResult, Stall};
use crate::scenario::MOST_INTERVALS;

/// Packets of a stream by the control interval in which they were sent.
#[derive(Debug)]
pub(super) struct MediaRecord {
    start: Span,
    interval: Span,
    warm_up: Span,
    intervals: Vec<Interval>,
    /// The intervals before this one are closed.
    closed: usize,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Bytes sent after the warm-up.
    pub(super) settled_bytes: Size,
    /// Of these, bytes that arrived.
    delivered_bytes: Size,
    /// Delays of packets sent after the warm-up.
    pub(super) settled: Delays,
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
    /// Packets may still arrive.
    Open(Box<Delays>),
    /// What there was to say; packets that come later count as received, and no more.
    Closed(DelayResult),
}

/// Packets that take longer than this no longer count for their interval's quantiles.
const OPEN_FOR: Span = Span::from_secs(10);
impl MediaRecord {
    /// Of a stream that begins at `start` and is summed up in intervals; only what is sent from `warm_up` on is settled.
    pub(super) fn new(start: Span, interval: Span, warm_up: Span) -> Self {
        Self {
            start,
            interval,
            warm_up,
            intervals: Vec::new(),
            closed: 0,
            sent: 0,
            received: 0,
            settled_bytes: Size::ZERO,
            delivered_bytes: Size::ZERO,
            settled: Delays::new(),
        }
    }

    pub(super) fn on_sent(&mut self, at: Span, size: Size) {
        self.sent += 1;
        if at >= self.warm_up {
            self.settled_bytes = self.settled_bytes + size;
        }
        if let Some(interval) = self.interval_at(at) {
            interval.sent += 1;
            interval.bytes = interval.bytes + size;
        }
        self.close_before(at - OPEN_FOR);
    }

    pub(super) fn on_received(&mut self, sent: Span, delay: Span, size: Size) {
        self.received += 1;
        if sent >= self.warm_up {
            self.delivered_bytes = self.delivered_bytes + size;
            self.settled.push(delay);
        }
        if let Some(interval) = self.interval_at(sent) {
            interval.received += 1;
            match &mut interval.delays {
                Summary::Open(delays) => delays.push(delay),
                Summary::Closed(_) => {}
                empty @ Summary::Empty => {
                    let mut delays = Box::new(Delays::new());
                    delays.push(delay);
                    *empty = Summary::Open(delays);
                }
            }
        }
    }

    /// The interval in which a packet that left at `at` belongs; made if it is new.
    fn interval_at(&mut self, at: Span) -> Option<&mut Interval> {
        let index = usize::try_from(((at - self.start).max(Span::ZERO) / self.interval)?).ok()?;
        // More than any run may have: the clock of a host has gone wild.
        if index as u64 >= MOST_INTERVALS {
            return None;
        }
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        self.intervals.get_mut(index)
    }

    /// Intervals so far, the last of which may go on.
    pub(super) const fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Start of an interval since the run's.
    pub(super) fn start_of(&self, index: usize) -> Span {
        self.start + self.interval * i64::try_from(index).unwrap_or(i64::MAX)
    }

    /// Closes the intervals that ended before `at`.
    fn close_before(&mut self, at: Span) {
        while self.closed < self.intervals.len() && self.start_of(self.closed + 1) <= at {
            if let Some(interval) = self.intervals.get_mut(self.closed) {
                interval.delays = Summary::Closed(interval.delays.result());
            }
            self.closed += 1;
        }
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

    /// The intervals of a run that lasted so long. One that its end cut short is left out.
    pub(super) fn interval_results(&self, lasted: Span, stalls: &[Stall]) -> Vec<IntervalResult> {
        let whole = ((lasted - self.start) / self.interval).and_then(|whole| usize::try_from(whole).ok()).unwrap_or(0);
        (0..whole.min(self.len())).map(|index| self.interval_result(index, stalls)).collect()
    }

    /// Mean rate after the warm-up of a run that lasted so long, in bit/s.
    pub(super) fn mean_rate_bps(&self, lasted: Span) -> Option<f64> {
        self.settled_rate_bps(self.settled_bytes, lasted)
    }

    /// The part of the mean rate that arrived, in bit/s.
    pub(super) fn delivered_rate_bps(&self, lasted: Span) -> Option<f64> {
        self.settled_rate_bps(self.delivered_bytes, lasted)
    }

    fn settled_rate_bps(&self, bytes: Size, lasted: Span) -> Option<f64> {
        let measured = lasted - self.warm_up.max(self.start);
        (measured > Span::ZERO).then(|| bytes.as_bits() as f64 / measured.as_secs_f64())
    }
}

impl Summary {
    fn result(&self) -> DelayResult {
        match self {
            Self::Empty => DelayResult::default(),
            Self::Open(delays) => delays.result(),
            Self::Closed(result) => *result,
        }
    }
}
