//! TCP hosts: what a window law needs around it to be TCP.
//!
//! A controller that goes by single packets can take the place of the window law ([`Law`]): acknowledgements are its feedback.
//!
//! A [`Sender`] and a [`Receiver`] are sans-IO state machines of a connection that carries data one way. They count in
//! segments of full size, as the window laws do, so that the first segment is number 0 and sequence numbers never wrap; the
//! last segment of a transfer may be shorter. Segments lie in the world as values: their sizes are those of IPv4 packets
//! (header of 40 bytes, options where TCP would have them), their bytes are never written.
//!
//! Sources: loss recovery RFC 6582 (NewReno) or RFC 6675 (SACK), retransmission timer RFC 6298, limited transmit RFC 3042,
//! acknowledgements RFC 5681, Sec. 4.2 and RFC 2018, restart after idleness RFC 5681, Sec. 4.1. No timestamps, no ECN, no
//! detection of spurious retransmissions.

mod config;
mod departures;
mod endpoint;
mod journal;
mod known;
mod law;
mod receiver;
mod scoreboard;
mod segment;
mod sender;
mod stats;
mod supply;
#[cfg(test)]
mod tests;
mod timer;
mod written;

pub use config::{DelayedAcks, LossRecovery, ReceiverConfig, SenderConfig, Supply, TcpError};
pub use known::KnownBandwidth;
pub use law::Law;
pub use receiver::Receiver;
pub(crate) use segment::Encoded;
pub use sender::Sender;
pub use stats::SenderStats;

use equipoise::units::Size;

/// A TCP segment, as far as the other end can tell it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Opens the connection.
    Syn,
    /// Answers to it.
    SynAck {
        /// Segments that the receiver has room for.
        window: u64,
    },
    /// Carries data.
    Data {
        /// Which segment of the connection it is, from 0 on.
        number: u64,
        /// Its data.
        payload: Size,
    },
    /// Acknowledges data.
    Ack(Ack),
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The first segment that has not come: all before it have.
    pub next: u64,
    /// Segments behind `next` that the receiver has room for.
    pub window: u64,
    /// What came behind the gap.
    pub sacked: SackBlocks,
}

/// Up to three ranges of segments, each from its first to the one behind its last, the most recent first (RFC 2018,
/// Sec. 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    ranges: [(u64, u64); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// What fits into a header that has to hold little else.
    pub const MOST: usize = 3;
    /// None.
    pub const NONE: Self = Self { ranges: [(0, 0); Self::MOST], count: 0 };

    /// The first three of `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut blocks = Self::NONE;
        for (place, range) in blocks.ranges.iter_mut().zip(ranges) {
            *place = range;
            blocks.count += 1;
        }
        blocks
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied().take(usize::from(self.count))
    }
}

/// IPv4 and TCP headers without options (RFC 791, Sec. 3.1; RFC 9293, Sec. 3.1).
pub const HEADER: Size = Size::from_bytes(40);
/// Options of a SYN: segment size, SACK permitted, window scale, filled up (RFC 9293, RFC 2018, RFC 7323).
const SYN_OPTIONS: Size = Size::from_bytes(12);

impl Segment {
    /// Size of the IP packet.
    pub fn size(&self) -> Size {
        match self {
            Self::Syn | Self::SynAck { .. } => HEADER + SYN_OPTIONS,
            Self::Data { payload, .. } => HEADER + *payload,
            Self::Ack(ack) => match u64::from(ack.sacked.count) {
                0 => HEADER,
                // Two bytes of head, two of filling, eight for each block (RFC 2018, Sec. 3).
                count => HEADER + Size::from_bytes(4 + 8 * count),
            },
        }
    }
}
