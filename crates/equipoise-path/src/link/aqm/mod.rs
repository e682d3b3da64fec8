//! Active queue management: queues that signal congestion before they are full, by dropping or marking packets.

mod codel;
mod dual_pi2;
mod fq_codel;
mod line;
mod managed;
mod pie;
#[cfg(test)]
mod tests;

pub use codel::Codel;
pub use dual_pi2::DualPi2;
pub use fq_codel::FqCodel;
pub(super) use managed::ManagedQueue;
pub use pie::Pie;

use equipoise::units::{Instant, Size, Span};

use super::QueueLimit;
use line::Waiting;

/// The ECN field of a packet (RFC 3168, Sec. 5; RFC 9331, Sec. 2). The variants are in the order of
/// their values in the IP header, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: a queue signals congestion by dropping the packet.
    #[default]
    NotCapable,
    /// ECN-capable, from a sender that responds to fine-grained marks (L4S): [`DualPi2`] puts the packet into its
    /// low-latency queue.
    Ect1,
    /// ECN-capable; the sender responds to a mark as to a lost packet.
    Ect0,
    /// Congestion experienced: a queue has marked the packet.
    Marked,
}

impl Ecn {
    /// Returns the codepoint for the two lower bits of `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Marked,
        }
    }

    /// The two bits of the codepoint.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Marked => 3,
        }
    }
}

/// The properties of a packet that a queue uses, in addition to its size.
///
/// By default, a packet is not ECN-capable, and all packets belong to the same flow.
pub trait Queued {
    /// The ECN field of the packet.
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    /// Marks the packet. Does nothing if the packet is not ECN-capable.
    fn mark(&mut self) {}

    /// A flow number: the same for all packets of a flow.
    fn flow(&self) -> u64 {
        0
    }

    /// Called when the transmission of the packet begins. `wait` is the waiting time in the queue, without transmission
    /// time, propagation delay and jitter.
    fn on_waited(&mut self, _wait: Span) {}
}

/// For tests: plain numbers serve as packets that are not ECN-capable.
#[cfg(test)]
impl Queued for u32 {}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drop {
    /// The queue was full.
    Full,
    /// The queue drops a packet before it is full, to signal congestion.
    Early,
}

/// The receiver of a queue's drop and mark events.
pub(super) trait Told<P> {
    /// Called when the queue dropped a packet.
    fn dropped(&mut self, packet: P, why: Drop);
    /// Called when the queue marked a packet.
    fn marked(&mut self);
}

/// Marks a packet if it is ECN-capable and not yet marked. Returns whether the packet is ECN-capable.
fn marks<P: Queued>(packet: &mut P, told: &mut impl Told<P>) -> bool {
    let ecn = packet.ecn();
    if ecn != Ecn::NotCapable && ecn != Ecn::Marked {
        packet.mark();
        told.marked();
    }
    ecn != Ecn::NotCapable
}

/// The queue's limit, and whether an arriving packet needs space in the queue.
#[derive(Clone, Copy, Debug)]
struct Room {
    limit: QueueLimit,
    /// Whether the arriving packet does not wait, because its transmission begins now.
    at_once: bool,
}

impl Room {
    /// Whether the queue has room for a packet of `size` if `waiting` packets with `bytes` in total are already queued.
    fn holds(&self, waiting: usize, bytes: Size, size: Size) -> bool {
        let fits = match self.limit {
            QueueLimit::Packets(limit) => waiting < limit as usize,
            QueueLimit::Bytes(limit) => bytes + size <= limit,
            QueueLimit::Time(_) => true,
        };
        fits || self.at_once
    }
}

/// A queue discipline, followed by a link that transmits one packet after the other.
trait Aqm<C, P: Queued> {
    /// Adds a packet to the queue, or drops it.
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>);
    /// Takes the next packet for transmission over the link, which is idle at `now`; `None` if no packet is left.
    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>>;
    /// Number of queued packets.
    fn len(&self) -> usize;
    /// Sum of the waiting times of all packets that have left the queue or are still in the queue, in nanoseconds. For
    /// a packet in the queue, the waiting time until `now` counts.
    fn waited_ns(&self, now: Instant<C>) -> u64;
}
