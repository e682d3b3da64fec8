use std::net::SocketAddr;

use equipoise::units::{Rate, Schedule, Span};
use equipoise_path::link::{Capacity, Discipline, Jitter, Loss, PipeConfig, QueueLimit, TokenBucket};
use serde::{Deserialize, Serialize};

/// Between what the path lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ends {
    /// Clients of UDP, which send to `listen`, and a target.
    Udp {
        /// Where clients send to.
        listen: SocketAddr,
        /// Where their datagrams go.
        target: SocketAddr,
    },
    /// Two Ethernet interfaces.
    Interfaces {
        /// The one from which forward leads.
        first: String,
        /// The one to which it leads.
        second: String,
    },
    /// Two TUN devices, which are made where they are not there.
    Tun {
        /// The one from which forward leads.
        first: String,
        /// The one to which it leads.
        second: String,
    },
}

/// One direction's configuration, as JSON has it: all of what is in effect, defaults included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSettings {
    /// Who drops what exceeds a rate before it, if somebody does.
    pub policer: Option<BucketSettings>,
    /// What the bottleneck carries.
    pub capacity: CapacitySettings,
    /// Room before it.
    pub queue: QueueSettings,
    /// What the queue drops.
    pub discipline: DisciplineSettings,
    /// Propagation delay, in seconds.
    pub delay_s: f64,
    /// How it varies.
    pub jitter: JitterSettings,
    /// Loss by chance.
    pub loss: LossSettings,
    /// Share of the packets that come twice.
    pub duplicate_share: f64,
    /// Share of the packets that leave the order.
    pub reorder_share: f64,
    /// How much later these arrive, in seconds; negative for sooner. `None` where none do.
    pub reorder_by_s: Option<f64>,
}

/// What a bottleneck carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapacitySettings {
    /// Everything at once.
    Unlimited,
    /// A rate of IP packets, in steps.
    Rate {
        /// The first is at 0.
        steps: Vec<RateStep>,
    },
    /// A rate with bursts.
    Shaped(BucketSettings),
    /// A recorded trace, repeated.
    Trace {
        /// Its mean rate, in bit/s.
        mean_rate_bps: u64,
        /// How long it is, in seconds.
        length_s: f64,
    },
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketSettings {
    /// At which it fills, in bit/s.
    pub rate_bps: u64,
    /// What it holds, in bytes.
    pub burst_bytes: u64,
}

impl From<TokenBucket> for BucketSettings {
    fn from(TokenBucket { rate, burst }: TokenBucket) -> Self {
        Self { rate_bps: rate.as_bps(), burst_bytes: burst.as_bytes() }
    }
}

/// A rate and since when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Since the start, in seconds.
    pub time_s: f64,
    /// In bit/s.
    pub rate_bps: u64,
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSettings {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
    /// Nobody for longer than this, in seconds.
    TimeS(f64),
}

/// What a queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DisciplineSettings {
    /// What comes when it is full.
    Droptail,
    /// That, and what keeps the delay standing.
    Codel {
        /// The delay that may stand, in seconds.
        target_s: f64,
        /// For how long, in seconds.
        interval_s: f64,
    },
    /// The same for each flow in a queue of its own.
    FqCodel {
        /// The delay that may stand, in seconds.
        target_s: f64,
        /// For how long, in seconds.
        interval_s: f64,
        /// How many queues there are.
        flows: u32,
        /// What each may send in its turn, in bytes.
        quantum_bytes: u64,
    },
    /// What comes while the delay is long, by chance.
    Pie {
        /// The delay that it holds, in seconds.
        target_s: f64,
        /// Time between two looks at it, in seconds.
        update_s: f64,
        /// For so long a burst may fill an idle queue, in seconds.
        burst_s: f64,
    },
    /// Two queues, one of low latency.
    Dualpi2 {
        /// The delay that the classic queue is held at, in seconds.
        target_s: f64,
        /// The longest usual round trip, in seconds.
        longest_round_trip_s: f64,
        /// By which the low-latency queue's probability exceeds the base.
        coupling: f64,
        /// Above this delay the low-latency queue marks some, in seconds.
        min_threshold_s: f64,
        /// Above so much more it marks all, in seconds.
        range_s: f64,
    },
}

impl From<Discipline> for DisciplineSettings {
    fn from(discipline: Discipline) -> Self {
        match discipline {
            Discipline::DropTail => Self::Droptail,
            Discipline::Codel(codel) => {
                Self::Codel { target_s: codel.target.as_secs_f64(), interval_s: codel.interval.as_secs_f64() }
            }
            Discipline::FqCodel(fq) => Self::FqCodel {
                target_s: fq.codel.target.as_secs_f64(),
                interval_s: fq.codel.interval.as_secs_f64(),
                flows: fq.flows,
                quantum_bytes: fq.quantum.as_bytes(),
            },
            Discipline::Pie(pie) => Self::Pie {
                target_s: pie.target.as_secs_f64(),
                update_s: pie.update.as_secs_f64(),
                burst_s: pie.burst.as_secs_f64(),
            },
            Discipline::DualPi2(dual) => Self::Dualpi2 {
                target_s: dual.target.as_secs_f64(),
                longest_round_trip_s: dual.longest_round_trip.as_secs_f64(),
                coupling: dual.coupling,
                min_threshold_s: dual.min_threshold.as_secs_f64(),
                range_s: dual.range.as_secs_f64(),
            },
        }
    }
}

/// How a delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JitterSettings {
    /// Not at all.
    None,
    /// Evenly.
    Uniform {
        /// By at most this, in seconds.
        most_s: f64,
    },
    /// Normally.
    Normal {
        /// With this standard deviation, in seconds.
        deviation_s: f64,
    },
    /// By the amount of a normal distribution, upwards.
    HalfNormal {
        /// Of this standard deviation, in seconds.
        deviation_s: f64,
    },
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LossSettings {
    /// Not by chance.
    None,
    /// Each for itself.
    Random {
        /// With this probability.
        share: f64,
    },
    /// In bursts (Gilbert 1960, Elliott 1963).
    Burst {
        /// Probability of turning bad after a packet.
        to_bad: f64,
        /// Probability of recovering.
        to_good: f64,
        /// Loss in the good state.
        loss_in_good: f64,
        /// Loss in the bad state.
        loss_in_bad: f64,
    },
}

impl PathSettings {
    pub(super) fn new(config: &PipeConfig) -> Self {
        Self {
            policer: config.policer.map(BucketSettings::from),
            capacity: capacity(&config.capacity),
            queue: match config.queue {
                QueueLimit::Packets(count) => QueueSettings::Packets(count),
                QueueLimit::Bytes(size) => QueueSettings::Bytes(size.as_bytes()),
                QueueLimit::Time(time) => QueueSettings::TimeS(time.as_secs_f64()),
            },
            discipline: config.discipline.into(),
            delay_s: config.delay.initial().as_secs_f64(),
            jitter: match config.jitter {
                Jitter::None => JitterSettings::None,
                Jitter::Uniform(most) => JitterSettings::Uniform { most_s: most.as_secs_f64() },
                Jitter::Normal(deviation) => JitterSettings::Normal { deviation_s: deviation.as_secs_f64() },
                Jitter::HalfNormal(deviation) => JitterSettings::HalfNormal { deviation_s: deviation.as_secs_f64() },
            },
            loss: loss(config.loss.initial()),
            duplicate_share: config.duplication.as_fraction(),
            reorder_share: config.reordering.map_or(0.0, |reordering| reordering.share.as_fraction()),
            reorder_by_s: config.reordering.map(|reordering| reordering.by.as_secs_f64()),
        }
    }
}

fn capacity(capacity: &Capacity) -> CapacitySettings {
    let step = |time: Span, rate: Rate| RateStep { time_s: time.as_secs_f64(), rate_bps: rate.as_bps() };
    let steps = |rates: &Schedule<Rate>| {
        let steps = rates.steps();
        // A file's first step is at zero itself.
        let initial = steps.first().is_none_or(|&(time, _)| time > Span::ZERO).then_some((Span::ZERO, rates.initial()));
        initial.into_iter().chain(steps.iter().copied()).map(|(time, rate)| step(time, rate)).collect()
    };
    match capacity {
        Capacity::Unlimited => CapacitySettings::Unlimited,
        Capacity::Rate(rates) => CapacitySettings::Rate { steps: steps(rates) },
        Capacity::Shaped(bucket) => CapacitySettings::Shaped((*bucket).into()),
        Capacity::Trace(trace) => CapacitySettings::Trace {
            mean_rate_bps: trace.mean_rate().as_bps(),
            length_s: trace.length().as_secs_f64(),
        },
    }
}

fn loss(loss: Loss) -> LossSettings {
    match loss {
        Loss::None => LossSettings::None,
        Loss::Random(share) => LossSettings::Random { share: share.as_fraction() },
        Loss::Burst(bursts) => LossSettings::Burst {
            to_bad: bursts.to_bad.as_fraction(),
            to_good: bursts.to_good.as_fraction(),
            loss_in_good: bursts.loss_in_good.as_fraction(),
            loss_in_bad: bursts.loss_in_bad.as_fraction(),
        },
    }
}
