use std::net::SocketAddr;

use equipoise::units::{Rate, Schedule, Span};
use equipoise_path::link::{Capacity, Discipline, Jitter, Loss, PipeConfig, QueueLimit, TokenBucket};
use serde::{Deserialize, Serialize};

/// The two ends of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ends {
    /// UDP clients that send datagrams to `listen`, and the target to which the path forwards these datagrams.
    Udp {
        /// Address on which the path listens for datagrams of clients.
        listen: SocketAddr,
        /// Address to which the path forwards the clients' datagrams.
        target: SocketAddr,
    },
    /// Two existing Ethernet interfaces.
    Interfaces {
        /// Name of the interface at which the forward direction starts.
        first: String,
        /// Name of the interface at which the forward direction ends.
        second: String,
    },
    /// Two TUN devices, which are created if they do not exist.
    Tun {
        /// Name of the interface at which the forward direction starts.
        first: String,
        /// Name of the interface at which the forward direction ends.
        second: String,
    },
}

/// The complete configuration of one direction of the path, including defaults. The fields are those of the JSON
/// output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSettings {
    /// The policer before the bottleneck, which drops packets that exceed a rate; `None` for no policer.
    pub policer: Option<BucketSettings>,
    /// Capacity of the bottleneck.
    pub capacity: CapacitySettings,
    /// Size of the queue before the bottleneck.
    pub queue: QueueSettings,
    /// Discipline of the queue before the bottleneck.
    pub discipline: DisciplineSettings,
    /// Propagation delay, in seconds.
    pub delay_s: f64,
    /// Variation of the propagation delay.
    pub jitter: JitterSettings,
    /// Random loss.
    pub loss: LossSettings,
    /// Share of the packets that are duplicated, 0 to 1.
    pub duplicate_share: f64,
    /// Share of the packets that are reordered, 0 to 1.
    pub reorder_share: f64,
    /// How much later reordered packets arrive, in seconds; negative if they arrive earlier. `None` if no packets are
    /// reordered.
    pub reorder_by_s: Option<f64>,
}

/// Capacity of a bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CapacitySettings {
    /// No limit.
    Unlimited,
    /// A rate of IP packets that changes in steps.
    Rate {
        /// The steps; the first step is at 0 s.
        steps: Vec<RateStep>,
    },
    /// A token bucket: a rate with bursts.
    Shaped(BucketSettings),
    /// A recorded trace, which is repeated.
    Trace {
        /// Mean rate of the trace, in bit/s.
        mean_rate_bps: u64,
        /// Length of the trace, in seconds.
        length_s: f64,
    },
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketSettings {
    /// Rate at which the bucket fills, in bit/s.
    pub rate_bps: u64,
    /// Maximum content of the bucket, in bytes.
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
    /// Time since the start of the path, in seconds.
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
    /// CoDel: drops packets that arrive when the queue is full, and drops or marks packets while there is a standing
    /// queue.
    Codel {
        /// CoDel treats the queue as a standing queue if the minimum waiting time is above this, in seconds.
        target_s: f64,
        /// Time over which CoDel takes the minimum waiting time, in seconds.
        interval_s: f64,
    },
    /// FQ-CoDel: several queues, each with CoDel.
    FqCodel {
        /// CoDel treats a queue as a standing queue if the minimum waiting time exceeds this value, in seconds.
        target_s: f64,
        /// Time over which CoDel takes the minimum waiting time, in seconds.
        interval_s: f64,
        /// Number of queues.
        flows: u32,
        /// Bytes that each queue may send per round.
        quantum_bytes: u64,
    },
    /// PIE: drops or marks arriving packets with a probability that depends on the queueing delay.
    Pie {
        /// Target queueing delay, in seconds.
        target_s: f64,
        /// Time between two updates of the drop probability, in seconds.
        update_s: f64,
        /// Time for which PIE drops nothing when congestion begins, in seconds.
        burst_s: f64,
    },
    /// `DualPI2`: a classic queue and a low-latency queue.
    Dualpi2 {
        /// Target queueing delay of the classic queue, in seconds.
        target_s: f64,
        /// Longest round-trip time that is usual for the traffic, in seconds.
        longest_round_trip_s: f64,
        /// The low-latency queue's marking probability is at least `coupling` times the square root of the classic
        /// queue's drop or marking probability.
        coupling: f64,
        /// Queueing delay above which the low-latency queue marks some packets, in seconds.
        min_threshold_s: f64,
        /// Width of the range of queueing delays above `min_threshold_s` in which the low-latency queue marks only some
        /// packets, in seconds. Above this range, it marks all packets.
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

/// Random variation of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JitterSettings {
    /// No variation.
    None,
    /// Uniformly distributed, with longer and shorter delays.
    Uniform {
        /// Maximum change of the delay, in seconds.
        most_s: f64,
    },
    /// Normally distributed; negative delays become zero.
    Normal {
        /// Standard deviation, in seconds.
        deviation_s: f64,
    },
    /// Half-normally distributed: delays only become longer.
    HalfNormal {
        /// Standard deviation of the underlying normal distribution, in seconds.
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
