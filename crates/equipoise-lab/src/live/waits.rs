//! Combines two reports about each packet: only the emulator measures how long a packet waited in queues, and only the
//! receiver observes that the packet arrived.
//!
//! The emulator reports a packet before it sends the packet to the receiver, so the main thread always gets the
//! emulator's report first and the receiver's report second.

use std::collections::VecDeque;

use equipoise::units::Span;
use equipoise_net::Passed;
use equipoise_session::wire::is_rtcp;

use super::ground::{Note, Said};
use crate::scenario::{Direction, DuplexPart, Flow, FlowKind, Scenario};

/// Identifies the flow that uses a route of the emulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteOf {
    flow: usize,
    /// Whether the flow's media travel from the route's receiver to the route's sender, which is the backward
    /// direction.
    goes_back: bool,
    /// Whether media also travel in the opposite direction. Those media belong to the flow with the next number.
    is_duplex: bool,
}

impl RouteOf {
    pub(super) fn new(index: usize, flow: &Flow) -> Self {
        let goes_back = flow.direction == Direction::Back;
        Self { flow: index, goes_back, is_duplex: flow.part == Some(DuplexPart::There) }
    }

    /// Returns the note for the main thread about a packet that left the emulator. As in the simulator, a packet in the
    /// direction of a flow's media arrives at the flow's receiver, and any other packet arrives at the flow's sender.
    /// If media travel in both directions, an RTCP packet is feedback about the media of the opposite direction. It
    /// arrives at the sender of these media.
    pub(super) fn note(&self, passed: &Passed<'_>) -> Note {
        let goes_with = passed.is_back == self.goes_back;
        let media = passed.datagram.filter(|datagram| !is_rtcp(datagram));
        let (flow, comes) = match (self.is_duplex, goes_with) {
            (false, goes_with) => (self.flow, goes_with),
            (true, true) if media.is_some() => (self.flow, true),
            (true, true) => (self.flow + 1, false),
            (true, false) if media.is_some() => (self.flow + 1, true),
            (true, false) => (self.flow, false),
        };
        let said = if comes {
            Said::Waited { waited: passed.waited, sequence: media.and_then(sequence) }
        } else {
            Said::Returned(passed.size)
        };
        Note { at: passed.at, flow, said }
    }
}

/// Returns the sequence number of an RTP packet (RFC 3550, Sec. 5.1).
fn sequence(datagram: &[u8]) -> Option<u16> {
    let bytes = datagram.get(2..4)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

/// Packets of a flow that have left the emulator and that the flow's receiver has not reported yet.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Whether the flow's receiver reports arrivals. If not, a packet counts as received when it leaves the emulator.
    has_events: bool,
    packets: VecDeque<(u16, Span)>,
}

/// Maximum number of packets in flight between the emulator and a receiver. If more packets are in flight, the oldest
/// packets count as lost between the emulator and the receiver. Our choice: far below 65536, after which sequence
/// numbers repeat.
const MOST_UNDER_WAY: usize = 1024;

impl UnderWay {
    pub(super) fn of(scenario: &Scenario) -> Vec<Self> {
        let has_events = |flow: &Flow| match &flow.kind {
            FlowKind::Session { .. } | FlowKind::Multipath(_) | FlowKind::Pair(_) => true,
            FlowKind::Background { .. } | FlowKind::Tcp(_) => false,
        };
        let of = |flow: &Flow| Self { has_events: has_events(flow), packets: VecDeque::new() };
        scenario.flows.iter().map(of).collect()
    }

    /// Handles a packet that left the emulator after waiting in queues for `waited`. If the flow's receiver does not
    /// report arrivals, returns `waited`, and the caller must record it now.
    pub(super) fn on_passed(&mut self, waited: Span, sequence: Option<u16>) -> Option<Span> {
        if !self.has_events {
            return Some(waited);
        }
        // A packet without a sequence number is not media.
        let sequence = sequence?;
        if self.packets.len() == MOST_UNDER_WAY {
            self.packets.pop_front();
        }
        self.packets.push_back((sequence, waited));
        None
    }

    /// Returns the time that an arrived media packet waited in queues, if the emulator has reported the packet.
    pub(super) fn on_received(&mut self, sequence: u64) -> Option<Span> {
        let place = self.packets.iter().position(|&(number, _)| number == sequence as u16)?;
        self.packets.remove(place).map(|(_, waited)| waited)
    }
}

#[cfg(test)]
mod tests {
    use equipoise::units::Size;
    use equipoise_net::Time;

    use super::*;

    fn passed(is_back: bool, datagram: Option<&[u8]>) -> Passed<'_> {
        let (at, size) = (Time::ZERO, Size::from_bytes(60));
        Passed { at, route: 0, is_back, size, waited: Span::from_millis(7), datagram }
    }

    /// An RTP packet with payload type 96 and sequence number 258, and a receiver report.
    const MEDIA: &[u8] = &[0x80, 96, 1, 2, 0, 0];
    const REPORT: &[u8] = &[0x80, 201, 0, 1, 0, 0];

    /// Where a packet arrived, with the number of the flow. `Media` (with a sequence number) and `Other` arrived at the
    /// flow's receiver, and `Back` at the flow's sender.
    #[derive(Debug, PartialEq, Eq)]
    enum Told {
        Media(usize, u16),
        Other(usize),
        Back(usize),
    }

    fn told(route: RouteOf, passed: &Passed<'_>) -> Told {
        let Note { flow, said, .. } = route.note(passed);
        match said {
            Said::Waited { sequence: Some(number), .. } => Told::Media(flow, number),
            Said::Waited { sequence: None, .. } => Told::Other(flow),
            _ => Told::Back(flow),
        }
    }

    /// If this test fails, feedback counts as media, or the waiting time of a packet is recorded for the wrong flow.
    #[test]
    fn what_goes_with_the_media_comes_to_the_receiver_and_all_else_to_the_sender() {
        let route = |goes_back, is_duplex| RouteOf { flow: 3, goes_back, is_duplex };
        let one_way = route(false, false);
        assert_eq!(told(one_way, &passed(false, Some(MEDIA))), Told::Media(3, 258));
        assert_eq!(told(one_way, &passed(false, Some(REPORT))), Told::Other(3));
        assert_eq!(told(one_way, &passed(false, None)), Told::Other(3), "a segment of TCP");
        assert_eq!(told(one_way, &passed(true, Some(REPORT))), Told::Back(3));
        assert_eq!(told(route(true, false), &passed(true, Some(MEDIA))), Told::Media(3, 258));
        let both = route(false, true);
        let found = [(false, MEDIA), (true, MEDIA), (false, REPORT), (true, REPORT)]
            .map(|(is_back, datagram)| told(both, &passed(is_back, Some(datagram))));
        assert_eq!(found, [Told::Media(3, 258), Told::Media(4, 258), Told::Back(4), Told::Back(3)]);
    }

    #[test]
    fn a_wait_is_found_by_the_last_16_bits_once_and_what_is_never_received_is_forgotten() {
        let mut session = UnderWay { has_events: true, packets: VecDeque::new() };
        for (number, ms) in [(65_535, 1), (0, 2), (1, 3)] {
            assert_eq!(session.on_passed(Span::from_millis(ms), Some(number)), None);
        }
        assert_eq!(session.on_received(65_536), Some(Span::from_millis(2)), "the wrap is counted on");
        assert_eq!(session.on_received(65_536), None);
        assert_eq!(session.on_received(65_535), Some(Span::from_millis(1)));
        for number in 0..5000 {
            session.on_passed(Span::ZERO, Some(number));
        }
        assert_eq!(session.packets.len(), MOST_UNDER_WAY);
        assert_eq!(session.on_passed(Span::ZERO, None), None, "feedback");
        let mut tcp = UnderWay::default();
        assert_eq!(tcp.on_passed(Span::from_millis(4), None), Some(Span::from_millis(4)));
    }
}
