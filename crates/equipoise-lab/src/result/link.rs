use equipoise_path::link::LinkStats;
use serde::{Deserialize, Serialize};

/// What one link did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// Share of the time in which a packet was in service, 0 to 1.
    pub utilisation: Option<f64>,
    /// Packets that found the queue full, or that it or a policer dropped to tell of congestion.
    pub packets_dropped: u64,
    /// Packets that came out, or were still under way.
    pub packets_forwarded: u64,
    /// Packets lost by chance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_lost: u64,
    /// Packets that its queue marked (ECN).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_marked: u64,
    /// Copies that it made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_duplicated: u64,
    /// Packets that came out behind one that had come in later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_reordered: u64,
    /// Waiting packets, averaged over time.
    pub mean_queue_packets: Option<f64>,
    /// The most packets that ever waited at once.
    pub max_queue_packets: u64,
    /// Its state over time, where the scenario has TCP flows; else left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<LinkSample>,
}

/// A link's state between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// End of the time that it stands for, in seconds since the run's start.
    pub at_s: f64,
    /// Waiting packets, averaged since the last sample.
    pub queue_packets: Option<f64>,
    /// Share of the time since the last sample in which a packet was in service, 0 to 1.
    pub utilisation: Option<f64>,
    /// Packets dropped so far, for whichever reason.
    pub packets_dropped: u64,
}

impl LinkResult {
    /// What a link's counters say.
    pub fn new(name: &str, stats: &LinkStats) -> Self {
        Self {
            name: name.to_owned(),
            utilisation: stats.usage.utilisation,
            packets_dropped: stats.dropped(),
            packets_forwarded: stats.left + stats.in_flight,
            packets_lost: stats.lost,
            packets_marked: stats.marked,
            packets_duplicated: stats.duplicated,
            packets_reordered: stats.reordered,
            mean_queue_packets: stats.usage.mean_queue,
            max_queue_packets: stats.usage.longest_queue as u64,
            samples: Vec::new(),
        }
    }
}

/// What is left out of JSON: counts of what most links do not do.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
