use equipoise::control::UnmetNeeds;
use equipoise::measure::InlineConfig;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use thiserror::Error;

use super::{HEADER, KnownBandwidth};
use crate::Time;

/// The configuration of a TCP sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Size of the IP packet of a full segment.
    pub packet: Size,
    /// When the sender opens the connection.
    pub start: Time,
    /// When the application stops sending; `None` if it never stops.
    pub stop: Option<Time>,
    /// The data that the application sends.
    pub supply: Supply,
    /// How lost segments are detected and retransmitted.
    pub recovery: LossRecovery,
    /// Whether the first two duplicate acknowledgements each allow a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the congestion window is reduced to its initial size after idleness (RFC 5681, Sec. 4.1). No effect if
    /// the congestion control is a [`Law::Controller`](super::Law::Controller).
    pub idle_restart: bool,
    /// Whether the connection begins with a SYN and a SYN-ACK. Without them, the sender assumes an unlimited receive
    /// window until the first acknowledgement.
    pub handshake: bool,
    /// Minimum retransmission timeout (RFC 6298, Sec. 2.4).
    pub min_rto: Span,
    /// Measures the bandwidth of the path with the connection's own segments, and passes the results to the window law;
    /// `None` for no measurement.
    pub measurement: Option<InlineConfig>,
    /// Shared value into which the simulator writes the bandwidth of the path, for the window law; `None` if unused.
    pub bandwidth: Option<KnownBandwidth>,
}

impl SenderConfig {
    /// A sender with unlimited data that starts at time zero and follows the recommendations of the standards: SACK,
    /// limited transmit, restart after idleness, a handshake, and a minimum retransmission timeout of 1 s.
    pub const fn new(packet: Size) -> Self {
        Self {
            packet,
            start: Time::ZERO,
            stop: None,
            supply: Supply::Unlimited,
            recovery: LossRecovery::Sack,
            limited_transmit: true,
            idle_restart: true,
            handshake: true,
            min_rto: Span::from_secs(1),
            measurement: None,
            bandwidth: None,
        }
    }

    /// The size of the data in a full segment.
    pub(super) fn payload(&self) -> Result<Size, TcpError> {
        let payload = self.packet - HEADER;
        if payload == Size::ZERO { Err(TcpError::NoPayload { packet: self.packet }) } else { Ok(payload) }
    }
}

/// The data that an application sends over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Unlimited data, all available at once.
    Unlimited,
    /// A finite amount of data, all available at once.
    Transfer(Size),
    /// Unlimited data that becomes available at a rate, from the start of the connection.
    Rate(Rate),
    /// Data that becomes available when [`write`](super::Sender::write) is called.
    Written,
    /// A finite number of full segments, each available from its own time on.
    Content(Content),
}

/// How lost segments are detected and retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// Duplicate acknowledgements: one lost segment per round-trip time is detected (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 6675).
    Sack,
}

/// The configuration of a TCP receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Receive window: number of segments that the receiver accepts, counted from the next expected segment.
    pub window: u64,
    /// When acknowledgements are delayed; `None` to acknowledge every segment at once.
    pub delayed_acks: Option<DelayedAcks>,
    /// Whether acknowledgements report segments after a gap (SACK). A sender with [`LossRecovery::Sack`] requires this.
    pub sack: bool,
}

impl ReceiverConfig {
    /// A receiver whose window never limits the sender, with delayed and selective acknowledgements.
    pub const fn new() -> Self {
        Self { window: 1 << 30, delayed_acks: Some(DelayedAcks::STANDARD), sack: true }
    }
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// How long an acknowledgement may be delayed (RFC 5681, Sec. 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// The acknowledgement is sent after this number of segments at the latest.
    pub segments: u64,
    /// The acknowledgement is sent after this time at the latest.
    pub timeout: Span,
}

impl DelayedAcks {
    /// An acknowledgement for every second segment, and after 200 ms at the latest; RFC 5681, Sec. 4.2 allows 500 ms.
    pub const STANDARD: Self = Self { segments: 2, timeout: Span::from_millis(200) };
}

/// Why a TCP host cannot be created from its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The packet is not larger than the header, so it has no room for data.
    #[error("a packet of {packet} has no room for data; it must be larger than {HEADER}")]
    NoPayload {
        /// The configured size of the packet.
        packet: Size,
    },
    /// The receive window is zero, so the receiver could never accept a segment.
    #[error("a receive window of zero segments lets nothing through; it must be at least one")]
    NoWindow,
    /// The controller needs feedback that TCP acknowledgements do not contain.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
}
