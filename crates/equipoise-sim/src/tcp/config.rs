use equipoise::control::UnmetNeeds;
use equipoise::measure::InlineConfig;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use thiserror::Error;

use super::{HEADER, KnownBandwidth};
use crate::Time;

/// The configuration of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Size of the IP packet of a full segment.
    pub packet: Size,
    /// When the connection opens.
    pub start: Time,
    /// When the application stops sending; `None` for never.
    pub stop: Option<Time>,
    /// The data that the application sends.
    pub supply: Supply,
    /// How lost segments are detected and retransmitted.
    pub recovery: LossRecovery,
    /// Whether the first two duplicate acknowledgements each allow a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the window of a window law is reset to its initial size after idleness (RFC 5681, Sec. 4.1).
    pub idle_restart: bool,
    /// Whether a SYN and a SYN-ACK precede the data. Otherwise the receive window is unlimited until the first
    /// acknowledgement.
    pub handshake: bool,
    /// Minimum retransmission timeout (RFC 6298, Sec. 2.4).
    pub min_rto: Span,
    /// Measures the path's bandwidth with the connection's own segments; the results are passed to the window law.
    pub measurement: Option<InlineConfig>,
    /// A cell into which the simulator writes the exact bandwidth of the path, for the window law.
    pub bandwidth: Option<KnownBandwidth>,
}

impl SenderConfig {
    /// A bulk sender from time zero on, with all recommendations of the standards: SACK, limited transmit, restart
    /// after idleness, a handshake, and a minimum timeout of 1 s.
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

    /// The data in a full segment.
    pub(super) fn payload(&self) -> Result<Size, TcpError> {
        let payload = self.packet - HEADER;
        if payload == Size::ZERO { Err(TcpError::NoPayload { packet: self.packet }) } else { Ok(payload) }
    }
}

/// The data that an application provides for its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Unlimited.
    Unlimited,
    /// A finite amount of data.
    Transfer(Size),
    /// Data at a rate, from the start on.
    Rate(Rate),
    /// Data written by [`write`](super::Sender::write).
    Written,
    /// A finite number of full segments, each available from its time on.
    Content(Content),
}

/// How lost segments are detected and retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// By duplicate acknowledgements, one lost segment per round trip (RFC 6582).
    NewReno,
    /// By selective acknowledgements (RFC 6675).
    Sack,
}

/// The configuration of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Receive window, in segments after the next expected one.
    pub window: u64,
    /// Delayed acknowledgements; `None` to acknowledge every segment.
    pub delayed_acks: Option<DelayedAcks>,
    /// Whether to report segments after a gap, which a sender with [`LossRecovery::Sack`] requires.
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

/// When to send a delayed acknowledgement (RFC 5681, Sec. 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// After this number of segments at the latest.
    pub segments: u64,
    /// After this time at the latest.
    pub timeout: Span,
}

impl DelayedAcks {
    /// Every second segment, after 200 ms at the latest, as in most systems.
    pub const STANDARD: Self = Self { segments: 2, timeout: Span::from_millis(200) };
}

/// Why a TCP host cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The header leaves no room for data.
    #[error("a packet of {packet} has no room for data; it must be larger than {HEADER}")]
    NoPayload {
        /// The packet's size.
        packet: Size,
    },
    /// The receiver could never accept a segment.
    #[error("a receive window of zero segments lets nothing through; it must be at least one")]
    NoWindow,
    /// Acknowledgements do not provide what the controller needs.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
}
