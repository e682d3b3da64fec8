use equipoise::units::{Size, Span};
use equipoise_path::link::{Ecn, Queued};
use equipoise_session::Event;

use crate::observer::{Arrival, Time};

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it arrives at its next link, or at its end.
    pub at: Time,
    /// When it left its source.
    pub sent: Time,
    /// Of a stream's packet its sequence number, of a session's where its datagram is kept.
    pub number: u64,
    /// Of the IP packet.
    pub size: Size,
    /// What queues may tell its ends, and have told.
    pub ecn: Ecn,
    /// In the queues of all links behind it.
    pub waited: Span,
    pub(crate) route: u32,
    /// How many links lie behind it.
    pub(crate) hop: u16,
}

impl Packet {
    /// A stream's packet leaves: the event of its source.
    pub const fn departure(&self) -> Event {
        Event::MediaSent { sequence: self.number, size: self.size, waited: Span::ZERO, fragment: None }
    }

    /// A stream's packet has come to its end: the event there.
    pub fn reception(&self) -> Event {
        let Self { at, sent, number: sequence, size, ecn, .. } = *self;
        Event::MediaReceived { sequence, sent: sent.assume_clock(), delay: at - sent, size, ecn }
    }

    /// What the network knows of it where it has come to its end.
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
