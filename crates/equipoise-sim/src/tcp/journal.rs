use std::collections::VecDeque;

use equipoise::control::{Ecn, Fate, PacketReport};
use equipoise::units::{Instant, SenderClock, Size};

/// The packets that carry the segments under way, and what became of packets since the last report to a controller.
///
/// A segment that is sent again is another packet, with a number of its own. The scoreboard says what became of a segment;
/// that is the fate of the packet that carried it last.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The last packet of each segment under way, in the order of the scoreboard.
    flight: VecDeque<Packet>,
    /// Packets sent so far.
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

/// What was reported of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Lost,
    Arrived,
}

/// An acknowledgement of TCP does not tell when a segment came; the hosts are not ECN-capable.
const ARRIVED: Fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };

impl Journal {
    /// The segment at `place` leaves, for the first time or once more. Returns the number of its packet.
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

    /// The segment at `place` has come.
    pub(super) fn on_arrived(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known != Known::Arrived) {
            packet.known = Known::Arrived;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, ARRIVED));
        }
    }

    /// The segment at `place` is taken for lost.
    pub(super) fn on_lost(&mut self, place: usize) {
        if let Some(packet) = self.flight.get_mut(place).filter(|packet| packet.known == Known::Nothing) {
            packet.known = Known::Lost;
            self.reports.push(PacketReport::new(packet.number, packet.size, packet.departed, Fate::Lost));
        }
    }

    /// The first segment is acknowledged.
    pub(super) fn pop_front(&mut self) {
        self.on_arrived(0);
        self.flight.pop_front();
    }

    /// What became of packets since this was last [`clear`](Self::clear)ed, in the order in which they were sent.
    pub(super) fn reports(&mut self) -> &[PacketReport] {
        self.reports.sort_unstable_by_key(|report| report.number);
        &self.reports
    }

    pub(super) fn clear(&mut self) {
        self.reports.clear();
    }
}
