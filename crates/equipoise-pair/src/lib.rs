//! A flow pair: one flow of application data units (ADUs) sent alternately over TCP and RTP.
//!
//! ```text
//!              ┌─ probing: TCP, whose rate is measured ─┐
//!   ADUs ──▶ Sender                                  Receiver ──▶ ADUs, whole and in order
//!              └─ running: RTP at that rate, or below ──┘
//! ```
//!
//! Source: Tobe 1999, Sec. 4 and 5.1. [`Sender`] alternates as decided by [`Tpba`](crate::tpba::Tpba). Its RTP part is
//! an [`rtp::Sender`](equipoise_session::rtp::Sender); the RTP part of [`Receiver`] is an
//! [`rtp::Receiver`](equipoise_session::rtp::Receiver). The TCP connection belongs to the caller, who reports TCP's
//! state to the sender, writes the sender's pending bytes to TCP, and applies the sender's requests to TCP.
//!
//! Guarantees, however the network drops, delays or reorders packets:
//!
//! - ADUs are delivered whole, each once, in the order of sending. The receiver reports how many ADUs are missing
//!   before each delivered ADU.
//! - No ADU that was sent over TCP is missing, as long as the TCP connection exists.
//! - An ADU that was sent over RTP is missing if one of its parts is lost or too late, or if the application reads so
//!   slowly that the limit [`ReceiverConfig::most`] is reached. A part is too late if it arrives more than
//!   [`ReorderConfig::hold`](equipoise_session::rtp::ReorderConfig::hold) after the next part.
//! - A switch of the transport loses no ADU, unless a circuit breaker has stopped RTP. Then the ADUs that RTP has taken
//!   but not sent completely are missing.
//! - Sender and receiver use bounded memory, whatever the peer sends.
//!
//! Before a switch of the transport, the sender completes the current ADU, and TCP's unsent bytes or RTP's queued
//! packets are sent. Packets may then still be in flight on both transports, and the receiver puts the ADUs into order.
//! For this, each part of an ADU over RTP carries the number of ADUs that the running period had before this ADU. So
//! the receiver knows the first ADU of the period, and waits for the earlier ADUs from TCP.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod order;
mod queue;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
pub mod tpba;
pub mod wire;

use crate::tpba::Period;
use equipoise::units::{Rate, Size};
use equipoise_session::Transport;

pub use queue::PushError;
pub use receiver::{Receiver, ReceiverConfig};
pub use sender::{PairError, Sender, SenderConfig};

/// Inputs of the sender or the receiver of a flow pair, in addition to its payload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A UDP datagram arrived. It may be malformed or not belong to the flow.
    Datagram(&'a [u8]),
    /// A requested timer expired. A call that is early or unnecessary does no harm.
    Timer,
    /// The present state of the TCP connection. The caller must pass it to the sender after every acknowledgement and
    /// at every wake-up.
    Tcp(TcpState),
    /// The TCP stream has ended. This input is only for the receiver.
    TcpEnded,
    /// The application ends the flow. The sender first sends its queued data; the receiver ends at once.
    Stop,
}

/// State of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Bytes of the stream acknowledged so far (`snd.una`).
    pub acknowledged: u64,
    /// Bytes written but not sent yet.
    pub unsent: u64,
    /// The congestion window, in bytes of the stream.
    pub window: Size,
    /// Maximum number of stream bytes in a segment.
    pub segment: Size,
    /// Size of a segment's headers: IP, TCP and TCP options.
    pub header: Size,
    /// Number of reductions of the congestion window so far.
    pub reductions: u64,
}

/// Outputs of the sender or the receiver of a flow pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a> {
    /// Send this datagram to the peer now.
    Transmit(equipoise_session::Transmit<'a>),
    /// Apply this request to the TCP connection now.
    Tcp(TcpRequest),
    /// An event, which the caller can show or log.
    Event(Event),
}

/// A received ADU for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adu<'a> {
    /// Number of the ADU.
    pub number: u64,
    /// Number of ADUs that are missing before this ADU.
    pub missing: u64,
    /// The transport that carried the ADU.
    pub over: Period,
    /// The ADU's bytes.
    pub data: &'a [u8],
}

/// What the sender of a flow pair requests from its TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpRequest {
    /// Set the socket option `TCP_NODELAY` to this value: if true, TCP sends a last short segment at once; if false,
    /// TCP waits for acknowledgements before it sends such a segment.
    NoDelay(bool),
    /// Continue with this congestion window. TCP must not reset the window to its initial value, although the
    /// connection was idle.
    Window(Size),
    /// Shut down the sending direction of the connection, because no more bytes will be written.
    Finish,
}

/// Events of the sender or the receiver of a flow pair.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An event of the RTP part.
    Rtp(equipoise_session::Event),
    /// An interval of the probing period has ended.
    Probed {
        /// TCP's rate in the interval, counting whole IP packets.
        rate: Rate,
    },
    /// A probing period (TCP) or a running period (RTP) begins. There is no such event for the first period of the
    /// flow.
    Began {
        /// The new period, whose transport carries the ADUs from now on.
        period: Period,
        /// Number of the first ADU of the new period.
        adu: u64,
        /// The initial rate if the new period is a running period; the final rate of the previous running period if the
        /// new period is a probing period.
        rate: Rate,
    },
    /// The data on the TCP connection is not a valid stream of a flow pair. The receiver stops reading the stream.
    TcpBroken,
    /// The flow is over.
    Ended,
}

impl Event {
    /// Returns the corresponding event of an RTP session, for an observer of the flow. An RTP session has no event for
    /// [`TcpBroken`](Self::TcpBroken), so the result is `None`. The result is also `None` for [`Ended`](Self::Ended),
    /// because the RTP part emits its own event at the end of the flow.
    pub fn in_session(self) -> Option<equipoise_session::Event> {
        match self {
            Self::Rtp(event) => Some(event),
            Self::Probed { rate } => Some(equipoise_session::Event::Probed { rate }),
            Self::Began { period, adu, rate } => {
                Some(equipoise_session::Event::Switched { to: period.into(), adu, rate })
            }
            Self::TcpBroken | Self::Ended => None,
        }
    }
}

impl From<Period> for Transport {
    fn from(period: Period) -> Self {
        match period {
            Period::Probing => Self::Tcp,
            Period::Running => Self::Rtp,
        }
    }
}
