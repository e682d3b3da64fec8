//! TCP hosts. The congestion control ([`Law`]) is a window law, or a controller with per-packet feedback. This feedback
//! is computed from acknowledgements.
//!
//! A [`Sender`] and a [`Receiver`] are sans-IO state machines of a connection that carries data in one direction. Like
//! the window laws, they count segments instead of bytes. The first segment has the number 0, and numbers never wrap
//! around. Segments are full-sized, except for the last segment of a transfer and partial segments of written data. The
//! size of a segment is the size of its IPv4 packet, with 40 bytes of headers and TCP's options. Its payload has a
//! size, but no content.
//!
//! Sources: loss recovery RFC 6582 (NewReno) or RFC 6675 (SACK), retransmission timer RFC 6298, limited transmit RFC
//! 3042, acknowledgements RFC 5681, Sec. 4.2 and RFC 2018, restart after idleness RFC 5681, Sec. 4.1. Not implemented:
//! timestamps, ECN, and the detection of spurious retransmissions.

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

/// A TCP segment, reduced to the content that the remote host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A SYN, which opens the connection.
    Syn,
    /// A SYN-ACK, which answers a SYN.
    SynAck {
        /// Receive window: number of segments that the receiver accepts.
        window: u64,
    },
    /// A segment with data.
    Data {
        /// Segment number in the connection, from 0.
        number: u64,
        /// Size of the segment's data.
        payload: Size,
    },
    /// An acknowledgement of data.
    Ack(Ack),
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Number of the next expected segment: all earlier segments were received.
    pub next: u64,
    /// Receive window: number of segments that the receiver accepts, counted from segment `next`.
    pub window: u64,
    /// Ranges of segments that were received after a gap.
    pub sacked: SackBlocks,
}

/// Up to three ranges of segments that were received after a gap. A range is the number of its first segment and the
/// number after its last segment. The range in which a segment arrived most recently is first (RFC 2018, Sec. 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    ranges: [(u64, u64); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of ranges: three fit into a TCP header with few other options.
    pub const MOST: usize = 3;
    /// No ranges: nothing was received after a gap.
    pub const NONE: Self = Self { ranges: [(0, 0); Self::MOST], count: 0 };

    /// Creates the value from the first three of `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut blocks = Self::NONE;
        for (place, range) in blocks.ranges.iter_mut().zip(ranges) {
            *place = range;
            blocks.count += 1;
        }
        blocks
    }

    /// The ranges, each as its first segment and the segment after its last segment.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied().take(usize::from(self.count))
    }
}

/// Size of an IPv4 header and a TCP header without options (RFC 791, Sec. 3.1; RFC 9293, Sec. 3.1).
pub const HEADER: Size = Size::from_bytes(40);
/// Size of the options of a SYN: segment size, SACK permitted, window scale, padding (RFC 9293, RFC 2018, RFC 7323).
const SYN_OPTIONS: Size = Size::from_bytes(12);

impl Segment {
    /// Size of the IP packet that carries the segment.
    pub fn size(&self) -> Size {
        match self {
            Self::Syn | Self::SynAck { .. } => HEADER + SYN_OPTIONS,
            Self::Data { payload, .. } => HEADER + *payload,
            Self::Ack(ack) => match u64::from(ack.sacked.count) {
                0 => HEADER,
                // The SACK option has two bytes of option header and eight bytes for each range (RFC 2018, Sec. 3). Two
                // bytes of padding are added.
                count => HEADER + Size::from_bytes(4 + 8 * count),
            },
        }
    }
}
