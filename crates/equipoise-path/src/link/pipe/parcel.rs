use crate::link::aqm::{Ecn, Queued};
use equipoise::units::{Size, Span};

/// A packet and the random numbers drawn for it.
#[derive(Clone, Debug)]
pub(super) struct Parcel<P> {
    /// The packet's number in order of entry, from 1; `u64::MAX` for a packet that bypasses the bottleneck.
    pub(super) number: u64,
    /// The size of the packet in IP bytes.
    pub(super) size: Size,
    /// The random deviation of the packet's propagation delay.
    pub(super) jitter: Span,
    /// The additional delay of a reordered packet, negative if the packet arrives earlier; `None` for other packets.
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
