use equipoise::units::Span;
use equipoise_path::link::Ecn;
use equipoise_path::source::Source;

use super::Packet;
use crate::observer::{SimClock, Time};

/// A stream: its source of packets, its route, and the number of packets sent.
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

    /// When the next packet of the stream leaves; `None` if the stream is stopped or has ended.
    #[inline]
    pub(super) fn next_departure(&self) -> Option<Time> {
        self.source.next_departure().filter(|_| !self.stopped)
    }

    /// Appends the packets of the stream that leave before `until` to `lot`.
    pub(super) fn send_before(&mut self, until: Time, lot: &mut Vec<Packet>) {
        if self.stopped {
            return;
        }
        let (size, route) = (self.source.packet_size(), self.route as u32);
        let mut number = self.sent;
        self.source.leave_before(until, |at| {
            lot.push(Packet { at, sent: at, number, size, route, hop: 0, ecn: Ecn::NotCapable, waited: Span::ZERO });
            number += 1;
        });
        self.sent = number;
    }
}
