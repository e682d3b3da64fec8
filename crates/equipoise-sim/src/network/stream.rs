use equipoise::units::Span;
use equipoise_path::link::Ecn;
use equipoise_path::source::Source;
use equipoise_session::Event;

use super::{LOT, Packet};
use crate::observer::{FlowId, Observer, Side, SimClock, Time};

/// A stream: a source, and how many packets have left it.
pub(super) struct StreamState {
    source: Source<SimClock>,
    pub(super) route: usize,
    sent: u64,
    pub(super) stopped: bool,
}

impl StreamState {
    pub(super) const fn new(source: Source<SimClock>, route: usize) -> Self {
        Self { source, route, sent: 0, stopped: false }
    }

    /// When the next packet leaves.
    #[inline]
    pub(super) fn next_departure(&self) -> Option<Time> {
        self.source.next_departure().filter(|_| !self.stopped)
    }

    /// The stream's next packets, those that leave before `until`, as long as the lot is not full.
    pub(super) fn send_before(
        &mut self,
        until: Time,
        flow: FlowId,
        lot: &mut Vec<Packet>,
        observer: &mut impl Observer,
    ) {
        let (size, route) = (self.source.packet_size(), self.route as u32);
        while lot.len() < LOT
            && let Some(at) = self.next_departure()
            && at < until
        {
            self.source.advance();
            let number = self.sent;
            self.sent += 1;
            let sent = Event::MediaSent { sequence: number, size, waited: Span::ZERO, fragment: None };
            observer.on_event(at, flow, Side::Near, &sent);
            lot.push(Packet { at, sent: at, number, size, route, hop: 0, ecn: Ecn::NotCapable, waited: Span::ZERO });
        }
    }
}
