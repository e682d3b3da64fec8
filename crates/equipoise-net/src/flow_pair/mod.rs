//! Flow pairs between hosts: application data units (ADUs) sent alternately over TCP and RTP, at a rate measured by
//! TCP.
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
//! Source: Tobe 1999, Sec. 4 and 5. The protocol is in [`equipoise_pair`]. This module adds the sockets, a thread at
//! each end that serves them, and queues between that thread and the application. Every blocking call also has a form
//! for tasks, `…_async`, which uses the same thread: timers and sockets of the async runtime carry no data.
//!
//! TCP is the host's own implementation. Its unsent bytes are bounded with `TCP_NOTSENT_LOWAT`, and its
//! acknowledgements are read from the kernel's connection state. [`PairState`] shows what the host permits.

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

/// Configuration of the sending end of a flow pair.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// Lengths and ends of the probing periods (TCP) and running periods (RTP).
    pub tpba: TpbaConfig,
    /// The control law of running periods.
    pub running: RunningConfig,
    /// Largest size of RTP's IP packets, headers included.
    pub packet_size: Size,
    /// Time between two requests for a report on RTP.
    pub report_interval: Span,
    /// The name of the kernel's congestion control for TCP; `None` for the host's default.
    pub congestion_control: Option<String>,
    /// Sets TCP's congestion window, and replaces `congestion_control`; `None` if the window cannot be set.
    pub window_control: Option<WindowControl>,
    /// The local address for TCP and UDP; `None` for the host's choice.
    pub local: Option<SocketAddr>,
    /// How long to wait for the receiver's answer.
    pub patience: Span,
}

impl Default for PairConfig {
    /// A flow as in the paper, with packets of 1200 bytes: 1 s between reports (Tobe 1999, Sec. 6.1) and 5 s of
    /// patience (our choice).
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

/// State of a sending end, and what its host permits.
#[derive(Clone, Debug, PartialEq)]
pub struct PairState {
    /// The transport that carries ADUs now.
    pub period: Period,
    /// The last rate of IP packets that was measured or set; `None` before the first rate.
    pub rate: Option<Rate>,
    /// TCP's congestion window, in bytes of the stream.
    pub window: Size,
    /// Running periods that have begun.
    pub running_periods: u64,
    /// How TCP's window is reduced at the beginning of a probing period.
    pub window_preset: WindowPreset,
    /// Whether the host lets TCP keep its window while RTP runs.
    pub idle_window: IdleWindow,
    /// The name of the kernel's congestion control for TCP.
    pub congestion_control: String,
    /// Whether the receiver closed the connection, or was lost, before the end of the flow.
    pub ended_by_peer: bool,
}

/// Why a part of an ADU was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The ADU would exceed the maximum length. It can still be ended without this part.
    #[error("an ADU of {found} bytes is too long; it may have {most}")]
    TooLong {
        /// Its length with this part.
        found: usize,
        /// The maximum length.
        most: usize,
    },
    /// The flow is over.
    #[error("the flow is over")]
    Closed(#[from] Closed),
}
