//! Feedback by packet: RFC 8888 and transport-wide congestion control, in one neutral form.
//!
//! Both formats say of consecutive sequence numbers which packets arrived, and when. Each is read into, and written from, a
//! sequence of [`PacketStatus`], so that a session can use either one without other code. Reading allocates nothing: a report
//! is checked as a whole when it is parsed, and its packets are read while they are iterated.
//!
//! What the receiver keeps for its next report, and what the sender knows of its packets, is in [`crate::feedback`].

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

/// What a report says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketStatus {
    /// Sequence number of the packet: that of its RTP header in RFC 8888, the transport-wide one otherwise. It wraps.
    pub sequence: u16,
    /// Its arrival; `None` if it has not arrived so far.
    pub arrival: Option<PacketArrival>,
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// When.
    pub time: ArrivalTime,
    /// What its IP header said of congestion; [`Ecn::NotCapable`] also if the format does not carry it.
    pub ecn: Ecn,
}

/// When a packet arrived, as far as a report can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalTime {
    /// At this moment, to the format's resolution: 1/1024 s in RFC 8888, 250 µs in transport-wide feedback.
    At(Instant<ReceiverClock>),
    /// Before this moment: longer ago than the format can express (RFC 8888's 0x1FFE).
    Before(Instant<ReceiverClock>),
    /// The receiver did not measure it.
    Unknown,
}

impl ArrivalTime {
    /// The moment; `None` if it is not known exactly.
    pub const fn measured(self) -> Option<Instant<ReceiverClock>> {
        match self {
            Self::At(at) => Some(at),
            Self::Before(_) | Self::Unknown => None,
        }
    }
}

/// One report on one sequence of packets, whatever its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalReport<I> {
    /// Synchronisation source of the packets; in transport-wide feedback that of any stream of the transport.
    pub ssrc: u32,
    /// When the report was made; `None` if the format does not say.
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
    /// [`WireError`] if what is inside does not fit together. Offsets count from the packet's first byte.
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

/// Whether a packet of this type and format may be padded to the word by less than a word.
///
/// Reading: draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1 has zeros behind the last delta, and libwebrtc sets the
/// padding bit for these one to three bytes, where RFC 3550, Sec. 6.4.1 wants whole words.
pub(super) const fn is_padded_to_the_word(packet_type: u8, format: u8) -> bool {
    packet_type == TRANSPORT_LAYER_FEEDBACK && format == TRANSPORT_FORMAT
}

/// Why a report cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FeedbackError {
    /// A report has a place for each number, so that none may be left out or come twice.
    #[error("packet {found} follows packet {before} in a report on consecutive numbers; {} would", before.wrapping_add(1))]
    Gap {
        /// The packet before.
        before: u16,
        /// The one that followed.
        found: u16,
    },
    /// Not even one packet's status fits.
    #[error("a report on a packet needs {need} bytes more, {have} are left of what it may have")]
    NoRoom {
        /// Bytes that are needed.
        need: usize,
        /// Bytes that are left.
        have: usize,
    },
}

/// The numbers of a report follow each other.
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

/// The longest that an RTCP packet can be, in bytes: its length field counts words less one in 16 bits.
const LONGEST: usize = 4 << 16;
