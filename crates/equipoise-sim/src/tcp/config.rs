use equipoise::control::UnmetNeeds;
use equipoise::measure::InlineConfig;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use thiserror::Error;

use super::{HEADER, KnownBandwidth};
use crate::Time;

/// How a sender is made.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Size of the IP packet of a full segment.
    pub packet: Size,
    /// When the connection opens.
    pub start: Time,
    /// When the application stops sending; `None` to go on.
    pub stop: Option<Time>,
    /// What the application sends.
    pub supply: Supply,
    /// How lost segments are told and sent again.
    pub recovery: LossRecovery,
    /// The first two duplicate acknowledgements let a new segment out each (RFC 3042).
    pub limited_transmit: bool,
    /// The window of a window law shrinks to its initial size after idleness (RFC 5681, Sec. 4.1).
    pub idle_restart: bool,
    /// A SYN and its answer come before the data; without them the receiver is taken to have room for all until it answers.
    pub handshake: bool,
    /// Least retransmission timeout (RFC 6298, Sec. 2.4).
    pub min_rto: Span,
    /// Measures the path's bandwidth by the connection's own segments; the window law is told of the results.
    pub measurement: Option<InlineConfig>,
    /// Where a world that knows the path's bandwidth writes it for the window law.
    pub bandwidth: Option<KnownBandwidth>,
}

impl SenderConfig {
    /// A bulk sender from time zero on, with all that the standards recommend: SACK, limited transmit, restart after
    /// idleness, a handshake, and a least timeout of 1 s.
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

    /// The data of a full segment.
    pub(super) fn payload(&self) -> Result<Size, TcpError> {
        let payload = self.packet - HEADER;
        if payload == Size::ZERO { Err(TcpError::NoPayload { packet: self.packet }) } else { Ok(payload) }
    }
}

/// What an application gives its connection to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Always more.
    Unlimited,
    /// So much data, and then no more.
    Transfer(Size),
    /// Data at a rate, from the start on.
    Rate(Rate),
    /// What is [written](super::Sender::write).
    Written,
    /// So many full segments and no more, each from its time on.
    Content(Content),
}

/// How lost segments are told and sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// By duplicate acknowledgements, one lost segment a round trip (RFC 6582).
    NewReno,
    /// By selective acknowledgements (RFC 6675).
    Sack,
}

/// How a receiver is made.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Segments that it has room for behind the first that it waits for.
    pub window: u64,
    /// Whether an acknowledgement may wait; `None` to answer every segment.
    pub delayed_acks: Option<DelayedAcks>,
    /// Tells what came behind a gap, which a sender with [`LossRecovery::Sack`] relies on.
    pub sack: bool,
}

impl ReceiverConfig {
    /// A receiver whose window limits nobody, with delayed and selective acknowledgements.
    pub const fn new() -> Self {
        Self { window: 1 << 30, delayed_acks: Some(DelayedAcks::STANDARD), sack: true }
    }
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// When an acknowledgement is sent that nothing presses for (RFC 5681, Sec. 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// Behind so many segments at the latest.
    pub segments: u64,
    /// After so long at the latest.
    pub timeout: Span,
}

impl DelayedAcks {
    /// Every second segment, after 200 ms at the latest, as most systems have it.
    pub const STANDARD: Self = Self { segments: 2, timeout: Span::from_millis(200) };
}

/// Why a TCP host cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The header fills the packet.
    #[error("a packet of {packet} has no room for data; it has to be larger than {HEADER}")]
    NoPayload {
        /// The packet's size.
        packet: Size,
    },
    /// The receiver would never take a segment.
    #[error("a receive window of no segments lets nothing through; it has to be one at least")]
    NoWindow,
    /// Acknowledgements do not tell what the controller needs.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
}
