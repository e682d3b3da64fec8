use std::net::SocketAddr;

use equipoise::units::{Rate, Schedule, Span};
use equipoise_path::link::{Capacity, Discipline, Jitter, Loss, PipeConfig, QueueLimit, TokenBucket};
use serde::{Deserialize, Serialize};

/// The two ends of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ends {
    /// UDP clients, which send to `listen`, and a target.
    Udp {
        /// Address to which clients send.
        listen: SocketAddr,
        /// Address to which their datagrams are forwarded.
        target: SocketAddr,
    },
    /// Two Ethernet interfaces.
    Interfaces {
        /// The interface at which the forward direction starts.
        first: String,
        /// The interface at which the forward direction ends.
        second: String,
    },
    /// Two TUN devices, which are created if they do not exist.
    Tun {
        /// The interface at which the forward direction starts.
        first: String,
        /// The interface at which the forward direction ends.
        second: String,
    },
}

/// The complete configuration of one direction, including defaults, in the form of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSettings {
    /// A policer, which drops packets above a rate before the bottleneck; `None` for no policer.
    pub policer: Option<BucketSettings>,
    /// Capacity of the bottleneck.
    pub capacity: CapacitySettings,
    /// Size of the queue before the bottleneck.
    pub queue: QueueSettings,
    /// Queue discipline.
    pub discipline: DisciplineSettings,
    /// Propagation delay, in seconds.
    pub delay_s: f64,
    /// Variation of the delay.
    pub jitter: JitterSettings,
    /// Random loss.
    pub loss: LossSettings,
    /// Share of the packets that are duplicated, 0 to 1.
    pub duplicate_share: f64,
    /// Share of the packets that are reordered, 0 to 1.
    pub reorder_share: f64,
    /// How much later reordered packets arrive, in seconds; negative for earlier. `None` if no packets are reordered.
    pub reorder_by_s: Option<f64>,
}

/// Capacity of a bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapacitySettings {
    /// Unlimited.
    Unlimited,
    /// A rate of IP packets, in steps.
    Rate {
        /// The steps; the first is at 0 s.
        steps: Vec<RateStep>,
    },
    /// A token bucket: a rate with bursts.
    Shaped(BucketSettings),
    /// A recorded trace, repeated.
    Trace {
        /// Its mean rate, in bit/s.
        mean_rate_bps: u64,
        /// Its length, in seconds.
        length_s: f64,
    },
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketSettings {
    /// Fill rate, in bit/s.
    pub rate_bps: u64,
    /// Capacity, in bytes.
    pub burst_bytes: u64,
}

impl From<TokenBucket> for BucketSettings {
    fn from(TokenBucket { rate, burst }: TokenBucket) -> Self {
        Self { rate_bps: rate.as_bps(), burst_bytes: burst.as_bytes() }
    }
}

/// A rate and the time from which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Time since the start, in seconds.
    pub time_s: f64,
    /// Rate, in bit/s.
    pub rate_bps: u64,
}

/// Size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSettings {
    /// Maximum number of waiting packets.
    Packets(u32),
    /// Maximum number of waiting bytes.
    Bytes(u64),
    /// Maximum waiting time, in seconds.
    TimeS(f64),
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DisciplineSettings {
    /// Drops packets that arrive when the queue is full.
    Droptail,
    /// CoDel: in addition, drops packets while there is a standing queue.
    Codel {
        /// Minimum waiting time above which the queue is a standing queue, in seconds.
        target_s: f64,
        /// The time over which the minimum is taken, in seconds.
        interval_s: f64,
    },
    /// FQ-CoDel: several queues, with CoDel in each.
    FqCodel {
        /// Minimum waiting time above which the queue is a standing queue, in seconds.
        target_s: f64,
        /// The time over which the minimum is taken, in seconds.
        interval_s: f64,
        /// Number of queues.
        flows: u32,
        /// Bytes that a queue may send per turn.
        quantum_bytes: u64,
    },
    /// PIE: drops arriving packets with a probability that depends on the delay.
    Pie {
        /// Target delay, in seconds.
        target_s: f64,
        /// Time between two updates of the probability, in seconds.
        update_s: f64,
        /// Burst that an idle queue accepts without drops, in seconds.
        burst_s: f64,
    },
    /// `DualPI2`: a classic queue and a low-latency queue.
    Dualpi2 {
        /// Target delay of the classic queue, in seconds.
        target_s: f64,
        /// Longest usual round-trip time, in seconds.
        longest_round_trip_s: f64,
        /// Ratio of the low-latency queue's probability to the base probability.
        coupling: f64,
        /// Delay above which the low-latency queue marks some packets, in seconds.
        min_threshold_s: f64,
        /// Distance from this threshold to the delay at which it marks all packets, in seconds.
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

/// Variation of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JitterSettings {
    /// No variation.
    None,
    /// Uniform, in either direction.
    Uniform {
        /// Maximum, in seconds.
        most_s: f64,
    },
    /// Normal; negative delays become zero.
    Normal {
        /// Standard deviation, in seconds.
        deviation_s: f64,
    },
    /// Half-normal: only longer delays.
    HalfNormal {
        /// Standard deviation, in seconds.
        deviation_s: f64,
    },
}

/// Random loss of packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LossSettings {
    /// No random loss.
    None,
    /// Each packet is lost independently.
    Random {
        /// Probability of loss, 0 to 1.
        share: f64,
    },
    /// Packets are lost in bursts (Gilbert 1960, Elliott 1963).
    Burst {
        /// Probability to enter the bad state after a packet in the good state.
        to_bad: f64,
        /// Probability to return to the good state after a packet in the bad state.
        to_good: f64,
        /// Probability of loss in the good state.
        loss_in_good: f64,
        /// Probability of loss in the bad state.
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
        // The schedule may already have a step at 0 s.
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
