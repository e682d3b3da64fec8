//! TCP hosts: the parts of TCP around a window law.
//!
//! A controller that uses per-packet feedback can replace the window law ([`Law`]): acknowledgements are its feedback.
//!
//! A [`Sender`] and a [`Receiver`] are sans-IO state machines of a connection that carries data in one direction. They
//! count in full-sized segments, like the window laws, so the first segment is number 0 and sequence numbers never
//! wrap; the last segment of a transfer may be shorter. Segments are plain values: their sizes are those of IPv4
//! packets (header of 40 bytes, with TCP's options), but their payload is never written.
//!
//! Sources: loss recovery RFC 6582 (NewReno) or RFC 6675 (SACK), retransmission timer RFC 6298, limited transmit RFC
//! 3042, acknowledgements RFC 5681, Sec. 4.2 and RFC 2018, restart after idleness RFC 5681, Sec. 4.1. There are no
//! timestamps, no ECN, and no detection of spurious retransmissions.

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

/// A TCP segment, reduced to what the other end needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Opens the connection.
    Syn,
    /// Answers a SYN.
    SynAck {
        /// Receive window, in segments.
        window: u64,
    },
    /// Carries data.
    Data {
        /// Segment number in the connection, from 0.
        number: u64,
        /// Size of its data.
        payload: Size,
    },
    /// Acknowledges data.
    Ack(Ack),
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next expected segment: all earlier segments were received.
    pub next: u64,
    /// Receive window, in segments after `next`.
    pub window: u64,
    /// Segments received after the gap.
    pub sacked: SackBlocks,
}

/// Up to three ranges of segments, each from its first segment to the segment after its last, the most recent range
/// first (RFC 2018, Sec. 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    ranges: [(u64, u64); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of blocks, which fit into a header with few other options.
    pub const MOST: usize = 3;
    /// No blocks.
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
/// Options of a SYN: segment size, SACK permitted, window scale, padded (RFC 9293, RFC 2018, RFC 7323).
const SYN_OPTIONS: Size = Size::from_bytes(12);

impl Segment {
    /// Size of the IP packet.
    pub fn size(&self) -> Size {
        match self {
            Self::Syn | Self::SynAck { .. } => HEADER + SYN_OPTIONS,
            Self::Data { payload, .. } => HEADER + *payload,
            Self::Ack(ack) => match u64::from(ack.sacked.count) {
                0 => HEADER,
                // Two bytes of option head, two of padding, eight for each block (RFC 2018, Sec. 3).
                count => HEADER + Size::from_bytes(4 + 8 * count),
            },
        }
    }
}
