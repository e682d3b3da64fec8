use equipoise::units::{Size, Span};

use crate::Time;

/// State of a connection as reported by the kernel; counters start at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpState {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold, in segments; `None` before it is set.
    pub slow_start_threshold: Option<u32>,
    /// Segments sent and not acknowledged in order.
    pub in_flight: u32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub smoothed_round_trip: Option<Span>,
    /// Minimum round-trip time of the last minutes; `None` before the first measurement.
    pub min_round_trip: Option<Span>,
    /// Data segments sent, including retransmissions.
    pub sent: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// How often the retransmission timer expired; `None` if the kernel does not count it (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Data that the receiving application has read.
    pub delivered: Size,
    /// When the last data of a finite transfer was acknowledged.
    pub finished: Option<Time>,
}
