use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use crate::link::{Codel, DeliveryTrace, DualPi2, FqCodel, Jitter, LinkError, Loss, Pie, QueueLimit, Reordering};
use equipoise::units::{Rate, Schedule, Share, Span};

/// How much the bottleneck carries. All counts are of IP packets: header included, link-layer framing left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// Everything at once: no queue.
    #[default]
    Unlimited,
    /// A rate that is constant or changes in steps; it may be zero for a while (an outage), not for ever.
    Rate(Schedule<Rate>),
    /// The opportunities of a recorded trace.
    Trace(DeliveryTrace),
}

/// Which packets a queue drops, or marks in place of that where their ends understand marks ([`Queued`](crate::link::Queued)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Those that come when it is full; none is marked.
    #[default]
    DropTail,
    /// Those too, and at its head those that keep the delay standing.
    Codel(Codel),
    /// The same for each flow in a queue of its own.
    FqCodel(FqCodel),
    /// Those that come while the delay is long, by chance.
    Pie(Pie),
    /// Two queues: one with a short delay, and marks in fine grains, for packets that want these (L4S).
    DualPi2(DualPi2),
}

impl Discipline {
    /// The name, as commands and files have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    /// Its times, none of which can be zero or negative, by their names.
    fn times(&self) -> Vec<(&'static str, Span)> {
        match self {
            Self::DropTail => Vec::new(),
            Self::Codel(codel) | Self::FqCodel(FqCodel { codel, .. }) => {
                vec![("target", codel.target), ("interval", codel.interval)]
            }
            Self::Pie(pie) => vec![("target", pie.target), ("update time", pie.update)],
            Self::DualPi2(dual) => {
                vec![("target", dual.target), ("longest round trip", dual.longest_round_trip), ("range", dual.range)]
            }
        }
    }
}

/// One direction of a path: what happens to packets, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Loss on the way to the bottleneck: what is lost takes no room there.
    pub loss: Loss,
    /// Share of the packets that come twice, one behind the other.
    pub duplication: Share,
    /// Room before the bottleneck.
    pub queue: QueueLimit,
    /// What the queue drops.
    pub discipline: Discipline,
    /// What the bottleneck carries.
    pub capacity: Capacity,
    /// Time from the end of a packet's service to its arrival; not negative.
    pub delay: Span,
    /// How that time varies.
    pub jitter: Jitter,
    /// Who leaves the order; `None` for nobody.
    pub reordering: Option<Reordering>,
}

/// Ours: as long as the default of Linux's interfaces.
const DEFAULT_QUEUE: QueueLimit = QueueLimit::Packets(1000);

/// A path on which nothing happens.
impl Default for PipeConfig {
    fn default() -> Self {
        Self {
            loss: Loss::None,
            duplication: Share::NONE,
            queue: DEFAULT_QUEUE,
            discipline: Discipline::DropTail,
            capacity: Capacity::Unlimited,
            delay: Span::ZERO,
            jitter: Jitter::None,
            reordering: None,
        }
    }
}

/// Why there can be no such path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PipeError {
    /// The bottleneck cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A time is negative that cannot be.
    #[error("the {what} {found} is negative; it must be zero or more")]
    Negative {
        /// Which time.
        what: &'static str,
        /// What was asked for.
        found: String,
    },
    /// A parameter of a discipline is zero or negative.
    #[error("the {what} {found} of {discipline} is not above zero")]
    Discipline {
        /// Its name.
        discipline: &'static str,
        /// Which parameter.
        what: &'static str,
        /// What was asked for.
        found: String,
    },
    /// In a queue that manages itself nobody can say on arrival how long a packet will wait.
    #[error("the queue's limit of {found} is a time, which {discipline} cannot keep; give packets or bytes")]
    TimeLimit {
        /// The discipline.
        discipline: &'static str,
        /// What was asked for.
        found: String,
    },
}

impl PipeConfig {
    /// The shortest time in which a packet can come through.
    pub fn least_delay(&self) -> Span {
        let jitter = match self.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Uniform(most) => most,
            Jitter::Normal(_) => return Span::ZERO,
        };
        let ahead = self.reordering.map_or(Span::ZERO, |reordering| -reordering.by).max(Span::ZERO);
        (self.delay - jitter - ahead).max(Span::ZERO)
    }

    /// Refuses what cannot be.
    pub(super) fn check(&self) -> Result<(), PipeError> {
        let jitter = match self.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Uniform(span) | Jitter::Normal(span) => span,
        };
        let limit = match self.queue {
            QueueLimit::Time(limit) => limit,
            QueueLimit::Packets(_) | QueueLimit::Bytes(_) => Span::ZERO,
        };
        for (what, span) in [("delay", self.delay), ("jitter", jitter), ("queue's limit", limit)] {
            if span < Span::ZERO {
                return Err(PipeError::Negative { what, found: span.to_string() });
            }
        }
        let (discipline, found) = (self.discipline.name(), self.queue.to_string());
        for (what, span) in self.discipline.times() {
            if span <= Span::ZERO {
                return Err(PipeError::Discipline { discipline, what, found: span.to_string() });
            }
        }
        if let Discipline::DualPi2(DualPi2 { coupling, .. }) = self.discipline
            && !(coupling > 0.0 && coupling.is_finite())
        {
            return Err(PipeError::Discipline { discipline, what: "coupling", found: coupling.to_string() });
        }
        match (self.discipline, self.queue) {
            (Discipline::DropTail, _) | (_, QueueLimit::Packets(_) | QueueLimit::Bytes(_)) => Ok(()),
            (_, QueueLimit::Time(_)) => Err(PipeError::TimeLimit { discipline, found }),
        }
    }
}
