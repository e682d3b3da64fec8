use equipoise::units::{Size, Span};
use equipoise_path::link::{Ecn, Queued};
use equipoise_session::Event;

use crate::observer::{Arrival, Time};

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the packet arrives at the next link on its route, or at the end of its route.
    pub at: Time,
    /// When the packet left its source.
    pub sent: Time,
    /// For a packet of a stream: its sequence number. For a packet of a session: the number of the slot in which the
    /// simulator stores the packet's datagram.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// ECN field of the packet.
    pub ecn: Ecn,
    /// Total time that the packet waited in the queues of the links it has passed.
    pub waited: Span,
    pub(crate) route: u32,
    /// Number of links that the packet has passed.
    pub(crate) hop: u16,
}

impl Packet {
    /// The event that a packet of a stream has left its source.
    pub const fn departure(&self) -> Event {
        Event::MediaSent { sequence: self.number, size: self.size, waited: Span::ZERO, fragment: None }
    }

    /// The event that a packet of a stream has arrived at the end of its route.
    pub fn reception(&self) -> Event {
        let Self { at, sent, number: sequence, size, ecn, .. } = *self;
        Event::MediaReceived { sequence, sent: sent.assume_clock(), delay: at - sent, size, ecn }
    }

    /// The size and the total waiting time of the packet, for observers of its arrival.
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
