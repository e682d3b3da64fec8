//! Capacity and available bandwidth from a connection's own segments and their acknowledgements.

mod capacity;
mod recent;
mod search;
mod stream;
#[cfg(test)]
mod tests;

use capacity::Gaps;
use recent::Recent;
use search::Search;
use stream::{MOST_SEGMENTS, Plan, Stream};

use super::BandwidthEstimate;
use crate::units::{Instant, SenderClock, Size, Span};

/// Inline network measurement of a path by a TCP connection that would send anyway.
///
/// Source: Kodama 2009, Sec. 2.2.1, steps 1 to 5.
#[derive(Clone, Debug)]
pub struct InlineMeasurement {
    segment_bits: f64,
    phase: Phase,
    sending: Option<Stream>,
    awaiting: Option<Stream>,
    /// Everything below was acknowledged.
    acknowledged: u64,
    /// Number of the next new segment.
    next_number: u64,
    timed: Option<(u64, Instant<SenderClock>)>,
    round_trip: Option<Span>,
    /// Segments that are held back since the moment, and what was held back since this hold began, in segments times
    /// nanoseconds.
    waiting: (Instant<SenderClock>, u64),
    held: f64,
    hold_began: Instant<SenderClock>,
    /// So many streams are still gathered whole before they begin, because one ran dry.
    patience: u8,
    gaps: Gaps,
    capacity: Recent,
    search: Search,
    estimate: Option<BandwidthEstimate>,
}

/// What an inline measurement has to know beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineConfig {
    /// Size of a full-sized segment as an IP packet, headers included: the unit of the results.
    pub segment: Size,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No stream before everything below this number was acknowledged.
    Resting { until: u64, not_before: Instant<SenderClock> },
    /// Segments are held back until a stream can be sent.
    Holding { plan: Plan, since: Instant<SenderClock>, acknowledged_then: u64 },
    /// The next segment of the stream is due.
    Sending { due: Instant<SenderClock>, slipped: Span },
}

/// Segments of a stream's burst (ours). Two pairs of acknowledgements that cover two each, at least.
const LEAST_BURST: usize = 4;
const MOST_BURST: usize = 8;
/// The burst's part of a stream (ours).
const BURST_SHARE: usize = 5;
/// Least stream (ours): four acknowledgements of two segments each behind the burst.
const LEAST_STREAM: usize = 10;
/// A stream takes this part of the window (ours): a larger one is more precise and holds up more of the connection.
const WINDOW_SHARE: (u64, u64) = (2, 5);
/// And of a small window up to this part, as long as the stream is small too (ours).
const MOST_SHARE: (u64, u64) = (3, 4);
const SMALL_STREAM: u64 = 16;
/// Hold limit as a part of the round trip (ours).
const HOLD_SHARE: (i64, i64) = (3, 4);
/// A segment that is late by so many intervals ends its stream (ours).
const LATE: i64 = 4;
/// A stream that ended early still counts with this part of its segments (ours).
const ENOUGH: (u64, u64) = (3, 4);
/// Held segments take this part of the window on average at most (ours): less gives fewer results where the window is
/// small.
const MOST_HELD: f64 = 0.01;
/// Streams gathered whole after one ran dry (ours).
const PATIENCE: u8 = 8;
/// The smoothed round trip's gain, as the retransmission timer's (RFC 6298, Sec. 2).
const ROUND_TRIP_GAIN: i64 = 8;
/// Segments acknowledged in a hold before their rate is believed (ours).
const LEAST_ARRIVED: u64 = 4;

impl InlineMeasurement {
    /// A measurement that knows nothing yet.
    pub fn new(config: InlineConfig) -> Self {
        Self {
            segment_bits: config.segment.as_bits().max(1) as f64,
            phase: Phase::Resting { until: 0, not_before: Instant::ZERO },
            sending: None,
            awaiting: None,
            acknowledged: 0,
            next_number: 0,
            timed: None,
            round_trip: None,
            waiting: (Instant::ZERO, 0),
            held: 0.0,
            hold_began: Instant::ZERO,
            patience: 0,
            gaps: Gaps::default(),
            capacity: Recent::default(),
            search: Search::default(),
            estimate: None,
        }
    }

    /// When the next new segment may leave, given that window and application would let `room` of them go at once.
    ///
    /// `now` for "at once". A later moment: ask again then, or when an acknowledgement came.
    pub fn next_departure(&mut self, now: Instant<SenderClock>, room: u64) -> Instant<SenderClock> {
        self.account(now, room);
        if let Phase::Resting { until, not_before } = self.phase
            && self.acknowledged >= until
        {
            match self.plan(room).filter(|_| now >= not_before) {
                Some(plan) => {
                    (self.held, self.hold_began) = (0.0, now);
                    self.phase = Phase::Holding { plan, since: now, acknowledged_then: self.acknowledged };
                }
                // The head of the bunch goes round once more.
                None => self.phase = Phase::Resting { until: self.next_number.saturating_add(1), not_before },
            }
        }
        match self.phase {
            Phase::Resting { .. } => now,
            Phase::Sending { due, .. } => due.max(now),
            Phase::Holding { plan, since, acknowledged_then } => {
                let held = now - since;
                let deadline = self
                    .round_trip
                    .map_or(Span::ZERO, |rtt| Span::from_nanos(rtt.as_nanos() / HOLD_SHARE.1 * HOLD_SHARE.0));
                if room >= plan.total as u64
                    || self.patience == 0 && suffices(&plan, room, self.acknowledged - acknowledged_then, held)
                {
                    self.sending = Some(Stream::new(plan, self.next_number));
                    self.phase = Phase::Sending { due: now, slipped: Span::ZERO };
                    now
                } else if held >= deadline {
                    self.rest(self.next_number);
                    now
                } else {
                    since + deadline
                }
            }
        }
    }

    /// Segment `number` left: new ones in order, or one that was sent before.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, retransmission: bool) {
        if retransmission || number != self.next_number {
            self.forget_streams();
        }
        if retransmission {
            return;
        }
        self.next_number = number.saturating_add(1);
        self.account(now, self.waiting.1.saturating_sub(1));
        if self.timed.is_none() {
            self.timed = Some((number, now));
        }
        if let Phase::Sending { due, slipped } = self.phase {
            self.send_in_stream(now, due, slipped);
        }
    }

    fn send_in_stream(&mut self, now: Instant<SenderClock>, due: Instant<SenderClock>, slipped: Span) {
        let Some(stream) = &mut self.sending else { return };
        let slipped = slipped + (now - due);
        if slipped > stream.plan().intervals.1 * LATE && stream.end() > stream.first() {
            self.patience = PATIENCE;
            let sent = stream.end() - stream.first();
            if sent * ENOUGH.1 >= stream.plan().total as u64 * ENOUGH.0 {
                self.await_stream();
            } else {
                self.forget_streams();
            }
            return;
        }
        stream.push_sent(now);
        if stream.is_complete() {
            self.patience = self.patience.saturating_sub(1);
            self.await_stream();
        } else {
            self.phase = Phase::Sending { due: now + stream.interval(), slipped };
        }
    }

    fn await_stream(&mut self) {
        if let Some(older) = self.awaiting.take() {
            self.judge(&older);
        }
        self.awaiting = self.sending.take();
        let until = self.awaiting.as_ref().map_or(self.next_number, |stream| {
            // The next hold begins as this stream comes back in a bunch, which makes it short.
            if stream.plan().is_spaced() { stream.first().saturating_add(1) } else { stream.end() }
        });
        self.rest(until);
    }

    /// An acknowledgement of every segment below `up_to`.
    pub fn on_ack(&mut self, now: Instant<SenderClock>, up_to: u64) {
        let covered = up_to.saturating_sub(self.acknowledged);
        if covered == 0 {
            return;
        }
        self.acknowledged = up_to;
        if let Some((number, sent)) = self.timed
            && up_to > number
        {
            self.timed = None;
            let sample = now - sent;
            let smoothed = self.round_trip.unwrap_or(sample).as_nanos();
            self.round_trip = Some(Span::from_nanos(smoothed + (sample.as_nanos() - smoothed) / ROUND_TRIP_GAIN));
        }
        for stream in [&mut self.awaiting, &mut self.sending].into_iter().flatten() {
            stream.push_ack(now, up_to, covered);
        }
        if let Some(stream) = self.awaiting.take_if(|stream| up_to >= stream.end()) {
            self.judge(&stream);
        }
    }

    fn judge(&mut self, stream: &Stream) {
        stream.gaps().for_each(|gap| self.gaps.push(gap));
        let Some(capacity) = self.capacity_bps() else { return };
        let Some(outcome) = stream.outcome().filter(|_| stream.plan().is_spaced()) else { return };
        let rate = outcome.rate * self.segment_bits * 1e9;
        if self.search.push(rate, outcome.growth, capacity) {
            self.capacity.push(capacity, capacity / 20.0);
            let known = self.capacity.measured(0.0, f64::MAX);
            let available = self.search.available(capacity);
            self.estimate = known.zip(available).map(|(capacity, available)| BandwidthEstimate { capacity, available });
        }
    }

    fn capacity_bps(&self) -> Option<f64> {
        self.gaps.service_time().map(|ns| self.segment_bits * 1e9 / ns)
    }

    /// Segments were lost: the streams under way are forgotten.
    pub fn on_loss(&mut self) {
        self.forget_streams();
    }

    /// The retransmission timer ran out: all results are discarded (Kodama 2009, Sec. 2.2.2).
    pub fn on_timeout(&mut self) {
        self.forget_streams();
        self.gaps = Gaps::default();
        self.capacity = Recent::default();
        self.search = Search::default();
        self.estimate = None;
    }

    /// The newest result, once for each measurement that was finished.
    pub const fn take_estimate(&mut self) -> Option<BandwidthEstimate> {
        self.estimate.take()
    }

    fn forget_streams(&mut self) {
        self.timed = None;
        self.awaiting = None;
        self.sending = None;
        self.rest(self.next_number);
    }

    /// No stream until everything below `until` is acknowledged, and until what was held back is this part of the
    /// connection's time only.
    fn rest(&mut self, until: u64) {
        let window = self.next_number.saturating_sub(self.acknowledged).saturating_add(self.waiting.1).max(1);
        let pause = self.held / (window as f64 * MOST_HELD);
        self.phase = Phase::Resting { until, not_before: self.hold_began + Span::from_nanos(pause as i64) };
    }

    fn account(&mut self, now: Instant<SenderClock>, room: u64) {
        let (then, segments) = self.waiting;
        if !matches!(self.phase, Phase::Resting { .. }) {
            self.held += (now - then).as_nanos() as f64 * segments as f64;
        }
        self.waiting = (now, room);
    }

    /// The next stream; `None` where the window is too small for one.
    fn plan(&self, room: u64) -> Option<Plan> {
        let window = room.saturating_add(self.next_number.saturating_sub(self.acknowledged));
        let share = |(part, whole): (u64, u64)| window.saturating_mul(part) / whole;
        let most = share(MOST_SHARE).min(SMALL_STREAM);
        let total = share(WINDOW_SHARE).max(most).min(MOST_SEGMENTS as u64) as usize;
        let Some(service) = self.gaps.service_time() else {
            let total = total.min(MOST_BURST);
            let none = (Span::ZERO, Span::ZERO);
            return (total >= LEAST_BURST).then_some(Plan { burst: total, total, intervals: none });
        };
        if total < LEAST_STREAM {
            return None;
        }
        let own = window as f64 * self.segment_bits * 1e9 / (self.round_trip?.as_nanos() as f64).max(1.0);
        let (low, high) = self.search.sub_range(self.segment_bits * 1e9 / service, own);
        let burst = (total / BURST_SHARE).clamp(LEAST_BURST, MOST_BURST);
        // The burst takes no time, so that the others have to take the more for the stream as a whole to have the rate.
        let stretch = (total - 1) as f64 / (total - burst) as f64;
        let interval = |bps: f64| Span::from_nanos((self.segment_bits * 1e9 / bps * stretch) as i64);
        Some(Plan { burst, total, intervals: (interval(low), interval(high)) })
    }
}

/// Whether the stream can be sent to its end: the segments that lack come in, at the rate of the hold so far, in the
/// time the stream takes.
fn suffices(plan: &Plan, room: u64, arrived: u64, held: Span) -> bool {
    let lack = (plan.total as u64).saturating_sub(room);
    if lack == 0 {
        return true;
    }
    if room < plan.burst as u64 || arrived < LEAST_ARRIVED {
        return false;
    }
    let takes = plan.intervals.1.as_nanos() as f64 * (plan.total - plan.burst) as f64;
    lack as f64 * held.as_nanos() as f64 <= arrived as f64 * takes
}
