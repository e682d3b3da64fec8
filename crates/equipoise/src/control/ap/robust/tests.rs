use proptest::prelude::*;

use super::*;

const PACKET: Size = Size::from_bytes(1000);

fn limits() -> RateLimits {
    RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(15_000_000)).expect("in order")
}

fn controller(rate_mbps: f64) -> Ap {
    let target = Span::from_micros(8200);
    let mut ap = Ap::new(ApConfig {
        target,
        limits: limits(),
        response: 300.0,
        learning: Learning::Fixed,
        unrest: 0.05,
        packet: PACKET,
    });
    ap.rate = Rate::from_bps_f64(rate_mbps * 1e6).expect("not negative");
    ap
}

/// Passes the mean delay in ms and its variance in ms² to `ap`. Returns the new rate in Mbit/s and the reason for it.
fn after(ap: &mut Ap, mean_ms: f64, variance_ms2: f64) -> (f64, Option<Reason>) {
    let delay = Some(DelaySummary { mean_s: mean_ms / 1e3, variance_s2: variance_ms2 / 1e6, samples: 100 });
    ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, ..IntervalSummary::unmeasured() }));
    (ap.allowance().rate.expect("a rate").as_mbps_f64(), ap.snapshot().reason)
}

/// Returns a controller after 200 reports whose mean delays differ from the target by 0.1 ms.
fn settled() -> Ap {
    let mut ap = controller(3.0);
    for report in 0..200 {
        after(&mut ap, if report % 2 == 0 { 8.1 } else { 8.3 }, 0.85);
    }
    ap
}

#[test]
fn noise_around_the_target_moves_the_rate_by_little() {
    let mut ap = settled();
    let before = ap.rate.as_mbps_f64();
    // A variance of 0.85 ms² implies a headroom of 3.96 Mbit/s.
    let (rate, reason) = after(&mut ap, 8.3, 0.85);
    assert!((rate - before).abs() < 3.0 * 0.05 * 3.96, "{before} to {rate}");
    assert_eq!(reason, Some(Reason::Law));
}

#[test]
fn a_change_is_answered_at_once_along_the_whole_curve() {
    let mut ap = settled();
    let before = ap.rate.as_mbps_f64();
    let (rate, reason) = after(&mut ap, 9.07, 3.23);
    // b is 300/(s·Mbit/s), which is 2.4/(s·packet/s) for 1000 bytes. So the headroom h is
    // sqrt(1 / (2·2.4·3.23e-6 s²)) = 253.97 packets/s. The error of the delay is e = -0.87 ms. It changes h to
    // h / (1 + 2 h e) = h / (1 - 0.4419) = 455.1 packets/s. The rate falls by the change of h, 201.1 packets/s, which
    // is 1.609 Mbit/s. The tangent (Waki 2013, Eq. 15) would lower the rate by only 0.898 Mbit/s.
    let expected = 1.609f64.min(before / 2.0);
    assert!((before - rate - expected).abs() < 2e-3, "{before} to {rate}");
    assert!(matches!(reason, Some(Reason::Change | Reason::StepGuard)), "{reason:?}");
}

/// Cross traffic alone causes the delay and its variance, so neither responds to our rate. The delay stays below the
/// target, so the law must raise the rate to the maximum.
#[test]
fn a_path_that_does_not_answer_is_no_reason_to_stay() {
    let mut ap = controller(1.0);
    for report in 0..100 {
        after(&mut ap, if report % 2 == 0 { 6.9 } else { 7.1 }, 0.85);
    }
    assert_eq!(ap.rate, limits().max());
}

#[test]
fn a_standing_queue_halves_the_rate_until_it_is_being_drained() {
    let mut ap = controller(8.0);
    let steps = [(270.0, 4.0, Reason::FarAboveTarget), (400.0, 2.0, Reason::FarAboveTarget)];
    for (mean, rate, reason) in steps {
        assert_eq!(after(&mut ap, mean, 23_700.0), (rate, Some(reason)), "at {mean} ms");
    }
    // The path model starts with the first report whose delay is not far above the target.
    after(&mut ap, 8.2, 0.85);
    let rate = ap.rate.as_mbps_f64();
    assert_eq!(after(&mut ap, 300.0, 5_000.0).1, Some(Reason::FarAboveTarget));
    assert_eq!(after(&mut ap, 100.0, 3_000.0), (rate / 2.0, Some(Reason::Draining)), "200 ms less than before");
}

/// Passes a report to `ap` at the time `millis`, in ms. The report covers `packets` packets, of which `lost` were lost.
/// It contains the round-trip time `round_trip`, in ms, and no delay statistics. Returns the rate in Mbit/s and the
/// reason for this rate.
fn told(ap: &mut Ap, millis: i64, (packets, lost): (u64, u64), round_trip: i64) -> (f64, Option<Reason>) {
    let interval = IntervalSummary {
        packets: Some(packets),
        fraction_lost: Some(lost as f64 / packets as f64),
        delivered: Rate::from_bps_f64(ap.rate.as_bps_f64() * (packets - lost) as f64 / packets as f64),
        round_trip: Some(Span::from_millis(round_trip)),
        ..IntervalSummary::unmeasured()
    };
    ap.on_feedback(Instant::ZERO + Span::from_millis(millis), &Feedback::Interval(interval));
    (ap.rate.as_mbps_f64(), ap.snapshot().reason)
}

/// A report on a hundred packets has no delay statistics in two cases: all packets were lost, or the delay is longer
/// than the interval. In the second case, all received packets were sent before the interval (Waki 2013, Eq. 13). If
/// the test fails, a report without statistics counts as a report on too few packets, and the rate is doubled.
#[test]
fn without_statistics_an_empty_path_is_tried_and_a_full_one_is_left() {
    let mut ap = controller(4.0);
    assert_eq!(told(&mut ap, 0, (2, 0), 20), (8.0, Some(Reason::NoStatistics)), "few, on an empty path");
    assert_eq!(told(&mut ap, 10, (2, 0), 20), (8.0, Some(Reason::TooSoon)));
    assert_eq!(told(&mut ap, 250, (100, 0), 30), (8.0, Some(Reason::NoStatistics)), "a queue of 10 ms: 8.2 are wanted");
    assert_eq!(told(&mut ap, 500, (100, 0), 410), (4.0, Some(Reason::FarAboveTarget)));
    assert_eq!(told(&mut ap, 750, (100, 0), 410), (4.0, Some(Reason::Draining)), "within the round trip");
    assert_eq!(told(&mut ap, 1000, (100, 0), 410), (2.0, Some(Reason::FarAboveTarget)));
    assert_eq!(told(&mut ap, 2000, (100, 30), 20), (2.0 * 0.7 * BELOW_DELIVERED, Some(Reason::Overload)));
    assert_eq!(told(&mut ap, 3000, (100, 100), 20), (limits().min().as_mbps_f64(), Some(Reason::RateLimit)));
    let mut ap = controller(4.0);
    ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary::unmeasured()));
    assert_eq!((ap.rate.as_mbps_f64(), ap.snapshot().reason), (4.0, Some(Reason::NoStatistics)), "nothing is known");
}

/// After an overload, the controller raises the rate in small steps near the rate at which the path was full. If the
/// test fails, the controller forgets at which rate the path was full, and doubles its rate to above that value.
#[test]
fn what_was_too_much_is_not_tried_again_in_strides() {
    let mut ap = controller(4.0);
    told(&mut ap, 0, (100, 50), 20);
    assert_eq!(ap.rate, Rate::from_bps_f64(2e6 * BELOW_DELIVERED).expect("a rate"));
    let rates = [1, 2, 3, 4].map(|second| told(&mut ap, 1000 * second, (2, 0), 20).0);
    let expected = [2.0 * 0.95, 1.919, 1.938_19, 1.957_572];
    assert!(rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-4), "{rates:?}");
}

#[test]
fn without_variance_the_rate_doubles_or_halves() {
    assert_eq!(after(&mut controller(1.0), 5.0, 0.0), (2.0, Some(Reason::NoVariance)));
    assert_eq!(after(&mut controller(1.0), 9.0, 0.0), (0.5, Some(Reason::NoVariance)));
}

/// If this test fails, the delay that was expected at an earlier, higher rate keeps the rate low for minutes.
#[test]
fn after_an_interval_without_statistics_the_next_report_is_a_first_one() {
    let round_trip = Some(Span::from_millis(600));
    let far = IntervalSummary { round_trip, ..IntervalSummary::unmeasured() };
    let blind: [fn(&mut Ap, IntervalSummary); 2] = [
        |ap, far| {
            let near = IntervalSummary { round_trip: Some(Span::from_millis(1)), ..far };
            ap.signs.observe(Instant::ZERO, &near);
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(far));
        },
        |ap, _| ap.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 }),
    ];
    for make_blind in blind {
        let mut ap = settled();
        let before = ap.rate.as_mbps_f64();
        make_blind(&mut ap, far);
        assert!((ap.rate.as_mbps_f64() - before / 2.0).abs() < 1e-5);
        ap.raised = None;
        let (rate, _) = after(&mut ap, 6.0, 0.3);
        assert!((0.9..=1.0).contains(&(rate / before)), "from the half to below what was full: {rate} of {before}");
    }
}

#[test]
fn missing_reports_halve_down_to_the_lowest_rate() {
    let mut ap = controller(0.3);
    ap.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
    assert_eq!(ap.allowance().rate, Some(Rate::from_bps(150_000)));
    ap.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
    assert_eq!((ap.rate, ap.snapshot().reason), (limits().min(), Some(Reason::ReportsMissing)));
}

proptest! {
    /// For any statistics, even `NaN` or infinite, the rate stays within its limits and changes by at most a factor of
    /// two, and the next valid report results in a finite path model.
    #[test]
    fn any_feedback_keeps_the_rate_within_limits_and_factor_two(
        rate in 0.1f64..15.0, reports in proptest::collection::vec((proptest::num::f64::ANY, proptest::num::f64::ANY), 1..20),
    ) {
        let mut ap = controller(rate);
        for (mean, variance) in reports {
            let before = ap.rate.as_mbps_f64();
            let delay = Some(DelaySummary { mean_s: mean, variance_s2: variance, samples: 3 });
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, ..IntervalSummary::unmeasured() }));
            let now = ap.rate.as_mbps_f64();
            prop_assert!(ap.rate >= limits().min() && ap.rate <= limits().max());
            prop_assert!(now <= before * 2.0 + 1e-5 && now >= before / 2.0 - 1e-5 || ap.rate == limits().min());
        }
        after(&mut ap, 8.2, 0.85);
        prop_assert!(ap.path.is_some_and(|path| path.mean_s.is_finite() && path.variance_s2.is_finite()));
    }

    /// Pushes (small random changes of the rate), from which the coefficient of response b is learned, keep the rate
    /// within its limits.
    #[test]
    fn pushes_keep_the_rate_within_limits(rate in 0.1f64..15.0, reports in proptest::collection::vec((7.0f64..9.0, 0.1f64..3.0), 1..80)) {
        let mut ap = controller(rate);
        ap.learner = Learner::new(Learning::Adapted, 300.0);
        let mut pushed = false;
        for (mean, variance) in &reports {
            let (sent, _) = after(&mut ap, *mean, *variance);
            prop_assert!((0.1..=15.0).contains(&sent));
            pushed |= (sent - ap.rate.as_mbps_f64()).abs() > 1e-3;
        }
        prop_assert!(pushed || reports.len() < 30);
    }

    /// The first report never lowers the rate if the mean delay is below the target, and never raises it if the mean
    /// delay is above the target.
    #[test]
    fn the_rate_moves_to_the_targets_side(rate in 0.2f64..14.0, mean in 5.0f64..50.0, variance in 0.0f64..1e4) {
        let (now, _) = after(&mut controller(rate), mean, variance);
        prop_assert!((now - rate) * (8.2 - mean) >= -1e-5, "{rate} to {now} at {mean} ms");
    }

    /// A step up is at most half of the headroom that the variance implies, whatever the error of the delay is.
    #[test]
    fn a_step_up_stays_within_the_headroom(mean in 0.0f64..8.2, rho in 0.1f64..0.99) {
        let mu = 1875.0;
        let variance = md1::variance(rho * mu, mu);
        let b = md1::response(rho, PACKET);
        let mut ap = controller(7.0);
        ap.learner = Learner::new(Learning::Fixed, b);
        let (now, _) = after(&mut ap, mean, variance * 1e6);
        prop_assert!(now - 7.0 <= 0.5 * 15.0 * (1.0 - rho) + 1e-6, "{now}");
    }
}
