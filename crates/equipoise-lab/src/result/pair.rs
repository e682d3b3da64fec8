use serde::{Deserialize, Serialize};

/// The results of a flow pair over both transports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// Mean rate at the receiver after the warm-up, in bit/s of IP packets.
    pub received_bps: Option<f64>,
    /// Application data units (ADUs) that the receiver delivered.
    pub adus: u64,
    /// ADUs with a lost part.
    pub adus_missing: u64,
    /// The periods that began, except the first probing period.
    pub periods: Vec<PairPeriod>,
    /// Settings of the kernel's TCP on the sending host; left out for simulated runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<PairHost>,
}

/// The sending host of a flow pair's TCP half.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairHost {
    /// Name of the kernel's congestion control.
    pub congestion_control: String,
    /// How the window is reduced at the beginning of a probing period: "set to what the law says" and so on.
    pub window: String,
    /// What happens to the window while TCP is idle.
    pub idle_window: String,
}

impl PairResult {
    /// Number of running periods that began.
    pub fn running_periods(&self) -> usize {
        self.periods.iter().filter(|period| period.transport == PairTransport::Rtp).count()
    }
}

impl PairHost {
    /// A description for a line below a run.
    pub fn words(&self) -> String {
        let Self { congestion_control, window, idle_window } = self;
        format!("TCP of the kernel under {congestion_control}, its window {window}, and {idle_window}")
    }
}

/// A period of a flow pair, at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairPeriod {
    /// When it began, in seconds since the run's start.
    pub at_s: f64,
    /// The transport of the data in the period.
    pub transport: PairTransport,
    /// Number of the first ADU in the period.
    pub first_adu: u64,
    /// For a period of RTP, its initial rate; for a period of TCP, the last rate of RTP before. In bit/s of IP packets.
    pub rate_bps: f64,
}

/// The transport of a flow pair's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairTransport {
    /// TCP, in a probing period.
    Tcp,
    /// RTP, in a running period.
    Rtp,
}
