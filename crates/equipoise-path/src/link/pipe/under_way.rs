use core::cmp::Ordering;

use crate::link::aqm::{Ecn, Queued};
use equipoise::units::{Instant, Size, Span};

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
}

/// A packet that will arrive at a moment.
#[derive(Clone, Debug)]
pub(super) struct UnderWay<C, P> {
    pub(super) at: Instant<C>,
    pub(super) tie: u64,
    pub(super) parcel: Parcel<P>,
}

impl<C, P> UnderWay<C, P> {
    fn key(&self) -> (Instant<C>, u64) {
        (self.at, self.tie)
    }
}

impl<C, P> PartialEq for UnderWay<C, P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<C, P> Eq for UnderWay<C, P> {}
impl<C, P> PartialOrd for UnderWay<C, P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<C, P> Ord for UnderWay<C, P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
