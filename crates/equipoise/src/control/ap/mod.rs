//! Attractor-perturbation (AP) rate control: keeps the one-way delay at a target.
//!
//! A system that fluctuates more responds more to a perturbation. Therefore the rate step that moves the mean delay to
//! its target is proportional to the error of the mean delay divided by the variance of the delay.
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
//! [`Printed`] is exactly this law. As in the source, three missing reports halve the rate. What the source leaves open
//! is our choice: the rate is kept if there are too few samples, if statistics are not finite, or if the variance is
//! zero.
//!
//! # The robust form (our own)
//! The law above is unstable. The delay is a convex function of the rate, so a step up along its tangent overshoots.
//! Beyond the capacity the queue only grows. This growth makes the variance large, so the step down vanishes. A first
//! interval with few samples, a short interval, or a high target can each raise the rate beyond the capacity. [`Ap`]
//! keeps the idea that the fluctuation predicts the response of the delay, and changes five things:
//!
//! 1. **The whole curve.** The headroom h (the free capacity) follows from the variance ([`md1::headroom_mbps`]). With
//!    h in packets/s, the mean delay in s is `1 / (2h)` plus a constant. The step follows this curve
//!    ([`curve_step_mbps`]). A step up takes at most half of the headroom.
//! 2. **A filter.** Each report is weighted so that its noise, as measured from the reports, moves the rate by a given
//!    share of the headroom. A report whose mean deviates from the expected mean by more than four standard deviations
//!    is treated as a change of the path and accepted at once.
//! 3. **The variance of noise alone.** If the mean moved between two reports, this movement adds to the variance. The
//!    added part is subtracted. The variance estimate rises at once and falls slowly.
//! 4. **A standing queue is drained.** A mean above twice the target halves the rate until the queue falls fast enough.
//!    If an interval has no statistics, a round-trip time well above its minimum also halves the rate. A step at most
//!    doubles the rate.
//! 5. **A full path is remembered** ([`Ceiling`](crate::control::Ceiling)), because below its capacity a path without
//!    cross traffic has a constant delay with zero variance, which does not reveal the capacity. More losses than
//!    chance explains reduce the rate to below the delivery rate. The rate is not raised again before the effect of the
//!    last raise can show in feedback.
//!
//! The coefficient b can be learned ([`Learning`]) from small random changes of the rate, which are called pushes.

pub(in crate::control) mod learn;
pub mod md1;
mod printed;
mod robust;
mod signs;

pub use learn::Learning;
pub use printed::{Printed, PrintedConfig, Response};
pub use robust::{Ap, ApConfig};

use crate::units::Size;

/// Returns the step of the sending rate, in Mbit/s, by the law without rate limits.
///
/// Source: Waki 2013, Eq. 15. The target and the mean are in s, the variance in s², and `response` is b in
/// 1/(s·Mbit/s). Returns `None` if the variance or the response is not positive, or if the step is not finite.
pub fn step_mbps(target_s: f64, mean_s: f64, variance_s2: f64, response: f64) -> Option<f64> {
    let step = (target_s - mean_s) / (response * variance_s2);
    (variance_s2 > 0.0 && response > 0.0 && step.is_finite()).then_some(step)
}

/// Returns the step, in Mbit/s, that brings the mean delay to the target along the whole delay curve. [`step_mbps`]
/// follows the tangent of this curve instead.
///
/// For a headroom of h packets/s at the bottleneck, the mean delay is `1 / (2h)` plus a constant (Waki 2013, Eq. 7). So
/// if the target exceeds the mean by E seconds, the step changes the headroom from h to `h / (1 + 2hE)`. For small E,
/// the step equals the step of Eq. 15. A step that raises the rate is smaller than the headroom.
///
/// Returns `None` if the headroom is not finite, or if the mean exceeds the target by at least `1 / (2h)`. In the
/// second case, no headroom, however large, brings the mean to the target.
pub fn curve_step_mbps(target_s: f64, mean_s: f64, headroom_mbps: f64, packet: Size) -> Option<f64> {
    let per_mbps = md1::packets_per_s_per_mbps(packet);
    let left = 1.0 + 2.0 * headroom_mbps * per_mbps * (target_s - mean_s);
    let step = headroom_mbps - headroom_mbps / left;
    (left > 0.0 && step.is_finite()).then_some(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_step_after_the_load_step() {
        // The thesis prints a decrease of 0.90 Mbit/s for the interval that ends at 211 s (Waki 2013, Sec. 7.1).
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

    const PACKET: Size = Size::from_bytes(1000);

    /// The law assumes the delay curve of an M/D/1 queue. The queue of this test is an M/D/1 queue. Therefore one step
    /// leads from any load to the load that has the target delay.
    #[test]
    fn one_step_along_the_curve_leads_to_the_target() {
        let mu = 1875.0;
        for (from, to) in [(0.5, 0.8), (0.8, 0.5), (0.9, 0.8), (0.2, 0.95)] {
            let (mean, target) = (md1::mean_time(from * mu, mu), md1::mean_time(to * mu, mu));
            let headroom = md1::headroom_mbps(md1::response(from, PACKET), md1::variance(from * mu, mu), PACKET);
            let step = curve_step_mbps(target, mean, headroom, PACKET).expect("a headroom");
            assert!((step - (to - from) * 15.0).abs() < 1e-9, "from load {from} to {to}: {step}");
            let shift = md1::shift_s(headroom, step, PACKET).expect("a step within the headroom");
            assert!((shift - (target - mean)).abs() < 1e-12, "{shift}");
        }
    }

    #[test]
    fn beyond_the_curve_there_is_no_step() {
        assert_eq!(curve_step_mbps(8.2e-3, 100e-3, 3.0, PACKET), None, "no headroom of 3 Mbit/s waits for 92 ms");
        assert_eq!(curve_step_mbps(8.2e-3, 8e-3, f64::INFINITY, PACKET), None, "no variance");
        assert_eq!(curve_step_mbps(8.2e-3, f64::NAN, 3.0, PACKET), None);
    }

    proptest! {
        /// For small errors of the mean delay, the step along the delay curve differs from the step along the tangent
        /// (Waki 2013, Eq. 15) by at most 0.02 %.
        #[test]
        fn small_errors_give_the_printed_step(variance in 1e-8f64..1e-4, share in -1e-4f64..1e-4) {
            let headroom = md1::headroom_mbps(300.0, variance, PACKET);
            let error = share / (2.0 * headroom * 125.0);
            let (printed, along) = (step_mbps(error, 0.0, variance, 300.0).unwrap(), curve_step_mbps(error, 0.0, headroom, PACKET).unwrap());
            prop_assert!((printed - along).abs() <= 2e-4 * printed.abs(), "{printed} {along}");
        }

        #[test]
        fn the_step_points_to_the_target_and_vanishes_there(mean in 1e-4f64..1.0, target in 1e-4f64..1.0, variance in 1e-9f64..1.0, b in 1.0f64..1e4) {
            let step = step_mbps(target, mean, variance, b).unwrap();
            prop_assert!(step * (target - mean) >= 0.0);
            prop_assert_eq!(step_mbps(target, target, variance, b), Some(0.0));
        }

        /// The law is dimensionally consistent: if the delays, their variance and b are expressed in another unit of
        /// time, the step in Mbit/s is the same.
        #[test]
        fn scaling_the_unit_of_time_leaves_the_rate(mean in 1e-4f64..1.0, variance in 1e-9f64..1.0, k in 1e-3f64..1e3) {
            // b has the unit 1/(s·Mbit/s). If all times are multiplied by k, b is divided by k.
            let here = step_mbps(8.2e-3, mean, variance, 300.0).unwrap();
            let there = step_mbps(8.2e-3 * k, mean * k, variance * k * k, 300.0 / k).unwrap();
            prop_assert!((here - there).abs() <= 1e-9 * here.abs().max(1.0));
        }
    }
}
