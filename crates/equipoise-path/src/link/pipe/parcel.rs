use crate::link::aqm::{Ecn, Queued};
use equipoise::units::{Size, Span};

/// A packet and what has been drawn for it.
#[derive(Clone, Debug)]
pub(super) struct Parcel<P> {
    /// Its place in the order of entries, from 1; the largest number for one that is outside of that order.
    pub(super) number: u64,
    /// Its IP bytes.
    pub(super) size: Size,
    /// By how much its delay differs.
    pub(super) jitter: Span,
    /// By how much it leaves the order, if it does.
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
