use equipoise::units::{Size, Span};

use crate::Time;

/// The state of a TCP connection as reported by the kernel. Counters start when the connection is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpState {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold, in segments; `None` if the kernel has not set it.
    pub slow_start_threshold: Option<u32>,
    /// Number of segments that were sent and are not cumulatively acknowledged.
    pub in_flight: u32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub smoothed_round_trip: Option<Span>,
    /// Minimum round-trip time of the last minutes, as measured by the kernel; `None` before the first measurement.
    pub min_round_trip: Option<Span>,
    /// Number of data segments sent, including retransmissions.
    pub sent: u64,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// How often the retransmission timer has expired; `None` if the kernel does not count this (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Number of bytes that the receiving application has read.
    pub delivered: Size,
    /// When the last data of a finite transfer was acknowledged; `None` before.
    pub finished: Option<Time>,
}
