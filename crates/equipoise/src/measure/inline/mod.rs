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
    Resting { until: u64 },
    /// Segments are held back until a stream can be sent.
    Holding { plan: Plan, since: Instant<SenderClock>, acknowledged_then: u64 },
    /// The next segment of the stream is due.
    Sending { due: Instant<SenderClock> },
}

/// Segments of a stream's burst (ours). Two pairs of acknowledgements that cover two each, at least.
const LEAST_BURST: usize = 4;
const MOST_BURST: usize = 8;
/// The burst's part of a stream (ours).
const BURST_SHARE: usize = 5;
/// Least stream (ours): four acknowledgements of two segments each behind the burst.
const LEAST_STREAM: usize = 12;
/// A stream takes this part of the window at most (ours).
const WINDOW_SHARE: (u64, u64) = (3, 4);
/// Hold limit as a part of the round trip (ours).
const HOLD_SHARE: (i64, i64) = (3, 4);
/// A segment that is late by so many intervals ends its stream (ours).
const LATE: i64 = 4;
/// A stream that ended early still counts with this part of its segments (ours).
const ENOUGH: (usize, usize) = (3, 4);
/// The smoothed round trip's gain, as the retransmission timer's (RFC 6298, Sec. 2).
const ROUND_TRIP_GAIN: i64 = 8;
/// Segments acknowledged in a hold before their rate is believed (ours).
const LEAST_ARRIVED: u64 = 4;

impl InlineMeasurement {
    /// A measurement that knows nothing yet.
    pub fn new(config: InlineConfig) -> Self {
        Self {
            segment_bits: config.segment.as_bits().max(1) as f64,
            phase: Phase::Resting { until: 0 },
            sending: None,
            awaiting: None,
            acknowledged: 0,
            next_number: 0,
            timed: None,
            round_trip: None,
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
        if let Phase::Resting { until } = self.phase
            && self.acknowledged >= until
            && let Some(plan) = self.plan(room)
        {
            self.phase = Phase::Holding { plan, since: now, acknowledged_then: self.acknowledged };
        }
        match self.phase {
            Phase::Resting { .. } => now,
            Phase::Sending { due } => due.max(now),
            Phase::Holding { plan, since, acknowledged_then } => {
                let held = now - since;
                let deadline = self
                    .round_trip
                    .map_or(Span::ZERO, |rtt| Span::from_nanos(rtt.as_nanos() / HOLD_SHARE.1 * HOLD_SHARE.0));
                if suffices(&plan, room, self.acknowledged - acknowledged_then, held) {
                    self.sending = Some(Stream::new(plan, self.next_number));
                    self.phase = Phase::Sending { due: now };
                    now
                } else if held >= deadline {
                    self.phase = Phase::Resting { until: self.next_number };
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
        if self.timed.is_none() {
            self.timed = Some((number, now));
        }
        if let Phase::Sending { due } = self.phase {
            self.send_in_stream(now, due);
        }
    }

    fn send_in_stream(&mut self, now: Instant<SenderClock>, due: Instant<SenderClock>) {
        let Some(stream) = &mut self.sending else { return };
        let late = now - due;
        if late > stream.interval() * LATE && late > Span::ZERO && stream.end() > stream.first() {
            let enough = (stream.end() - stream.first()) * ENOUGH.1 as u64 >= (stream.plan().total * ENOUGH.0) as u64;
            if enough {
                self.await_stream();
            } else {
                self.forget_streams();
            }
            return;
        }
        stream.push_sent(now);
        if stream.is_complete() {
            self.await_stream();
        } else {
            let interval = stream.interval();
            let from = if late > interval { now } else { due };
            self.phase = Phase::Sending { due: from + interval };
        }
    }

    fn await_stream(&mut self) {
        self.awaiting = self.sending.take();
        let first = self.awaiting.as_ref().map_or(self.next_number, Stream::first);
        self.phase = Phase::Resting { until: first.saturating_add(1) };
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
        let Some(outcome) = stream.outcome().filter(|_| stream.plan().total > stream.plan().burst) else { return };
        let rate = outcome.rate * self.segment_bits * 1e9;
        let reach = rate * stream.plan().burst as f64 / stream.plan().total as f64;
        if self.search.push(rate, outcome.growth, reach, capacity) {
            self.capacity.push(capacity, capacity / 20.0);
            self.estimate = self
                .capacity
                .measured()
                .zip(self.search.available().measured())
                .map(|(capacity, available)| BandwidthEstimate { capacity, available });
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
        self.phase = Phase::Resting { until: self.next_number };
    }

    /// The next stream; `None` where the window is too small for one.
    fn plan(&self, room: u64) -> Option<Plan> {
        let window = room.saturating_add(self.next_number.saturating_sub(self.acknowledged));
        let share = (window / WINDOW_SHARE.1 * WINDOW_SHARE.0).min(MOST_SEGMENTS as u64) as usize;
        let Some(capacity) = self.capacity_bps() else {
            let total = share.min(MOST_BURST);
            return (total >= LEAST_BURST).then_some(Plan { burst: total, total, intervals: (Span::ZERO, Span::ZERO) });
        };
        if share < LEAST_STREAM {
            return None;
        }
        let own = window as f64 * self.segment_bits * 1e9 / (self.round_trip?.as_nanos() as f64).max(1.0);
        let (low, high) = self.search.sub_range(capacity, own);
        let interval = |bps: f64| Span::from_nanos((self.segment_bits * 1e9 / bps) as i64);
        Some(Plan {
            burst: (share / BURST_SHARE).clamp(LEAST_BURST, MOST_BURST),
            total: share,
            intervals: (interval(low), interval(high)),
        })
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
