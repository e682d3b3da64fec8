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

/// The ECN field of a packet (RFC 3168, Sec. 5; RFC 9331, Sec. 2). The order is that of the two bits in an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: congestion is signalled by a drop.
    #[default]
    NotCapable,
    /// ECN-capable with fine-grained marks: traffic for the low-latency queue (L4S).
    Ect1,
    /// ECN-capable; a mark counts like a drop.
    Ect0,
    /// Congestion experienced.
    Marked,
}

impl Ecn {
    /// The codepoint for two bits.
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

/// A packet as seen by a queue, in addition to its size.
///
/// By default, packets are not ECN-capable, and all packets belong to one flow.
pub trait Queued {
    /// The ECN field.
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    /// Marks the packet; no effect if it is not ECN-capable.
    fn mark(&mut self) {}

    /// A number that is the same for all packets of a flow.
    fn flow(&self) -> u64 {
        0
    }

    /// Called when the packet's service begins, with its waiting time in the queue. Transmission time, propagation
    /// delay and jitter are not included.
    fn on_waited(&mut self, _wait: Span) {}
}

/// For tests: numbers as packets that are not ECN-capable.
#[cfg(test)]
impl Queued for u32 {}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drop {
    /// The queue was full.
    Full,
    /// To signal congestion.
    Early,
}

/// Receives a queue's drops and marks.
pub(super) trait Told<P> {
    /// Called when a packet was dropped.
    fn dropped(&mut self, packet: P, why: Drop);
    /// Called when a packet was marked.
    fn marked(&mut self);
}

/// Marks a packet if it is ECN-capable. Returns whether it is.
fn marks<P: Queued>(packet: &mut P, told: &mut impl Told<P>) -> bool {
    let ecn = packet.ecn();
    if ecn != Ecn::NotCapable && ecn != Ecn::Marked {
        packet.mark();
        told.marked();
    }
    ecn != Ecn::NotCapable
}

/// The available room when a packet arrives.
#[derive(Clone, Copy, Debug)]
struct Room {
    limit: QueueLimit,
    /// The packet does not wait, because its service begins now.
    at_once: bool,
}

impl Room {
    /// Whether there is room for a packet of `size` in addition to the queued ones.
    fn holds(&self, waiting: usize, bytes: Size, size: Size) -> bool {
        let fits = match self.limit {
            QueueLimit::Packets(limit) => waiting < limit as usize,
            QueueLimit::Bytes(limit) => bytes + size <= limit,
            QueueLimit::Time(_) => true,
        };
        fits || self.at_once
    }
}

/// A queue discipline in front of a service that serves one packet after the other.
trait Aqm<C, P: Queued> {
    /// Adds a packet.
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>);
    /// Takes the next packet for the service, which is idle now; `None` if no packet is left.
    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>>;
    /// Number of queued packets.
    fn len(&self) -> usize;
    /// Total waiting time of all packets until now, in nanoseconds.
    fn waited_ns(&self, now: Instant<C>) -> u64;
}
