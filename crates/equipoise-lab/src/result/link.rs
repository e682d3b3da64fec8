use equipoise_path::link::LinkStats;
use serde::{Deserialize, Serialize};

/// The results of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// Share of the time in which a packet was in service, 0 to 1.
    pub utilisation: Option<f64>,
    /// Packets dropped because the queue was full, by its AQM or by a policer.
    pub packets_dropped: u64,
    /// Packets that left the link, or were still in flight on it.
    pub packets_forwarded: u64,
    /// Packets lost at random.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_lost: u64,
    /// Packets that its queue marked (ECN).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_marked: u64,
    /// Packet copies that it made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_duplicated: u64,
    /// Packets that left the link after a packet that had entered later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_reordered: u64,
    /// Mean number of queued packets over time.
    pub mean_queue_packets: Option<f64>,
    /// Maximum number of queued packets.
    pub max_queue_packets: u64,
    /// Its state over time, if the run samples links, as with TCP flows; left out otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<LinkSample>,
}

/// A link's state between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// End of the time span that the sample covers, in seconds since the run's start.
    pub at_s: f64,
    /// Mean number of queued packets since the last sample.
    pub queue_packets: Option<f64>,
    /// Share of the time since the last sample in which a packet was in service, 0 to 1.
    pub utilisation: Option<f64>,
    /// Packets dropped so far, for any reason.
    pub packets_dropped: u64,
}

impl LinkResult {
    /// The results from a link's counters.
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

/// Whether a count is zero and so left out of JSON, as it is for most links.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
