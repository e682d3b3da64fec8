use equipoise::control::window::WindowSnapshot;
use equipoise::units::Span;

use crate::Time;

/// A sender's state and its counters since its start; numbers of packets are of full segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStats {
    /// Congestion window, in segments; what is in flight if a controller leaves the window open.
    pub window: f64,
    /// Slow start threshold, in segments; `None` before the first loss.
    pub slow_start_threshold: Option<f64>,
    /// Segments sent and not acknowledged in order.
    pub in_flight: u64,
    /// The last round trip that was measured.
    pub round_trip: Option<Span>,
    /// Smoothed round-trip time.
    pub smoothed_round_trip: Option<Span>,
    /// Least round-trip time.
    pub min_round_trip: Option<Span>,
    /// Segments sent, retransmissions among them.
    pub sent: u64,
    /// Segments acknowledged in order.
    pub acknowledged: u64,
    /// Retransmissions in fast recovery.
    pub resent_in_recovery: u64,
    /// Retransmissions after the timer had run out.
    pub resent_after_timeout: u64,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Times that the retransmission timer ran out.
    pub timeouts: u64,
    /// When the last data of a finite transfer were acknowledged.
    pub finished: Option<Time>,
    /// The window law's own account.
    pub law: WindowSnapshot,
}
