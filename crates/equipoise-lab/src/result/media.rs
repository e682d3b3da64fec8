use serde::{Deserialize, Serialize};

/// The results of all flows that send media together, and in each phase of the run (RFC 8867, Sec. 4.1; RFC 8868,
/// Sec. 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediaResult {
    /// Media received after the warm-up, relative to the usable rate of their bottlenecks: the capacity, or the sum of
    /// the media's maximum rates if that is less. `null` without a bottleneck.
    pub utilisation: Option<f64>,
    /// Queueing delays of media packets that arrived after the warm-up; `null` if none arrived.
    pub queueing: Option<QueueingResult>,
    /// As `queueing`, but without packets that arrived in the first second after each fall of the capacity.
    pub calm_queueing: Option<QueueingResult>,
    /// Share of the media packets sent in the whole run that were lost.
    pub loss: Option<f64>,
    /// Ratio of a media flow's mean throughput to that of a TCP connection, in the phases after the warm-up that have
    /// both.
    pub tcp_ratio: Option<f64>,
    /// IP bytes received by the senders of media, relative to the IP bytes that they sent, in the whole run; `null` if
    /// they received nothing.
    pub feedback_share: Option<f64>,
    /// The time spans between planned changes, in order of time.
    pub phases: Vec<PhaseResult>,
}

/// Total queueing delay of packets on their route: without propagation, jitter and their own transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingResult {
    /// Mean, in seconds.
    pub mean_s: Option<f64>,
    /// 95th percentile, in seconds, with a resolution of one percent.
    pub p95_s: Option<f64>,
    /// 99th percentile, in seconds, with a resolution of one percent.
    pub p99_s: Option<f64>,
}

/// A time span of a run without planned changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Start, in seconds since the run's start.
    pub start_s: f64,
    /// End, in seconds since the run's start.
    pub end_s: f64,
    /// Capacity that the bottlenecks together leave to media and TCP, in bit/s: their mean rate less the planned rate
    /// of background traffic. `null` without a bottleneck.
    pub capacity_bps: Option<f64>,
    /// Media received, relative to the usable rate of their bottlenecks.
    pub utilisation: Option<f64>,
    /// Queueing delays of the media packets that arrived in the phase; `null` if none arrived.
    pub queueing: Option<QueueingResult>,
    /// The longest convergence time of its media flows, in seconds; `null` if one of them did not converge.
    pub convergence_s: Option<f64>,
    /// Jain's index of its media flows' throughputs (Jain 1984); `null` for fewer than two flows.
    pub jain: Option<f64>,
    /// Ratio of a media flow's mean throughput to that of a TCP connection; `null` if either is missing.
    pub tcp_ratio: Option<f64>,
    /// The bottleneck link of each route of media.
    pub bottlenecks: Vec<BottleneckResult>,
    /// Fairness between media flows, one entry for each length of the windows; left out for fewer than two flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fairness: Vec<FairnessResult>,
    /// The flows that send media in the phase.
    pub flows: Vec<PhaseFlowResult>,
}

/// A bottleneck of media in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BottleneckResult {
    /// The link's name.
    pub link: String,
    /// Its mean rate less the planned rate of background traffic, in bit/s.
    pub capacity_bps: f64,
    /// Media received over this link, relative to its capacity, or to the sum of the media's maximum rates if that is
    /// less.
    pub utilisation: Option<f64>,
}

/// Fairness between media flows in windows of one length (RFC 8868, Sec. 3, metric 7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FairnessResult {
    /// Length of a window, in seconds.
    pub window_s: f64,
    /// Number of whole windows in the phase in which media arrived.
    pub windows: u64,
    /// Mean of Jain's index over the windows.
    pub jain: f64,
    /// Ratio of the lowest to the highest flow throughput, as a mean over the windows.
    pub ratio: f64,
    /// Share of the windows in which this ratio is at least a third.
    pub fair_share: f64,
}

/// A media flow in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFlowResult {
    /// The flow's name.
    pub name: String,
    /// Mean rate at the receiver, in bit/s of IP packets.
    pub received_bps: f64,
    /// Mean sending rate in the last third of the phase, in bit/s of IP packets. In phases shorter than 3 s, this field
    /// and the next two are `null`.
    pub settled_bps: Option<f64>,
    /// Time from the start of the phase until its sending rate is stable, in seconds: from then on, all one-second
    /// means are within 20 % of the settled rate. `null` if it is stable only in the last third.
    pub convergence_s: Option<f64>,
    /// Coefficient of variation of the one-second means of the sending rate in the last third.
    pub rate_cv: Option<f64>,
    /// How often the sending rate rose from at most half to at least twice the settled rate, or fell back, within
    /// 500 ms.
    pub oscillations: u64,
}
