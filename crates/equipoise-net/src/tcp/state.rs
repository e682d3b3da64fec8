use equipoise::units::{Size, Span};

use crate::Time;

/// A connection at a moment, by the kernel's account; counters are since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpState {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold, in segments; `None` before there is one.
    pub slow_start_threshold: Option<u32>,
    /// Segments sent and not acknowledged in order.
    pub in_flight: u32,
    /// Smoothed round-trip time; `None` before one is measured.
    pub smoothed_round_trip: Option<Span>,
    /// Least round-trip time of the last minutes; `None` before one is measured.
    pub min_round_trip: Option<Span>,
    /// Segments with data sent, retransmissions among them.
    pub sent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// How often the retransmission timer ran out; `None` where the kernel does not count it (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Data that the receiving application has read.
    pub delivered: Size,
    /// When the last data of a finite transfer were acknowledged.
    pub finished: Option<Time>,
}
