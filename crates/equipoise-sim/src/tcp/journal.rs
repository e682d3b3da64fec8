use std::collections::VecDeque;

use equipoise::control::{Ecn, Fate, PacketReport};
use equipoise::units::{Instant, SenderClock, Size};

/// The packets that carry the segments in flight, and the fates of packets since the last report to a controller.
///
/// A retransmitted segment is a new packet with its own number. The scoreboard determines the fate of a segment; the
/// journal applies it to the last packet that carried the segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The last packet of each segment in flight, in scoreboard order.
    flight: VecDeque<Packet>,
    /// Number of packets sent so far.
    sent: u64,
    reports: Vec<PacketReport>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    size: Size,
    departed: Instant<SenderClock>,
    known: Known,
}

/// What was reported about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Lost,
    Arrived,
}

/// TCP acknowledgements have no arrival times, and the hosts are not ECN-capable.
const ARRIVED: Fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };

impl Journal {
    /// Records that the segment at `place` is sent or retransmitted. Returns its packet number.
    pub(super) fn on_sent(&mut self, place: usize, departed: Instant<SenderClock>, size: Size) -> u64 {
        let number = self.sent;
        self.sent += 1;
        let packet = Packet { number, size, departed, known: Known::Nothing };
        match self.flight.get_mut(place) {
            Some(before) => *before = packet,
            None => self.flight.push_back(packet),
        }
        number
    }

    /// Records that the segment at `place` has arrived.
    pub(super) fn on_arrived(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known != Known::Arrived) {
            packet.known = Known::Arrived;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, ARRIVED));
        }
    }

    /// Records that the segment at `place` is assumed lost.
    pub(super) fn on_lost(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known == Known::Nothing) {
            packet.known = Known::Lost;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, Fate::Lost));
        }
    }

    /// Records that the first segment is acknowledged.
    pub(super) fn pop_front(&mut self) {
        self.on_arrived(0);
        self.flight.pop_front();
    }

    /// The fates of packets since the last [`clear`](Self::clear), in sending order.
    pub(super) fn reports(&mut self) -> &[PacketReport] {
        self.reports.sort_unstable_by_key(|report| report.number);
        &self.reports
    }

    pub(super) fn clear(&mut self) {
        self.reports.clear();
    }
}
