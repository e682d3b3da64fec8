use equipoise::units::{Schedule, Span};
use equipoise_path::source::WebConfig;
use equipoise_sim::tcp::{DelayedAcks, LossRecovery, Supply};

use super::{ContentChoice, LawChoice};

/// A TCP connection: its window law, and the settings of its hosts. For web traffic, these settings apply to each
/// connection.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// The window law in the simulator; `None` if the connection can run only live.
    pub law: Option<LawChoice>,
    /// Name of the kernel's congestion control in a live run; `None` if it has the same name as the window law.
    pub kernel: Option<String>,
    /// How the window law is informed of the path's bandwidth.
    pub bandwidth: BandwidthSource,
    /// Time at which the application stops sending, since the run's start; `None` if it sends until the end of the run.
    pub stop: Option<Span>,
    /// The data that the application sends if it has no [`content`](Self::content).
    pub supply: Supply,
    /// The content that the application sends, with the time of each packet; `None` if `supply` determines the data.
    pub content: Option<ContentChoice>,
    /// The fetches of web traffic, each over its own connection; `None` for a single connection.
    pub web: Option<WebConfig>,
    /// How losses are detected and repaired.
    pub recovery: LossRecovery,
    /// The receive window, in segments; `None` if it never limits the sender.
    pub receive_window: Option<u64>,
    /// Settings of delayed acknowledgements; `None` if the receiver acknowledges each segment immediately.
    pub delayed_acks: Option<DelayedAcks>,
    /// Whether each of the first two duplicate acknowledgements lets the sender send a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the congestion window shrinks to its initial size after an idle time (RFC 5681, Sec. 4.1).
    pub idle_restart: bool,
    /// Whether the connection starts with a handshake before it carries data.
    pub handshake: bool,
    /// Minimum duration of the retransmission timeout.
    pub min_rto: Span,
}

impl TcpFlow {
    /// Name of the window law in the simulator; without a window law, name of the kernel's congestion control.
    pub fn name(&self) -> &str {
        self.law.as_ref().map_or_else(|| self.congestion_control(), |law| law.entry.name())
    }

    /// Name of the kernel's congestion control in a live run.
    pub fn congestion_control(&self) -> &str {
        // A valid scenario names a window law, a congestion control of the kernel, or both, so the result is never
        // empty.
        let of_law = || self.law.as_ref().map_or("", |law| law.entry.name());
        self.kernel.as_deref().unwrap_or_else(of_law)
    }
}

/// How a window law is informed of the bandwidth of its path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BandwidthSource {
    /// The window law is not informed of the bandwidth.
    Unknown,
    /// The simulator informs the window law of the bandwidth, with a configured error.
    Known {
        /// Interval at which the simulator informs the window law.
        interval: Span,
        /// Standard deviation of the error of the available bandwidth, relative to the rate of cross traffic (Kodama
        /// 2009, Eq. 12). The times of the schedule count from the run's start.
        noise: Schedule<f64>,
    },
    /// The bandwidth is measured from the connection's own packets (Kodama 2009, Sec. 2.2.1).
    Inline,
}
