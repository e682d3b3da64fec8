//! The M/D/1 queue in closed form, from which the coefficient of response b of attractor-perturbation (AP) rate control
//! follows.
//!
//! Source: Waki 2013, Sec. 4.1. Packets arrive as a Poisson process with λ packets/s, and the service of each packet
//! takes 1/μ seconds. The time in the system is the sum of waiting and service. In our reading, Eq. 6 is misprinted:
//! its first term should contain the third moment of the service time. Eq. 8 is correct.

use crate::units::Size;

/// Returns the mean time in the system, in seconds, at an arrival rate `lambda` and a service rate `mu`, both in
/// packets/s, for `0 <= lambda < mu`.
///
/// Source: Waki 2013, Eq. 7: `(2μ - λ) / (2μ(μ - λ))`.
pub fn mean_time(lambda: f64, mu: f64) -> f64 {
    (2.0 * mu - lambda) / (2.0 * mu * (mu - lambda))
}

/// Returns the variance of the time in the system, in s², at an arrival rate `lambda` and a service rate `mu`, both in
/// packets/s, for `0 <= lambda < mu`.
///
/// Source: Waki 2013, Eq. 8: `λ(4μ - λ) / (12 μ²(μ - λ)²)`.
pub fn variance(lambda: f64, mu: f64) -> f64 {
    lambda * (4.0 * mu - lambda) / (12.0 * mu * mu * (mu - lambda) * (mu - lambda))
}

/// Returns the coefficient of response b at a load of `rho`, in 1/(s·Mbit/s), for packets of the size `packet`.
///
/// Source: Waki 2013, Eq. 11: `6 / (ρ(4 - ρ))` in 1/(s·packet/s). Our addition: `rho` is limited to the range from
/// [`LEAST_LOAD`] to 1. At a load above 1, the queue has no steady state.
pub fn response(rho: f64, packet: Size) -> f64 {
    let rho = if rho.is_nan() { LEAST_LOAD } else { rho.clamp(LEAST_LOAD, 1.0) };
    6.0 / (rho * (4.0 - rho)) * packets_per_s_per_mbps(packet)
}

/// The minimum load for [`response`]. The lower the load, the larger is the coefficient of response, and the smaller
/// are the steps of the rate. Our choice: at a load of 0.05, the coefficient is only thirteen times its value at a load
/// of 0.8, so the steps do not vanish.
pub const LEAST_LOAD: f64 = 0.05;

/// Returns the headroom (the free capacity) of the bottleneck, in Mbit/s, that follows from a delay variance in s².
///
/// Source: Waki 2013, Eq. 9 and 12: the derivative of the mean delay with respect to the rate is `1 / (2(μ - λ)²)`, and
/// it equals `b σ²`. Therefore `μ - λ = 1 / sqrt(2 b σ²)` packets/s, for b in 1/(s·packet/s). `response` is b in
/// 1/(s·Mbit/s). The packet size `packet` is needed to convert between the units.
pub fn headroom_mbps(response: f64, variance_s2: f64, packet: Size) -> f64 {
    1.0 / libm::sqrt(2.0 * packets_per_s_per_mbps(packet) * response * variance_s2)
}

/// Returns by how many seconds the mean time in the system grows if a step of the rate reduces the headroom by
/// `step_mbps`.
///
/// Source: Waki 2013, Eq. 7, by which the mean time is `1 / (2(μ - λ))` plus a constant. Returns `None` if the headroom
/// is not finite, or if the step takes all of the headroom, because the queue then has no steady state.
pub fn shift_s(headroom_mbps: f64, step_mbps: f64, packet: Size) -> Option<f64> {
    let per_mbps = packets_per_s_per_mbps(packet);
    let waiting = |headroom: f64| 1.0 / (2.0 * headroom * per_mbps);
    let left = headroom_mbps - step_mbps;
    (left > 0.0 && headroom_mbps.is_finite()).then(|| waiting(left) - waiting(headroom_mbps))
}

/// Returns the number of packets/s at a rate of 1 Mbit/s.
pub(super) fn packets_per_s_per_mbps(packet: Size) -> f64 {
    1e6 / packet.as_bits().max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Size = Size::from_bytes(1000);
    const MU: f64 = 1875.0;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} is not {expected}");
    }

    #[test]
    fn golden_values_at_load_0_8_and_0_9() {
        close(mean_time(0.8 * MU, MU), 1.6e-3, 1e-9);
        close(variance(0.8 * MU, MU), 1.517_037e-6, 1e-6);
        close(mean_time(0.9 * MU, MU), 2.933_333e-3, 1e-6);
        close(variance(0.9 * MU, MU), 6.613_333e-6, 1e-6);
    }

    #[test]
    fn golden_values_of_the_response() {
        close(response(0.6, PACKET), 367.647, 2e-6);
        close(response(0.75, PACKET), 307.692, 2e-6);
        close(response(0.9, PACKET), 268.817, 2e-6);
        let steps: u32 = 3000;
        let mean =
            (0..steps).map(|i| response(0.6 + 0.3 * (f64::from(i) + 0.5) / f64::from(steps), PACKET)).sum::<f64>();
        close(mean / f64::from(steps), 311.16, 1e-4);
    }

    proptest! {
        /// The coefficient b of Waki 2013, Eq. 11 is a quotient: the derivative of Eq. 7, divided by Eq. 8. The test
        /// computes the derivative from finite differences.
        #[test]
        fn the_response_times_the_variance_is_the_slope_of_the_mean(rho in 0.06f64..0.98) {
            let (lambda, h) = (rho * MU, 1e-3);
            let slope = (mean_time(lambda + h, MU) - mean_time(lambda - h, MU)) / (2.0 * h);
            let per_packet = response(rho, PACKET) / 125.0;
            prop_assert!((per_packet * variance(lambda, MU) / slope - 1.0).abs() < 1e-4);
        }

        #[test]
        fn the_headroom_is_what_is_left_of_the_capacity(rho in 0.06f64..0.99) {
            let lambda = rho * MU;
            let found = headroom_mbps(response(rho, PACKET), variance(lambda, MU), PACKET);
            prop_assert!((found / ((MU - lambda) / 125.0) - 1.0).abs() < 1e-9);
        }
    }
}
