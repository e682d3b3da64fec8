use equipoise::units::Size;

/// Counters of one direction of a link, since its origin.
///
/// `entered + duplicated = left + lost + policed + dropped_full + dropped_early + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets that entered.
    pub entered: u64,
    /// IP bytes of the packets that entered.
    pub entered_bytes: Size,
    /// Packets that left, including duplicates. A [`FifoLink`](super::FifoLink) counts packets when it accepts them.
    pub left: u64,
    /// IP bytes of the packets that left.
    pub left_bytes: Size,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that a policer dropped.
    pub policed: u64,
    /// Packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Packets dropped by a queue to signal congestion.
    pub dropped_early: u64,
    /// Packets marked by a queue to signal congestion.
    pub marked: u64,
    /// Copies made by duplication.
    pub duplicated: u64,
    /// Packets that left after a packet that entered later (RFC 4737, Sec. 3.3).
    pub reordered: u64,
    /// Packets in the queue and in flight.
    pub in_flight: u64,
    /// The usage of the bottleneck.
    pub usage: Usage,
}

impl LinkStats {
    /// Packets dropped because a queue was full, by a policer, or to signal congestion.
    pub const fn dropped(&self) -> u64 {
        self.policed + self.dropped_full + self.dropped_early
    }
}

/// The usage of a bottleneck since its origin. Without a bottleneck, the shares are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Share of the time in which a packet was in service, 0 to 1; `None` before any time has passed.
    pub utilisation: Option<f64>,
    /// Waiting packets, averaged over time; `None` before any time has passed.
    pub mean_queue: Option<f64>,
    /// Maximum number of packets that waited at once.
    pub longest_queue: usize,
}
