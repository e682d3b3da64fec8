use serde::Serialize;

/// A row for display during a run. It describes a session's control interval that ended a short time ago.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalRow {
    /// The flow's name.
    pub flow: String,
    /// Start of the interval, in seconds since the run's start.
    pub start_s: f64,
    /// End of the interval, in seconds since the run's start.
    pub end_s: f64,
    /// Sending rate in the interval, in bit/s of IP packets.
    pub rate_bps: f64,
    /// Mean one-way delay of the packets sent in the interval, in seconds.
    pub delay_mean_s: Option<f64>,
    /// 95th percentile of the one-way delay, in seconds.
    pub delay_p95_s: Option<f64>,
    /// The flow's target delay, in seconds.
    pub target_s: Option<f64>,
    /// Number of packets sent in the interval.
    pub packets: u64,
    /// Number of packets sent in the interval that have not arrived so far.
    pub packets_lost: u64,
    /// The reason for the controller's last decision on the rate.
    pub reason: Option<String>,
}
