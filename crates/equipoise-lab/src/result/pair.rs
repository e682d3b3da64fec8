use serde::{Deserialize, Serialize};

/// The results of a flow pair, for both transports together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// Mean rate of both transports together, measured at the receiver after the warm-up, in bit/s of IP packets.
    pub received_bps: Option<f64>,
    /// Number of application data units (ADUs) that the receiver delivered to the application.
    pub adus: u64,
    /// Number of ADUs of which some part was lost.
    pub adus_missing: u64,
    /// The probing periods (TCP) and running periods (RTP) of the pair in order of time, without the first probing
    /// period.
    pub periods: Vec<PairPeriod>,
    /// Settings of the kernel's TCP on the sending host; omitted for simulated runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<PairHost>,
}

/// Settings of the host that sends the TCP half of a flow pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairHost {
    /// Name of the kernel's congestion control.
    pub congestion_control: String,
    /// What happens to the congestion window at the beginning of a probing period, in words.
    pub window: String,
    /// What happens to the congestion window while TCP is idle, in words.
    pub idle_window: String,
}

impl PairResult {
    /// Returns the number of running periods that started.
    pub fn running_periods(&self) -> usize {
        self.periods.iter().filter(|period| period.transport == PairTransport::Rtp).count()
    }
}

impl PairHost {
    /// Returns a description of the settings as one line of text.
    pub fn words(&self) -> String {
        let Self { congestion_control, window, idle_window } = self;
        format!("TCP of the kernel under {congestion_control}, its window {window}, and {idle_window}")
    }
}

/// The start of a probing period or a running period of a flow pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairPeriod {
    /// Time at which the period started, in seconds since the run's start.
    pub at_s: f64,
    /// The transport that carries the pair's data in this period.
    pub transport: PairTransport,
    /// Number of the first ADU that was sent in this period.
    pub first_adu: u64,
    /// For an RTP period, its initial rate. For a TCP period, the last rate of the previous RTP period. In bit/s of IP
    /// packets.
    pub rate_bps: f64,
}

/// The transport that carries a flow pair's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairTransport {
    /// TCP, in a probing period.
    Tcp,
    /// RTP, in a running period.
    Rtp,
}
