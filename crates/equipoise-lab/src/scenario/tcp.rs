use equipoise::control::{Parameters, window};
use equipoise::units::{Schedule, Span};
use equipoise_sim::tcp::{DelayedAcks, LossRecovery, Supply};

/// A TCP connection: a window law and the hosts around it.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// The window law.
    pub law: LawChoice,
    /// How the law comes to know its path's bandwidth.
    pub bandwidth: BandwidthSource,
    /// When the application stops sending; `None` to go on to the end of the run.
    pub stop: Option<Span>,
    /// What the application sends.
    pub supply: Supply,
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

/// A window law of the catalogue with values for its parameters.
#[derive(Clone, Debug)]
pub struct LawChoice {
    /// The entry in the catalogue.
    pub entry: &'static window::WindowEntry,
    /// A value for every parameter.
    pub parameters: Parameters,
}

/// How a window law comes to know its path's bandwidth.
#[derive(Clone, Debug, PartialEq)]
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
