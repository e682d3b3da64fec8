use equipoise::control::window::WindowSnapshot;
use equipoise::units::Span;

use crate::Time;

/// A sender's state and its counters since the start; packet counts are in full segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStats {
    /// Congestion window, in segments; the segments in flight if a controller sets no window.
    pub window: f64,
    /// Slow start threshold, in segments; `None` before the first loss.
    pub slow_start_threshold: Option<f64>,
    /// Segments sent and not cumulatively acknowledged.
    pub in_flight: u64,
    /// The last measured round-trip time.
    pub round_trip: Option<Span>,
    /// Smoothed round-trip time.
    pub smoothed_round_trip: Option<Span>,
    /// Least round-trip time.
    pub min_round_trip: Option<Span>,
    /// Segments sent, including retransmissions.
    pub sent: u64,
    /// Segments cumulatively acknowledged.
    pub acknowledged: u64,
    /// Retransmissions in fast recovery.
    pub resent_in_recovery: u64,
    /// Retransmissions after a timeout.
    pub resent_after_timeout: u64,
    /// Number of fast recoveries.
    pub recoveries: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// When the last data of a finite transfer was acknowledged.
    pub finished: Option<Time>,
    /// The window law's state.
    pub law: WindowSnapshot,
}
