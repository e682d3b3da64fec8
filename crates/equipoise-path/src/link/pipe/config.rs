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

/// Which packets a queue drops, or marks if they are ECN-capable ([`Queued`](crate::link::Queued)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Packets that arrive when the queue is full; no marks.
    #[default]
    DropTail,
    /// Also packets at the head of the queue while there is a standing delay.
    Codel(Codel),
    /// CoDel for each flow in its own queue.
    FqCodel(FqCodel),
    /// Packets at random on arrival, while the delay is long.
    Pie(Pie),
    /// Two queues: one has a short delay and fine-grained marks, for packets that support them (L4S).
    DualPi2(DualPi2),
}

impl Discipline {
    /// The name in commands and files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    /// Rejects parameters with which a queue could not work, or would be too expensive.
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

    /// The times of the discipline with their names, and the minimum of each.
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

/// Minimum target delay and minimum time between two updates. Our choice: each update costs computing time.
const LEAST_TIME: Span = Span::from_micros(100);
/// Maximum number of flow queues: Linux's limit.
const MOST_FLOWS: u32 = 65_536;
/// Minimum quantum. With a smaller quantum a queue would need very many turns for one packet. Our choice.
const LEAST_QUANTUM: Size = Size::from_bytes(64);

/// A packet leaves later than it entered, so that effects follow their cause.
pub(super) const LEAST_DELAY: Span = Span::from_nanos(1);

/// Minimum burst: a smaller bucket never passes a full Ethernet payload.
const LEAST_BURST: Size = Size::from_bytes(1500);

/// One direction of a path; the impairments apply in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Loss before the bottleneck: lost packets take no room there.
    pub loss: Schedule<Loss>,
    /// A policer, which drops packets above a rate before the bottleneck, without a queue; `None` for no policer.
    pub policer: Option<TokenBucket>,
    /// Share of the packets that are duplicated, back to back.
    pub duplication: Share,
    /// Size of the queue before the bottleneck.
    pub queue: QueueLimit,
    /// The queue discipline.
    pub discipline: Discipline,
    /// The capacity of the bottleneck.
    pub capacity: Capacity,
    /// Time from the end of a packet's service to its arrival; not negative. A delay that becomes shorter does not
    /// cause reordering.
    pub delay: Schedule<Span>,
    /// The variation of the delay.
    pub jitter: Jitter,
    /// Which packets are reordered; `None` for no reordering.
    pub reordering: Option<Reordering>,
}

/// Our choice: the default queue length of Linux interfaces.
const DEFAULT_QUEUE: QueueLimit = QueueLimit::Packets(1000);

/// A path without impairments.
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

/// Why a path configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PipeError {
    /// The bottleneck cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A time is negative.
    #[error("the {what} {found} is negative; it must be zero or more")]
    Negative {
        /// Which time.
        what: &'static str,
        /// The value that was given.
        found: String,
    },
    /// A parameter of a discipline is too small or too large.
    #[error("the {what} {found} of {discipline} is not allowed; it must be at least {least}")]
    Discipline {
        /// The name of the discipline.
        discipline: &'static str,
        /// Which parameter.
        what: &'static str,
        /// The value that was given.
        found: String,
        /// The allowed values.
        least: String,
    },
    /// A token bucket would pass no packet.
    #[error("a {who} of {found} lets nothing pass; give it a rate above zero and a burst of {least} or more")]
    Bucket {
        /// The owner of the bucket.
        who: &'static str,
        /// The value that was given.
        found: String,
        /// The minimum burst.
        least: String,
    },
    /// With active queue management the waiting time is not known on arrival, so it cannot be limited.
    #[error("the queue's limit of {found} is a time, which {discipline} cannot keep; give packets or bytes")]
    TimeLimit {
        /// The discipline.
        discipline: &'static str,
        /// The value that was given.
        found: String,
    },
}

/// A link without random impairments.
impl From<LinkConfig> for PipeConfig {
    fn from(link: LinkConfig) -> Self {
        let LinkConfig { rate, propagation_delay, queue } = link;
        Self { capacity: Capacity::Rate(rate), delay: propagation_delay.into(), queue, ..Self::default() }
    }
}

impl PipeConfig {
    /// The path as a link without random impairments, if it is one: [`FifoLink`](crate::link::FifoLink) is faster.
    pub fn as_link(&self) -> Option<LinkConfig> {
        let Capacity::Rate(rate) = &self.capacity else { return None };
        let link = LinkConfig { rate: rate.clone(), propagation_delay: self.delay.initial(), queue: self.queue };
        (Self::from(link.clone()) == *self).then_some(link)
    }

    /// The minimum time for a packet to pass the path.
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

    /// Rejects invalid configurations.
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
