//! Matches feedback with the packets that were sent.
//!
//! The element comes before `rtpsession`. `rtpsession` assigns transport-wide sequence numbers, and tells them to the
//! element only with feedback. So the element also numbers the packets. The difference between the two numbers of a
//! packet is the same for all packets. The element finds this difference by comparing the sending times and the sizes
//! of packets. If times and sizes no longer match, the element searches for the difference again.

use std::collections::VecDeque;

use equipoise::control::{PacketFeedback, PacketReport, SentPacket};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};
use equipoise_session::Ecn;
use equipoise_session::feedback::{FeedbackCounts, History, Scope};
use equipoise_session::wire::feedback::{ArrivalReport, ArrivalTime, PacketArrival, PacketStatus};

use crate::event::Status;
use crate::flow::{EPOCH_NS, time};
use crate::packet::PacketInfo;

/// The packets that the element sent, and the state that is needed to find the packets that feedback refers to.
#[derive(Debug)]
pub(crate) struct Departures {
    history: History,
    /// The newest packets, with consecutive numbers.
    packets: VecDeque<Departure>,
    /// This element's number of the next packet.
    next: u64,
    /// A packet's number from `rtpsession` minus its number from this element, modulo 2^16; `None` if not known.
    distance: Option<u16>,
    clock: ReceiverTime,
    /// Number of feedback events that match no sent packets.
    foreign: u64,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Instant<SenderClock>,
    payload: u32,
    whole: u32,
}

/// Number of packets that are remembered. Our choice: 0.8 s of packets of 1200 bytes at 100 Mbit/s.
const REMEMBERED: u16 = 1 << 13;
/// `find` compares a status from feedback with at most this number of packets, the newest first. If a queue between the
/// element and `rtpsession` delays packets, the packet that matches is not the newest one.
const TRIED: usize = 256;
/// The longest time that a packet may need from the element to `rtpsession`.
const ON_THE_WAY: Span = Span::from_secs(1);

/// Packets whose fate a feedback event has newly reported, in sending order.
#[derive(Debug)]
pub(crate) struct News {
    packets: Vec<PacketReport>,
    round_trip: Option<Span>,
    in_flight: Size,
}

impl News {
    /// Whether no packet's fate was newly reported.
    pub(crate) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the feedback in the form for controllers.
    pub(crate) fn feedback(&self) -> PacketFeedback<'_> {
        let mut feedback = PacketFeedback::new(&self.packets, self.in_flight);
        feedback.round_trip = self.round_trip;
        feedback
    }
}

impl Departures {
    pub(crate) fn new() -> Self {
        Self {
            history: History::new(Scope::Transport, REMEMBERED),
            packets: VecDeque::with_capacity(usize::from(REMEMBERED)),
            next: 0,
            distance: None,
            clock: ReceiverTime::default(),
            foreign: 0,
        }
    }

    /// Records a packet that is sent at `now` and that `rtpsession` will number.
    pub(crate) fn on_sent(&mut self, now: Instant<SenderClock>, packet: PacketInfo, size: Size) -> SentPacket {
        let number = self.next;
        self.next += 1;
        if self.packets.len() >= usize::from(REMEMBERED) {
            self.packets.pop_front();
        }
        self.packets.push_back(Departure { at: now, payload: packet.payload, whole: packet.whole });
        self.history.on_sent(number, size, now);
        SentPacket::new(number, size, self.history.in_flight())
    }

    /// Handles the packet statuses of a feedback event that arrived at `now`. If the size or the sending time in one
    /// status does not match its packet, all statuses of the event are ignored.
    pub(crate) fn on_statuses(&mut self, now: Instant<SenderClock>, statuses: &[Status]) -> News {
        let mut news = News { packets: Vec::new(), round_trip: None, in_flight: self.history.in_flight() };
        if statuses.is_empty() {
            return news;
        }
        self.distance = self.distance.filter(|distance| self.fits(statuses, *distance)).or_else(|| self.find(statuses));
        let Some(distance) = self.distance else {
            self.foreign += 1;
            return news;
        };
        let mut told: Vec<_> =
            statuses.iter().filter_map(|it| Some((self.number(it, distance)?, it.arrived_ns))).collect();
        // If one status of a packet is an arrival and another is a loss, keep the arrival.
        told.sort_by_key(|(number, arrived)| (*number, arrived.is_none()));
        told.dedup_by_key(|(number, _)| *number);
        for run in told.chunk_by(|(one, _), (other, _)| one + 1 == *other) {
            let packets: Vec<_> = run.iter().map(|(number, arrived)| self.status(*number, *arrived)).collect();
            let report = ArrivalReport { ssrc: 0, made: None, packets: packets.iter().copied() };
            if let Ok(joined) = self.history.on_report(now, &report) {
                news.packets.extend_from_slice(joined.packets);
                news.round_trip = joined.round_trip.or(news.round_trip);
            }
        }
        news
    }

    fn status(&mut self, number: u64, arrived_ns: Option<u64>) -> PacketStatus {
        let arrival = arrived_ns.map(|ns| {
            let time = ArrivalTime::At(self.clock.take(ns));
            PacketArrival { time, ecn: Ecn::NotCapable }
        });
        PacketStatus { sequence: number as u16, arrival }
    }

    /// Returns the number that this element gave the packet in `status`. This number plus `distance` is the sequence
    /// number in `status`, modulo 2¹⁶. If this is true for several packets, the newest of them is meant.
    fn number(&self, status: &Status, distance: u16) -> Option<u64> {
        let newest = self.next.checked_sub(1)?;
        newest.checked_sub(u64::from((newest as u16).wrapping_sub(status.sequence.wrapping_sub(distance))))
    }

    /// Whether `distance` can be the difference between the sequence numbers in `statuses` and this element's packet
    /// numbers. At least one packet in `statuses` must still be remembered. The size of each remembered packet must
    /// match the size in its status, and the packet must have left the element less than [`ON_THE_WAY`] before
    /// `rtpsession` sent it.
    fn fits(&self, statuses: &[Status], distance: u16) -> bool {
        let oldest = self.next - self.packets.len() as u64;
        let mut known = 0;
        let all = statuses.iter().all(|status| {
            let Some(number) = self.number(status, distance) else { return false };
            let place = number.checked_sub(oldest).and_then(|place| usize::try_from(place).ok());
            let Some(packet) = place.and_then(|place| self.packets.get(place)) else { return true };
            known += 1;
            let on_the_way = time(status.left_ns) - packet.at;
            // GStreamer 1.22 reports the size of the payload; other versions may report the size of the whole packet.
            [packet.payload, packet.whole].contains(&status.size) && (Span::ZERO..ON_THE_WAY).contains(&on_the_way)
        });
        all && known > 0
    }

    /// Finds the difference between the number that `rtpsession` gave a packet and the number that this element gave
    /// the packet. The first status is compared with the packets that left the element before the sending time in this
    /// status, the newest packet first.
    fn find(&self, statuses: &[Status]) -> Option<u16> {
        let first = statuses.first()?;
        let left = time(first.left_ns);
        let after = self.packets.partition_point(|packet| packet.at <= left);
        let oldest = self.next - self.packets.len() as u64;
        let places = (0..after).rev().take(TRIED);
        let mut distances = places.map(|place| first.sequence.wrapping_sub((oldest + place as u64) as u16));
        distances.find(|distance| self.fits(statuses, *distance))
    }

    /// Treats the fate of the packets in flight as unknown, because no feedback arrived for too long.
    pub(crate) fn on_silence(&mut self) {
        self.history.on_silence();
    }

    /// Returns the total size of the packets in flight.
    pub(crate) fn in_flight(&self) -> Size {
        self.history.in_flight()
    }

    /// Returns the counters over all reports.
    pub(crate) fn counts(&self) -> FeedbackCounts {
        let mut counts = self.history.counts();
        counts.refused += self.foreign;
        counts
    }
}

/// Unwraps times of the receiver's clock, which wrap in transport-wide feedback.
#[derive(Debug)]
struct ReceiverTime {
    /// The last time, after unwrapping.
    last_ns: u64,
}

impl Default for ReceiverTime {
    fn default() -> Self {
        Self { last_ns: EPOCH_NS }
    }
}

impl ReceiverTime {
    /// Time after which the receiver's times wrap, in ns: 2^24 units of 64 ms
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1).
    const WRAP_NS: u64 = (1 << 24) * 64_000_000;

    /// Returns the time that equals `ns` modulo the wrap and is nearest to the last time.
    fn take(&mut self, ns: u64) -> Instant<ReceiverClock> {
        let on = (ns % Self::WRAP_NS + Self::WRAP_NS - self.last_ns % Self::WRAP_NS) % Self::WRAP_NS;
        self.last_ns = if on < Self::WRAP_NS / 2 {
            self.last_ns.saturating_add(on)
        } else {
            self.last_ns.saturating_sub(Self::WRAP_NS - on)
        };
        Instant::from_nanos(self.last_ns)
    }
}

#[cfg(test)]
mod tests;
