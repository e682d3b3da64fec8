use serde::{Deserialize, Serialize};

/// The results of all flows that send media, taken together, for the whole run and for each phase (RFC 8867, Sec. 4.1;
/// RFC 8868, Sec. 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediaResult {
    /// Bytes of media received after the warm-up, relative to the bytes of media that the bottlenecks could carry. A
    /// bottleneck could carry the smaller of two values: its capacity minus the planned background traffic, and the sum
    /// of the media's maximum rates. `null` if no link limits the media.
    pub utilisation: Option<f64>,
    /// Queueing delays of media packets that arrived after the warm-up; `null` if none arrived.
    pub queueing: Option<QueueingResult>,
    /// Queueing delays as in `queueing`, but without packets that arrived within 1 s after a planned fall of the
    /// available capacity. The available capacity is the capacity that background traffic leaves. The falls of a
    /// delivery trace, and of a capacity with more than 64 steps, do not count as planned.
    pub calm_queueing: Option<QueueingResult>,
    /// Share of the media packets sent in the whole run that were lost.
    pub loss: Option<f64>,
    /// Ratio of a media flow's mean throughput to a TCP connection's mean throughput, in those phases after the warm-up
    /// that have both kinds of flows.
    pub tcp_ratio: Option<f64>,
    /// IP bytes of feedback that the senders of media received, relative to the IP bytes of media that they sent, in
    /// the whole run. `null` if no feedback arrived.
    pub feedback_share: Option<f64>,
    /// The results of each phase, in order of time. A phase is a time span of the run without planned changes.
    pub phases: Vec<PhaseResult>,
}

/// Statistics of the total queueing delay of packets on their route. It does not include propagation, jitter and the
/// transmission time of the packet itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingResult {
    /// Mean queueing delay, in seconds.
    pub mean_s: Option<f64>,
    /// 95th percentile of the queueing delay, in seconds, rounded to three significant digits or to a microsecond,
    /// whichever is coarser.
    pub p95_s: Option<f64>,
    /// 99th percentile of the queueing delay, in seconds, rounded to three significant digits or to a microsecond,
    /// whichever is coarser.
    pub p99_s: Option<f64>,
}

/// The results of a phase. A phase is a time span of a run, and contains no planned change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Start of the phase, in seconds since the run's start.
    pub start_s: f64,
    /// End of the phase, in seconds since the run's start.
    pub end_s: f64,
    /// Sum of the bottlenecks' mean capacities in the phase, minus the planned rate of background traffic, in bit/s.
    /// `null` if no link limits the media.
    pub capacity_bps: Option<f64>,
    /// Bytes of media received in the phase, relative to what the media's bottlenecks could carry.
    pub utilisation: Option<f64>,
    /// Queueing delays of the media packets that arrived in the phase; `null` if none arrived.
    pub queueing: Option<QueueingResult>,
    /// The longest convergence time of the phase's media flows, in seconds; `null` if one of them did not converge.
    pub convergence_s: Option<f64>,
    /// Jain's index of the throughputs of the phase's media flows (Jain 1984); `null` for fewer than two flows, or if
    /// no media arrived.
    pub jain: Option<f64>,
    /// Ratio of a media flow's mean throughput to a TCP connection's mean throughput; `null` if the phase has no media
    /// flow or no TCP connection.
    pub tcp_ratio: Option<f64>,
    /// The bottleneck links of the routes of media. A link that is the bottleneck of several routes has one entry.
    pub bottlenecks: Vec<BottleneckResult>,
    /// Fairness between media flows, with one entry for each window length; omitted for fewer than two flows. There is
    /// no entry for a window length if no media arrived in any whole window of that length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fairness: Vec<FairnessResult>,
    /// The flows that send media in the phase.
    pub flows: Vec<PhaseFlowResult>,
}

/// The results of one bottleneck link on the routes of media, in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BottleneckResult {
    /// The link's name.
    pub link: String,
    /// Mean capacity of the link in the phase minus the planned rate of background traffic, in bit/s.
    pub capacity_bps: f64,
    /// Bytes of media received over this link, divided by the bytes of media that the link could carry. The link could
    /// carry the smaller of two rates: `capacity_bps`, and the sum of the media's maximum rates.
    pub utilisation: Option<f64>,
}

/// Fairness between media flows in windows of one length (RFC 8868, Sec. 3, metric 7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FairnessResult {
    /// Length of a window, in seconds.
    pub window_s: f64,
    /// Number of windows of `window_s` that lie wholly within the phase and in which media arrived.
    pub windows: u64,
    /// Mean of Jain's index over the windows.
    pub jain: f64,
    /// Ratio of the lowest to the highest flow throughput in a window, averaged over the windows of the phase.
    pub ratio: f64,
    /// Share of the time windows in which the slowest flow has at least a third of the throughput of the fastest flow.
    pub fair_share: f64,
}

/// The results of one media flow in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFlowResult {
    /// The flow's name.
    pub name: String,
    /// Mean rate at the receiver in the phase, in bit/s of IP packets.
    pub received_bps: f64,
    /// The settled rate: the mean sending rate in the last third of the phase, in bit/s of IP packets. In phases
    /// shorter than 3 s, `settled_bps`, `convergence_s` and `rate_cv` are `null`.
    pub settled_bps: Option<f64>,
    /// Time from the start of the phase until the sending rate is stable, in seconds. From that time on, all one-second
    /// means of the rate are within 20 % of the settled rate. `null` if the rate becomes stable only in the last third
    /// of the phase.
    pub convergence_s: Option<f64>,
    /// Coefficient of variation of the one-second means of the sending rate in the last third of the phase.
    pub rate_cv: Option<f64>,
    /// Number of large swings of the sending rate within 500 ms: from at most half of
    /// [`settled_bps`](Self::settled_bps) to at least twice `settled_bps`, or in the other direction.
    pub oscillations: u64,
}
