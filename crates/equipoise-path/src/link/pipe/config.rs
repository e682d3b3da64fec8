use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use super::Capacity;
use crate::link::{
    Codel, DualPi2, FqCodel, Jitter, LinkConfig, LinkError, Loss, Pie, QueueLimit, Reordering, TokenBucket,
};
use equipoise::units::{Rate, Schedule, Share, Size, Span};

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

    /// Refuses parameters by which no queue could work, or which would cost more than the queue is worth.
    fn check(&self) -> Result<(), PipeError> {
        let discipline = self.name();
        let refuse = |what, found: String, least| Err(PipeError::Discipline { discipline, what, found, least });
        for (what, found, least) in self.times() {
            if found < least {
                return refuse(what, found.to_string(), least.to_string());
            }
        }
        match self {
            Self::FqCodel(fq) if !(1..=MOST_FLOWS).contains(&fq.flows) => {
                refuse("number of queues", fq.flows.to_string(), format!("1, and at most {MOST_FLOWS}"))
            }
            Self::FqCodel(fq) if fq.quantum < LEAST_QUANTUM => {
                refuse("quantum", fq.quantum.to_string(), LEAST_QUANTUM.to_string())
            }
            Self::DualPi2(dual) if !(dual.coupling >= 1.0 && dual.coupling.is_finite()) => {
                refuse("coupling", dual.coupling.to_string(), "1".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Its times by their names, and the least that each may be.
    fn times(&self) -> Vec<(&'static str, Span, Span)> {
        match self {
            Self::DropTail => Vec::new(),
            Self::Codel(codel) | Self::FqCodel(FqCodel { codel, .. }) => {
                vec![("target", codel.target, LEAST_TIME), ("interval", codel.interval, LEAST_TIME)]
            }
            Self::Pie(Pie { target, update, burst }) => {
                vec![
                    ("target", *target, LEAST_TIME),
                    ("update time", *update, LEAST_TIME),
                    ("burst", *burst, Span::ZERO),
                ]
            }
            Self::DualPi2(dual) => vec![
                ("target", dual.target, LEAST_TIME),
                ("longest round trip", dual.longest_round_trip, LEAST_TIME),
                ("threshold", dual.min_threshold, Span::ZERO),
                ("range", dual.range, Span::ZERO),
            ],
        }
    }
}

/// The least time that a queue may hold, or between two looks at it. Ours: each look costs time, too.
const LEAST_TIME: Span = Span::from_micros(100);
/// Queues of flows, at most: Linux's bound.
const MOST_FLOWS: u32 = 65_536;
/// A queue that may send less in its turn would be asked again and again for one packet. Ours.
const LEAST_QUANTUM: Size = Size::from_bytes(64);

/// A packet comes out later than it came in, so that what it causes comes after its cause.
pub(super) const LEAST_DELAY: Span = Span::from_nanos(1);

/// A bucket that holds less never lets an Ethernet frame's payload pass.
const LEAST_BURST: Size = Size::from_bytes(1500);

/// One direction of a path: what happens to packets, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Loss on the way to the bottleneck: what is lost takes no room there.
    pub loss: Schedule<Loss>,
    /// Who drops what exceeds a rate, before the bottleneck and without a queue; `None` for nobody.
    pub policer: Option<TokenBucket>,
    /// Share of the packets that come twice, one behind the other.
    pub duplication: Share,
    /// Room before the bottleneck.
    pub queue: QueueLimit,
    /// What the queue drops.
    pub discipline: Discipline,
    /// What the bottleneck carries.
    pub capacity: Capacity,
    /// Time from the end of a packet's service to its arrival; not negative. Where it becomes shorter nobody overtakes.
    pub delay: Schedule<Span>,
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
            loss: Loss::None.into(),
            policer: None,
            duplication: Share::NONE,
            queue: DEFAULT_QUEUE,
            discipline: Discipline::DropTail,
            capacity: Capacity::Unlimited,
            delay: Span::ZERO.into(),
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
    /// A parameter of a discipline is too small, or so large that nobody needs it.
    #[error("the {what} {found} of {discipline} cannot be; it must be at least {least}")]
    Discipline {
        /// Its name.
        discipline: &'static str,
        /// Which parameter.
        what: &'static str,
        /// What was asked for.
        found: String,
        /// What is possible.
        least: String,
    },
    /// A token bucket would let nothing pass.
    #[error("a {who} of {found} lets nothing pass; give it a rate above zero and a burst of {least} or more")]
    Bucket {
        /// Whose bucket.
        who: &'static str,
        /// What was asked for.
        found: String,
        /// The least burst.
        least: String,
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

/// A link on which nothing happens by chance.
impl From<LinkConfig> for PipeConfig {
    fn from(link: LinkConfig) -> Self {
        let LinkConfig { rate, propagation_delay, queue } = link;
        Self { capacity: Capacity::Rate(rate), delay: propagation_delay.into(), queue, ..Self::default() }
    }
}

impl PipeConfig {
    /// The same as a link on which nothing happens by chance, if it is one: [`FifoLink`](crate::link::FifoLink) is faster.
    pub fn as_link(&self) -> Option<LinkConfig> {
        let Capacity::Rate(rate) = &self.capacity else { return None };
        let link = LinkConfig { rate: rate.clone(), propagation_delay: self.delay.initial(), queue: self.queue };
        (Self::from(link.clone()) == *self).then_some(link)
    }

    /// The shortest time in which a packet can come through.
    pub fn least_delay(&self) -> Span {
        let jitter = match self.jitter {
            Jitter::None | Jitter::HalfNormal(_) => Span::ZERO,
            Jitter::Uniform(most) => most,
            Jitter::Normal(_) => return LEAST_DELAY,
        };
        let delay = self.delay.values().min().unwrap_or(Span::ZERO);
        let ahead = self.reordering.map_or(Span::ZERO, |reordering| -reordering.by).max(Span::ZERO);
        (delay - jitter - ahead).max(LEAST_DELAY)
    }

    /// Refuses what cannot be.
    pub(super) fn check(&self) -> Result<(), PipeError> {
        let jitter = match self.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Uniform(span) | Jitter::Normal(span) | Jitter::HalfNormal(span) => span,
        };
        let limit = match self.queue {
            QueueLimit::Time(limit) => limit,
            QueueLimit::Packets(_) | QueueLimit::Bytes(_) => Span::ZERO,
        };
        let delays = self.delay.values().map(|delay| ("delay", delay));
        for (what, span) in delays.chain([("jitter", jitter), ("queue's limit", limit)]) {
            if span < Span::ZERO {
                return Err(PipeError::Negative { what, found: span.to_string() });
            }
        }
        let shaper = match self.capacity {
            Capacity::Shaped(bucket) => Some(("shaper", bucket)),
            Capacity::Unlimited | Capacity::Rate(_) | Capacity::Trace(_) => None,
        };
        let policer = self.policer.map(|bucket| ("policer", bucket));
        for (who, TokenBucket { rate, burst }) in shaper.into_iter().chain(policer) {
            if rate == Rate::ZERO || burst < LEAST_BURST {
                let found = format!("{rate} with bursts of {burst}");
                return Err(PipeError::Bucket { who, found, least: LEAST_BURST.to_string() });
            }
        }
        let (discipline, found) = (self.discipline.name(), self.queue.to_string());
        self.discipline.check()?;
        match (self.discipline, self.queue) {
            (Discipline::DropTail, _) | (_, QueueLimit::Packets(_) | QueueLimit::Bytes(_)) => Ok(()),
            (_, QueueLimit::Time(_)) => Err(PipeError::TimeLimit { discipline, found }),
        }
    }
}
