use super::Equipoise;
use crate::units::{Rate, Span};

/// The queueing delay that the law aims at, in s.
///
/// `T = max(2 ms, k min(45 ms, 5 ms · (1 Mbit/s) / r)) + min(12 ms, 3 (n - 1.5 ms)+)`, and no more than an application asks for. It falls strictly with the own rate, so that flows that share a queue,
/// and see one delay, have one rate; N of them hold 5 ms · N / C\[Mbit/s\]. Roughness of the delay, which is no queue, widens it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DelayTarget {
    /// Shares of flows are as their priorities.
    pub(super) priority: f64,
    /// The most that is aimed at, in s.
    pub(super) most_s: f64,
}

/// What one packet of 1200 bytes waits for at 1 Mbit/s is 9.6 ms: the target is half of it. More has longer queues, less cannot be told from
/// the noise of frames.
const AT_1_MBPS_S: f64 = 0.005;
/// Stamps have a granularity of 0.25 to 1 ms.
const LEAST_S: f64 = 0.002;
/// Reached below 0.11 Mbit/s: many slow flows share a queue without filling it.
const MOST_S: f64 = 0.045;
/// What roughness adds, and the most; and what flows that share a queue make for each other, in s, which would make them unlike.
const ROUGHNESS: f64 = 3.0;
const USUAL_ROUGHNESS_S: f64 = 0.0015;
const MOST_ROUGHNESS_S: f64 = 0.012;
/// A flow of twice the priority has twice the rate: not 1, as a larger flow has more packets in a report, and sees a lower minimum.
const PRIORITY_EXPONENT: f64 = 0.66;
/// A newcomer bears more queue, which wins it its share sooner: by so much, for so long in s.
const NEWCOMER: f64 = 0.8;
const NEWCOMER_S: f64 = 8.0;

impl DelayTarget {
    /// Of a flow with the rate `rate_bps` that has been there for `age_s`.
    pub(super) fn queue_s(self, rate_bps: f64, age_s: f64, roughness_s: f64) -> f64 {
        let weight = libm::pow(self.priority, PRIORITY_EXPONENT) * (1.0 + NEWCOMER * libm::exp(-age_s / NEWCOMER_S));
        let own = weight * (AT_1_MBPS_S * 1e6 / rate_bps.max(1.0)).min(MOST_S);
        let rough_s = (ROUGHNESS * (roughness_s - USUAL_ROUGHNESS_S)).clamp(0.0, MOST_ROUGHNESS_S);
        (own.max(LEAST_S) + rough_s).min(self.most_s)
    }
}

impl Equipoise {
    /// The most queueing that a flow of priority 1 which has had `rate` for `age` aims at: delays are as rough as they can be.
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
