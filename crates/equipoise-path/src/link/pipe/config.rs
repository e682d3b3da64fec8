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

/// A queue discipline: which packets a queue drops, or marks if they are ECN-capable ([`Queued`](crate::link::Queued)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Drops packets that arrive when the queue is full; never marks.
    #[default]
    DropTail,
    /// CoDel: drops packets at the head of the queue while the standing delay is too long. Like drop-tail, drops
    /// packets that arrive when the queue is full.
    Codel(Codel),
    /// One queue per flow, each managed by CoDel (FQ-CoDel).
    FqCodel(FqCodel),
    /// Drops arriving packets at random while the delay is long (PIE).
    Pie(Pie),
    /// Two queues (DualPI2). The low-latency queue has a short delay and fine-grained marks. It is for packets from
    /// senders that respond to such marks (L4S).
    DualPi2(DualPi2),
}

impl Discipline {
    /// The name of the discipline in commands and files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    /// Rejects parameters for which the queue would not work or would need too much computing time.
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

    /// The time parameters of the discipline: for each, its name, its value and the minimum allowed value.
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

/// Minimum of the time parameters of the queue disciplines, except for bursts, thresholds and ranges. Our choice: with
/// shorter times, PIE and DualPI2 would update their probability more often, and each update costs computing time.
const LEAST_TIME: Span = Span::from_micros(100);
/// Maximum number of queues of FQ-CoDel: the limit in Linux.
const MOST_FLOWS: u32 = 65_536;
/// Minimum quantum of FQ-CoDel. With a smaller quantum a queue would need very many turns to send one packet. Our
/// choice.
const LEAST_QUANTUM: Size = Size::from_bytes(64);

/// Minimum delay of a path: a packet must leave later than it entered, so that no effect happens before its cause.
pub(super) const LEAST_DELAY: Span = Span::from_nanos(1);

/// Minimum size of a token bucket: a policer with a smaller bucket would drop all packets that fill an Ethernet frame.
const LEAST_BURST: Size = Size::from_bytes(1500);

/// The configuration of one direction of a path. The impairments apply in the order of the fields.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Random loss before the bottleneck: lost packets do not use queue space or capacity.
    pub loss: Schedule<Loss>,
    /// A policer, which drops packets above a rate before the bottleneck, without a queue; `None` for no policer.
    pub policer: Option<TokenBucket>,
    /// Share of the packets that are duplicated; the copy directly follows the original.
    pub duplication: Share,
    /// The limit of the queue before the bottleneck.
    pub queue: QueueLimit,
    /// The queue discipline.
    pub discipline: Discipline,
    /// The capacity of the bottleneck.
    pub capacity: Capacity,
    /// Propagation delay: time from the end of a packet's transmission to its arrival; not negative. If the delay
    /// becomes shorter, packets are still not reordered.
    pub delay: Schedule<Span>,
    /// The random variation of the propagation delay.
    pub jitter: Jitter,
    /// Which packets are reordered; `None` for no reordering.
    pub reordering: Option<Reordering>,
}

/// The queue limit if none is configured. Our choice: the default queue length of Linux interfaces.
const DEFAULT_QUEUE: QueueLimit = QueueLimit::Packets(1000);

/// By default, a path has unlimited capacity, no delay and no impairments.
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
    /// A configured time is negative.
    #[error("the {what} {found} is negative; it must be zero or more")]
    Negative {
        /// The name of the negative time.
        what: &'static str,
        /// The configured value.
        found: String,
    },
    /// A parameter of a queue discipline is below its minimum, above its maximum, or not finite.
    #[error("the {what} {found} of {discipline} is not allowed; it must be at least {least}")]
    Discipline {
        /// The name of the discipline.
        discipline: &'static str,
        /// The name of the parameter.
        what: &'static str,
        /// The configured value.
        found: String,
        /// The allowed values, or their minimum.
        least: String,
    },
    /// The rate of a token bucket is zero, or the bucket is smaller than a packet that fills an Ethernet frame.
    #[error(
        "a {who} of {found} is not allowed; give it a rate above zero and bursts of {least} (a full packet) or more"
    )]
    Bucket {
        /// The use of the bucket, such as policer or shaper.
        who: &'static str,
        /// The configured rate and burst.
        found: String,
        /// The minimum allowed burst.
        least: String,
    },
    /// The queue limit is a waiting time, but with active queue management the waiting time is not known when a packet
    /// arrives.
    #[error("the queue's limit of {found} is a time, which {discipline} cannot keep; give packets or bytes")]
    TimeLimit {
        /// The name of the queue discipline.
        discipline: &'static str,
        /// The configured limit.
        found: String,
    },
}

/// Converts a link into a path without random impairments.
impl From<LinkConfig> for PipeConfig {
    fn from(link: LinkConfig) -> Self {
        let LinkConfig { rate, propagation_delay, queue } = link;
        Self { capacity: Capacity::Rate(rate), delay: propagation_delay.into(), queue, ..Self::default() }
    }
}

impl PipeConfig {
    /// Returns the equivalent link if the path has only a rate, a constant delay and a drop-tail queue: then the faster
    /// [`FifoLink`](crate::link::FifoLink) can replace the [`Pipe`](crate::link::Pipe).
    pub fn as_link(&self) -> Option<LinkConfig> {
        let Capacity::Rate(rate) = &self.capacity else { return None };
        let link = LinkConfig { rate: rate.clone(), propagation_delay: self.delay.initial(), queue: self.queue };
        (Self::from(link.clone()) == *self).then_some(link)
    }

    /// The minimum time from the entry of a packet to its departure from the path.
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
