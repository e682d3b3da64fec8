use alloc::boxed::Box;

use proptest::prelude::*;

use super::*;
use crate::control::window::BoxedWindowController;
use crate::measure::Measured;
use crate::units::{Rate, Span};

pub(super) type At = Instant<SenderClock>;

pub(super) const CONFIG: SymbiosisConfig = SymbiosisConfig {
    gamma: 0.95,
    epsilon_per_s: 1.95,
    noise_weight: 4.0,
    initial_window: 10.0,
    packet: Size::from_bytes(1500),
};

pub(super) fn estimate(capacity_bps: u64, available_bps: u64) -> BandwidthEstimate {
    BandwidthEstimate {
        capacity: Measured::exact(Rate::from_bps(capacity_bps)),
        available: Measured::exact(Rate::from_bps(available_bps)),
    }
}

/// Returns a capacity of 12500 packets/s and an available bandwidth of 10000 packets/s, with packets of 1500 bytes.
fn golden() -> BandwidthEstimate {
    estimate(150_000_000, 120_000_000)
}

pub(super) fn ack() -> Acknowledged {
    Acknowledged {
        segments: 1,
        min_round_trip: Some(Span::from_millis(120)),
        in_flight: 10,
        window_limited: true,
        ..Acknowledged::default()
    }
}

fn at_ms(ms: u64) -> At {
    At::from_nanos(ms * 1_000_000)
}

fn of(window: f64) -> Symbiosis {
    Symbiosis::new(SymbiosisConfig { initial_window: window, ..CONFIG })
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn before_the_first_measurement_it_is_reno() {
    let (mut symbiosis, mut reno) = (of(10.0), Reno::new(10.0));
    for ms in 0..200 {
        if ms == 50 {
            symbiosis.on_loss(at_ms(ms), 30);
            reno.on_loss(at_ms(ms), 30);
        }
        symbiosis.on_ack(at_ms(ms), &ack());
        reno.on_ack(at_ms(ms), &ack());
        assert_eq!(
            (symbiosis.window(), symbiosis.slow_start_threshold()),
            (reno.window(), reno.slow_start_threshold())
        );
    }
    assert_eq!(symbiosis.snapshot().bandwidth, None);
}

/// If this test fails, the window (Kodama 2009, Eq. 10) depends on how many acknowledgements arrive in a given time, or
/// rates are not converted to packets.
#[test]
fn golden_window_whatever_the_acknowledgements_between() {
    for steps in [1, 10, 120] {
        let mut symbiosis = of(100.0);
        symbiosis.on_bandwidth(At::ZERO, &golden());
        (0..=steps).for_each(|step| symbiosis.on_ack(at_ms(step * 120 / steps), &ack()));
        assert!((symbiosis.window() - 118.8283).abs() < 5e-5, "{}", symbiosis.window());
    }
    let mut symbiosis = of(100.0);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    (0..60).for_each(|second| symbiosis.on_ack(at_ms(second * 1000), &ack()));
    close(symbiosis.window(), 1215.0);
}

#[test]
fn a_loss_halves_the_window_and_the_time_of_recovery_is_not_a_step() {
    let mut symbiosis = of(1215.0);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    symbiosis.on_ack(at_ms(1), &ack());
    symbiosis.on_loss(at_ms(2), 1200);
    close(symbiosis.window(), 600.0);
    symbiosis.on_ack(at_ms(500), &ack());
    close(symbiosis.window(), 600.0);
    symbiosis.on_ack(at_ms(501), &ack());
    assert!(
        symbiosis.window() > 600.0 && symbiosis.window() < 602.0,
        "one millisecond's growth: {}",
        symbiosis.window()
    );
    assert_eq!(symbiosis.snapshot().bandwidth, Some(golden()), "a loss says nothing against the measurement");
}

#[test]
fn a_timeout_discards_what_was_measured_and_slow_starts() {
    let mut symbiosis = of(1000.0);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    symbiosis.on_bandwidth(At::ZERO, &estimate(150_000_000, 20_000_000));
    assert!(symbiosis.snapshot().gamma.unwrap() < 0.95);
    symbiosis.on_timeout(at_ms(1), 1000);
    close(symbiosis.window(), 1.0);
    assert_eq!(symbiosis.snapshot().bandwidth, None);
    close(symbiosis.snapshot().gamma.unwrap(), 0.95);
    (0..7).for_each(|ms| symbiosis.on_ack(at_ms(200 + ms), &ack()));
    close(symbiosis.window(), 8.0);
    close(symbiosis.slow_start_threshold().unwrap(), 500.0);
}

#[test]
fn an_idle_time_is_no_step_and_its_limit_of_the_window_holds() {
    let mut symbiosis = of(1000.0);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    symbiosis.on_ack(at_ms(1), &ack());
    symbiosis.on_restart(at_ms(60_000), 10.0);
    symbiosis.on_ack(at_ms(60_120), &ack());
    close(symbiosis.window(), 10.0);
}

#[test]
fn an_unused_window_may_fall_and_does_not_rise() {
    let unused = Acknowledged { window_limited: false, ..ack() };
    let mut symbiosis = of(100.0);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    (0..10).for_each(|ms| symbiosis.on_ack(at_ms(ms), &unused));
    close(symbiosis.window(), 100.0);
    // The window is too large for the path: 1 Mbit/s is 10 packets in 120 ms.
    symbiosis.on_bandwidth(At::ZERO, &estimate(1_000_000, 1_000_000));
    (10..6000).for_each(|ms| symbiosis.on_ack(at_ms(ms), &unused));
    assert!((symbiosis.window() - 10.0).abs() < 0.1, "{}", symbiosis.window());
}

/// Simulates two flows that share 100 Mbit/s with a round-trip time of 120 ms, as in Kodama 2009, Fig. 3. Every 360 ms,
/// each flow measures the bandwidth that the other flow does not use. Every 10 ms, each flow gets an acknowledgement.
/// Returns the windows of both flows after `seconds`.
fn join(noise_weight: f64, seconds: u64) -> [f64; 2] {
    let flow = |initial_window| Symbiosis::new(SymbiosisConfig { noise_weight, initial_window, ..CONFIG });
    let mut flows = [flow(1000.0), flow(10.0)];
    for ms in (0..seconds * 1000).step_by(10) {
        if ms % 360 == 0 {
            let [elder, newcomer] = flows.each_ref().map(|flow| flow.window() * 12_000.0 / 0.12);
            for (flow, other) in flows.iter_mut().zip([newcomer, elder]) {
                flow.on_bandwidth(at_ms(ms), &estimate(100_000_000, (100e6 - other).max(0.0) as u64));
            }
        }
        for flow in &mut flows {
            flow.on_ack(at_ms(ms), &ack());
        }
    }
    flows.map(|flow| flow.window())
}

/// The newer flow grows and the older flow yields until their windows are equal. The difference between the windows
/// shrinks at a rate of `ε (1 - γ) N / K` = 0.05 per second. ε is the speed of convergence, γ the weight of cross
/// traffic, N the rate of each flow, and K the capacity.
#[test]
fn a_second_flow_takes_its_half_without_a_loss() {
    for window in join(0.0, 300) {
        // Kodama 2009, Eq. 7 in equilibrium: N = K / (1 + γ) = 8333 / 1.95 packets/s. In 120 ms, this is 512.8 packets.
        assert!((window / 512.8 - 1.0).abs() < 0.001, "{window}");
    }
    // With noise awareness, the changes of the other flow's rate count as noise at first. Therefore the windows take
    // longer to cover the last few percent of the way to 512.8 packets.
    for window in join(4.0, 300) {
        assert!((window / 512.8 - 1.0).abs() < 0.1, "{window}");
    }
}

#[test]
fn noise_lowers_gamma_and_raises_the_window_where_it_rests() {
    let mut symbiosis = of(10.0);
    symbiosis.on_bandwidth(At::ZERO, &estimate(100_000_000, 50_000_000));
    close(symbiosis.snapshot().gamma.unwrap(), 0.95);
    // The cross traffic is 50 Mbit/s, then 90 Mbit/s. With the gains 1/8 and 1/4, the smoothed mean is 55 Mbit/s, and
    // the smoothed mean deviation is 10 Mbit/s.
    symbiosis.on_bandwidth(At::ZERO, &estimate(100_000_000, 10_000_000));
    close(symbiosis.snapshot().gamma.unwrap(), 0.95 / (1.0 + 4.0 * 10.0 / 55.0));
    let mut deaf = Symbiosis::new(SymbiosisConfig { noise_weight: 0.0, ..CONFIG });
    deaf.on_bandwidth(At::ZERO, &estimate(100_000_000, 50_000_000));
    deaf.on_bandwidth(At::ZERO, &estimate(100_000_000, 10_000_000));
    for ms in 0..60_000 {
        symbiosis.on_ack(at_ms(ms), &ack());
        deaf.on_ack(at_ms(ms), &ack());
    }
    // The expected window is w* = {γ A + (1 - γ) K} τ, with 12000 bits per packet. γ is 0.55 with the noise, and 0.95
    // if the weight of the noise is zero.
    close(symbiosis.window(), (0.55 * 10e6 + 0.45 * 100e6) / 12e3 * 0.12);
    close(deaf.window(), (0.95 * 10e6 + 0.05 * 100e6) / 12e3 * 0.12);
}

#[test]
fn no_capacity_and_no_round_trip_time_leave_it_to_reno() {
    let mut symbiosis = of(10.0);
    symbiosis.on_bandwidth(At::ZERO, &estimate(0, 0));
    assert_eq!(symbiosis.snapshot().bandwidth, None);
    symbiosis.on_bandwidth(At::ZERO, &golden());
    let untimed = Acknowledged { min_round_trip: None, ..ack() };
    symbiosis.on_ack(at_ms(1), &untimed);
    close(symbiosis.window(), 11.0);
}

proptest! {
    /// For any order and any values of the inputs, the float form and the integer form have a finite window of at least
    /// one segment.
    #[test]
    fn the_window_is_finite_and_at_least_one_after_any_input(inputs in prop::collection::vec(any::<(u8, u64, u64, i64, bool)>(), 1..60), bytes in any::<u64>()) {
        let config = SymbiosisConfig { packet: Size::from_bytes(bytes), ..CONFIG };
        let forms: [BoxedWindowController; 2] =
            [Box::new(Symbiosis::new(config)), Box::new(FixedSymbiosis::new(config, 0.3, bytes))];
        for (form, mut law) in ["float", "integer"].into_iter().zip(forms) {
            for &(kind, a, b, nanos, flag) in &inputs {
                let now = At::from_nanos(a);
                match kind % 6 {
                    0 => law.on_loss(now, b),
                    1 => law.on_timeout(now, b),
                    2 => law.on_restart(now, b as f64),
                    3 => law.on_bandwidth(now, &estimate(a, b)),
                    4 => law.reset_to(nanos as f64),
                    _ => {
                        let min_round_trip = Some(Span::from_nanos(nanos));
                        law.on_ack(now, &Acknowledged { segments: b, min_round_trip, window_limited: flag, ..ack() });
                    }
                }
                prop_assert!(law.window().is_finite() && law.window() >= 1.0, "{form}: {}", law.window());
            }
        }
    }
}
