use super::path::Seen;
use crate::measure::packets::Service;

/// How far shares are to be measured rather than left to the target, from 0 to 1: `s`.
///
/// Jitter takes from a flow what tells how it stands to others: the target widens, and the queue that packets find is as much the jitter's as the
/// flows'. Where delays are smooth the target and the anchor hold shares, and all of this is off.
pub(super) fn sought(rate_bps: f64, roughness_s: f64) -> f64 {
    let fast = (libm::log((rate_bps / FAST_BPS).max(1.0)) / FAST_WIDTH).min(1.0);
    let ramp = |from_s: f64, width_s: f64| ((roughness_s - from_s) / width_s).clamp(0.0, 1.0);
    (fast * ramp(FAST_ROUGH_S, FAST_ROUGH_WIDTH_S)).max(ramp(ROUGH_S, ROUGH_WIDTH_S))
}

/// From this rate on in bit/s, in full a factor of exp(0.7) = 2 above it, the target nears its floor and frames have packets enough for trains; there
/// delays count as rough from so much on, in s: no more than this is made by frames of the flow alone, and clumps hide more of it the faster it is.
const FAST_BPS: f64 = 1.5e6;
const FAST_WIDTH: f64 = 0.7;
const FAST_ROUGH_S: f64 = 0.0002;
const FAST_ROUGH_WIDTH_S: f64 = 0.0004;
/// And of any flow: ten flows of video that share a queue make less for each other.
const ROUGH_S: f64 = 0.0012;
const ROUGH_WIDTH_S: f64 = 0.001;
/// `a`, the growth of a flow with half of the bottleneck, in 1/s, and the most `1/f - 1`: from 10 : 1 to 3 : 2 within 0.71/a, whatever the round trip.
const GROWTH: f64 = 0.1;
const MOST_OTHERS: f64 = 6.0;

/// Growth in proportion to what others have, `a (1/f - 1)` in 1/s: logistic growth of competitors (Lotka and Volterra), `dB/dt = a (C - B)`.
///
/// Of two flows with `x = ln(f1/f2)` that is `dx/dt = -2 a sinh x`, in which no round trip stands: the target's pull goes by `1/D²`.
pub(super) fn growth(seen: &Seen, sought: f64) -> f64 {
    sought * GROWTH * (1.0 / seen.share - 1.0).min(MOST_OTHERS)
}

/// What a run of packets that left faster than `base_bps` tells of the service at the base rate.
///
/// At a bottleneck that is just busy, a train at `S` comes out at `S/(1 + f (S/B - 1))`. The larger a flow, the more of its frames are such trains:
/// taken for its rate of service, what comes out of them would pull large flows up and small ones not.
pub(super) fn at_base(service: Service, base_bps: f64, seen: &Seen, sought: f64) -> Service {
    if service.sent_bps <= base_bps {
        return service;
    }
    let faster = service.sent_bps / base_bps;
    let share = 1.0 - (1.0 - seen.share) * sought;
    Service { served_bps: service.served_bps / faster * (1.0 + share * (faster - 1.0)), sent_bps: base_bps }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(share: f64) -> Seen {
        Seen { share, ..Seen::default() }
    }

    /// If it fails, cases without jitter, which shares are no question of, change with it.
    #[test]
    fn smooth_paths_are_left_alone() {
        for rate_bps in [0.3e6, 1e6, 5e6, 50e6] {
            assert!(sought(rate_bps, 0.00015).abs() < 1e-12);
            assert!((sought(rate_bps, 0.003) - 1.0).abs() < 1e-12);
        }
        assert!(sought(1e6, 0.001).abs() < 1e-12 && sought(4e6, 0.001) > 0.99);
        assert!(growth(&seen(0.2), 0.0).abs() < 1e-12);
    }

    /// Two flows under the term alone, whose sum the queue holds at the capacity: `dx/dt = -2 a sinh x` in closed form.
    #[test]
    fn two_flows_come_to_equal_shares_in_a_time_without_a_round_trip_in_it() {
        let (mut first, mut second, mut time_s): (f64, f64, f64) = (10.0 / 11.0, 1.0 / 11.0, 0.0);
        while first / second > 1.5 {
            first *= libm::exp(0.01 * growth(&seen(first), 1.0));
            second *= libm::exp(0.01 * growth(&seen(second), 1.0));
            (first, second) = (first / (first + second), second / (first + second));
            time_s += 0.01;
        }
        let without_bound_s = 0.71 / GROWTH;
        assert!((without_bound_s..1.3 * without_bound_s).contains(&time_s), "{time_s}");
    }

    #[test]
    fn a_train_of_a_busy_bottleneck_shows_the_base_rate_whatever_the_share() {
        for share in [0.1, 0.5, 1.0] {
            let sent_bps = 1.35e6;
            let served_bps = sent_bps / (1.0 + share * 0.35);
            let found = at_base(Service { served_bps, sent_bps }, 1e6, &seen(share), 1.0);
            assert!((found.served_bps - 1e6).abs() < 1.0, "{found:?}");
        }
        let slow = Service { served_bps: 0.8e6, sent_bps: 0.9e6 };
        assert_eq!(at_base(slow, 1e6, &seen(0.5), 1.0), slow);
    }
}
