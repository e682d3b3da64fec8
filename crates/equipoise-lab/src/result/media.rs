use serde::{Deserialize, Serialize};

/// What all flows that send media did together, and in each phase of the run (RFC 8867, Sec. 4.1; RFC 8868, Sec. 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediaResult {
    /// Media received after the warm-up over what they could use of their bottlenecks: the capacity or, where it is less, the sum of their
    /// greatest rates. `null` where nothing is narrow.
    pub utilisation: Option<f64>,
    /// How long media packets that arrived after the warm-up waited in queues; `null` if none arrived.
    pub queueing: Option<QueueingResult>,
    /// The same without those that arrived in the second after each fall of the capacity.
    pub calm_queueing: Option<QueueingResult>,
    /// Media packets lost, as a share of those sent in the whole run.
    pub loss: Option<f64>,
    /// Mean throughput of a media flow over that of a TCP connection, in the phases after the warm-up that have both.
    pub tcp_ratio: Option<f64>,
    /// IP bytes that came back to the senders of media over those that they sent, in the whole run; `null` if nothing came back.
    pub feedback_share: Option<f64>,
    /// The stretches between planned changes, in the order of time.
    pub phases: Vec<PhaseResult>,
}

/// How long packets waited in all queues of their way: without propagation, jitter and their own transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingResult {
    /// Mean, in seconds.
    pub mean_s: Option<f64>,
    /// 95th percentile, in seconds, to a hundredth.
    pub p95_s: Option<f64>,
    /// 99th percentile, in seconds, to a hundredth.
    pub p99_s: Option<f64>,
}

/// A stretch of a run in which nothing was planned to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Start, in seconds since the run's.
    pub start_s: f64,
    /// End, in seconds since the run's start.
    pub end_s: f64,
    /// What the bottlenecks leave to media and TCP, all together, in bit/s: their mean rate less the planned rate of background traffic.
    /// `null` where nothing is narrow.
    pub capacity_bps: Option<f64>,
    /// Media received over what they could use of their bottlenecks.
    pub utilisation: Option<f64>,
    /// How long the media packets that arrived in it waited in queues; `null` if none did.
    pub queueing: Option<QueueingResult>,
    /// The longest convergence time of its media flows, in seconds; `null` if one of them did not converge.
    pub convergence_s: Option<f64>,
    /// Jain's index of its media flows' throughputs (Jain 1984); `null` below two flows.
    pub jain: Option<f64>,
    /// Mean throughput of a media flow over that of a TCP connection; `null` without either.
    pub tcp_ratio: Option<f64>,
    /// The narrowest link of each way that media took.
    pub bottlenecks: Vec<BottleneckResult>,
    /// How evenly media flows shared, by the length of the windows; left out below two flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fairness: Vec<FairnessResult>,
    /// The flows that send media in it.
    pub flows: Vec<PhaseFlowResult>,
}

/// A narrowest link of media in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BottleneckResult {
    /// The link's name.
    pub link: String,
    /// Its mean rate less the planned rate of background traffic, in bit/s.
    pub capacity_bps: f64,
    /// Media received over it, as a share of the capacity or of the sum of their greatest rates if that is less.
    pub utilisation: Option<f64>,
}

/// How evenly media flows shared in windows of one length (RFC 8868, Sec. 3, metric 7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FairnessResult {
    /// Length of a window, in seconds.
    pub window_s: f64,
    /// Whole windows in the phase in which media arrived.
    pub windows: u64,
    /// Mean of Jain's index over the windows.
    pub jain: f64,
    /// Mean over the windows of the least flow's throughput over the greatest's.
    pub ratio: f64,
    /// Share of the windows in which this ratio is a third or more.
    pub fair_share: f64,
}

/// A media flow in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFlowResult {
    /// The flow's name.
    pub name: String,
    /// Mean rate of what arrived, in bit/s of IP packets.
    pub received_bps: f64,
    /// Mean sending rate in the last third of the phase, in bit/s of IP packets; `null` in phases below three seconds, as what follows.
    pub settled_bps: Option<f64>,
    /// From the start of the phase until its sending rate is stable, in seconds: from then on all means of a second lie within 20 % of the
    /// settled rate. `null` if that is in the last third only.
    pub convergence_s: Option<f64>,
    /// Coefficient of variation of the sending rate's means of a second in the last third.
    pub rate_cv: Option<f64>,
    /// Times that the sending rate went from half the settled rate or less to twice or more, or back, within 500 ms.
    pub oscillations: u64,
}
