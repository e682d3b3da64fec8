use alloc::boxed::Box;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::control::bottleneck::{Bottleneck, mean};
use crate::control::{Ecn, Fate, PacketReport};

const KBPS: u64 = 1000;

fn law(start: u64, max: u64) -> Equipoise {
    let limits = RateLimits::within(Rate::from_bps(100 * KBPS), Rate::from_bps(max)).starting_at(Rate::from_bps(start));
    Equipoise::new(EquipoiseConfig { limits, priority: 1.0, most_queue: Span::from_secs(1), competes: true })
}

/// The mean rate, in bit/s, and the mean queueing delay, in s, in the last 20 of 60 s.
fn settled(path: &Bottleneck) -> (f64, f64) {
    mean(&path.run(&mut law(300 * KBPS, 50_000 * KBPS), 60), 40.0, 60.0)
}

/// If this test fails, the law leaves capacity unused, or causes a standing queue, on paths for which it was not tuned.
#[test]
fn a_link_is_used_and_its_queue_is_short_on_paths_from_short_to_long() {
    for (capacity, way) in [(0.5, 10), (1.0, 50), (1.0, 150), (4.0, 25), (20.0, 25)] {
        let capacity_bps: fn(f64) -> f64 = match capacity {
            0.5 => |_| 0.5e6,
            1.0 => |_| 1e6,
            4.0 => |_| 4e6,
            _ => |_| 20e6,
        };
        let path = Bottleneck { capacity_bps, way: Span::from_millis(way), ..Bottleneck::default() };
        let (rate_bps, queue_s) = settled(&path);
        let used = rate_bps / (capacity * 1e6);
        assert!((0.9..1.06).contains(&used), "{capacity} Mbit/s, {way} ms: {used}");
        // A packet takes 16 ms at 0.5 Mbit/s.
        assert!(queue_s < 0.035, "{capacity} Mbit/s, {way} ms: {queue_s} s");
    }
}

/// If this test fails, the loop oscillates on paths with a longer or shorter delay than those for which it was tuned.
#[test]
fn the_queue_settles_on_round_trips_from_10_to_300_ms() {
    for (way, every) in [(5, 50), (10, 50), (25, 50), (50, 50), (100, 50), (150, 50), (5, 200), (50, 200)] {
        let [way, report_every] = [way, every].map(Span::from_millis);
        let path = Bottleneck { capacity_bps: |_| 2e6, way, report_every, ..Bottleneck::default() };
        let seen = path.run(&mut law(300 * KBPS, 50_000 * KBPS), 90);
        let late: Vec<f64> = seen.iter().filter(|it| it.at_s > 60.0).map(|it| it.queue_s).collect();
        let most = late.iter().copied().fold(0.0, f64::max);
        // The target of the queueing delay at 2 Mbit/s is 2.5 ms. The transmission of a packet takes 4 ms.
        assert!(most < 0.04, "{way}, reports each {every} ms: {most}");
    }
}

#[test]
fn a_link_that_becomes_slower_is_followed_within_seconds() {
    let capacity_bps = |at: f64| if at < 30.0 { 2.5e6 } else { 0.6e6 };
    let path = Bottleneck { capacity_bps, ..Bottleneck::default() };
    let seen = path.run(&mut law(300 * KBPS, 50_000 * KBPS), 60);
    let (rate_bps, queue_s) = mean(&seen, 34.0, 60.0);
    assert!((0.9..1.05).contains(&(rate_bps / 0.6e6)) && queue_s < 0.04, "{rate_bps} {queue_s}");
}

#[test]
fn losses_without_a_queue_are_borne() {
    let lossless = settled(&Bottleneck::default()).0;
    let lossy = settled(&Bottleneck { drop_every: 20, ..Bottleneck::default() }).0;
    assert!(lossy > 0.9 * lossless, "{lossy} of {lossless}");
}

#[test]
fn marks_hold_the_queue_where_they_begin() {
    let marked = Bottleneck { ecn: Ecn::Ect1, mark_above: Span::from_millis(1), ..Bottleneck::default() };
    let (rate_bps, queue_s) = settled(&marked);
    assert!(rate_bps > 0.8e6 && queue_s < settled(&Bottleneck::default()).1 + 0.002, "{rate_bps} {queue_s}");
}

/// If this test fails, the allowed rate of an application that sends little grows without limit, so that the
/// application may suddenly send much more than the path carries.
#[test]
fn what_is_not_used_does_not_grow() {
    let path = Bottleneck { capacity_bps: |_| 20e6, wanted_bps: 0.5e6, ..Bottleneck::default() };
    let (rate_bps, _) = settled(&path);
    assert!(rate_bps < 1.2e6, "{rate_bps}");
}

#[test]
fn silence_on_what_left_lowers_the_rate_tick_by_tick_and_the_first_report_ends_it() {
    let mut law = law(1000 * KBPS, 5000 * KBPS);
    let report = |law: &mut Equipoise, number: u64, ms: i64| {
        let at = Instant::ZERO + Span::from_millis(ms);
        let fate = Fate::Arrived { at: Some(at.assume_clock()), ecn: Ecn::NotEct };
        let packets = [PacketReport::new(number, Size::from_bytes(1000), at, fate)];
        let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(1000));
        feedback.round_trip = Some(Span::from_millis(50));
        law.on_feedback(at + Span::from_millis(50), &Feedback::Packets(&feedback));
    };
    for number in 0..20 {
        report(&mut law, number, 50 * number as i64);
    }
    assert_eq!(law.next_timer(), None, "what left is reported on");
    let before = law.allowance().rate.expect("a rate");
    let mut number = 20;
    let mut send = |law: &mut Equipoise, now| {
        law.on_sent(now, &SentPacket::new(number, Size::from_bytes(1000), Size::from_bytes(1000)));
        number += 1;
    };
    send(&mut law, Instant::ZERO + Span::from_millis(1010));
    let mut due = law.next_timer().expect("it waits for reports");
    assert!(due >= Instant::ZERO + Span::from_millis(1410), "{due:?}");
    let began = due;
    while due < began + Span::from_secs(2) {
        send(&mut law, due);
        law.on_timer(due);
        due = law.next_timer().expect("still");
    }
    let after = law.allowance().rate.expect("a rate");
    assert!(after.as_bps_f64() < 0.05 * before.as_bps_f64(), "{before} to {after}");
    report(&mut law, 20, 4000);
    assert!(law.allowance().window.is_some(), "in silence there is none");
    assert!(law.allowance().rate.expect("a rate") >= law.lowest_rate().halved());
    // An encoder that pauses after the loss of its last packet must not restart at the lowest rate.
    let before = law.allowance().rate.expect("a rate");
    send(&mut law, Instant::ZERO + Span::from_secs(5));
    law.on_timer(law.next_timer().expect("it waits for a report") + Span::from_millis(50));
    assert_eq!((law.next_timer(), law.allowance().rate), (None, Some(before)), "nothing has left since");
}

/// If this test fails, two flows that measure the same delay can settle at different rates.
#[test]
fn the_target_falls_with_the_own_rate_only() {
    let target = DelayTarget { priority: 1.0, most_s: 1.0 };
    let delays: Vec<f64> = [0.5e6, 1e6, 2e6].map(|bps| target.queue_s(bps, 1e3, 0.0)).to_vec();
    assert!(delays.windows(2).all(|pair| pair[0] > pair[1]), "{delays:?}");
}

proptest! {
    /// Whatever a receiver reports, at any time, the law does not panic and its rates stay within their limits.
    #[test]
    fn no_report_breaks_it(reports in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_u64..3000, 0_u64..4, 0_u64..1 << 34), 1..60)) {
        let mut law: Box<dyn Controller> = Box::new(law(300 * KBPS, 2000 * KBPS));
        let mut now = Instant::ZERO;
        for (number, (departed, arrived, size, kind, gap)) in reports.into_iter().enumerate() {
            now = now + Span::from_nanos(gap as i64);
            let ecn = if kind == 1 { Ecn::Ce } else { Ecn::NotEct };
            let fate = if kind == 0 {
                Fate::Lost
            } else {
                Fate::Arrived { at: (kind != 2).then_some(Instant::from_nanos(arrived)), ecn }
            };
            let packets = [PacketReport::new(number as u64, Size::from_bytes(size), Instant::from_nanos(departed), fate)];
            let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(size));
            feedback.round_trip = (kind != 3).then(|| Span::from_nanos(arrived as i64 - departed as i64));
            law.on_feedback(now, &Feedback::Packets(&feedback));
            law.on_frame(now, &QueuedFrame::new(Size::from_bytes(size), Size::from_bytes(size * 3), Span::ZERO));
            if let Some(due) = law.next_timer().filter(|due| *due <= now) {
                law.on_timer(due);
            }
            let allowance = law.allowance();
            let (rate, pace) = (allowance.rate.expect("a rate"), allowance.pace.expect("a pace"));
            prop_assert!(rate.as_bps() <= 2000 * KBPS && pace.as_bps() <= 2 * 2000 * KBPS, "{rate} {pace}");
            prop_assert!(rate.as_bps() > 0 && pace.as_bps() > 0);
        }
    }
}
