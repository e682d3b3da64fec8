use alloc::collections::VecDeque;
use alloc::vec::Vec;

use equipoise::control::{self, Fate, PacketFeedback, PacketReport};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};
use thiserror::Error;

use crate::Ecn;
use crate::wire::feedback::{ArrivalReport, PacketArrival, PacketStatus};

/// What a sender remembers of the packets that left, to join reports by packet with it.
///
/// A report changes what is known of a packet, and each change is passed on once: a packet that a report covers has arrived, or is
/// taken to be lost, until a later report repairs that. A packet that no report covers, although one covers a later packet, is
/// unknown: the report on it was lost, which says nothing of the path (RFC 8888, Sec. 5).
///
/// A report has effect as a whole or not at all. One that acknowledges a number which nobody sent is not from who received the
/// packets: numbers that the sender left out on purpose ([`Traps`](super::Traps)) find out a peer that acknowledges what it has not
/// seen (RFC 9000, Sec. 21.4), as the receipts of our own reports do. The times that a report states are not proved by it.
#[derive(Clone, Debug)]
pub struct History {
    scope: Scope,
    capacity: usize,
    /// Packets by consecutive numbers, numbers left out among them; the first has the number `base`.
    packets: VecDeque<Packet>,
    base: u64,
    /// The number of the very first packet; `None` before it left.
    first: Option<u64>,
    /// Below it all packets have been reported on, or are unknown.
    covered: u64,
    in_flight: Size,
    /// The latest time of the receiver's clock that is known.
    heard: Option<Instant<ReceiverClock>>,
    counts: FeedbackCounts,
    changes: Vec<PacketReport>,
}

/// Which packets' reports a history takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those on the stream of this synchronisation source, by its RTP sequence numbers (RFC 8888).
    Stream(u32),
    /// Those on all streams of a transport, whichever of their sources they name, by transport-wide sequence numbers.
    Transport,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    size: Size,
    departed: Instant<SenderClock>,
    outcome: Outcome,
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was left out on purpose.
    Skipped,
    /// The packet is under way, as far as is known.
    UnderWay,
    /// No report covers the packet, although one covers a later packet.
    Unknown,
    /// The last report that covers the packet says that it has not arrived.
    Lost,
    /// The packet arrived.
    Arrived,
}

/// What a history has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounts {
    /// Reports that had effect.
    pub reports: u64,
    /// Reports that were refused.
    pub refused: u64,
    /// Packets that turned out to have arrived after a report had said that they had not.
    pub repaired: u64,
    /// Packets that became unknown; some may have been reported on later.
    pub unknown: u64,
    /// Statuses that say what an earlier report said.
    pub repeated: u64,
    /// Statuses that say "not received" of packets that had arrived by another report, as one that was overtaken does.
    pub contradicted: u64,
    /// Statuses of packets so long ago that nothing is known of them any more.
    pub forgotten: u64,
    /// Numbers left out on purpose that reports rightly said not to have arrived.
    pub traps: u64,
}

impl FeedbackCounts {
    /// These and those of another history, such as that of another stream.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            reports: self.reports + other.reports,
            refused: self.refused + other.refused,
            repaired: self.repaired + other.repaired,
            unknown: self.unknown + other.unknown,
            repeated: self.repeated + other.repeated,
            contradicted: self.contradicted + other.contradicted,
            forgotten: self.forgotten + other.forgotten,
            traps: self.traps + other.traps,
        }
    }
}

/// Why a report has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is on another stream.
    #[error("a report on source {found:#010x}, where {expected:#010x} sends")]
    Foreign {
        /// The synchronisation source that it names.
        found: u32,
        /// The one that sends.
        expected: u32,
    },
    /// It acknowledges a packet from before the first one.
    #[error("a report that packet {sequence} arrived, which is before the first one")]
    NeverSent {
        /// The packet's sequence number.
        sequence: u16,
    },
    /// It acknowledges a packet that has not been sent yet.
    #[error("a report that packet {sequence} arrived, which has not left yet")]
    Ahead {
        /// The packet's sequence number.
        sequence: u16,
    },
    /// It acknowledges a number that was left out on purpose.
    #[error("a report that packet {sequence} arrived, which was left out on purpose")]
    Skipped {
        /// The number.
        sequence: u16,
    },
}

/// A report joined with what was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joined<'a> {
    /// The packets of which it brings news, in the order of their numbers: those that arrived, and those that are now lost.
    pub packets: &'a [PacketReport],
    /// Round-trip time of the newest packet that arrived, without the time for which the receiver is known to have held the
    /// report; `None` if none arrived, or if the time that was stated cannot be.
    pub round_trip: Option<Span>,
    /// Data under way before the report came.
    pub in_flight: Size,
    /// Packets that are unknown from now on.
    pub unknown: u64,
    /// Numbers left out on purpose that it rightly says not to have arrived: proof that it does not acknowledge blindly.
    pub traps: u64,
}

impl<'a> Joined<'a> {
    /// The report as controllers take it, from a sender that its application held back, or not.
    pub const fn feedback(&self, app_limited: bool) -> PacketFeedback<'a> {
        let mut feedback = PacketFeedback::new(self.packets, self.in_flight);
        feedback.round_trip = self.round_trip;
        feedback.app_limited = app_limited;
        feedback
    }
}

impl History {
    /// The most numbers that can be remembered: half of all, as others could not be told from those to come.
    pub const MAX_CAPACITY: u16 = 1 << 15;

    /// One that remembers `capacity` numbers, from 1 to [`MAX_CAPACITY`](Self::MAX_CAPACITY); other values are brought into these
    /// limits.
    ///
    /// It takes 24 bytes for each. It should last for a few reports and round trips: 8192 packets of 1000 bytes are 6.5 s of 10 Mbit/s.
    pub fn new(scope: Scope, capacity: u16) -> Self {
        let capacity = usize::from(capacity.clamp(1, Self::MAX_CAPACITY));
        Self {
            scope,
            capacity,
            packets: VecDeque::with_capacity(capacity),
            base: 0,
            first: None,
            covered: 0,
            in_flight: Size::ZERO,
            heard: None,
            counts: FeedbackCounts::default(),
            changes: Vec::new(),
        }
    }

    /// Packet `number` of this size leaves. Numbers between it and the packet before were left out on purpose.
    ///
    /// A number that is not higher than that of the packet before is not taken.
    pub fn on_sent(&mut self, number: u64, size: Size, departed: Instant<SenderClock>) {
        if self.first.is_none() {
            (self.first, self.base, self.covered) = (Some(number), number, number);
        }
        let Some(skipped) = number.checked_sub(self.next()) else { return };
        if skipped >= self.capacity as u64 {
            while self.forget_oldest() {}
            self.base = number;
        } else {
            for _ in 0..skipped {
                self.push(Packet { size: Size::ZERO, departed, outcome: Outcome::Skipped });
            }
        }
        self.push(Packet { size, departed, outcome: Outcome::UnderWay });
        self.in_flight = self.in_flight + size;
    }

    fn push(&mut self, packet: Packet) {
        if self.packets.len() >= self.capacity {
            self.forget_oldest();
        }
        self.packets.push_back(packet);
    }

    /// Forgets the oldest number; whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let Some(packet) = self.packets.pop_front() else { return false };
        self.base += 1;
        if packet.outcome == Outcome::UnderWay {
            self.counts.unknown += 1;
            self.in_flight = self.in_flight - packet.size;
        }
        true
    }

    /// The number behind the last one.
    fn next(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// What is known of a number; `None` if it has not been given yet, or is forgotten.
    pub fn outcome(&self, number: u64) -> Option<Outcome> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.packets.get(place).map(|packet| packet.outcome)
    }

    /// Data under way: sent, and neither reported on nor unknown.
    pub const fn in_flight(&self) -> Size {
        self.in_flight
    }

    /// What has been counted so far.
    pub const fn counts(&self) -> FeedbackCounts {
        self.counts
    }

    /// A moment of the receiver's clock near which the times of the next report lie, for the wraps of its format.
    ///
    /// Before the first report it is `now`, as if the clocks agreed: then moments may be off by a multiple of the format's range,
    /// which is the same for all. So a clock that begins anew with a session had better begin at more than that range, which is twelve
    /// days in transport-wide feedback: moments before its zero cannot be told.
    pub fn reference(&self, now: Instant<SenderClock>) -> Instant<ReceiverClock> {
        self.heard.unwrap_or(now.assume_clock())
    }

    /// What left before `departed` has arrived or has not by now, and reports ought to have told: nothing is known of what of it seems
    /// to be under way still.
    pub fn give_up_before(&mut self, departed: Instant<SenderClock>) {
        let from = self.covered.max(self.base);
        let older =
            self.packets.iter().skip((from - self.base) as usize).take_while(|packet| packet.departed < departed);
        let end = from + older.count() as u64;
        self.leap_to(end);
        self.covered = self.covered.max(end);
    }

    /// Nothing has been heard of the receiver for so long that nothing is known of what was under way.
    pub fn on_silence(&mut self) {
        let next = self.next();
        self.leap_to(next);
        self.covered = next;
    }

    /// A report arrived at `now`.
    ///
    /// # Errors
    /// [`Refusal`] if it is on another stream, or acknowledges what nobody sent. It has no effect then.
    pub fn on_report<I>(&mut self, now: Instant<SenderClock>, report: &ArrivalReport<I>) -> Result<Joined<'_>, Refusal>
    where
        I: Iterator<Item = PacketStatus> + Clone,
    {
        if let Err(refusal) = self.check(report) {
            self.counts.refused += 1;
            return Err(refusal);
        }
        let before = self.counts;
        let in_flight = self.in_flight;
        self.counts.reports += 1;
        self.changes.clear();
        let begin = report.packets.clone().next().and_then(|status| self.unwrap(status.sequence));
        if let Some(begin) = begin {
            // Who says of nothing that it came proves nothing: what it passes over stays under way, or nothing would bound what is sent.
            let proves = report.packets.clone().any(|status| status.arrival.is_some());
            if proves {
                self.leap_to(begin);
            }
            for (number, status) in (begin..self.next()).zip(report.packets.clone()) {
                self.apply(number, status.arrival.map_or(Fate::Lost, fate));
            }
            let end = begin.saturating_add(report.packets.clone().count() as u64);
            if proves {
                self.covered = self.covered.max(end.min(self.next()));
            }
        }
        let round_trip = self.round_trip(now, report.made);
        Ok(Joined {
            packets: &self.changes,
            round_trip,
            in_flight,
            unknown: self.counts.unknown - before.unknown,
            traps: self.counts.traps - before.traps,
        })
    }

    /// Another protocol told at `now` what became of single packets, each by its whole number, in any order.
    ///
    /// Nothing becomes unknown by this: what is not told of stays under way.
    ///
    /// # Errors
    /// [`Refusal`] if a packet is said to have arrived that nobody sent. Then nothing of it has effect.
    pub fn on_fates(&mut self, now: Instant<SenderClock>, fates: &[(u64, Fate)]) -> Result<Joined<'_>, Refusal> {
        let mut arrived = fates.iter().filter(|(_, fate)| *fate != Fate::Lost);
        if let Some(refusal) = arrived.find_map(|(number, _)| self.refusal(*number).err()) {
            self.counts.refused += 1;
            return Err(refusal);
        }
        let (before, in_flight) = (self.counts, self.in_flight);
        self.counts.reports += 1;
        self.changes.clear();
        let next = self.next();
        for (number, fate) in fates.iter().filter(|(number, _)| *number < next) {
            self.apply(*number, *fate);
        }
        self.changes.sort_by_key(|packet| packet.number);
        let round_trip = self.round_trip(now, None);
        let traps = self.counts.traps - before.traps;
        Ok(Joined { packets: &self.changes, round_trip, in_flight, unknown: 0, traps })
    }

    /// The number nearest to the last one that a packet with this sequence number may have; `None` below zero.
    fn unwrap(&self, sequence: u16) -> Option<u64> {
        let newest = self.next().checked_sub(1)?;
        newest.checked_add_signed(i64::from(sequence.wrapping_sub(newest as u16).cast_signed()))
    }

    /// Whether a report acknowledges nothing but what was sent.
    fn check<I>(&self, report: &ArrivalReport<I>) -> Result<(), Refusal>
    where
        I: Iterator<Item = PacketStatus> + Clone,
    {
        if let Scope::Stream(expected) = self.scope
            && expected != report.ssrc
        {
            return Err(Refusal::Foreign { found: report.ssrc, expected });
        }
        let mut packets = report.packets.clone().enumerate();
        let begin = report.packets.clone().next().and_then(|status| self.unwrap(status.sequence));
        packets.try_for_each(|(offset, status)| {
            let sequence = status.sequence;
            if status.arrival.is_none() {
                return Ok(());
            }
            let number = begin.map(|begin| begin.saturating_add(offset as u64));
            self.refusal(number.ok_or(Refusal::NeverSent { sequence })?)
        })
    }

    /// Whether a packet of this number can have arrived.
    fn refusal(&self, number: u64) -> Result<(), Refusal> {
        let sequence = number as u16;
        match self.first {
            None => Err(Refusal::NeverSent { sequence }),
            Some(first) if number < first => Err(Refusal::NeverSent { sequence }),
            Some(_) if number >= self.next() => Err(Refusal::Ahead { sequence }),
            Some(_) if self.outcome(number) == Some(Outcome::Skipped) => Err(Refusal::Skipped { sequence }),
            Some(_) => Ok(()),
        }
    }

    /// A report begins with this number: what is under way below it is unknown, if no report covers it.
    fn leap_to(&mut self, begin: u64) {
        for number in self.covered.max(self.base)..begin.min(self.next()) {
            let Some(packet) = self.packets.get_mut((number - self.base) as usize) else { return };
            if packet.outcome == Outcome::UnderWay {
                packet.outcome = Outcome::Unknown;
                self.counts.unknown += 1;
                self.in_flight = self.in_flight - packet.size;
            }
        }
    }

    /// A report says this of a number.
    fn apply(&mut self, number: u64, fate: Fate) {
        let place = number.checked_sub(self.base).and_then(|place| usize::try_from(place).ok());
        let Some(packet) = place.and_then(|place| self.packets.get_mut(place)) else {
            self.counts.forgotten += 1;
            return;
        };
        let counts = &mut self.counts;
        match (packet.outcome, fate) {
            (Outcome::Skipped, _) => {
                counts.traps += 1;
                return;
            }
            (Outcome::Arrived, Fate::Lost) => {
                counts.contradicted += 1;
                return;
            }
            (Outcome::Arrived, _) | (Outcome::Lost, Fate::Lost) => {
                counts.repeated += 1;
                return;
            }
            _ => {}
        }
        if packet.outcome == Outcome::UnderWay {
            self.in_flight = self.in_flight - packet.size;
        }
        counts.repaired += u64::from(packet.outcome == Outcome::Lost);
        packet.outcome = if fate == Fate::Lost { Outcome::Lost } else { Outcome::Arrived };
        self.changes.push(PacketReport::new(number, packet.size, packet.departed, fate));
    }

    /// The round trip of the newest packet among the changes that arrived, by a report made at `made`.
    fn round_trip(&mut self, now: Instant<SenderClock>, made: Option<Instant<ReceiverClock>>) -> Option<Span> {
        let (departed, at) = self.changes.iter().rev().find_map(|packet| match packet.fate {
            Fate::Arrived { at, .. } => Some((packet.departed, at)),
            _ => None,
        })?;
        self.heard = made.or(at).or(self.heard);
        let held = made.zip(at).map_or(Span::ZERO, |(made, at)| made - at);
        let round_trip = now - departed - held;
        (held >= Span::ZERO && round_trip > Span::ZERO).then_some(round_trip)
    }
}

const fn fate(arrival: PacketArrival) -> Fate {
    Fate::Arrived { at: arrival.time.measured(), ecn: mark(arrival.ecn) }
}

/// A mark as controllers know it.
const fn mark(ecn: Ecn) -> control::Ecn {
    match ecn {
        Ecn::NotCapable => control::Ecn::NotEct,
        Ecn::Ect0 => control::Ecn::Ect0,
        Ecn::Ect1 => control::Ecn::Ect1,
        Ecn::Marked => control::Ecn::Ce,
    }
}
