use super::{COUNT, MEGABITS, MILLIS, Metric, PERCENT, SECONDS, metric};
use crate::result::{MediaResult, PhaseResult};

/// Metrics of a run that cover all media of the run together.
pub const RUN: &[Metric<MediaResult>] = &[
    metric("utilisation", "utilisation", PERCENT, |media| media.utilisation),
    metric("queueing_mean_s", "wait in queues: mean", MILLIS, |media| media.queueing?.mean_s),
    metric("queueing_p95_s", "95th percentile", MILLIS, |media| media.queueing?.p95_s),
    metric("queueing_p99_s", "99th percentile", MILLIS, |media| media.queueing?.p99_s),
    metric("queueing_calm_mean_s", "calm wait in queues: mean", MILLIS, |media| media.calm_queueing?.mean_s),
    metric("queueing_calm_p95_s", "calm: 95th percentile", MILLIS, |media| media.calm_queueing?.p95_s),
    metric("loss", "packets lost", PERCENT, |media| media.loss),
    metric("tcp_ratio", "throughput over that of TCP", COUNT.decimals(3), |media| media.tcp_ratio),
    metric("feedback_share", "feedback, of the bytes sent", PERCENT, |media| media.feedback_share),
];

/// Metrics of a phase of a run that cover all media of the phase together.
pub const PHASE: &[Metric<PhaseResult>] = &[
    metric("capacity_bps", "capacity", MEGABITS, |phase| phase.capacity_bps),
    metric("utilisation", "used", PERCENT.decimals(1), |phase| phase.utilisation),
    metric("queueing_mean_s", "queues", MILLIS.decimals(2), |phase| phase.queueing?.mean_s),
    metric("queueing_p95_s", "p95", MILLIS.decimals(2), |phase| phase.queueing?.p95_s),
    metric("convergence_s", "converged", SECONDS.decimals(1), |phase| phase.convergence_s),
    metric("oscillations", "swings", COUNT, |phase| {
        Some(phase.flows.iter().map(|flow| flow.oscillations).sum::<u64>() as f64)
    }),
    metric("jain", "Jain", COUNT.decimals(3), |phase| phase.jain),
    metric("tcp_ratio", "over TCP", COUNT.decimals(3), |phase| phase.tcp_ratio),
];
