//! Per-packet feedback: RFC 8888 and transport-wide congestion control, in one common form.
//!
//! Both formats state for consecutive sequence numbers which packets arrived, and when. Each is parsed into, and
//! written from, a sequence of [`PacketStatus`], so that a session uses the same code for both. Parsing does not
//! allocate: a report is validated as a whole when it is parsed, and its packets are decoded during iteration.
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
    /// Sequence number of the packet: that of its RTP header in RFC 8888, the transport-wide one otherwise. It wraps.
    pub sequence: u16,
    /// The packet's arrival; `None` if the packet has not arrived so far.
    pub arrival: Option<PacketArrival>,
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// The arrival time.
    pub time: ArrivalTime,
    /// ECN field of the packet's IP header; [`Ecn::NotCapable`] also if the format does not carry it.
    pub ecn: Ecn,
}

/// The arrival time of a packet, as far as a report can express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalTime {
    /// At this time, to the format's resolution: 1/1024 s in RFC 8888, 250 µs in transport-wide feedback.
    At(Instant<ReceiverClock>),
    /// Before this time: longer ago than the format can express (RFC 8888's 0x1FFE).
    Before(Instant<ReceiverClock>),
    /// The receiver did not measure the arrival time.
    Unknown,
}

impl ArrivalTime {
    /// The time; `None` if it is not known exactly.
    pub const fn measured(self) -> Option<Instant<ReceiverClock>> {
        match self {
            Self::At(at) => Some(at),
            Self::Before(_) | Self::Unknown => None,
        }
    }
}

/// A report on one sequence of packets, in either format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalReport<I> {
    /// Synchronisation source of the packets; in transport-wide feedback, that of any stream of the transport.
    pub ssrc: u32,
    /// When the report was made; `None` if the format does not include it.
    pub made: Option<Instant<ReceiverClock>>,
    /// The packets, an [`Iterator`] of [`PacketStatus`] by consecutive sequence numbers.
    pub packets: I,
}

/// A packet of feedback in either format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalFeedback<'a> {
    /// RFC 8888: reports on several streams.
    Congestion(CongestionFeedback<'a>),
    /// Transport-wide: a report on all streams of a transport together.
    Transport(TransportFeedback<'a>),
}

/// RTPFB, transport layer feedback (RFC 4585, Sec. 6.1).
pub(super) const TRANSPORT_LAYER_FEEDBACK: u8 = 205;
/// FMT of congestion control feedback (RFC 8888, Sec. 3.1).
const CONGESTION_FORMAT: u8 = 11;
/// FMT of transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1).
const TRANSPORT_FORMAT: u8 = 15;

impl<'a> ArrivalFeedback<'a> {
    /// Reads a packet of a compound; `None` if it is a packet of another kind.
    ///
    /// # Errors
    /// [`WireError`] if the packet's content is inconsistent. Offsets count from the packet's first byte.
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

/// Whether a packet of this type and format may have padding of less than a word.
///
/// Our reading: draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1 has zeros after the last delta, and
/// libwebrtc sets the padding bit for these one to three bytes, although RFC 3550, Sec. 6.4.1 requires whole words.
pub(super) const fn is_padded_to_the_word(packet_type: u8, format: u8) -> bool {
    packet_type == TRANSPORT_LAYER_FEEDBACK && format == TRANSPORT_FORMAT
}

/// Why a report cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FeedbackError {
    /// A number is skipped or duplicated, although a report covers every number once.
    #[error("packet {found} follows packet {before} in a report on consecutive numbers; {} would", before.wrapping_add(1))]
    Gap {
        /// The previous packet.
        before: u16,
        /// The packet that followed.
        found: u16,
    },
    /// Not even one packet's status fits.
    #[error("a report on a packet needs {need} more bytes; {have} are left")]
    NoRoom {
        /// Bytes needed.
        need: usize,
        /// Bytes available.
        have: usize,
    },
}

/// Checks that the numbers of a report are consecutive.
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

/// Maximum length of an RTCP packet in bytes: its 16-bit length field counts words minus one.
const LONGEST: usize = 4 << 16;
