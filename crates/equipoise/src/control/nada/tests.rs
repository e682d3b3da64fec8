use alloc::vec::Vec;

use proptest::prelude::*;

use super::receiver::warped_while_losing;
use super::*;
use crate::control::bottleneck::{Bottleneck, mean};
use crate::control::loss_intervals::LossIntervals;
use crate::control::{Ecn, Fate, IntervalSummary, PacketReport};

const PACKET: Size = Size::from_bytes(1000);

fn limits() -> RateLimits {
    RateLimits::new(Rate::from_bps(150_000), Rate::from_bps(1_500_000)).expect("in order")
}

fn nada_at(bps: u64) -> Nada {
    Nada::new(NadaLaw::default(), limits().starting_at(Rate::from_bps(bps)))
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} is not {expected} ± {within}");
}

/// The expected values are computed by hand from RFC 8698, Eq. 5 to 7. With a highest rate of 1.5 Mbit/s, a rate of
/// 1 Mbit/s is in equilibrium at a signal of 15 ms. A signal that rises from 20 ms to 25 ms is 10 ms above the
/// equilibrium.
#[test]
fn the_gradual_update_has_the_values_that_the_equations_give_by_hand() {
    let law = NadaLaw::default();
    let next = |bps, before_ms: f64, now_ms: f64| {
        let signal = Signal { now_s: now_ms / 1e3, before_s: before_ms / 1e3, elapsed_s: 0.1 };
        law.gradual(bps, signal)
    };
    close(next(1e6, 20.0, 25.0), 988_000.0, 1e-6);
    close(next(1e6, 15.0, 15.0), 1e6, 1e-6);
    close(next(0.6e6, 0.0, 200.0), 339_000.0, 1e-6);
}

#[test]
fn the_signal_at_rest_is_in_inverse_proportion_to_the_rate() {
    let law = NadaLaw::default();
    for (bps, signal_ms) in [(1.5e6, 10.0), (1e6, 15.0), (0.6e6, 25.0), (0.3e6, 50.0)] {
        let signal = Signal { now_s: signal_ms / 1e3, before_s: signal_ms / 1e3, elapsed_s: 0.1 };
        close(law.gradual(bps, signal), bps, 1e-6);
        let double = NadaLaw { priority: 2.0, ..law };
        let signal = Signal { now_s: signal_ms / 500.0, before_s: signal_ms / 500.0, elapsed_s: 0.1 };
        close(double.gradual(bps, signal), bps, 1e-6);
    }
}

#[test]
fn warping_leaves_short_delays_and_makes_long_ones_count_less() {
    let law = NadaLaw::default();
    for (delay_ms, warped_ms) in
        [(0.0, 0.0), (49.9, 49.9), (50.0, 50.0), (75.0, 38.94), (100.0, 30.33), (200.0, 11.16), (300.0, 4.10)]
    {
        close(law.warped(delay_ms / 1e3) * 1e3, warped_ms, 0.005);
    }
}

#[test]
fn the_step_of_a_ramp_up_shrinks_with_the_round_trip() {
    let law = NadaLaw::default();
    for (round_trip_ms, gamma) in [(20.0, 0.208), (100.0, 0.156), (200.0, 0.119), (300.0, 0.096)] {
        close(law.ramp_up(1.0, 1e6, round_trip_ms / 1e3) / 1e6 - 1.0, gamma, 0.0005);
    }
    close(law.ramp_up(2e6, 1e6, 0.1), 2e6, 0.0);
    let eager = NadaLaw { ramp_bound_s: 1.0, ..law };
    close(eager.ramp_up(1.0, 1e6, 0.1), 1.5e6, 1e-3);
}

#[test]
fn losses_and_marks_count_as_the_square_of_their_share() {
    let law = NadaLaw::default();
    for (share, losses_ms, marks_ms) in [(0.01, 10.0, 2.0), (0.02, 40.0, 8.0), (0.05, 250.0, 50.0), (1.0, 500.0, 500.0)]
    {
        close(law.signal(0.0, 0.0, share) * 1e3, losses_ms, 1e-9);
        close(law.signal(0.0, share, 0.0) * 1e3, marks_ms, 1e-9);
    }
    close(law.signal(0.02, 0.01, 0.01) * 1e3, 32.0, 1e-9);
}

/// A shaping buffer of 2000 bytes lowers the encoder's rate by 48 kbit/s, and raises the sending rate by 48 kbit/s (RFC
/// 8698, Sec. 5.2.2). The maximum of each change is 5 % of the rate.
#[test]
fn a_shaping_buffer_slows_the_encoder_and_hastens_the_sender() {
    let shaped = |bps, waiting| {
        let mut nada = nada_at(bps);
        nada.on_frame(at(0), &QueuedFrame::new(Size::from_bytes(5000), Size::from_bytes(waiting), Span::ZERO));
        let Allowance { rate, pace, .. } = nada.allowance();
        [rate, pace].map(|rate| rate.map(Rate::as_bps))
    };
    assert_eq!(shaped(1_000_000, 0), [Some(1_000_000); 2]);
    assert_eq!(shaped(1_000_000, 2000), [Some(952_000), Some(1_048_000)]);
    assert_eq!(shaped(1_000_000, u64::MAX), [Some(950_000), Some(1_050_000)]);
    assert_eq!(shaped(1_500_000, 2000), [Some(1_452_000), Some(1_500_000)]);
    assert_eq!(shaped(150_000, 2000), [Some(150_000), Some(157_500)]);
}

/// The losses are a hundred packets apart. For 700 packets after a loss, the delay is warped: a long delay counts as a
/// shorter one (RFC 8698, Sec. 4.2). Over the next 100 packets, the result returns to the measured delay.
#[test]
fn a_loss_is_remembered_for_seven_intervals_and_forgotten_over_one_more() {
    let law = NadaLaw::default();
    let mut losses = LossIntervals::new();
    close(warped_while_losing(&law, 0.1, &losses), 0.1, 0.0);
    losses.grow(100.0);
    losses.close();
    for (since, expected) in [(0.0, 0.030_327), (699.0, 0.030_327), (750.0, 0.065_163), (800.0, 0.1), (1e9, 0.1)] {
        losses.replace_open(since);
        close(warped_while_losing(&law, 0.1, &losses), expected, 1e-6);
    }
}

/// In equilibrium the queueing delay is 10 ms (XREF) times 1.5 Mbit/s (RMAX) divided by the rate: 15 ms at 1 Mbit/s,
/// and 25 ms at 0.6 Mbit/s.
#[test]
fn alone_on_a_link_the_rate_is_the_capacity_and_the_queue_that_of_the_equilibrium() {
    let path = Bottleneck { capacity_bps: |at_s| if at_s < 60.0 { 1e6 } else { 0.6e6 }, ..Bottleneck::default() };
    let seen = path.run(&mut nada_at(150_000), 120);
    for ((from, to), (capacity, queue_s)) in [((40.0, 60.0), (1e6, 0.015)), ((100.0, 120.0), (0.6e6, 0.025))] {
        let (rate, queue) = mean(&seen, from, to);
        close(rate, capacity, 0.03 * capacity);
        close(queue, queue_s, 0.012);
    }
    let worst = seen.iter().filter(|moment| moment.at_s > 63.0).map(|moment| moment.queue_s).fold(0.0, f64::max);
    assert!(worst < 0.15, "three seconds after the drop: {worst} s");
}

/// Without a queue, marks alone control the rate. If 2.5 % of the packets are marked, the signal is 12.5 ms, and the
/// rate converges to 1.2 Mbit/s with a time constant of 40 s. At 5 %, the signal is 50 ms, and the rate converges to
/// 0.3 Mbit/s with a time constant of 10 s (RFC 8698, Eq. 2 and 5 to 7).
#[test]
fn marks_without_a_queue_steer_the_rate_to_where_the_equations_balance() {
    for (mark_every, expected) in [(40, 1.2e6), (20, 0.3e6)] {
        let path = Bottleneck {
            capacity_bps: |_| 1e9,
            ecn: Ecn::Ect0,
            mark_every,
            packet: Size::from_bytes(100),
            ..Bottleneck::default()
        };
        let (rate, _) = mean(&path.run(&mut nada_at(600_000), 240), 200.0, 240.0);
        close(rate, expected, 0.02 * expected);
    }
}

#[test]
fn an_unused_path_is_filled_within_seconds_and_a_source_that_sends_little_gains_nothing_by_it() {
    let path = Bottleneck { capacity_bps: |_| 1e9, ..Bottleneck::default() };
    let seen = path.run(&mut nada_at(150_000), 12);
    assert!(seen.iter().any(|moment| moment.rate_bps >= 1.5e6), "{seen:?}");
    let idle = Bottleneck { wanted_bps: 100_000.0, ..path };
    let seen = idle.run(&mut nada_at(150_000), 30);
    assert!(seen.iter().all(|moment| moment.rate_bps <= 150_000.0 * 1.01), "{seen:?}");
}

fn at(ms: u64) -> Instant<SenderClock> {
    Instant::from_nanos(10_000_000_000 + ms * 1_000_000)
}

/// Reports ten packets to `nada`. The packets are sent 10 ms apart, and the last packet is sent at `ms`. Each packet
/// takes `way` ms. The last `lost` packets are lost.
fn tell(nada: &mut Nada, ms: u64, way: u64, lost: u64, ecn: Ecn) {
    let packets: Vec<_> = (0..10)
        .map(|place| {
            let left = ms - 90 + 10 * place;
            let arrived = Fate::Arrived { at: Some(at(left + way).assume_clock()), ecn };
            let fate = if place >= 10 - lost { Fate::Lost } else { arrived };
            PacketReport::new(ms / 10 + place, PACKET, at(left), fate)
        })
        .collect();
    let mut feedback = PacketFeedback::new(&packets, PACKET);
    feedback.round_trip = Some(Span::from_millis(2 * way as i64));
    nada.on_feedback(at(ms + way), &Feedback::Packets(&feedback));
}

/// If this test fails, the rate is kept although packets of a window were lost, because the window has no delay sample.
#[test]
fn losses_alone_lower_the_rate_before_any_delay_is_known() {
    let mut nada = nada_at(1_000_000);
    (1..8).for_each(|turn| tell(&mut nada, turn * 100, 20, 10, Ecn::NotEct));
    assert!(nada.rate < Rate::from_bps(700_000), "{}", nada.rate);
    assert_eq!(nada.congestion(), Span::from_millis(500));
}

#[test]
fn round_trips_stand_for_delays_until_arrival_times_are_told() {
    let mut nada = nada_at(1_000_000);
    let mut tell = |ms: u64, round_trip: i64, arrived: Option<u64>| {
        let fate = Fate::Arrived { at: arrived.map(|ms| at(ms).assume_clock()), ecn: Ecn::NotEct };
        let packet = [PacketReport::new(ms, PACKET, at(ms), fate)];
        let mut feedback = PacketFeedback::new(&packet, PACKET);
        feedback.round_trip = Some(Span::from_millis(round_trip));
        nada.on_feedback(at(ms + 100), &Feedback::Packets(&feedback));
        nada.congestion()
    };
    tell(0, 40, None);
    (1..20).for_each(|turn| {
        tell(turn * 100, 60, None);
    });
    assert_eq!(tell(2000, 60, None), Span::from_millis(20));
    assert_eq!(tell(2100, 60, Some(2110)), Span::ZERO, "one sample is its own base");
}

#[test]
fn silence_and_timeouts_halve_the_rate_and_other_feedback_leaves_it() {
    let mut nada = nada_at(1_000_000);
    nada.on_feedback(at(0), &Feedback::Silent { reports: 3 });
    assert_eq!((nada.rate, nada.snapshot().reason), (Rate::from_bps(500_000), Some(Reason::ReportsMissing)));
    nada.on_feedback(at(1), &Feedback::TimedOut { in_flight: PACKET });
    nada.on_feedback(at(2), &Feedback::TimedOut { in_flight: PACKET });
    assert_eq!(nada.reference_rate(), limits().min());
    nada.on_feedback(at(3), &Feedback::Interval(IntervalSummary::unmeasured()));
    nada.on_feedback(at(4), &Feedback::Packets(&PacketFeedback::new(&[], Size::ZERO)));
    assert_eq!(nada.reference_rate(), limits().min());
}

/// Updates take place about every 100 ms, however often feedback arrives.
#[test]
fn updates_come_nearest_to_their_interval() {
    for (gap, updates) in [(10, 10), (40, 12), (60, 8), (100, 10), (110, 9)] {
        let mut nada = nada_at(1_000_000);
        let mut count = 0;
        for turn in 1..=(1000 / gap + 1) {
            nada.snapshot = Snapshot::default();
            tell(&mut nada, 1000 + turn * gap, 20, 0, Ecn::NotEct);
            count += u64::from(nada.snapshot.reason.is_some());
        }
        assert!(count.abs_diff(updates) <= 1, "every {gap} ms: {count}");
    }
}

/// Generates reports on packets as any peer may send them: with any number, departure, arrival, mark and size.
fn packets() -> impl Strategy<Value = Vec<PacketReport>> {
    let arrived =
        prop_oneof![Just(None), any::<u64>().prop_map(Some), (9_000..60_000u64).prop_map(|ms| Some(ms * 1_000_000))];
    let fate = prop_oneof![
        Just(Fate::Lost),
        (arrived, any::<bool>()).prop_map(|(at, marked)| {
            Fate::Arrived { at: at.map(Instant::from_nanos), ecn: if marked { Ecn::Ce } else { Ecn::Ect0 } }
        }),
    ];
    let packet = (any::<u16>(), 0..40_000u64, fate, any::<u16>()).prop_map(|(number, departed, fate, size)| {
        PacketReport::new(number.into(), Size::from_bytes(size.into()), at(departed), fate)
    });
    proptest::collection::vec(packet, 0..12)
}

proptest! {
    #[test]
    fn no_feedback_whatever_brings_the_rate_out_of_its_limits(
        reports in proptest::collection::vec((packets(), proptest::option::of(any::<i64>()), 0..40_000u64), 1..30),
    ) {
        let mut nada = nada_at(600_000);
        for (packets, round_trip, now) in &reports {
            let mut feedback = PacketFeedback::new(packets, PACKET);
            feedback.round_trip = round_trip.map(Span::from_nanos);
            nada.on_feedback(at(*now), &Feedback::Packets(&feedback));
            prop_assert!(nada.rate >= limits().min() && nada.rate <= limits().max());
            prop_assert!((Span::ZERO..=Span::from_millis(500)).contains(&nada.congestion()));
        }
    }

    /// Even with forged arrival times, a ramp-up reaches at most 1.5 times the sending rate of 80 kbit/s. This limit of
    /// 120 kbit/s is below the start rate of 150 kbit/s, so the rate must not rise in this test.
    #[test]
    fn a_ramp_up_is_bounded_by_what_was_sent(squeezed in 1..100u64, turns in 1..40u64) {
        let mut nada = nada_at(150_000);
        for turn in 1..turns {
            // The packets are sent at a constant 80 kbit/s, but reported as if they arrived at `squeezed` times this
            // rate.
            let left = at(turn * 100);
            let arrived = at(turn * 100 / squeezed).assume_clock();
            let packet = [PacketReport::new(turn, PACKET, left, Fate::Arrived { at: Some(arrived), ecn: Ecn::NotEct })];
            nada.on_feedback(left + Span::from_millis(50), &Feedback::Packets(&PacketFeedback::new(&packet, PACKET)));
        }
        prop_assert!(nada.rate <= Rate::from_bps(150_000), "{}", nada.rate);
    }

    /// Feedback with four or more lost packets out of ten never raises the rate.
    #[test]
    fn losses_never_raise_the_rate(start in 150_000..1_500_000u64, lost in 4..=10u64, turns in 2..30u64) {
        let mut nada = nada_at(start);
        let mut highest = nada.rate;
        for turn in 1..turns {
            tell(&mut nada, turn * 100, 20, lost, Ecn::NotEct);
            // The equilibrium for these losses is below the lowest rate, so each update lowers the rate, down to the
            // lowest rate.
            prop_assert!(nada.rate <= highest);
            highest = nada.rate;
        }
    }

    /// A signal of NaN leaves the rate unchanged. A receiving rate of NaN does not raise the rate. A delay of NaN gives
    /// the largest signal. Huge inputs never produce NaN.
    #[test]
    fn the_equations_are_total(
        rate in 1.0f64..1e9, a in proptest::num::f64::ANY, b in proptest::num::f64::ANY, c in proptest::num::f64::ANY,
    ) {
        let law = NadaLaw::default();
        let next = law.gradual(rate, Signal { now_s: a, before_s: b, elapsed_s: c });
        prop_assert!(next.is_finite());
        let known = law.gradual(rate, Signal { now_s: f64::NAN, before_s: b, elapsed_s: c });
        prop_assert!((known - rate).abs() < 1e-9);
        prop_assert!(law.ramp_up(rate, a, b).is_finite() && law.ramp_up(rate, f64::NAN, b) <= rate);
        prop_assert!((0.0..=0.5).contains(&law.signal(a, b, c)));
        prop_assert!(law.signal(f64::NAN, b, c) >= 0.5);
    }

    /// More marks, losses or delay never raise the rate.
    #[test]
    fn the_next_rate_falls_with_delay_marks_and_losses(
        rate in 150e3f64..1.5e6, delay in 0.0f64..0.5, marks in 0.0f64..1.0, losses in 0.0f64..1.0, more in 0.0f64..0.5,
    ) {
        let law = NadaLaw::default();
        let next = |delay, marks, losses| {
            law.gradual(rate, Signal { now_s: law.signal(delay, marks, losses), before_s: 0.02, elapsed_s: 0.1 })
        };
        let base = next(delay, marks, losses);
        prop_assert!(next(delay + more, marks, losses) <= base);
        prop_assert!(next(delay, marks + more, losses) <= base);
        prop_assert!(next(delay, marks, losses + more) <= base);
    }

    /// Two runs differ only in the marks of the last report: the run with marks must not have the higher rate.
    #[test]
    fn marked_packets_never_raise_the_rate_beyond_unmarked_ones(start in 150_000..1_500_000u64, way in 20..120u64, turns in 2..20u64) {
        let rates = [Ecn::Ect0, Ecn::Ce].map(|last| {
            let mut nada = nada_at(start);
            (1..turns).for_each(|turn| tell(&mut nada, turn * 100, 20, 0, Ecn::Ect0));
            tell(&mut nada, turns * 100, way, 0, last);
            nada.rate
        });
        prop_assert!(rates[1] <= rates[0], "{rates:?}");
    }
}
