//! A receiver's list of missing packets, and the requests for their retransmission.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use equipoise::units::{Instant, ReceiverClock, Span};

use super::outbox::Outbox;
use crate::Event;
use crate::wire::nack::encode_nack;

/// How long the receiver waits before it requests a packet that a later packet overtook. Our choice: reordering by less
/// than this causes no requests.
const SETTLES: Span = Span::from_millis(5);
/// Time between two requests for the same packet, if no recent retransmission has shown how long an answer takes.
const FIRST_RETRY: Span = Span::from_millis(50);
/// Minimum time between two requests, even if they are for different packets.
const SPACING: Span = Span::from_millis(5);
/// Maximum number of requests for the same packet.
const TIMES: u8 = 3;
/// Maximum number of missing packets in the list. Our choice: a larger number of missing packets is an outage, which
/// retransmissions do not repair.
const MOST: usize = 256;
/// Maximum number of entries per request; each entry is for up to seventeen packets. A request has at most 76 bytes of
/// RTCP.
const ENTRIES: usize = 16;

/// How long a missing packet stays in the list after the receiver stopped waiting for it. A retransmission in this time
/// shows the receiver that its requests are too late.
const LINGERS: Span = Span::from_secs(1);
/// The receiver measures the time from a request to the retransmission. A measurement is used for at most this time,
/// because paths change (our choice).
const BELIEVED: Span = Span::from_secs(10);

/// The missing packets of a stream: those that the receiver still waits for, and those that it gave up less than
/// [`LINGERS`] ago.
#[derive(Debug)]
pub(crate) struct MissingPackets {
    /// How long the receiver waits for a missing packet before it delivers later ones.
    hold: Span,
    highest: Option<u64>,
    missing: BTreeMap<u64, Missing>,
    /// Smoothed time from a request to the arrival of the retransmission, and when this time was last updated.
    round_trip: Option<(Span, Instant<ReceiverClock>)>,
    /// When the receiver last processed due requests, including requests that were too late to be sent.
    turn: Option<Instant<ReceiverClock>>,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    since: Instant<ReceiverClock>,
    /// When the packet was first requested, and when it was last requested.
    asked: Option<(Instant<ReceiverClock>, Instant<ReceiverClock>)>,
    times: u8,
}

impl MissingPackets {
    /// Creates the list. `hold` is how long the receiver waits for a missing packet.
    pub(crate) const fn new(hold: Span) -> Self {
        Self { hold, highest: None, missing: BTreeMap::new(), round_trip: None, turn: None }
    }

    /// Records the first arrival of a packet.
    pub(crate) fn on_packet(&mut self, now: Instant<ReceiverClock>, sequence: u64) {
        let Some(highest) = self.highest else {
            self.highest = Some(sequence);
            return;
        };
        if sequence <= highest {
            self.missing.remove(&sequence);
            return;
        }
        self.highest = Some(sequence);
        let between = highest + 1..sequence;
        // If there would be too many missing packets, no packet of this gap is requested.
        if sequence - highest <= MOST as u64 && self.missing.len() + (sequence - highest) as usize <= MOST {
            self.missing.extend(between.map(|sequence| (sequence, Missing { since: now, asked: None, times: 0 })));
        }
    }

    /// Empties the list, because the sender restarted with other sequence numbers.
    pub(crate) fn begin_anew(&mut self) {
        self.missing.clear();
        self.highest = None;
    }

    /// Records that a retransmission arrived; `number` is the lower 16 bits of its sequence number. Returns the full
    /// sequence number; `None` if the packet was not missing or was not requested.
    pub(crate) fn on_repetition(&mut self, now: Instant<ReceiverClock>, number: u16) -> Option<u64> {
        let highest = self.highest?;
        let sequence = highest.checked_sub(u64::from((highest as u16).wrapping_sub(number)))?;
        let (first, _) = self.missing.get(&sequence)?.asked?;
        let missing = self.missing.remove(&sequence)?;
        // After several requests, it is unknown which of them caused the retransmission. The time from the first
        // request is then used only if there is no recent measurement.
        if missing.times == 1 || self.round_trip(now).is_none() {
            let took = (now - first).max(Span::ZERO);
            let smoothed = |before: Span| before + Span::from_nanos((took - before).as_nanos() / 4);
            self.round_trip = Some((self.round_trip(now).map_or(took, smoothed), now));
        }
        Some(sequence)
    }

    /// Returns the measured response time, if the measurement is recent enough at the time `at`.
    fn round_trip(&self, at: Instant<ReceiverClock>) -> Option<Span> {
        self.round_trip.filter(|(_, learned)| at - *learned < BELIEVED).map(|(round_trip, _)| round_trip)
    }

    /// Returns when to request a missing packet: at least `SPACING` after the receiver last processed a due request.
    fn due_of(&self, missing: &Missing) -> Instant<ReceiverClock> {
        let longer = |round_trip: Span| Span::from_nanos(round_trip.as_nanos() / 2 * 3) + SPACING;
        let due = match missing.asked {
            None => missing.since + SETTLES,
            Some((_, asked)) => asked + self.round_trip(asked).map_or(FIRST_RETRY, longer),
        };
        self.turn.map_or(due, |turn| due.max(turn + SPACING))
    }

    /// Whether the packet may be requested at `at`: it was requested fewer than `TIMES` times, and a retransmission can
    /// still arrive in time.
    fn is_in_time(&self, missing: &Missing, at: Instant<ReceiverClock>) -> bool {
        missing.times < TIMES && at + self.round_trip(at).unwrap_or(Span::ZERO) < missing.since + self.hold
    }

    /// Returns when the next request is due; `None` if no request is due at any time.
    pub(crate) fn due(&self) -> Option<Instant<ReceiverClock>> {
        let due = self.missing.values().map(|missing| (missing, self.due_of(missing)));
        due.filter(|(missing, at)| self.is_in_time(missing, *at)).map(|(_, at)| at).min()
    }

    /// Sends the request that is due at `now`, if any: from the source `ssrc`, for packets of the source `media_ssrc`.
    pub(crate) fn ask(&mut self, now: Instant<ReceiverClock>, (ssrc, media_ssrc): (u32, u32), outbox: &mut Outbox) {
        if self.missing.is_empty() {
            return;
        }
        let forgotten = self.hold + LINGERS;
        self.missing.retain(|_, missing| now < missing.since + forgotten);
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let is_due = |missing: &Missing| self.due_of(missing) <= now && self.is_in_time(missing, now);
        let due: Vec<u64> = self.missing.iter().filter(|(_, it)| is_due(it)).map(|(sequence, _)| *sequence).collect();
        self.turn = Some(now);
        // If this call is late, a retransmission can no longer arrive in time, so no packet is requested.
        if due.is_empty() {
            return;
        }
        let mut asked = 0;
        let numbers = due.iter().map(|sequence| *sequence as u16);
        outbox.whole(|out| asked = encode_nack(ssrc, media_ssrc, numbers, ENTRIES, out));
        for sequence in due.into_iter().take(asked) {
            if let Some(missing) = self.missing.get_mut(&sequence) {
                let first = missing.asked.map_or(now, |(first, _)| first);
                (missing.asked, missing.times) = (Some((first, now)), missing.times + 1);
            }
        }
        outbox.event(Event::RepetitionAsked { packets: asked as u64 });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SSRC: (u32, u32) = (1, 2);

    fn at(micros: i64) -> Instant<ReceiverClock> {
        Instant::ZERO + Span::from_micros(micros)
    }

    /// When the request for the second missing packet is due, the retransmission would be too late. If the test fails,
    /// the receiver wakes up although it has nothing to send.
    #[test]
    fn what_cannot_be_asked_for_in_time_wakes_nobody() {
        let mut missing = MissingPackets::new(Span::from_millis(100));
        missing.round_trip = Some((Span::from_millis(94), at(0)));
        let mut outbox = Outbox::default();
        for (micros, sequence) in [(0, 0), (1000, 2), (3000, 4)] {
            missing.on_packet(at(micros), sequence);
        }
        assert_eq!(missing.due(), Some(at(6000)));
        missing.ask(at(6000), SSRC, &mut outbox);
        assert_eq!(missing.due(), None);
    }

    proptest! {
        /// If this test fails, a caller that waits for the due time wakes up again and again without time passing.
        #[test]
        fn behind_a_turn_nothing_is_due_that_was_due_before(
            hold in 1i64..300_000,
            round_trip in prop::option::of(0i64..400_000),
            steps in prop::collection::vec((0i64..60_000, 1u64..6, any::<bool>()), 1..80),
        ) {
            let mut missing = MissingPackets::new(Span::from_micros(hold));
            missing.round_trip = round_trip.map(|span| (Span::from_micros(span), at(0)));
            let mut outbox = Outbox::default();
            let (mut now, mut sequence) = (0, 0);
            for (later, further, is_answered) in steps {
                now += later;
                sequence += further;
                missing.on_packet(at(now), sequence);
                if is_answered {
                    missing.on_repetition(at(now), (sequence - 1) as u16);
                }
                missing.ask(at(now), SSRC, &mut outbox);
                let due = missing.due();
                prop_assert!(due.is_none_or(|due| due > at(now)), "{due:?} at {:?}", at(now));
            }
        }
    }
}
