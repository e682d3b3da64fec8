use equipoise_path::link::LinkStats;
use serde::{Deserialize, Serialize};

/// The results of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// Share of the time in which a packet was waiting or in transmission, 0 to 1.
    pub utilisation: Option<f64>,
    /// Number of packets dropped by a full queue, by the queue's active queue management, or by a policer.
    pub packets_dropped: u64,
    /// Number of packets that left the link, or were still in its queue or in flight on it at the end.
    pub packets_forwarded: u64,
    /// Number of packets lost at random.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_lost: u64,
    /// Number of packets that the link's queue marked with ECN.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_marked: u64,
    /// Number of duplicates that the link created.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_duplicated: u64,
    /// Number of packets that left the link after a packet that had entered later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_reordered: u64,
    /// Mean number of queued packets over time.
    pub mean_queue_packets: Option<f64>,
    /// Maximum number of packets that were queued at once.
    pub max_queue_packets: u64,
    /// The link's state over time; omitted if the scenario does not
    /// [sample links](crate::scenario::Scenario::is_sampled).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<LinkSample>,
}

/// The state of a link between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// End of the time span that the sample covers, in seconds since the run's start.
    pub at_s: f64,
    /// Mean number of queued packets since the previous sample.
    pub queue_packets: Option<f64>,
    /// Share of the time since the previous sample in which a packet was waiting or in transmission, 0 to 1.
    pub utilisation: Option<f64>,
    /// Number of packets dropped since the run's start, by the queue or by a policer.
    pub packets_dropped: u64,
}

impl LinkResult {
    /// Returns the results of a link from its counters, without samples.
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

/// Whether a count is zero. JSON omits the counts that use this function if they are zero, as they are for most links.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
