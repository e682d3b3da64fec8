use super::throughput::Arrival;
use crate::units::{Instant, SenderClock, Span};

/// The back-off of last resort: the rate falls if the sum of the round-trip time and the time without feedback is above
/// 3 s.
///
/// The round-trip time of a packet is the time from its departure to the feedback, minus the time from its arrival to
/// the last arrival in the feedback. The minimum over the packets in the last feedback counts.
///
/// The time without feedback starts at the last feedback and ends at the last packet sent. An idle sender sends no
/// packets, so it does not back off.
///
/// Source: libwebrtc, `send_side_bandwidth_estimation` (RTT-based back-off). libwebrtc also lowers the rate by a
/// periodic timer. This code lowers the rate only when a packet is sent or feedback arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTripBackoff {
    round_trip: Span,
    told: Option<Instant<SenderClock>>,
    sent: Option<Instant<SenderClock>>,
    lowered: Option<Instant<SenderClock>>,
}

/// The round-trip time above which the rate falls (libwebrtc, `send_side_bandwidth_estimation`).
const LIMIT: Span = Span::from_secs(3);
/// A reduction multiplies the rate by this factor (libwebrtc, `send_side_bandwidth_estimation`).
pub(super) const FACTOR: f64 = 0.8;
/// Minimum time between two reductions of the rate (libwebrtc, `send_side_bandwidth_estimation`).
const INTERVAL: Span = Span::from_secs(1);

impl RoundTripBackoff {
    /// Records a packet that was sent.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>) {
        self.told.get_or_insert(now);
        self.sent = Some(now);
    }

    /// Records feedback on these packets, which are sorted by arrival.
    pub(super) fn on_feedback(&mut self, now: Instant<SenderClock>, packets: &[Arrival]) {
        let Some(newest) = packets.last().map(|packet| packet.arrived) else { return };
        let held = |packet: &Arrival| (now - packet.departed) - (newest - packet.arrived);
        let Some(round_trip) = packets.iter().map(held).min() else { return };
        (self.round_trip, self.told) = (round_trip.max(Span::ZERO), Some(now));
    }

    /// Whether the round-trip time, including the time without feedback, is above 3 s.
    pub(super) fn is_too_long(&self) -> bool {
        let waited = self.sent.zip(self.told).map_or(Span::ZERO, |(sent, told)| (sent - told).max(Span::ZERO));
        self.round_trip + waited > LIMIT
    }

    /// Whether the rate must now be multiplied by [`FACTOR`]. Returns true at most once per second.
    pub(super) fn is_due(&mut self, now: Instant<SenderClock>) -> bool {
        let is_due = self.is_too_long() && self.lowered.is_none_or(|lowered| now - lowered >= INTERVAL);
        if is_due {
            self.lowered = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Size;

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn arrival(departed: u64, arrived: u64) -> Arrival {
        Arrival { number: 0, size: Size::ZERO, departed: at(departed), arrived: at(arrived).assume_clock() }
    }

    #[test]
    fn silence_lowers_the_rate_while_packets_leave_and_once_a_second() {
        let mut backoff = RoundTripBackoff::default();
        backoff.on_sent(at(0));
        backoff.on_sent(at(3000));
        assert!(!backoff.is_due(at(3000)));
        backoff.on_sent(at(3001));
        assert_eq!([3001, 3500, 4001].map(|millis| backoff.is_due(at(millis))), [true, false, true]);
        backoff.on_feedback(at(4100), &[arrival(4000, 50)]);
        assert!(!backoff.is_too_long());
    }

    /// If a packet arrived 200 ms before the report was sent, these 200 ms are not a part of the packet's round-trip
    /// time.
    #[test]
    fn the_time_that_a_packet_waited_for_its_report_does_not_count() {
        let mut backoff = RoundTripBackoff::default();
        backoff.on_feedback(at(3300), &[arrival(0, 100), arrival(150, 300)]);
        assert!(backoff.is_too_long() && backoff.round_trip == Span::from_millis(3100));
        backoff.on_feedback(at(3300), &[arrival(0, 0), arrival(400, 500)]);
        assert!(!backoff.is_too_long());
    }
}
