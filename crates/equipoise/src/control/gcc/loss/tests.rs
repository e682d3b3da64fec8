use alloc::vec::Vec;

use proptest::prelude::*;

use super::estimator::{Channel, LossBased, LossState, bias, most_inherent, upper_bound};
use super::observation::{MOST_LOST, Observations, WINDOW};
use crate::control::{Ecn, Fate, PacketReport, RateLimits};
use crate::units::{Instant, Rate, Size};

const LIMITS: (u64, u64) = (5000, 10_000_000);

fn estimator() -> LossBased {
    LossBased::new(RateLimits::within(Rate::from_bps(LIMITS.0), Rate::from_bps(LIMITS.1)))
}

/// Returns reports on `count` packets of 1250 bytes, sent every 10 ms (1 Mbit/s), from number `from` on. A packet is
/// lost if `is_lost` returns true.
fn packets(from: u64, count: u64, is_lost: impl Fn(u64) -> bool) -> Vec<PacketReport> {
    let arrived = Fate::Arrived { at: Some(Instant::ZERO), ecn: Ecn::NotEct };
    (from..from + count)
        .map(|number| {
            let fate = if is_lost(number) { Fate::Lost } else { arrived };
            PacketReport::new(number, Size::from_bytes(1250), Instant::from_nanos(number * 10_000_000), fate)
        })
        .collect()
}

/// The expected bounds, in kbit/s, are 100 / (loss - 0.05), for losses of 6, 8, 10, 15 and 20 %.
#[test]
fn the_upper_bound_falls_with_the_loss() {
    let found = [0.06, 0.08, 0.1, 0.15, 0.2].map(|loss| (upper_bound(loss) / 1e3).round() as u64);
    assert_eq!(found, [10_000, 3333, 2000, 1000, 667]);
    assert!(upper_bound(0.05).is_infinite());
}

#[test]
fn more_loss_is_the_paths_own_at_low_rates() {
    let found = [500e3, 1e6, 2e6].map(|bps| (most_inherent(bps) * 1e6).round() as u64);
    assert_eq!(found, [250_000, 150_000, 100_000]);
    assert!((most_inherent(0.0) - 1.0).abs() < 1e-12);
}

/// At 1 Mbit/s without losses, `bias` is (0.0002 · 1000 + 0.02 ln 1001) · 0.2/0.202 = 0.335. If more than 20 % of the
/// packets are lost, `bias` is negative, so lower rates are preferred.
#[test]
fn the_preference_is_for_the_higher_rate_until_a_fifth_is_lost() {
    assert!((bias(1e6, 0.0) - 0.335).abs() < 5e-4, "{}", bias(1e6, 0.0));
    assert!(bias(1e6, 0.2).abs() < 1e-12 && bias(1e6, 0.3) < 0.0);
}

#[test]
fn beyond_the_bandwidth_the_excess_is_lost() {
    let channel = Channel { bps: 1e6, inherent: 0.02 };
    assert!((channel.loss_at(0.5e6) - 0.02).abs() < 1e-12);
    assert!((channel.loss_at(2e6) - (0.02 + 0.98 * 0.5)).abs() < 1e-12);
}

#[test]
fn an_observation_lasts_for_a_quarter_of_a_second_and_fifteen_are_kept() {
    let mut observations = Observations::new();
    assert!(!observations.push(&packets(0, 25, |_| false)), "240 ms");
    assert!(observations.push(&packets(25, 1, |_| true)), "250 ms");
    let (_, one) = observations.weighted().next().expect("one");
    assert!((one.sent_kb - 26.0 * 1.25).abs() < 1e-9 && (one.lost_kb - 1.25).abs() < 1e-9, "{one:?}");
    (1..40).for_each(|step| _ = observations.push(&packets(26 * step, 26, |_| false)));
    assert_eq!(observations.count(), WINDOW);
}

#[test]
fn a_loss_that_is_repaired_in_time_does_not_count() {
    let mut observations = Observations::new();
    observations.push(&packets(0, 10, |number| number == 3));
    observations.push(&packets(3, 1, |_| false));
    observations.push(&packets(10, 30, |_| false));
    assert!(observations.count() == 1 && observations.average_loss() < 1e-12);
}

/// If this test fails, a peer that reports losses endlessly makes the estimator's memory grow without bound.
#[test]
fn losses_of_one_observation_are_bounded_and_all_count() {
    let mut observations = Observations::new();
    let lost: Vec<_> = (0..3 * MOST_LOST as u64)
        .map(|number| PacketReport::new(number, Size::from_bytes(1000), Instant::ZERO, Fate::Lost))
        .collect();
    observations.push(&lost);
    observations.push(&packets(26, 1, |_| false));
    let (_, one) = observations.weighted().next().expect("one");
    assert!((one.lost_kb - 3.0 * MOST_LOST as f64).abs() < 1e-9, "{one:?}");
}

/// One observation with 19 % of loss among fourteen without loss is a spike. The mean loss excludes this observation,
/// and also the best observation.
#[test]
fn one_spike_of_loss_does_not_count() {
    let mut observations = Observations::new();
    for step in 0..15u64 {
        observations.push(&packets(26 * step, 26, |number| step == 7 && number % 5 == 0));
    }
    assert!(observations.average_loss() < 1e-12, "{}", observations.average_loss());
}

/// Passes four observations to `estimator` for each second in `seconds`. In all observations, every `every`-th packet
/// is lost. Returns the rate that the losses allow after the last observation, in bit/s.
fn run(estimator: &mut LossBased, seconds: core::ops::Range<u64>, every: u64, delay_bps: f64) -> f64 {
    for quarter in seconds.start * 4..seconds.end * 4 {
        estimator.update(&packets(quarter * 26, 26, |number| number % every == 0), delay_bps, false);
    }
    estimator.bps().expect("enough observations")
}

#[test]
fn without_losses_the_delay_decides() {
    let mut estimator = estimator();
    estimator.update(&packets(0, 26, |_| false), 2e6, false);
    estimator.update(&packets(26, 26, |_| false), 2e6, false);
    assert_eq!(estimator.bps(), None, "two observations");
    let found = run(&mut estimator, 1..10, u64::MAX, 2e6);
    assert!((found - 2e6).abs() < 1e-6 && estimator.state() == LossState::Delay, "{found}");
}

/// If 2 % of the packets are lost at every rate, the losses are not caused by congestion. Therefore the rate must not
/// fall.
#[test]
fn losses_that_do_not_depend_on_the_rate_leave_it() {
    let mut estimator = estimator();
    estimator.set_acked(980e3);
    let found = run(&mut estimator, 0..20, 50, 1e6);
    assert!(found > 0.97e6, "{found}");
}

/// At a loss above 5 %, the rate is at most 100 kbit/s / (loss - 0.05). At a loss of 20 %, this limit is 667 kbit/s.
/// The rate is also at least the delivery rate.
#[test]
fn heavy_losses_bring_the_rate_to_its_bounds() {
    let mut estimator = estimator();
    estimator.set_acked(400e3);
    let found = run(&mut estimator, 0..20, 5, 2e6);
    assert!((400e3..=670e3).contains(&found), "{found}");
    assert_ne!(estimator.state(), LossState::Delay);
    // Each second, the delivery rate rises to the rate that the losses allow. After 40 s without losses, only the delay
    // limits the rate again.
    let mut found = found;
    for second in 20..60 {
        estimator.set_acked(found);
        found = run(&mut estimator, second..second + 1, u64::MAX, 2e6);
    }
    assert!((found - 2e6).abs() < 1e-6, "{found}");
}

proptest! {
    #[test]
    fn it_never_exceeds_the_delay_and_what_arrives_and_is_always_a_number(
        steps in prop::collection::vec((1u64..2000, 1u64..60, any::<u64>(), any::<f64>(), 1e3..2e7f64, any::<bool>()), 1..60),
    ) {
        let mut estimator = estimator();
        let (mut from, mut most) = (0, LIMITS.0 as f64);
        for (skip, count, lost, acked, delay, is_app_limited) in steps {
            from += skip;
            estimator.set_acked(acked);
            estimator.update(&packets(from, count, |number| lost >> (number % 64) & 1 == 1), delay, is_app_limited);
            from += count;
            most = [delay, acked].into_iter().filter(|bps| bps.is_finite()).fold(most, f64::max);
            if let Some(bps) = estimator.bps() {
                prop_assert!((LIMITS.0 as f64..=most).contains(&bps), "{bps}");
            }
        }
    }
}
