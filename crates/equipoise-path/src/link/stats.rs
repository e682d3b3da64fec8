use equipoise::units::Size;

/// A link's counters since its origin: of one direction.
///
/// `entered + duplicated = left + lost + policed + dropped_full + dropped_early + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets that came in.
    pub entered: u64,
    /// Their IP bytes.
    pub entered_bytes: Size,
    /// Packets that came out, duplicates included. A [`FifoLink`](super::FifoLink) counts what it accepts: that is going to.
    pub left: u64,
    /// Their IP bytes.
    pub left_bytes: Size,
    /// Packets lost by chance.
    pub lost: u64,
    /// Packets that a policer dropped.
    pub policed: u64,
    /// Packets that found the queue full.
    pub dropped_full: u64,
    /// Packets that a queue dropped to tell of congestion.
    pub dropped_early: u64,
    /// Packets that it marked in place of that.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets that left after one that had entered later (RFC 4737, Sec. 3.3).
    pub reordered: u64,
    /// Packets in the queue and on the way.
    pub in_flight: u64,
    /// How its bottleneck was used.
    pub usage: Usage,
}

impl LinkStats {
    /// Packets dropped for want of room, or to tell of congestion.
    pub const fn dropped(&self) -> u64 {
        self.policed + self.dropped_full + self.dropped_early
    }
}

/// How a bottleneck was used since its origin. Of none, nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Share of the time in which a packet was in service, 0 to 1; `None` before any time has passed.
    pub utilisation: Option<f64>,
    /// Waiting packets, averaged over time; `None` before any time has passed.
    pub mean_queue: Option<f64>,
    /// The most packets that ever waited at once.
    pub longest_queue: usize,
}
