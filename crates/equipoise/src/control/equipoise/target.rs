use super::Equipoise;
use crate::units::{Rate, Span};

/// The law's target of the queueing delay, in s.
///
/// `T = max(2 ms, k min(45 ms, 5 ms · (1 Mbit/s) / r)) + min(12 ms, 3 (n - 1.5 ms)+)`, limited by the application's
/// maximum. `x+` is `max(x, 0)`. `k` is a factor that is larger for a higher priority and for a newcomer. `n` is the
/// roughness: the part of the delays' variation that queueing does not cause. Roughness makes the measured queueing
/// delay too long, so it raises the target. Between its limits, `T` strictly decreases with the flow's own rate `r`.
/// Flows that share a queue have the same delay. Therefore flows of the same priority reach equal rates. N such flows
/// hold a queue of 5 ms · N / C, where C is the capacity in Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DelayTarget {
    /// The flow's priority: the rates of flows that share a bottleneck are in the ratio of their priorities.
    pub(super) priority: f64,
    /// The application's maximum, in s.
    pub(super) most_s: f64,
}

/// Target of the queueing delay at 1 Mbit/s, in s: about half of the 9.6 ms that a packet of 1200 bytes takes at this
/// rate. A larger target causes longer queues. With a smaller target, the queueing delay could not be distinguished
/// from the delay variation that frames cause.
const AT_1_MBPS_S: f64 = 0.005;
/// Lower limit of the target of the queueing delay, in s. It must be above the granularity of timestamps, which is 0.25
/// to 1 ms.
const LEAST_S: f64 = 0.002;
/// Upper limit of the target of the queueing delay, in s, before the factor `k` and the addition for roughness. It
/// applies to flows below 0.11 Mbit/s, and prevents many slow flows from filling the queue that they share.
const MOST_S: f64 = 0.045;
/// Roughness is the part of the delays' variation that queueing does not cause. Roughness above `USUAL_ROUGHNESS_S`, in
/// s, adds `ROUGHNESS` times the excess to the target of the queueing delay, at most `MOST_ROUGHNESS_S`, in s. Flows
/// that share a queue measure some roughness even without jitter. Roughness up to `USUAL_ROUGHNESS_S` has no effect, so
/// that the targets of these flows stay equal.
const ROUGHNESS: f64 = 3.0;
const USUAL_ROUGHNESS_S: f64 = 0.0015;
const MOST_ROUGHNESS_S: f64 = 0.012;
/// The target of the queueing delay grows with this power of the priority. With this value, a flow of twice the
/// priority has twice the rate. With an exponent of 1, the flow would have more than twice the rate, because a flow
/// with more packets in a report measures a lower minimum delay.
const PRIORITY_EXPONENT: f64 = 0.66;
/// At the start of a flow, its target is higher by the share `NEWCOMER`, so that the flow reaches its fair rate sooner.
/// This addition decays with the time constant `NEWCOMER_S`, in s.
const NEWCOMER: f64 = 0.8;
const NEWCOMER_S: f64 = 8.0;

impl DelayTarget {
    /// The target of the queueing delay, in s, for a flow with the rate `rate_bps` and the age `age_s`, on a path with
    /// the roughness `roughness_s`.
    pub(super) fn queue_s(self, rate_bps: f64, age_s: f64, roughness_s: f64) -> f64 {
        let weight = libm::pow(self.priority, PRIORITY_EXPONENT) * (1.0 + NEWCOMER * libm::exp(-age_s / NEWCOMER_S));
        let own = weight * (AT_1_MBPS_S * 1e6 / rate_bps.max(1.0)).min(MOST_S);
        let rough_s = (ROUGHNESS * (roughness_s - USUAL_ROUGHNESS_S)).clamp(0.0, MOST_ROUGHNESS_S);
        (own.max(LEAST_S) + rough_s).min(self.most_s)
    }
}

impl Equipoise {
    /// The highest target of the queueing delay for a flow of priority 1 with the given rate and age. The target is
    /// lower than this unless the delay varies strongly for other reasons than queueing.
    pub fn most_queue(rate: Rate, age: Span) -> Span {
        let target = DelayTarget { priority: 1.0, most_s: f64::INFINITY };
        let queue_s = target.queue_s(rate.as_bps_f64(), age.as_secs_f64(), f64::INFINITY);
        Span::from_secs_f64(queue_s).unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values_of_the_target() {
        let target = DelayTarget { priority: 1.0, most_s: 1.0 };
        let found = [0.15, 0.25, 0.6, 1.0, 1.5, 4.0].map(|mbps| target.queue_s(mbps * 1e6, 1e9, 0.0) * 1e3);
        for (found, expected) in found.into_iter().zip([33.333, 20.0, 8.3333, 5.0, 3.3333, 2.0]) {
            assert!((found - expected).abs() < 1e-3, "{found}");
        }
        assert!((target.queue_s(1e6, 0.0, 0.0) - 0.009).abs() < 1e-12, "a newcomer");
        assert!((target.queue_s(1e6, 1e9, 0.1) - 0.017).abs() < 1e-12, "rough");
        assert!((target.queue_s(1e4, 1e9, 0.0) - 0.045).abs() < 1e-12, "slow");
        let patient = DelayTarget { most_s: 0.01, ..target };
        assert!((patient.queue_s(1e4, 1e9, 0.1) - 0.01).abs() < 1e-12, "no more than is asked for");
    }
}
