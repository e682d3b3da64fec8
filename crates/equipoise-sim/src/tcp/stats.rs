use equipoise::control::window::WindowSnapshot;
use equipoise::units::Span;

use crate::Time;

/// The state of a TCP sender, and its counters since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStats {
    /// Congestion window, in segments; if a controller sets no window, the number of segments in flight.
    pub window: f64,
    /// Slow start threshold, in segments; `None` until slow start ends for the first time. Always `None` if the sender
    /// has a controller instead of a window law.
    pub slow_start_threshold: Option<f64>,
    /// Number of segments that were sent and are not cumulatively acknowledged.
    pub in_flight: u64,
    /// The last measured round-trip time; `None` before the first measurement.
    pub round_trip: Option<Span>,
    /// Smoothed round-trip time.
    pub smoothed_round_trip: Option<Span>,
    /// Minimum measured round-trip time.
    pub min_round_trip: Option<Span>,
    /// Number of segments sent, including retransmissions.
    pub sent: u64,
    /// Number of segments that were cumulatively acknowledged.
    pub acknowledged: u64,
    /// Number of retransmissions in fast recovery.
    pub resent_in_recovery: u64,
    /// Number of retransmissions after a timeout.
    pub resent_after_timeout: u64,
    /// Number of fast recoveries.
    pub recoveries: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// When all data was acknowledged and no more data could follow; `None` before this time.
    pub finished: Option<Time>,
    /// The state of the window law.
    pub law: WindowSnapshot,
}
