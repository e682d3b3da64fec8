//! Attractor-perturbation (AP) rate control: hold the one-way delay at a target.
//!
//! A system that fluctuates more answers more to a push. So the step of the rate that moves the mean delay to its target
//! is the delay's error divided by its variance.
//!
//! Source: Waki 2013, Sec. 5.1.
//!
//! ```text
//! da = (T - d) / (b σ²)                       Eq. 15
//! a  = min(a_max, max(a_min, a + da))         Eq. 16
//! ```
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `a`, `da` | sending rate, its step | Mbit/s |
//! | `T`, `d` | target and mean of the one-way delay | s |
//! | `σ²` | variance of the one-way delay | s² |
//! | `b` | coefficient of response | 1/(s·Mbit/s) |
//!
//! Readings, where the text is silent. Too few samples, or statistics that are not numbers: the rate is kept. No
//! variance at all: the law has no step; see the guards. No feedback for three intervals: the rate is halved.
//!
//! # Guards (ours)
//! As printed, the law runs away wherever the target asks for a high load or the interval is short: the delay's curve
//! over the rate is convex, so a step up, which follows its tangent, overshoots; beyond the capacity the queue only
//! grows, its variance is that of a ramp, and the step down nearly vanishes. Three guards, each with its own
//! [`Reason`](super::Reason), bound the step; [`Guards::Off`] gives the law as printed.
//!
//! 1. A step up takes at most a share of the headroom that the variance implies ([`md1::headroom_mbps`]).
//! 2. A mean delay above twice the target halves the rate; so does loss, or a round trip above four targets, where an
//!    interval has no statistics because the delay has outgrown it.
//! 3. No step more than doubles or halves the rate; without variance it does just that, after the sign of the error.

mod controller;
pub mod md1;

pub use controller::{Ap, ApConfig, Guards, Response};

/// The bare law: the step of the sending rate in Mbit/s.
///
/// Source: Waki 2013, Eq. 15. Target and mean in s, variance in s², `response` b in 1/(s·Mbit/s).
/// `None` where there is no finite step: no variance, no response, or an input that is not a finite number.
pub fn step_mbps(target_s: f64, mean_s: f64, variance_s2: f64, response: f64) -> Option<f64> {
    let step = (target_s - mean_s) / (response * variance_s2);
    (variance_s2 > 0.0 && response > 0.0 && step.is_finite()).then_some(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_step_after_the_load_step() {
        // The thesis prints 0.90 Mbit/s for the interval that ends at 211 s (Waki 2013, Sec. 7.1).
        let step = step_mbps(8.2e-3, 9.07e-3, 3.23e-6, 300.0).expect("a variance");
        assert!((step - -0.8978).abs() < 5e-5, "{step}");
    }

    #[test]
    fn degenerate_statistics_give_no_step() {
        for (mean, variance) in [(8e-3, 0.0), (8e-3, -1.0), (f64::NAN, 1e-6), (8e-3, f64::NAN), (f64::INFINITY, 1e-6)] {
            assert_eq!(step_mbps(8.2e-3, mean, variance, 300.0), None, "{mean} {variance}");
        }
        assert_eq!(step_mbps(8.2e-3, 8e-3, f64::MIN_POSITIVE, f64::MIN_POSITIVE), None, "beyond all numbers");
    }

    proptest! {
        #[test]
        fn the_step_points_to_the_target_and_vanishes_there(mean in 1e-4f64..1.0, target in 1e-4f64..1.0, variance in 1e-9f64..1.0, b in 1.0f64..1e4) {
            let step = step_mbps(target, mean, variance, b).unwrap();
            prop_assert!(step * (target - mean) >= 0.0);
            prop_assert_eq!(step_mbps(target, target, variance, b), Some(0.0));
        }

        /// The law is dimensionally sound: time measured in units k times smaller changes no rate.
        #[test]
        fn scaling_the_unit_of_time_leaves_the_rate(mean in 1e-4f64..1.0, variance in 1e-9f64..1.0, k in 1e-3f64..1e3) {
            // b has the unit 1/(s·Mbit/s), so it scales with 1/k where times scale with k.
            let here = step_mbps(8.2e-3, mean, variance, 300.0).unwrap();
            let there = step_mbps(8.2e-3 * k, mean * k, variance * k * k, 300.0 / k).unwrap();
            prop_assert!((here - there).abs() <= 1e-9 * here.abs().max(1.0));
        }
    }
}
