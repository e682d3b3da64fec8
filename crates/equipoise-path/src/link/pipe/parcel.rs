use crate::link::aqm::{Ecn, Queued};
use equipoise::units::{Size, Span};

/// A packet and the random numbers drawn for it.
#[derive(Clone, Debug)]
pub(super) struct Parcel<P> {
    /// Its number in entry order, from 1; the largest number for a packet outside of that order.
    pub(super) number: u64,
    /// Its IP bytes.
    pub(super) size: Size,
    /// The deviation of its delay.
    pub(super) jitter: Span,
    /// How far it is moved out of order, if it is.
    pub(super) held_back: Option<Span>,
    pub(super) packet: P,
}

impl<P: Queued> Queued for Parcel<P> {
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }

    fn mark(&mut self) {
        self.packet.mark();
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn on_waited(&mut self, wait: Span) {
        self.packet.on_waited(wait);
    }
}
