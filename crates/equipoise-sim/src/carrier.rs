use equipoise::units::{Share, Size, Span};
use equipoise_path::link::{FifoLink, LinkStats, Pipe, PipeConfig, PipeError};

use crate::network::Packet;
use crate::observer::{SimClock, Time};

/// The model that computes when packets leave a link.
#[expect(clippy::large_enum_variant, reason = "nearly all links are of the larger kind")]
pub(crate) enum Carrier {
    /// A link with only a rate, a constant delay and a drop-tail queue. A packet's departure time is known when the
    /// packet arrives, so no packets are stored.
    Fifo(FifoLink<SimClock>),
    /// A link with impairments, a trace or active queue management.
    Pipe { pipe: Box<Pipe<SimClock, Packet>>, least_delay: Span, offered: Size },
}

impl Carrier {
    pub(crate) fn new(config: PipeConfig, seed: u64) -> Result<Self, PipeError> {
        if let Some(link) = config.as_link() {
            return Ok(Self::Fifo(FifoLink::new(link, Time::ZERO)?));
        }
        let least_delay = config.least_delay();
        let pipe = Box::new(Pipe::new(config, Time::ZERO, seed)?);
        Ok(Self::Pipe { pipe, least_delay, offered: Size::ZERO })
    }

    /// The time up to which all arrivals must be known before the next stored packet can be processed; `None` if no
    /// packet is stored.
    pub(crate) fn next_known(&self) -> Option<Time> {
        match self {
            Self::Fifo(_) => None,
            Self::Pipe { pipe, .. } => pipe.next_known(),
        }
    }

    /// The minimum time from a packet's arrival at the link to its departure.
    pub(crate) fn least_delay(&self) -> Span {
        match self {
            Self::Fifo(fifo) => fifo.config().propagation_delay,
            Self::Pipe { least_delay, .. } => *least_delay,
        }
    }

    /// Whether the link may duplicate packets.
    pub(crate) fn makes_copies(&self) -> bool {
        match self {
            Self::Fifo(_) => false,
            Self::Pipe { pipe, .. } => pipe.config().duplication != Share::NONE,
        }
    }

    /// Total IP bytes that have arrived at the link, including lost and dropped packets.
    pub(crate) const fn offered(&self) -> Size {
        match self {
            Self::Fifo(fifo) => fifo.offered(),
            Self::Pipe { offered, .. } => *offered,
        }
    }

    pub(crate) fn stats(&self, now: Time) -> LinkStats {
        match self {
            Self::Fifo(fifo) => fifo.stats(now),
            Self::Pipe { pipe, .. } => pipe.stats(now),
        }
    }
}
