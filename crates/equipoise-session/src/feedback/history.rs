use alloc::collections::VecDeque;
use alloc::vec::Vec;

use equipoise::control::{self, Fate, PacketFeedback, PacketReport};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};
use thiserror::Error;

use crate::Ecn;
use crate::wire::feedback::{ArrivalReport, PacketArrival, PacketStatus};

/// A sender's record of the packets that it sent, to be joined with per-packet reports.
///
/// A packet that a report covers has arrived, or is assumed lost until a later report states its arrival. A packet that
/// no report covers, although a report covers a later packet, is unknown: its report was lost. The loss of a single
/// report is no sign of congestion (RFC 8888, Sec. 5). Each change of a packet's state is returned once.
///
/// A report takes effect as a whole or not at all. A report that acknowledges a packet that was never sent is rejected,
/// because an honest receiver cannot send it. A sender may skip numbers on purpose ([`Traps`](super::Traps)), to detect
/// a peer that acknowledges packets without receiving them (RFC 9000, Sec. 21.4). Skipped numbers do not prove that the
/// arrival times in a report are true.
#[derive(Clone, Debug)]
pub struct History {
    scope: Scope,
    capacity: usize,
    /// Packets by consecutive number, including skipped numbers. The first entry has the number `base`.
    packets: VecDeque<Packet>,
    base: u64,
    /// The number of the first packet that was sent; `None` if no packet was sent yet.
    first: Option<u64>,
    /// Each packet below this number is covered by a report, or its outcome is [`Outcome::Unknown`].
    covered: u64,
    in_flight: Size,
    /// The time at which the receiver made the last report that newly acknowledged packets. If the report does not
    /// state this time, the arrival time of the newest of these packets takes its place.
    heard: Option<Instant<ReceiverClock>>,
    counts: FeedbackCounts,
    changes: Vec<PacketReport>,
}

/// Which packets' reports a history accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Packets of the stream with this synchronisation source, by RTP sequence number (RFC 8888).
    Stream(u32),
    /// Packets of all streams of a transport, by transport-wide sequence number. The synchronisation source in a report
    /// is ignored.
    Transport,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    size: Size,
    departed: Instant<SenderClock>,
    outcome: Outcome,
}

/// The state of a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The number was skipped on purpose, so that no packet has it.
    Skipped,
    /// The packet is in flight, as far as is known.
    UnderWay,
    /// No report covers the packet. Either a report covers a later packet, or a report on this packet is overdue.
    Unknown,
    /// The last report that covers the packet says that it did not arrive.
    Lost,
    /// The packet arrived.
    Arrived,
}

/// The counters of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounts {
    /// Reports that took effect.
    pub reports: u64,
    /// Reports that were refused.
    pub refused: u64,
    /// Packets that were first reported as lost, and later as received.
    pub repaired: u64,
    /// Packets given up as unreported: a report skipped them or was overdue, or the history was full. A later report
    /// may have covered some of them.
    pub unknown: u64,
    /// Packet statuses that repeat an earlier report.
    pub repeated: u64,
    /// Packet statuses of "not received" for packets that another report had acknowledged. They occur if reports arrive
    /// out of order.
    pub contradicted: u64,
    /// Packet statuses for numbers that the history no longer contains, or that are below the first packet's number.
    pub forgotten: u64,
    /// Packet statuses of "not received" for numbers that the sender skipped on purpose. These statuses are correct.
    pub traps: u64,
}

impl FeedbackCounts {
    /// Returns the sums of the counters of `self` and `other`, for example for two streams.
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

/// Why a report is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The report is about another stream.
    #[error("a report on source {found:#010x}, where {expected:#010x} sends")]
    Foreign {
        /// The synchronisation source in the report.
        found: u32,
        /// The synchronisation source of the stream that this history records.
        expected: u32,
    },
    /// The report acknowledges a packet before the first one sent, or no packet has been sent yet.
    #[error("a report that packet {sequence} arrived, which is before the first one")]
    NeverSent {
        /// The packet's sequence number.
        sequence: u16,
    },
    /// The report acknowledges a packet that has not been sent yet.
    #[error("a report that packet {sequence} arrived, which has not been sent yet")]
    Ahead {
        /// The packet's sequence number.
        sequence: u16,
    },
    /// The report acknowledges a number that was skipped on purpose.
    #[error("a report that packet {sequence} arrived, which was left out on purpose")]
    Skipped {
        /// The skipped sequence number.
        sequence: u16,
    },
}

/// The result of joining a report with the packets that were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joined<'a> {
    /// The packets whose state the report changed, in the order of their numbers: those that arrived, and those that
    /// are now assumed lost.
    pub packets: &'a [PacketReport],
    /// Round-trip time of the newest packet in `packets` that arrived, minus the time for which the receiver is known
    /// to have held the report. `None` if no packet in `packets` arrived, or if the report's times are impossible.
    pub round_trip: Option<Span>,
    /// Data in flight before the report arrived.
    pub in_flight: Size,
    /// Number of packets that this report skips and no earlier report covers. It is not known whether they arrived.
    pub unknown: u64,
    /// Number of sequence numbers that the sender skipped on purpose and the report correctly states as not received.
    /// This shows that the peer does not acknowledge blindly.
    pub traps: u64,
}

impl<'a> Joined<'a> {
    /// Returns the report as feedback for controllers; `app_limited` says whether the application limited the sender.
    pub const fn feedback(&self, app_limited: bool) -> PacketFeedback<'a> {
        let mut feedback = PacketFeedback::new(self.packets, self.in_flight);
        feedback.round_trip = self.round_trip;
        feedback.app_limited = app_limited;
        feedback
    }
}

impl History {
    /// Maximum number of remembered numbers: half of the 16-bit range, because otherwise a sequence number would be
    /// ambiguous.
    pub const MAX_CAPACITY: u16 = 1 << 15;

    /// Creates a history that remembers `capacity` numbers, clamped to the range 1 to
    /// [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    ///
    /// The history takes 24 bytes per number. The capacity should cover several report intervals and round trips: 8192
    /// packets of 1000 bytes are 6.5 s at 10 Mbit/s.
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

    /// Records that packet `number` of this size was sent. Numbers between this packet and the previous one were
    /// skipped on purpose.
    ///
    /// The call is ignored if the number is not higher than that of the previous packet.
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

    /// Removes the entry with the lowest number from the history. Returns false if the history was empty.
    fn forget_oldest(&mut self) -> bool {
        let Some(packet) = self.packets.pop_front() else { return false };
        self.base += 1;
        if packet.outcome == Outcome::UnderWay {
            self.counts.unknown += 1;
            self.in_flight = self.in_flight - packet.size;
        }
        true
    }

    /// Returns the number of the last recorded packet, plus 1.
    fn next(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Returns the state of a number; `None` if the number was not used yet, or if the history no longer contains it.
    pub fn outcome(&self, number: u64) -> Option<Outcome> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.packets.get(place).map(|packet| packet.outcome)
    }

    /// Returns the size of the packets in flight. A packet is in flight until a report covers it, or until it is given
    /// up because a report is lost or overdue.
    pub const fn in_flight(&self) -> Size {
        self.in_flight
    }

    /// The counters so far.
    pub const fn counts(&self) -> FeedbackCounts {
        self.counts
    }

    /// Returns a time on the receiver's clock that is close to the times in the next report. Parsing the report needs
    /// it, because the times in a report wrap.
    ///
    /// Before the first report, the returned time is `now`, as if the clocks agreed. If the clocks do not agree, all
    /// arrival times have the same error: a multiple of the format's wrap time, which is twelve days in transport-wide
    /// feedback. A sender's clock that starts with the session should start above the wrap time. Otherwise, an arrival
    /// time could be negative, which an [`Instant`] cannot represent.
    pub fn reference(&self, now: Instant<SenderClock>) -> Instant<ReceiverClock> {
        self.heard.unwrap_or(now.assume_clock())
    }

    /// Marks overdue packets as unknown: the packets in flight that were sent before `departed` and that no report
    /// covers. Unknown packets do not count as in flight, because by now they have arrived or were lost.
    pub fn give_up_before(&mut self, departed: Instant<SenderClock>) {
        let from = self.covered.max(self.base);
        let older =
            self.packets.iter().skip((from - self.base) as usize).take_while(|packet| packet.departed < departed);
        let end = from + older.count() as u64;
        self.leap_to(end);
        self.covered = self.covered.max(end);
    }

    /// Must be called if no feedback was received for too long. The fate of all packets in flight then counts as
    /// unknown.
    pub fn on_silence(&mut self) {
        let next = self.next();
        self.leap_to(next);
        self.covered = next;
    }

    /// Processes a report that arrived at `now`.
    ///
    /// # Errors
    /// [`Refusal`] if the report is about another stream, or acknowledges packets that were never sent. A refused
    /// report has no effect.
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
            // A report without any arrival proves nothing, so the packets before its start stay in flight.
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

    /// Applies the fates of single packets, which another protocol reported at `now`. Each packet is identified by its
    /// full number, and the order does not matter.
    ///
    /// Packets that are not listed stay in flight. This call gives no packet the outcome `Outcome::Unknown`.
    ///
    /// # Errors
    /// [`Refusal`] if `fates` reports the arrival of a packet that was never sent. Then none of `fates` takes effect.
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

    /// Extends a 16-bit sequence number to the packet number nearest to that of the last packet; `None` if no packet
    /// was sent, or if the result is below zero.
    fn unwrap(&self, sequence: u16) -> Option<u64> {
        let newest = self.next().checked_sub(1)?;
        newest.checked_add_signed(i64::from(sequence.wrapping_sub(newest as u16).cast_signed()))
    }

    /// Checks that a report is about the recorded stream and acknowledges only packets that were sent.
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

    /// Checks that a packet with this number can have arrived.
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

    /// Marks the packets in flight with numbers below `begin` as unknown, because a report that starts at `begin` does
    /// not cover them, or because a report on them is overdue.
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

    /// Applies the reported fate of one packet.
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

    /// Returns the round-trip time of the newest packet whose arrival the report at `now` was the first to state.
    /// `made` is the time at which the receiver made the report, if known. Returns `None` if the report states no new
    /// arrival, or if the times are impossible. Also updates `heard`.
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

/// Converts an ECN field to the type that controllers use.
const fn mark(ecn: Ecn) -> control::Ecn {
    match ecn {
        Ecn::NotCapable => control::Ecn::NotEct,
        Ecn::Ect0 => control::Ecn::Ect0,
        Ecn::Ect1 => control::Ecn::Ect1,
        Ecn::Marked => control::Ecn::Ce,
    }
}
