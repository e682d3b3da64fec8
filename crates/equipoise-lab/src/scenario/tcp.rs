use equipoise::units::{Schedule, Span};
use equipoise_path::source::WebConfig;
use equipoise_sim::tcp::{DelayedAcks, LossRecovery, Supply};

use super::{ContentChoice, LawChoice};

/// A TCP connection: a window law and the settings of the hosts. For web traffic, these are the settings of each
/// connection.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// The window law in the simulator; `None` for a connection that only runs live.
    pub law: Option<LawChoice>,
    /// The kernel's congestion control in a live run; `None` for the congestion control with the law's name.
    pub kernel: Option<String>,
    /// How the law learns its path's bandwidth.
    pub bandwidth: BandwidthSource,
    /// When the application stops sending; `None` if it sends until the end of the run.
    pub stop: Option<Span>,
    /// The data that the application sends if it has no [`content`](Self::content).
    pub supply: Supply,
    /// The content that the application sends, with the time of each packet.
    pub content: Option<ContentChoice>,
    /// The fetches of web traffic, each over a connection of its own; `None` for a single connection.
    pub web: Option<WebConfig>,
    /// How losses are detected and repaired.
    pub recovery: LossRecovery,
    /// The receive window, in segments; `None` for a window that never limits the sender.
    pub receive_window: Option<u64>,
    /// Settings of delayed acknowledgements, if the receiver delays any.
    pub delayed_acks: Option<DelayedAcks>,
    /// Each of the first two duplicate acknowledgements releases a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the window shrinks to its initial size after an idle time (RFC 5681, Sec. 4.1).
    pub idle_restart: bool,
    /// Whether a handshake precedes the data.
    pub handshake: bool,
    /// Minimum retransmission timeout.
    pub min_rto: Span,
}

impl TcpFlow {
    /// Name of the window law in the simulator, or of the kernel's congestion control without a law.
    pub fn name(&self) -> &str {
        self.law.as_ref().map_or_else(|| self.congestion_control(), |law| law.entry.name())
    }

    /// Name of the kernel's congestion control in a live run.
    pub fn congestion_control(&self) -> &str {
        // A scenario names at least one of law and kernel.
        let of_law = || self.law.as_ref().map_or("", |law| law.entry.name());
        self.kernel.as_deref().unwrap_or_else(of_law)
    }
}

/// How a window law learns its path's bandwidth.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BandwidthSource {
    /// The law does not know the bandwidth.
    Unknown,
    /// The law is told the bandwidth, with a configured error.
    Known {
        /// Time between two measurements.
        interval: Span,
        /// Standard deviation of the relative error of the cross traffic's rate, over the run (Kodama 2009, Eq. 12).
        noise: Schedule<f64>,
    },
    /// The connection's own packets measure the bandwidth (Kodama 2009, Sec. 2.2.1).
    Inline,
}
