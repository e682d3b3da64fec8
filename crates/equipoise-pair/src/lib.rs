//! A flow pair: one flow of application data units (ADUs) that goes over TCP and RTP in turn.
//!
//! ```text
//!              ┌─ probing: TCP, whose rate is measured ─┐
//!   ADUs ──▶ Sender                                  Receiver ──▶ ADUs, whole and in order
//!              └─ running: RTP at that rate, or below ──┘
//! ```
//!
//! Source: Tobe 1999, Sec. 4 and 5.1. [`Sender`] alternates as [`Tpba`](crate::tpba::Tpba) says; its RTP half is an
//! [`rtp::Sender`](equipoise_session::rtp::Sender), that of [`Receiver`] an [`rtp::Receiver`](equipoise_session::rtp::Receiver). The TCP connection
//! is the world's: it tells the sender how TCP stands, takes the bytes that TCP is to carry, and sets what the sender asks.
//!
//! What holds, whatever the network does within a transport:
//!
//! - ADUs are given out whole, each once, in the order of their sending; whatever is missing before one is counted.
//! - What went over TCP is never missing while the connection lives.
//! - What went over RTP is missing where the network lost a part of it, where a part came later than
//!   [`ReorderConfig::hold`](equipoise_session::rtp::ReorderConfig::hold) behind what follows it, and where the reader is so slow that
//!   [`ReceiverConfig::most`] is full. The switch itself loses nothing.
//! - Both ends hold a bounded amount, whatever a peer sends.
//!
//! The change of transport waits for the end of an ADU and for TCP's unsent bytes, or RTP's queue, to run out. What is then
//! still under way is put in order by the receiver: every part of an ADU that goes over RTP says how many ADUs before it
//! did, so that the receiver knows which ones TCP still owes.

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

/// What can happen to an end of a flow pair, beside its payload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A whole UDP payload arrived; it need not be ours, nor well formed.
    Datagram(&'a [u8]),
    /// The time asked for has come; too early or without need does no harm.
    Timer,
    /// How the TCP connection stands now: for the sender, after every acknowledgement and whenever it is woken.
    Tcp(TcpState),
    /// TCP's byte stream has ended: for the receiver.
    TcpEnded,
    /// The application wants to end the flow: the sender sends what it has before, the receiver ends at once.
    Stop,
}

/// How a TCP connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Bytes of the stream that were acknowledged so far (`snd.una`).
    pub acknowledged: u64,
    /// Bytes that were written and not sent yet.
    pub unsent: u64,
    /// The congestion window, in bytes of the stream.
    pub window: Size,
    /// The largest segment's bytes of the stream.
    pub segment: Size,
    /// Headers of a segment: IP, TCP and options.
    pub header: Size,
    /// How often the congestion window was reduced so far.
    pub reductions: u64,
}

/// What an end asks of its world or tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a> {
    /// Send this datagram to the peer now.
    Transmit(equipoise_session::Transmit<'a>),
    /// Set this on the TCP connection now.
    Tcp(TcpRequest),
    /// Something a person or a report may want to know.
    Event(Event),
}

/// An ADU for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adu<'a> {
    /// Its number.
    pub number: u64,
    /// ADUs that are missing before it.
    pub missing: u64,
    /// Which transport brought it.
    pub over: Period,
    /// Its bytes.
    pub data: &'a [u8],
}

/// What the sender asks of its TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpRequest {
    /// Send a last short segment at once (on), or wait for acknowledgements before it (off): `TCP_NODELAY`.
    NoDelay(bool),
    /// Go on with this congestion window; the connection was idle, and its window not to be reset for that.
    Window(Size),
    /// Nothing more will be written: shut the sending side down.
    Finish,
}

/// What an end of a flow pair did or saw.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The RTP half did or saw it.
    Rtp(equipoise_session::Event),
    /// An interval of the probing period is over: TCP had this rate, in IP packets.
    Probed {
        /// The rate.
        rate: Rate,
    },
    /// A period begins, the first of the flow excepted.
    Began {
        /// Which transport carries what follows.
        period: Period,
        /// The first ADU that it carries.
        adu: u64,
        /// The rate of a running period at its beginning; that of its end, where it is followed by probing.
        rate: Rate,
    },
    /// TCP's bytes are none of a flow pair's: nothing more is taken from there.
    TcpBroken,
    /// The flow is over.
    Ended,
}

impl Event {
    /// The event of a session that it is to who watches the flow; `None` for the end of the flow, which is that of its RTP
    /// half, and for a broken stream.
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
