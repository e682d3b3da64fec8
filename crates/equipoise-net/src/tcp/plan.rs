use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;

use crate::Time;

/// What the sending application does, and how often the connection's state is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpPlan {
    /// When it opens the connection.
    pub start: Time,
    /// When it stops sending; `None` for never.
    pub stop: Option<Time>,
    /// What it sends.
    pub supply: TcpSupply,
    /// Time between samples, and from [`origin`](Self::origin) to the first; above zero.
    pub sample_interval: Span,
    /// The time from which samples are counted.
    pub origin: Time,
}

/// The data that the application supplies to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpSupply {
    /// As much as TCP accepts.
    Unlimited,
    /// This amount.
    Transfer(Size),
    /// At this rate, from the start on.
    Rate(Rate),
    /// A number of full segments, each available from its own time on.
    Content(Content),
}
