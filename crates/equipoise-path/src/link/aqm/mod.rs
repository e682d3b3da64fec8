//! Queues that tell of congestion before they are full, by dropping packets or by marking them.

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

/// Whether the ends of a packet understand marks, and whether it bears one (RFC 3168, Sec. 5; RFC 9331, Sec. 2). The order is that of the
/// two bits in an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// They do not: congestion is told by a drop.
    #[default]
    NotCapable,
    /// They do, and want marks as often as anything fine-grained: the low-latency queue's traffic (L4S).
    Ect1,
    /// They do, and take a mark for a drop.
    Ect0,
    /// Congestion was experienced.
    Marked,
}

impl Ecn {
    /// By the two bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Marked,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Marked => 3,
        }
    }
}

/// What a queue sees of a packet beside its size, and what it may do with it.
///
/// By default nothing: then the packet's ends understand no marks, and all packets are one flow.
pub trait Queued {
    /// Whether it may be marked.
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    /// Marks it; of no effect where it may not be marked.
    fn mark(&mut self) {}

    /// The same for all packets of a flow.
    fn flow(&self) -> u64 {
        0
    }

    /// It waited for so long in the queue and is in service now. Its own transmission, the propagation delay and jitter do not count.
    fn on_waited(&mut self, _wait: Span) {}
}

/// For tests: numbers of packets, which nobody marks.
#[cfg(test)]
impl Queued for u32 {}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drop {
    /// There was no room.
    Full,
    /// To tell of congestion.
    Early,
}

/// Hears what a queue does to packets.
pub(super) trait Told<P> {
    /// A packet was dropped.
    fn dropped(&mut self, packet: P, why: Drop);
    /// One was marked.
    fn marked(&mut self);
}

/// Marks a packet where its ends understand that. Gives whether they do.
fn marks<P: Queued>(packet: &mut P, told: &mut impl Told<P>) -> bool {
    let ecn = packet.ecn();
    if ecn != Ecn::NotCapable && ecn != Ecn::Marked {
        packet.mark();
        told.marked();
    }
    ecn != Ecn::NotCapable
}

/// The room that there is when a packet comes.
#[derive(Clone, Copy, Debug)]
struct Room {
    limit: QueueLimit,
    /// The packet does not wait: its service begins now.
    at_once: bool,
}

impl Room {
    /// Whether there is room for a packet of `size` behind what waits.
    fn holds(&self, waiting: usize, bytes: Size, size: Size) -> bool {
        let fits = match self.limit {
            QueueLimit::Packets(limit) => waiting < limit as usize,
            QueueLimit::Bytes(limit) => bytes + size <= limit,
            QueueLimit::Time(_) => true,
        };
        fits || self.at_once
    }
}

/// A queue that manages itself, before a service that takes one packet after the other.
trait Aqm<C, P: Queued> {
    /// A packet comes.
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>);
    /// The next packet for the service, which is free now; `None` where none is left.
    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>>;
    /// Packets that wait.
    fn len(&self) -> usize;
    /// How long all packets have waited in it until now, in nanoseconds.
    fn waited_ns(&self, now: Instant<C>) -> u64;
}
