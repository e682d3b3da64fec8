use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use equipoise::control::{Controller, Feedback, IntervalSummary};

fn at(millis: i64) -> Instant<SenderClock> {
    Instant::ZERO + Span::from_millis(millis)
}

fn kbit(kbit_s: u64) -> Rate {
    Rate::from_bps(kbit_s * 1000)
}

/// Returns a flow in the probing period, after TCP reached these rates, in kbit/s, in successive intervals of 1 s.
fn probed(config: TpbaConfig, rates: &[u64]) -> Tpba {
    let mut tpba = Tpba::new(config).expect("valid");
    let (mut acknowledged, mut now) = (0, 0);
    tpba.on_progress(at(0), Progress::default());
    for rate in rates {
        (acknowledged, now) = (acknowledged + rate * 125, now + 1000);
        let progress = Progress { acknowledged: Size::from_bytes(acknowledged), reductions: 0 };
        assert_eq!(tpba.on_progress(at(now), progress), Some(kbit(*rate)));
    }
    tpba
}

#[test]
fn three_rates_within_epsilon_of_the_last_end_the_probing_period() {
    for (rates, over) in [
        (&[400, 400][..], false),
        (&[429, 371, 400], true),
        (&[430, 400, 400], false),
        (&[400, 430, 400], false),
        (&[900, 371, 429, 400], true),
        // The first and the second rate differ by 50 kbit/s, but each differs from the third by only 25 kbit/s.
        (&[375, 425, 400], true),
        (&[0, 0, 0], false),
    ] {
        assert_eq!(probed(TpbaConfig::PAPER, rates).is_over(at(10_000)), over, "{rates:?}");
    }
}

#[test]
fn a_tolerance_as_a_share_grows_with_the_rate() {
    let config = TpbaConfig { tolerance: Tolerance::PROPORTIONAL, ..TpbaConfig::PAPER };
    for (rates, over) in [([10_490, 9_510, 10_000], true), ([10_510, 10_000, 10_000], false), ([420, 400, 400], false)]
    {
        assert_eq!(probed(config, &rates).is_over(at(10_000)), over, "{rates:?}");
    }
}

#[test]
fn the_running_period_begins_at_the_last_rate_and_lasts_its_time() {
    let mut tpba = probed(TpbaConfig::PAPER, &[410, 390, 400]);
    assert_eq!(tpba.begin_running(at(3100), Size::from_bytes(20_000)), Some(kbit(400)));
    assert_eq!((tpba.period(), tpba.wake()), (Period::Running, Some(at(13_100))));
    assert!(!tpba.is_over(at(13_099)) && tpba.is_over(at(13_100)));
    tpba.on_decided(kbit(300));
    // 20 000 · 3/4 = 15 000 bytes are 14.99 segments of 1001 bytes.
    let window = tpba.begin_probing(at(13_200), Progress::default(), Size::from_bytes(1001));
    assert_eq!(window, Some(Size::from_bytes(15 * 1001)));
    assert_eq!((tpba.period(), tpba.last_rate(), tpba.is_over(at(99_000))), (Period::Probing, None, false));
}

#[test]
fn a_period_that_is_not_over_does_not_end() {
    let mut tpba = probed(TpbaConfig::PAPER, &[100, 400]);
    assert_eq!(tpba.begin_running(at(2000), Size::from_bytes(1)), None);
    assert_eq!(tpba.begin_probing(at(2000), Progress::default(), Size::from_bytes(1)), None);
    assert_eq!(tpba.period(), Period::Probing);
}

#[test]
fn an_interval_may_last_from_reduction_to_reduction() {
    let interval = ProbeInterval::BetweenReductions { at_least: Span::from_millis(100), at_most: Span::from_secs(5) };
    let mut tpba = Tpba::new(TpbaConfig { interval, ..TpbaConfig::PAPER }).expect("valid");
    let mut look = |millis, bytes, reductions| {
        tpba.on_progress(at(millis), Progress { acknowledged: Size::from_bytes(bytes), reductions })
    };
    assert_eq!(look(0, 0, 0), None);
    assert_eq!(look(50, 5_000, 1), None, "too soon to be a period of its own");
    assert_eq!(look(1000, 50_000, 1), Some(kbit(400)), "what came too soon ends the interval when it is long enough");
    assert_eq!(look(3000, 150_000, 1), None);
    assert_eq!(look(3500, 175_000, 2), Some(kbit(400)));
    assert_eq!(look(8500, 425_000, 2), Some(kbit(400)), "none for 5 s");
}

#[test]
fn large_reductions_in_a_row_end_the_running_period_at_once() {
    let config = TpbaConfig { early_return: Some(EarlyReturn { reductions: 2, share: 0.2 }), ..TpbaConfig::PAPER };
    let mut tpba = probed(config, &[400, 400, 400]);
    tpba.begin_running(at(3000), Size::from_bytes(1));
    for rate in [400, 320, 300, 200, 200] {
        tpba.on_decided(kbit(rate));
    }
    assert!(!tpba.is_over(at(4000)), "a small one came between the large ones");
    tpba.on_decided(kbit(150));
    assert!(tpba.is_over(at(4000)), "what left the rate as it was came between them");
    tpba.on_decided(kbit(160));
    assert!(!tpba.is_over(at(4000)), "the rate rose");
}

#[test]
fn what_would_never_end_or_never_begin_is_refused() {
    let paper = TpbaConfig::PAPER;
    for (config, error) in [
        (TpbaConfig { running: Span::ZERO, ..paper }, TpbaError::Running { found: Span::ZERO }),
        (TpbaConfig { interval: ProbeInterval::Fixed(Span::ZERO), ..paper }, TpbaError::Interval { found: Span::ZERO }),
        (TpbaConfig { tolerance: Tolerance::Share(f64::NAN), ..paper }, TpbaError::Tolerance),
        (TpbaConfig { tolerance: Tolerance::Absolute(Rate::ZERO), ..paper }, TpbaError::Tolerance),
        (TpbaConfig { early_return: Some(EarlyReturn { reductions: 0, share: 0.5 }), ..paper }, TpbaError::EarlyReturn),
    ] {
        assert_eq!(Tpba::new(config).err(), Some(error));
    }
}

/// Tobe 1999, Sec. 4: at an adaptation point, the rate is multiplied by `1 - p R_f`, with the loss p and the reduction
/// factor `R_f`. If the test fails, the rate is wrong, or increases.
#[test]
fn the_running_law_steps_every_adaptation_interval_and_only_down() {
    let mut running = Running::new(RunningConfig::PAPER, kbit(600));
    let mut report = |millis, fraction_lost| {
        let mut summary = IntervalSummary::unmeasured();
        summary.fraction_lost = Some(fraction_lost);
        running.on_feedback(at(millis), &Feedback::Interval(summary));
        running.allowance().rate.expect("a rate")
    };
    let rates = [(0, 0.0), (1000, 0.04), (2000, 0.02), (3000, 0.02)].map(|(millis, lost)| report(millis, lost));
    // The mean loss is (0 + 4 + 2 + 2) / 4 = 2 %. The rate decreases by three times 2 %: by 6 % of 600 kbit/s.
    assert_eq!(rates, [kbit(600), kbit(600), kbit(600), kbit(564)]);
    let later: Vec<_> = (4..30).map(|second| report(second * 1000, 0.0)).collect();
    assert!(later.iter().all(|rate| *rate == kbit(564)), "{later:?}");
    assert_eq!([30, 31, 32, 33].map(|second| report(second * 1000, 1.0))[3], kbit(10), "not below the least");
    assert_eq!([34, 35, 36].map(|second| report(second * 1000, f64::NAN))[2], kbit(10));
}

proptest! {
    /// The window must be the scaled old window, rounded up to whole segments. It must be at least one segment, and at
    /// most the old window rounded up to whole segments.
    #[test]
    fn the_window_is_scaled_in_whole_segments(old in 0u64..1 << 40, r_f in 0u64..1 << 33, r_s in 0u64..1 << 33, seg in 0u64..100_000) {
        let window = window_after(Size::from_bytes(old), Rate::from_bps(r_f), Rate::from_bps(r_s), Size::from_bytes(seg));
        let (window, seg) = (window.as_bytes(), seg.max(1));
        prop_assert!(window >= seg && window % seg == 0);
        prop_assert!(window <= old.max(1).div_ceil(seg) * seg);
        if r_f <= r_s && r_s > 0 {
            let exact = old as f64 * r_f as f64 / r_s as f64;
            prop_assert!(window as f64 >= exact * (1.0 - 1e-9));
            prop_assert!(window as f64 <= (exact * (1.0 + 1e-9)).max(1.0) + seg as f64);
        }
    }

    /// If this test fails, some progress of TCP or some rate of RTP prevents the periods from alternating.
    #[test]
    fn any_progress_is_safe(steps in proptest::collection::vec((0u64..1 << 62, 0u64..1 << 62, 0u64..5), 1..100)) {
        let early_return = Some(EarlyReturn::STANDARD);
        let mut tpba = Tpba::new(TpbaConfig { early_return, ..TpbaConfig::PAPER }).expect("valid");
        for (nanos, acknowledged, reductions) in steps {
            let now = Instant::from_nanos(nanos);
            let progress = Progress { acknowledged: Size::from_bytes(acknowledged), reductions };
            tpba.on_progress(now, progress);
            tpba.on_decided(Rate::from_bps(acknowledged));
            let (before, over) = (tpba.period(), tpba.is_over(now));
            if over && before == Period::Probing {
                prop_assert!(tpba.begin_running(now, Size::from_bytes(acknowledged)).is_some());
                prop_assert_eq!(tpba.period(), Period::Running);
            } else if over {
                prop_assert!(tpba.begin_probing(now, progress, Size::from_bytes(1460)).is_some());
                prop_assert_eq!(tpba.period(), Period::Probing);
            }
        }
    }
}
