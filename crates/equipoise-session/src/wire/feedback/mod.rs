//! Per-packet feedback in two formats, RFC 8888 and transport-wide congestion control, with one common parsed form.
//!
//! Both formats state for consecutive sequence numbers which packets arrived, and when. Each format is parsed into, and
//! written from, a sequence of [`PacketStatus`], so that a session uses the same code for both formats. Parsing does
//! not allocate: a report is validated as a whole when it is parsed, and its packets are decoded during iteration.
//!
//! The receiver's record of arrivals and the sender's packet history are in [`crate::feedback`].

mod congestion;
#[cfg(test)]
mod congestion_tests;
mod marks;
mod transport;
#[cfg(test)]
mod transport_tests;

use equipoise::units::{Instant, ReceiverClock};
use thiserror::Error;

pub use congestion::{CongestionFeedback, StreamFeedback, StreamPackets, StreamWriter, encode_congestion_feedback};
pub use transport::{TransportFeedback, TransportHead, TransportPackets, encode_transport_feedback};

use super::WireError;
use super::rtcp::RtcpPacket;
use crate::Ecn;

/// The status of one packet in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketStatus {
    /// Sequence number of the packet, modulo 2¹⁶. In RFC 8888, it is the number in the RTP header. In transport-wide
    /// feedback, it is the transport-wide number.
    pub sequence: u16,
    /// The packet's arrival; `None` if the packet has not arrived so far.
    pub arrival: Option<PacketArrival>,
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// The arrival time.
    pub time: ArrivalTime,
    /// ECN field of the packet's IP header; [`Ecn::NotCapable`] if the format does not contain it.
    pub ecn: Ecn,
}

/// The arrival time of a packet, as far as a report can express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalTime {
    /// The packet arrived at this time, which has the format's resolution: 1/1024 s in RFC 8888, 250 µs in
    /// transport-wide feedback.
    At(Instant<ReceiverClock>),
    /// The packet arrived before this time. The format cannot express such an early arrival time (0x1FFE in RFC 8888).
    Before(Instant<ReceiverClock>),
    /// The packet arrived, but the report does not contain the arrival time.
    Unknown,
}

impl ArrivalTime {
    /// Returns the arrival time; `None` if it is not known exactly.
    pub const fn measured(self) -> Option<Instant<ReceiverClock>> {
        match self {
            Self::At(at) => Some(at),
            Self::Before(_) | Self::Unknown => None,
        }
    }
}

/// A report on packets with consecutive sequence numbers, parsed from a packet of RFC 8888 or of transport-wide
/// feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalReport<I> {
    /// Synchronisation source of the packets. In transport-wide feedback, it is the source of any stream of the
    /// transport.
    pub ssrc: u32,
    /// When the report was made; `None` if the format does not contain this time.
    pub made: Option<Instant<ReceiverClock>>,
    /// The statuses of the packets: an [`Iterator`] of [`PacketStatus`] with consecutive sequence numbers.
    pub packets: I,
}

/// A feedback packet in either format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalFeedback<'a> {
    /// A packet of RFC 8888, with reports on several streams.
    Congestion(CongestionFeedback<'a>),
    /// A packet of transport-wide feedback, with one report on all streams of a transport.
    Transport(TransportFeedback<'a>),
}

/// RTCP packet type of transport layer feedback, RTPFB (RFC 4585, Sec. 6.1).
pub(super) const TRANSPORT_LAYER_FEEDBACK: u8 = 205;
/// Format number (FMT) of congestion control feedback (RFC 8888, Sec. 3.1).
const CONGESTION_FORMAT: u8 = 11;
/// Format number (FMT) of transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1).
const TRANSPORT_FORMAT: u8 = 15;

impl<'a> ArrivalFeedback<'a> {
    /// Parses a packet of an RTCP compound; `None` if the packet is not per-packet feedback.
    ///
    /// # Errors
    /// [`WireError`] if the packet's content is inconsistent. Byte offsets count from the packet's first byte.
    pub fn of(packet: &RtcpPacket<'a>) -> Option<Result<Self, WireError>> {
        match *packet {
            RtcpPacket::Other { packet_type: TRANSPORT_LAYER_FEEDBACK, count: CONGESTION_FORMAT, body } => {
                Some(CongestionFeedback::parse(body).map(Self::Congestion))
            }
            RtcpPacket::Other { packet_type: TRANSPORT_LAYER_FEEDBACK, count: TRANSPORT_FORMAT, body } => {
                Some(TransportFeedback::parse(body).map(Self::Transport))
            }
            _ => None,
        }
    }
}

/// Whether a packet of this type and format may have padding that is shorter than a 32-bit word.
///
/// Our reading: draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1 fills the last 32-bit word with up to
/// three bytes of zeros. libwebrtc treats these bytes as RTCP padding and sets the padding bit, although the length of
/// RTCP padding must be a multiple of four bytes (RFC 3550, Sec. 6.4.1).
pub(super) const fn is_padded_to_the_word(packet_type: u8, format: u8) -> bool {
    packet_type == TRANSPORT_LAYER_FEEDBACK && format == TRANSPORT_FORMAT
}

/// Why a report cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FeedbackError {
    /// A sequence number is skipped or duplicated, although a report must cover consecutive numbers.
    #[error("packet {found} follows packet {before} in a report on consecutive numbers; {} would", before.wrapping_add(1))]
    Gap {
        /// Sequence number of the previous packet.
        before: u16,
        /// Sequence number of the packet that follows packet `before` in the report.
        found: u16,
    },
    /// The size limit of the report leaves no room for the status of even one packet.
    #[error("a report on a packet needs {need} more bytes; {have} are left")]
    NoRoom {
        /// Number of bytes needed.
        need: usize,
        /// Number of bytes available.
        have: usize,
    },
}

/// Checks that the sequence numbers in a report are consecutive.
#[derive(Clone, Copy, Debug, Default)]
struct Consecutive {
    before: Option<u16>,
}

impl Consecutive {
    fn follow(&mut self, sequence: u16) -> Result<(), FeedbackError> {
        match self.before.replace(sequence) {
            Some(before) if before.wrapping_add(1) != sequence => Err(FeedbackError::Gap { before, found: sequence }),
            _ => Ok(()),
        }
    }
}

/// Maximum length of an RTCP packet in bytes: its 16-bit length field contains the number of 32-bit words minus one.
const LONGEST: usize = 4 << 16;
