use std::collections::VecDeque;

use equipoise::control::{Ecn, Fate, PacketReport};
use equipoise::units::{Instant, SenderClock, Size};

/// The packets that carried the segments in flight, and the fates of packets that became known since the last report to
/// a controller.
///
/// If a segment is retransmitted, the new packet has its own number. The scoreboard determines whether a segment has
/// arrived or is lost. The journal stores this result for the last packet that carried the segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// For each segment in flight, the last packet that carried this segment. In the order of the segments.
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

/// What was already reported about a packet to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Lost,
    Arrived,
}

/// The fate of every segment that arrived. The arrival time is missing, because TCP acknowledgements contain no arrival
/// times. The hosts of this module are not ECN-capable.
const ARRIVED: Fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };

impl Journal {
    /// Records that the segment at index `place` in the flight is sent or retransmitted. Returns the number of the new
    /// packet.
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

    /// Records that the segment at index `place` in the flight has arrived.
    pub(super) fn on_arrived(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known != Known::Arrived) {
            packet.known = Known::Arrived;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, ARRIVED));
        }
    }

    /// Records that the segment at index `place` in the flight is assumed to be lost.
    pub(super) fn on_lost(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known == Known::Nothing) {
            packet.known = Known::Lost;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, Fate::Lost));
        }
    }

    /// Records that the first segment in flight is cumulatively acknowledged, and removes it.
    pub(super) fn pop_front(&mut self) {
        self.on_arrived(0);
        self.flight.pop_front();
    }

    /// Returns the reports on all packets that arrived or were lost since the last [`clear`](Self::clear), in sending
    /// order.
    pub(super) fn reports(&mut self) -> &[PacketReport] {
        self.reports.sort_unstable_by_key(|report| report.number);
        &self.reports
    }

    pub(super) fn clear(&mut self) {
        self.reports.clear();
    }
}
