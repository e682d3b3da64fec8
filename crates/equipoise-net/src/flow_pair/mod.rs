//! Flow pairs between hosts: application data units (ADUs) that go over TCP and RTP in turn, as TCP's rate has it.
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
//! Source: Tobe 1999, Sec. 4 and 5. What decides is [`equipoise_pair`]; here are the sockets under it, a
//! thread at each end that serves them, and queues between that thread and the application. Every call that waits has a
//! form for tasks beside it, `…_async`, over the same thread: a task's timers and sockets are none of the data's.
//!
//! TCP is the host's own. Its unsent bytes are bounded by `TCP_NOTSENT_LOWAT`, its acknowledgements read from the kernel's
//! account of the connection. What the host does not let an application do, [`PairState`] names.

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

/// What the sending end of a flow pair is made of.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// When it probes and when it runs.
    pub tpba: TpbaConfig,
    /// The law of running periods.
    pub running: RunningConfig,
    /// Largest size of the RTP half's IP packets, headers included.
    pub packet_size: Size,
    /// Time between two requests for a report on the RTP half.
    pub report_interval: Span,
    /// The kernel's congestion control under TCP, by its name; `None` for the host's default.
    pub congestion_control: Option<String>,
    /// Who can set TCP's congestion window, and takes the place of `congestion_control` then; `None` for nobody.
    pub window_control: Option<WindowControl>,
    /// Where it sends from, over TCP and UDP alike; `None` for what the host chooses.
    pub local: Option<SocketAddr>,
    /// How long the receiver's answer is waited for.
    pub patience: Span,
}

impl Default for PairConfig {
    /// A flow as in the paper, with packets of 1200 bytes: 1 s between reports (Tobe 1999, Sec. 6.1), 5 s of patience (ours).
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

/// How a sending end stands, and what its host lets it do.
#[derive(Clone, Debug, PartialEq)]
pub struct PairState {
    /// Which transport takes ADUs.
    pub period: Period,
    /// The rate of IP packets that was found or set last; `None` before there is one.
    pub rate: Option<Rate>,
    /// TCP's congestion window, in bytes of the stream.
    pub window: Size,
    /// Running periods that have begun.
    pub running_periods: u64,
    /// How TCP's window comes down at the beginning of a probing period.
    pub window_preset: WindowPreset,
    /// Whether the host lets TCP keep its window while RTP runs.
    pub idle_window: IdleWindow,
    /// The kernel's congestion control under TCP.
    pub congestion_control: String,
    /// Whether the receiver closed the connection, or was lost, before the flow had ended.
    pub ended_by_peer: bool,
}

/// Why a part of an ADU was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The ADU would be longer than any may be; it may be ended with what it has.
    #[error("an ADU of {found} bytes is too long; it may have {most}")]
    TooLong {
        /// Its length with this part.
        found: usize,
        /// The most there may be.
        most: usize,
    },
    /// The flow is over.
    #[error("the flow is over")]
    Closed(#[from] Closed),
}
