//! Flow pairs between hosts: application data units (ADUs) are sent alternately over TCP and RTP. The rate of RTP is
//! based on the rate that was measured with TCP.
//!
//! ```no_run
//! use equipoise_net::flow_pair::{PairConfig, PairListener, PairSender};
//!
//! # fn sender() -> Result<(), Box<dyn std::error::Error>> {
//! let mut sender = PairSender::connect("192.0.2.7:5004".parse()?, &PairConfig::default())?;
//! sender.send(b"an ADU")?;
//! sender.send_part(b"the beginning of another, ")?;
//! sender.send(b"and its end")?;
//! sender.close()?;
//! # Ok(())
//! # }
//!
//! # fn receiver() -> Result<(), Box<dyn std::error::Error>> {
//! let mut listener = PairListener::bind("[::]:5004".parse()?)?;
//! while let Some(mut receiver) = listener.accept() {
//!     while let Some(adu) = receiver.recv() {
//!         println!("ADU {} of {} bytes, {} missing before it", adu.number, adu.data.len(), adu.missing);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Source: Tobe 1999, Sec. 4 and 5. The protocol is implemented in [`equipoise_pair`]. This module adds the
//! sockets, one thread at each host, and queues between this thread and the application. Most blocking calls also have
//! an asynchronous variant, whose name ends with `_async`. The timers and sockets of the asynchronous runtime are not
//! used.
//!
//! The host's kernel provides TCP. The number of bytes that TCP has not sent is limited with `TCP_NOTSENT_LOWAT`, and
//! acknowledgements are read from the kernel's connection state. [`PairState`] shows how the host lets the sender
//! control TCP's congestion window.

mod adu;
mod connection;
mod ends;
mod hello;
mod listener;
mod open;
mod pacing;
mod receiver;
mod receiving;
mod sender;
mod sending;
mod window;

use std::net::SocketAddr;

use equipoise::units::{Rate, Size, Span};
use equipoise_pair::tpba::{Period, RunningConfig, TpbaConfig};
use thiserror::Error;

pub use adu::{Adu, PairEnd};
pub use ends::{PairEnds, PairHosts, PairPlan, RunningPair};
pub use listener::PairListener;
pub use receiver::PairReceiver;
pub use sender::PairSender;
pub use window::{IdleWindow, WindowControl, WindowPreset};

use crate::Closed;

/// Configuration of the sender of a flow pair.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// When the probing periods (TCP) and the running periods (RTP) end.
    pub tpba: TpbaConfig,
    /// The control law of the rate in running periods, in which RTP sends.
    pub running: RunningConfig,
    /// Maximum size of the IP packets that carry RTP, including headers.
    pub packet_size: Size,
    /// Time between two requests for an RTCP receiver report.
    pub report_interval: Span,
    /// The name of the kernel's congestion control for TCP; `None` for the default of the host.
    pub congestion_control: Option<String>,
    /// Sets TCP's congestion window; `None` if the window cannot be set. If there is a [`WindowControl`], its
    /// congestion control is used instead of `congestion_control`.
    pub window_control: Option<WindowControl>,
    /// The local address for TCP and UDP; `None` to let the host choose.
    pub local: Option<SocketAddr>,
    /// How long to wait for the TCP connection, and then for the receiver's first message.
    pub patience: Span,
}

impl Default for PairConfig {
    /// A flow as in the paper, but with packets of 1200 bytes (our choice). Reports are requested every second (Tobe
    /// 1999, Sec. 6.1), and `patience` is 5 s (our choice).
    fn default() -> Self {
        Self {
            tpba: TpbaConfig::PAPER,
            running: RunningConfig::PAPER,
            packet_size: Size::from_bytes(1200),
            report_interval: Span::from_secs(1),
            congestion_control: None,
            window_control: None,
            local: None,
            patience: Span::from_secs(5),
        }
    }
}

/// The state of a sender, and what the sender's host permits.
#[derive(Clone, Debug, PartialEq)]
pub struct PairState {
    /// The transport that carries ADUs now, TCP or RTP.
    pub period: Period,
    /// The latest rate of IP packets, measured for TCP or set for RTP; `None` before the first rate.
    pub rate: Option<Rate>,
    /// TCP's congestion window, in bytes of TCP data.
    pub window: Size,
    /// Number of running periods that have begun.
    pub running_periods: u64,
    /// How TCP's congestion window is reduced at the beginning of a probing period.
    pub window_preset: WindowPreset,
    /// Whether the host keeps or resets TCP's congestion window while RTP is used.
    pub idle_window: IdleWindow,
    /// The name of the kernel's congestion control for TCP.
    pub congestion_control: String,
    /// Whether the receiver closed the connection, or the connection was lost, before the sender ended the flow.
    pub ended_by_peer: bool,
}

/// Why a part of an ADU was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// With this part, the ADU would exceed the maximum length. The ADU can still be ended without this part.
    #[error("an ADU of {found} bytes is too long; it may have {most}")]
    TooLong {
        /// The length that the ADU would have with the refused part, in bytes.
        found: usize,
        /// The maximum length of an ADU, in bytes.
        most: usize,
    },
    /// The flow is over, so nothing can be sent.
    #[error("the flow is over")]
    Closed(#[from] Closed),
}
