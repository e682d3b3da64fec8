use equipoise::units::{Schedule, Span};
use equipoise_path::source::WebConfig;
use equipoise_sim::tcp::{DelayedAcks, LossRecovery, Supply};

use super::{ContentChoice, LawChoice};

/// A TCP connection: a window law and the hosts around it. Of web traffic, each of its connections.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// The window law of the simulator; `None` for a connection that is live only.
    pub law: Option<LawChoice>,
    /// The congestion control of the kernel that a live run has in its place, if not the one of the law's name.
    pub kernel: Option<String>,
    /// How the law comes to know its path's bandwidth.
    pub bandwidth: BandwidthSource,
    /// When the application stops sending; `None` to go on to the end of the run.
    pub stop: Option<Span>,
    /// What the application sends, where it has no [`content`](Self::content).
    pub supply: Supply,
    /// What the application has to send, with the time of each packet.
    pub content: Option<ContentChoice>,
    /// What is fetched, in the place of one connection each over one of its own.
    pub web: Option<WebConfig>,
    /// How lost segments are told and sent again.
    pub recovery: LossRecovery,
    /// Segments that the receiver has room for; `None` for a window that limits nobody.
    pub receive_window: Option<u64>,
    /// Whether an acknowledgement may wait.
    pub delayed_acks: Option<DelayedAcks>,
    /// The first two duplicate acknowledgements let a new segment out each (RFC 3042).
    pub limited_transmit: bool,
    /// The window shrinks to its initial size after idleness (RFC 5681, Sec. 4.1).
    pub idle_restart: bool,
    /// A SYN and its answer come before the data.
    pub handshake: bool,
    /// Least retransmission timeout.
    pub min_rto: Span,
}

impl TcpFlow {
    /// Name of the law that the simulator runs, or else of what a live run has.
    pub fn name(&self) -> &str {
        self.law.as_ref().map_or_else(|| self.congestion_control(), |law| law.entry.name())
    }

    /// Name of the kernel's congestion control in a live run.
    pub fn congestion_control(&self) -> &str {
        // One of both is given.
        let of_law = || self.law.as_ref().map_or("", |law| law.entry.name());
        self.kernel.as_deref().unwrap_or_else(of_law)
    }
}

/// How a window law comes to know its path's bandwidth.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BandwidthSource {
    /// It does not.
    Unknown,
    /// The world tells it, with an error made to measure.
    Known {
        /// Time between two measurements.
        interval: Span,
        /// Standard deviation of the relative error of what others use, over the run (Kodama 2009, Eq. 12).
        noise: Schedule<f64>,
    },
    /// The connection's own packets measure it (Kodama 2009, Sec. 2.2.1).
    Inline,
}
