use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;

use crate::Time;

/// What the application at the sending end does, and how often one looks.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpPlan {
    /// When it opens the connection.
    pub start: Time,
    /// When it sends no more; `None` to go on.
    pub stop: Option<Time>,
    /// What it sends.
    pub supply: TcpSupply,
    /// The first look is this long after [`origin`](Self::origin); above zero.
    pub sample_interval: Span,
    /// Whence looks are counted.
    pub origin: Time,
}

/// What the application gives to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpSupply {
    /// As much as it takes.
    Unlimited,
    /// So much, and then no more.
    Transfer(Size),
    /// At a rate, from the start on.
    Rate(Rate),
    /// So many full segments and no more, each from its time on.
    Content(Content),
}
