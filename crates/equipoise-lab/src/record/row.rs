use serde::Serialize;

/// A control interval of a session that has just ended, for live display.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalRow {
    /// The flow's name.
    pub flow: String,
    /// Start, in seconds since the run's start.
    pub start_s: f64,
    /// End, in seconds since the run's start.
    pub end_s: f64,
    /// Sending rate, in bit/s of IP packets.
    pub rate_bps: f64,
    /// Mean one-way delay, in seconds.
    pub delay_mean_s: Option<f64>,
    /// 95th percentile of the one-way delay, in seconds.
    pub delay_p95_s: Option<f64>,
    /// Target delay, in seconds.
    pub target_s: Option<f64>,
    /// Packets sent.
    pub packets: u64,
    /// Of these, packets that have not arrived so far.
    pub packets_lost: u64,
    /// The reason for the last decision on the rate.
    pub reason: Option<String>,
}
