use equipoise::units::{Size, Span};
use equipoise_path::link::{Ecn, Queued};
use equipoise_session::Event;

use crate::observer::{Arrival, Time};

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it arrives at its next link, or at the end of its route.
    pub at: Time,
    /// When it left its source.
    pub sent: Time,
    /// For a stream's packet its sequence number, for a session's packet the slot of its datagram.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// ECN field.
    pub ecn: Ecn,
    /// Total waiting time in the queues of all links passed.
    pub waited: Span,
    pub(crate) route: u32,
    /// Number of links passed.
    pub(crate) hop: u16,
}

impl Packet {
    /// The event of a stream's packet leaving its source.
    pub const fn departure(&self) -> Event {
        Event::MediaSent { sequence: self.number, size: self.size, waited: Span::ZERO, fragment: None }
    }

    /// The event of a stream's packet arriving at the end of its route.
    pub fn reception(&self) -> Event {
        let Self { at, sent, number: sequence, size, ecn, .. } = *self;
        Event::MediaReceived { sequence, sent: sent.assume_clock(), delay: at - sent, size, ecn }
    }

    /// The network's data about the packet's arrival.
    pub const fn arrival(&self) -> Arrival {
        Arrival { size: self.size, waited: self.waited }
    }
}

impl Queued for Packet {
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }

    fn flow(&self) -> u64 {
        self.route.into()
    }

    fn on_waited(&mut self, wait: Span) {
        self.waited = self.waited + wait;
    }
}
