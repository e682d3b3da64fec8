use equipoise::units::Size;

/// Counters of one direction of a link. They count from the start of the link to the time of the query.
///
/// `entered + duplicated = left + lost + policed + dropped_full + dropped_early + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Number of packets that entered the link.
    pub entered: u64,
    /// IP bytes of the packets that entered.
    pub entered_bytes: Size,
    /// Number of packets that left the link, including duplicates. A [`FifoLink`](super::FifoLink) counts a packet as
    /// soon as it accepts the packet.
    pub left: u64,
    /// IP bytes of the packets that left.
    pub left_bytes: Size,
    /// Number of packets lost at random.
    pub lost: u64,
    /// Number of packets that a policer dropped.
    pub policed: u64,
    /// Number of packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Number of packets that a queue dropped to signal congestion, before it was full.
    pub dropped_early: u64,
    /// Number of packets that a queue marked to signal congestion.
    pub marked: u64,
    /// Number of copies made by duplication.
    pub duplicated: u64,
    /// Number of packets that left after a packet that entered later (RFC 4737, Sec. 3.3).
    pub reordered: u64,
    /// Number of packets in the queue and in flight.
    pub in_flight: u64,
    /// The usage of the bottleneck.
    pub usage: Usage,
}

impl LinkStats {
    /// Number of packets dropped by a policer, because a queue was full, or to signal congestion.
    pub const fn dropped(&self) -> u64 {
        self.policed + self.dropped_full + self.dropped_early
    }
}

/// The usage of a bottleneck since the link's start. Without a bottleneck, `utilisation` and `mean_queue` are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Share of the time in which a packet was waiting or in transmission, 0 to 1; `None` if no time has passed.
    pub utilisation: Option<f64>,
    /// Number of waiting packets, averaged over time; `None` if no time has passed.
    pub mean_queue: Option<f64>,
    /// Maximum number of packets that waited at the same time.
    pub longest_queue: usize,
}
