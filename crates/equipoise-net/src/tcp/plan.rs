use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;

use crate::Time;

/// What the sending application of a TCP connection does, and how often the state of the connection is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpPlan {
    /// When the application opens the connection.
    pub start: Time,
    /// The latest time at which the application stops sending; `None` for no limit.
    pub stop: Option<Time>,
    /// The data that the application sends.
    pub supply: TcpSupply,
    /// Time between two samples; less than 1 ms counts as 1 ms.
    pub sample_interval: Span,
    /// Start of the first sample interval. The first sample is taken at the end of this interval.
    pub origin: Time,
}

/// The data that the application supplies to a TCP connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpSupply {
    /// As much data as TCP accepts.
    Unlimited,
    /// This amount of data, all available at the start.
    Transfer(Size),
    /// Data that becomes available at this rate, from the start on.
    Rate(Rate),
    /// Full segments, each with the time from which it is available.
    Content(Content),
}
