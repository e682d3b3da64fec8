//! Measures capacity and available bandwidth by a connection's own segments and their acknowledgements.

mod capacity;
mod plan;
mod recent;
mod search;
mod stream;
#[cfg(test)]
mod tests;

use capacity::Gaps;
use plan::{MOST_SEGMENTS, Plan};
use recent::Recent;
use search::Search;
use stream::Stream;

use super::BandwidthEstimate;
use crate::units::{Instant, SenderClock, Size, Span};

/// Inline network measurement: a connection, such as TCP, measures its path with the data that it sends anyway.
///
/// Source: Kodama 2009, Sec. 2.2.1, steps 1 to 5. The paper leaves open how the segments of a stream are spaced and how
/// a stream is evaluated. The details below are our choice.
///
/// 1. **Hold.** New segments are held back until a stream can be sent without a break. The hold begins up to a quarter
///    of a window after the first segment of the previous stream was acknowledged. The position varies, because another
///    connection on the path may measure too: at a fixed position, the streams would always meet the same part of that
///    connection's window. The hold is abandoned after three quarters of a round trip.
/// 2. **Stream.** A burst of eight segments leaves back to back, then thirty-two segments follow at rising rates. If
///    the window is small, a stream has fewer segments. The search range contains the likely available bandwidth. It
///    has three equal parts, and each stream's mean rate lies in one part. The burst keeps the link's queue from
///    running empty while cross traffic pauses. Otherwise random cross traffic would appear larger than it is.
/// 3. **Capacity** `K`: the intervals between the acknowledgements of bursts form clusters. The cluster of the shortest
///    intervals shows the link's service time per segment, and cross traffic causes the other clusters. A higher `K` is
///    accepted at once. A lower `K` is accepted when ten to twenty streams in a row (more in small windows) had no
///    interval about as short as the present service time.
/// 4. **Evaluation.** `R` is the stream's sending rate, and `g` the growth of its delay, in seconds per second. While
///    the link is busy with the stream and cross traffic of rate `c`, the available bandwidth is `A = K - c = R - K g`.
///    If `g` is close to zero, the stream was slower than the available bandwidth and yields a lower bound.
/// 5. **Estimate.** Three streams, one for each part of the search range, make a measurement. Its result is the mean
///    over the streams that were faster than the available bandwidth. The search range follows the 95 % confidence
///    interval of the recent results. An outlier counts only if the next result confirms it. If the two fastest streams
///    build no queue, and the fastest clearly exceeds the previous estimate, the range moves up.
///
/// An acknowledgement's arrival is assigned to the last segment that it covers, and acknowledgements sent by a timer
/// are ignored. Therefore a receiver may delay its acknowledgements. `A` is what cross traffic leaves: the connection's
/// own traffic is not subtracted.
///
/// Limits. With a window below eleven segments, nothing is measured. Holds and streams reduce the connection's rate: in
/// simulation by 0 to 2 %, and by up to 4 % with small windows. Pauses of up to eight round trips limit the held
/// segments to [`InlineConfig::most_held`] on average. Therefore a result takes three to four round trips in windows
/// above about 300 segments, and up to 25 round trips in small windows.
///
/// Evenly spaced cross traffic can lengthen every interval of a burst, so that `K` is too low. An example: cross
/// traffic takes 70 % of the capacity from the start, the sender's own link is as slow as the bottleneck, and the
/// receiver delays its acknowledgements. Then `K` is a third too low, and `A` is too high by 5 % of `K`.
/// Acknowledgements that queue on the reverse path arrive in bunches, and a bunch looks like a faster link.
///
/// There are no extra packets and no allocations. Each segment and each acknowledgement takes constant time. The
/// evaluation of a stream also sorts up to 32 numbers for each interval of its burst. Any order of calls is safe.
#[derive(Clone, Debug)]
pub struct InlineMeasurement {
    config: InlineConfig,
    phase: Phase,
    sending: Option<Stream>,
    /// A stream that was sent and is not fully acknowledged.
    awaiting: Option<Stream>,
    /// All segments below this number were acknowledged.
    acknowledged: u64,
    /// Number of the next new segment.
    next_number: u64,
    /// A segment whose round trip is being measured: its number, and the time when it left.
    timed: Option<(u64, Instant<SenderClock>)>,
    round_trip: Option<Span>,
    held: Held,
    /// Number of extra segments that are gathered before a measurement stream, in quarters of a segment. The number
    /// grows if a stream runs out of segments.
    margin: u64,
    /// The place in a window at which the sender next begins to hold segments back for a measurement stream. The value
    /// 0 is the start of the window. The value 2^32 would be the end of the first 1/`PLACES` of the window.
    place: u32,
    gaps: Gaps,
    capacity: Recent,
    search: Search,
    estimate: Option<BandwidthEstimate>,
}

/// The configuration of an inline measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InlineConfig {
    /// Size of the IP packet of a full-sized segment, headers included, because the results are rates of IP packets.
    pub segment: Size,
    /// Upper limit of the share of the window that is held back on average, 0 to 1. With a larger value, a connection
    /// with a small window gets more results. With a smaller value, the connection loses less rate.
    pub most_held: f64,
}

impl InlineConfig {
    /// Default of `most_held`. Our choice: with 0.001, the connection would lose less rate, but in a window of a
    /// hundred segments, a result would take about twenty round trips.
    pub const MOST_HELD: f64 = 0.01;

    /// Returns a configuration for segments of this size, with the default [`MOST_HELD`](Self::MOST_HELD).
    pub const fn new(segment: Size) -> Self {
        Self { segment, most_held: Self::MOST_HELD }
    }

    fn segment_bits(&self) -> f64 {
        self.segment.as_bits().max(1) as f64
    }
}

/// What the next new segment waits for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The next new segment may leave at once. New segments are held back for the next measurement stream once all
    /// segments below `until` are acknowledged, but not before `not_before`.
    Resting { until: u64, not_before: Instant<SenderClock> },
    /// New segments are held back until there are enough of them to send a measurement stream without a break.
    Holding { plan: Plan, since: Instant<SenderClock>, acknowledged_then: u64 },
    /// The next new segment waits for its departure time in the stream. `slipped` is the total lateness of the earlier
    /// segments.
    Sending { due: Instant<SenderClock>, slipped: Span },
}

/// How long segments were held back: first to gather a measurement stream, and then to send the stream at its planned
/// rates.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    began: Instant<SenderClock>,
    /// `now` is the number of segments that are held back, and `since` the time up to which their waiting times are
    /// counted in `waits_ns`.
    now: u64,
    since: Instant<SenderClock>,
    /// Sum of the held segments' waiting times so far, in nanoseconds.
    waits_ns: f64,
}

/// Maximum time for which segments are held back to gather a measurement stream, as a part of the round trip (our
/// choice). A stream is at most three quarters of the window, and this many segments become available in three quarters
/// of a round trip.
const HOLD_SHARE: (i64, i64) = (3, 4);
/// If the segments of a stream are late by more than this in total, the stream ends early. The unit is the planned
/// interval between segments at the end of the stream. Our choice: with more lateness, the rate of a stream of forty
/// segments would be wrong by about a tenth or more.
const MOST_SLIPPED: i64 = 4;
/// A stream that ended early still counts if at least this part of its segments was sent (our choice).
const ENOUGH: (u64, u64) = (3, 4);
/// The margin is the number of extra segments gathered before a stream. The unit of the margin is 1/`MARGIN_PARTS` of a
/// segment. The margin shrinks by one unit with each stream that did not run out of segments (our choice).
const MARGIN_PARTS: u64 = 4;
/// When a stream has run out of segments, the margin (the number of extra segments gathered before a stream) increases
/// by this value, in units of 1/`MARGIN_PARTS` of a segment. Our choice: four segments.
const MARGIN_UP: u64 = 16;
/// Maximum time between the starts of two successive holds, in round trips, if the search has a settled result (our
/// choice). A hold keeps segments back for a measurement.
const MOST_PAUSE: i64 = 8;
/// Maximum time between the starts of two holds while the search has no settled result, in round trips (our choice). A
/// hold keeps segments back for a measurement. The search has no settled result if there is no result, or if the last
/// result is only a lower bound or an outlier. Then a result is worth more than the cost of a hold.
const SEARCH_PAUSE: i64 = 1;
/// The sender begins to hold segments back at a varying position within the first 1/`PLACES` of a window (our choice).
/// With a larger `PLACES`, the positions vary too little. Then a measurement does not sample the windows of other
/// measuring connections evenly. With a smaller `PLACES`, a result takes longer.
const PLACES: u64 = 4;
/// In each window, the sender begins to hold segments back at another position. From window to window, the position
/// changes by this step. Our choice: the golden section of 2^32, whose multiples spread evenly.
const PLACE_STEP: u32 = 0x9E37_79B9;
/// Inverse weight of a new sample in the smoothed round-trip time (RFC 6298, Sec. 2).
const ROUND_TRIP_GAIN: i64 = 8;
/// A new capacity is never an outlier if it differs from the mean of the recent capacities by at most this share of the
/// new capacity. Our choice.
const CAPACITY_FAR: f64 = 0.05;

impl InlineMeasurement {
    /// Creates a measurement without results.
    pub fn new(config: InlineConfig) -> Self {
        Self {
            config,
            phase: Phase::Resting { until: 0, not_before: Instant::ZERO },
            sending: None,
            awaiting: None,
            acknowledged: 0,
            next_number: 0,
            timed: None,
            round_trip: None,
            held: Held::default(),
            margin: 0,
            place: 0,
            gaps: Gaps::default(),
            capacity: Recent::default(),
            search: Search::default(),
            estimate: None,
        }
    }

    /// Returns the time at which the next new segment may leave. `room` is the number of segments that window and
    /// application allow now.
    ///
    /// The result is `now` if the segment may leave at once. If the result is later, call again at that time and after
    /// each acknowledgement. Do not call for retransmissions.
    pub fn next_departure(&mut self, now: Instant<SenderClock>, room: u64) -> Instant<SenderClock> {
        self.account(now, room);
        if let Phase::Resting { until, not_before } = self.phase
            && self.acknowledged >= until
        {
            let plan = if now >= not_before { self.plan(room) } else { None };
            self.phase = match plan {
                Some(plan) => {
                    (self.held.began, self.held.waits_ns) = (now, 0.0);
                    Phase::Holding { plan, since: now, acknowledged_then: self.acknowledged }
                }
                // No measurement stream is possible yet: the next attempt follows when the next new segment is
                // acknowledged.
                None => Phase::Resting { until: self.next_number.saturating_add(1), not_before },
            };
        }
        match self.phase {
            Phase::Resting { .. } => now,
            Phase::Sending { due, .. } => due.max(now),
            Phase::Holding { plan, since, acknowledged_then } => {
                let held = now - since;
                let most = self.round_trip.map_or(Span::ZERO, |rtt| part(rtt, HOLD_SHARE));
                let arrived = self.acknowledged.saturating_sub(acknowledged_then);
                let counted = room.saturating_sub(self.margin / MARGIN_PARTS);
                if room >= plan.total as u64 || plan.suffices(counted, arrived, held) {
                    self.sending = Some(Stream::new(plan, self.next_number));
                    self.phase = Phase::Sending { due: now, slipped: Span::ZERO };
                    now
                } else if held >= most {
                    // The hold, which kept segments back for a measurement, is abandoned. No hold begins before all
                    // segments in flight, and half as many further segments, are acknowledged. If the segments travel
                    // in one bunch, the next hold thus begins at another place in the bunch.
                    let half = self.next_number.saturating_sub(self.acknowledged) / 2;
                    self.rest(self.next_number.saturating_add(half));
                    now
                } else {
                    since + most
                }
            }
        }
    }

    /// Whether the segments of a measurement stream are being sent. They have their own departure times, independent of
    /// any pacing.
    pub const fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Sending { .. })
    }

    /// Records that segment `number` left. Numbers of new segments increase by one.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, retransmission: bool) {
        if retransmission || number != self.next_number {
            // The segments of a stream must be new and have consecutive numbers. If a segment was sent twice, its
            // acknowledgement is ambiguous (Karn 1987).
            self.forget_streams();
        }
        if retransmission {
            return;
        }
        self.next_number = self.next_number.max(number.saturating_add(1));
        self.account(now, self.held.now.saturating_sub(1));
        self.timed.get_or_insert((number, now));
        if let Phase::Sending { due, slipped } = self.phase {
            self.send_in_stream(now, slipped + (now - due));
        }
    }

    /// Records an acknowledgement of every segment below `up_to`.
    pub fn on_ack(&mut self, now: Instant<SenderClock>, up_to: u64) {
        let up_to = up_to.min(self.next_number);
        let covered = up_to.saturating_sub(self.acknowledged);
        if covered == 0 {
            return;
        }
        self.acknowledged = up_to;
        if let Some((_, sent)) = self.timed.take_if(|(number, _)| *number < up_to) {
            let sample = (now - sent).max(Span::ZERO);
            let smoothed = self.round_trip.unwrap_or(sample);
            self.round_trip = Some(smoothed + part(sample - smoothed, (1, ROUND_TRIP_GAIN)));
        }
        for stream in [&mut self.awaiting, &mut self.sending].into_iter().flatten() {
            stream.push_ack(now, up_to, covered);
        }
        if let Some(stream) = self.awaiting.take_if(|stream| stream.end() <= up_to) {
            self.judge(&stream);
        }
    }

    /// Records that a segment was lost and recovery begins. Measurement streams that are not fully acknowledged are
    /// discarded.
    pub fn on_loss(&mut self) {
        self.forget_streams();
    }

    /// Records that the retransmission timer expired: all results are discarded (Kodama 2009, Sec. 2.2.2).
    pub fn on_timeout(&mut self) {
        self.forget_streams();
        self.gaps = Gaps::default();
        self.capacity = Recent::default();
        self.search = Search::default();
        self.estimate = None;
    }

    /// Returns the newest estimate, if it was not returned before. The estimate consists of means and confidence
    /// intervals over the recent measurements. It does not include measurements from before the last change of the
    /// path.
    pub const fn take_estimate(&mut self) -> Option<BandwidthEstimate> {
        self.estimate.take()
    }

    /// Returns the plan of the next stream; `None` if the window is too small for a stream. `room` is the number of
    /// segments that may be sent now.
    fn plan(&self, room: u64) -> Option<Plan> {
        let window = room.saturating_add(self.next_number.saturating_sub(self.acknowledged));
        let Some(capacity) = self.capacity_bps() else {
            return Plan::burst(window);
        };
        let bits = self.config.segment_bits();
        let own = window as f64 * bits * 1e9 / (self.round_trip?.as_nanos() as f64).max(1.0);
        let (low, high) = self.search.sub_range(capacity, own);
        Plan::spaced(window, (low / bits / 1e9, high / bits / 1e9))
    }

    /// Records that the next segment of the stream left. `slipped` is the sum of the lateness of the stream's segments
    /// so far. If `slipped` is too large, no further segments of the stream are recorded.
    fn send_in_stream(&mut self, now: Instant<SenderClock>, slipped: Span) {
        let Some(stream) = &mut self.sending else { return };
        let sent = stream.end() - stream.first();
        let plan = *stream.plan();
        if sent > 0 && slipped > plan.intervals.1 * MOST_SLIPPED {
            self.margin = (self.margin + MARGIN_UP).min(MARGIN_PARTS * MOST_SEGMENTS as u64);
            if sent * ENOUGH.1 >= plan.total as u64 * ENOUGH.0 {
                self.await_stream();
            } else {
                self.forget_streams();
            }
            return;
        }
        stream.push_sent(now);
        if stream.is_complete() {
            self.margin = self.margin.saturating_sub(1);
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
            if stream.plan().is_spaced() { stream.first().saturating_add(1) } else { stream.end() }
        });
        self.place = self.place.wrapping_add(PLACE_STEP);
        let most = self.next_number.saturating_sub(self.acknowledged) / PLACES;
        let later = (u128::from(most) * u128::from(self.place)) >> u32::BITS;
        self.rest(until.saturating_add(later as u64));
    }

    fn judge(&mut self, stream: &Stream) {
        stream.gaps().for_each(|gap| self.gaps.push(gap));
        let Some(capacity) = self.capacity_bps() else { return };
        let Some(outcome) = stream.outcome().filter(|_| stream.plan().is_spaced()) else { return };
        let rate = outcome.rate * self.config.segment_bits() * 1e9;
        if self.search.push(rate, outcome.growth, capacity) {
            self.capacity.push(capacity, capacity * CAPACITY_FAR);
            let known = self.capacity.measured(0.0, f64::MAX);
            let available = self.search.available(capacity);
            self.estimate = known.zip(available).map(|(capacity, available)| BandwidthEstimate { capacity, available });
        }
    }

    fn capacity_bps(&self) -> Option<f64> {
        self.gaps.service_time().map(|nanos| self.config.segment_bits() * 1e9 / nanos)
    }

    fn forget_streams(&mut self) {
        self.timed = None;
        self.awaiting = None;
        self.sending = None;
        self.rest(self.next_number);
    }

    /// Holds no segments back until two conditions are met: all segments below `until` are acknowledged, and the
    /// average share of held segments is at most [`InlineConfig::most_held`] again. The second condition counts as met
    /// after the maximum pause.
    fn rest(&mut self, until: u64) {
        let window = self.next_number.saturating_sub(self.acknowledged).saturating_add(self.held.now).max(1);
        let pause = Span::from_nanos((self.held.waits_ns / (window as f64 * self.config.most_held.max(0.0))) as i64);
        let most = if self.search.is_settled() { MOST_PAUSE } else { SEARCH_PAUSE };
        let pause = pause.min(self.round_trip.unwrap_or(Span::ZERO) * most);
        self.phase = Phase::Resting { until, not_before: self.held.began + pause };
    }

    /// Adds the waiting time of the segments held so far, and counts `segments` as held back from now on.
    fn account(&mut self, now: Instant<SenderClock>, segments: u64) {
        if !matches!(self.phase, Phase::Resting { .. }) {
            self.held.waits_ns += (now - self.held.since).as_nanos().max(0) as f64 * self.held.now as f64;
        }
        (self.held.since, self.held.now) = (now, segments);
    }
}

fn part(span: Span, (part, whole): (i64, i64)) -> Span {
    Span::from_nanos(span.as_nanos() / whole * part)
}
