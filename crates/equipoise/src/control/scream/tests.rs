use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::control::bottleneck::{Bottleneck, mean};
use crate::control::{Ecn, Fate, IntervalSummary, PacketReport};

const PACKET: Size = Size::from_bytes(1000);

fn law() -> ScreamLaw {
    ScreamLaw::new(PACKET)
}

fn config(max_mbps: f64) -> ScreamConfig {
    let max = Rate::from_bps_f64(max_mbps * 1e6).expect("a rate");
    let limits = RateLimits::new(Rate::from_bps(100_000), max).expect("in order");
    let limits = limits.starting_at(Rate::from_bps(300_000));
    ScreamConfig { law: law(), limits, marking: Marking::ByCodepoint, form: Form::Core }
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} is not {expected} ± {within}");
}

/// The expected values are computed by hand from the draft, Sec. 4.2.2.1, for a target of 60 ms.
#[test]
fn the_backoff_by_delay_has_the_values_that_the_draft_gives_by_hand() {
    for (queue_ms, backoffs) in [
        (30.0, [0.0, 0.0, 0.0, 0.0]),
        (36.0, [0.1, 0.05, 0.025, 0.0125]),
        (45.0, [0.25, 0.125, 0.0625, 0.03125]),
        (60.0, [0.5, 0.25, 0.125, 0.0625]),
        (200.0, [0.5, 0.25, 0.125, 0.0625]),
    ] {
        for (round_trip_ms, backoff) in [25.0, 50.0, 100.0, 200.0].into_iter().zip(backoffs) {
            close(law().delay_backoff(queue_ms / 1e3, round_trip_ms / 1e3), backoff, 1e-9);
        }
    }
}

/// The expected values are computed by hand from the draft, Sec. 4.4. The round-trip time is 100 ms, so windows of
/// 12500, 5000 and 3000 bytes are 1000, 400 and 240 kbit/s before any reduction. In `busy`, frames are queued and
/// oversized.
#[test]
fn the_target_has_the_values_that_the_draft_gives_by_hand() {
    let none = MediaQueue::default();
    for (window, kbps) in [(12_500.0, 816.99), (5000.0, 294.12), (3000.0, 156.86)] {
        close(law().target_bps(window, 0.1, none) / 1e3, kbps, 0.01);
    }
    let busy = MediaQueue { waiting: 0.5, excess: 0.2 };
    close(law().target_bps(12_500.0, 0.1, busy) / 1e3, 1000.0 / 1.02 / 1.9, 0.01);
    close(law().target_bps(law().window_for(1e6, 0.1), 0.1, none), 1e6, 1e-3);
    close(law().window_for(1e3, 0.1), 3000.0, 0.0);
}

/// By the draft, Sec. 4.2.2, two marks per round trip cancel a growth of the window by one segment. Here the round-trip
/// time is 25 ms and 2 of the window's 20 packets are marked.
#[test]
fn two_marks_a_round_trip_take_what_a_round_trip_adds() {
    let window = 20_000.0;
    let growth = Growth { window, unmarked: window, round_trip_s: 0.025, nearness: 1.0, calm: 1.0, recovered: 0.0 };
    close(law().increase(growth), 1000.0, 1e-9);
    close(window * law().mark_backoff(0.1, 0.025, 0.03, 1.0, 1.0), 1000.0, 1e-9);
}

#[test]
fn growth_is_slower_on_short_paths_near_congestion_and_under_jitter_and_faster_far_from_it() {
    let base =
        Growth { window: 10_000.0, unmarked: 10_000.0, round_trip_s: 0.05, nearness: 1.0, calm: 1.0, recovered: 0.0 };
    for (growth, bytes) in [
        (base, 1000.0),
        (Growth { round_trip_s: 0.005, ..base }, 200.0),
        (Growth { nearness: 0.1, ..base }, 250.0),
        (Growth { calm: 0.0, ..base }, 100.0),
        (Growth { recovered: 1.0, ..base }, 1200.0),
        (Growth { unmarked: 0.0, ..base }, 0.0),
        (Growth { window: 500.0, unmarked: 500.0, ..base }, 500.0),
    ] {
        close(law().increase(growth), bytes, 1e-9);
    }
    for (window, nearness) in [(1000.0, 0.1), (1050.0, 0.16), (1125.0, 1.0), (900.0, 0.64), (1e9, 1.0)] {
        close(ScreamLaw::nearness(window, 1000.0), nearness, 1e-9);
    }
}

#[test]
fn packets_leave_half_as_fast_again_and_six_times_as_fast_at_the_highest_target() {
    let max = Rate::from_bps(1_000_000);
    let pace = |bps| law().pacing_rate(Rate::from_bps(bps), max).as_bps();
    assert_eq!(
        [10_000, 500_000, 800_000, 900_000, 1_000_000].map(pace),
        [75_000, 750_000, 1_200_000, 2_700_000, 6_000_000]
    );
    close(ScreamLaw::overhead(0.0), 1.5, 0.0);
    close(ScreamLaw::overhead(1.0), 3.0, 0.0);
}

/// Returns a frame of `bytes` bytes. The oldest queued data of earlier frames has waited for `waited`.
fn frame(waited: Span, bytes: u64) -> QueuedFrame {
    QueuedFrame::new(Size::from_bytes(bytes), Size::ZERO, waited)
}

#[test]
fn frames_that_wait_and_that_are_too_large_lower_the_target_within_bounds() {
    let mut scream = Scream::new(config(2.0));
    scream.on_frame(at(0), &frame(Span::from_millis(15), 1500));
    // The reduction for waiting is (15 - 5) ms / 20 ms, times 1/16. The reduction for oversized frames is the excess
    // over the nominal size, (1500 - 750) bytes / 750 bytes, times 1/64.
    close(scream.media.waiting, 1.0 / 32.0, 1e-12);
    close(scream.media.excess, 1.0 / 64.0, 1e-12);
    (0..1000).for_each(|_| scream.on_frame(at(0), &frame(Span::from_secs(1), u64::MAX)));
    close(scream.media.waiting, 0.5, 1e-12);
    close(scream.media.excess, 0.2, 1e-12);
    (0..1000).for_each(|_| scream.on_frame(at(0), &frame(Span::ZERO, 0)));
    close(scream.media.waiting, 0.0, 1e-12);
    close(scream.media.excess, 0.0, 1e-6);
}

fn at(ms: u64) -> Instant<SenderClock> {
    Instant::from_nanos(10_000_000_000 + ms * 1_000_000)
}

/// Passes feedback on ten packets to `scream` at `ms`. The packets left 2 ms apart, and the last packet left 50 ms
/// before `ms`. The first `marked` packets have the CE mark, and the last `lost` packets are lost. The queueing delay
/// is `queue` ms.
fn tell(scream: &mut Scream, ms: u64, marked: u64, lost: u64, queue: u64) {
    let packets: Vec<_> = (0..10)
        .map(|place| {
            let left = at(ms) - Span::from_millis(50 + (9 - place as i64) * 2);
            let ecn = if place < marked { Ecn::Ce } else { Ecn::Ect1 };
            let at = Some((left + Span::from_millis(25 + queue as i64)).assume_clock());
            let fate = if place >= 10 - lost { Fate::Lost } else { Fate::Arrived { at, ecn } };
            PacketReport::new(ms + place, PACKET, left, fate)
        })
        .collect();
    let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(40_000));
    feedback.round_trip = Some(Span::from_millis(50));
    scream.on_feedback(at(ms), &Feedback::Packets(&feedback));
}

/// Feedback on 10 packets arrives every 25 ms. If 2 of the 10 packets are marked, the measured fraction is 0.2 ± 0.01
/// after 2 s, as in libwebrtc's test. Without further marks, the fraction has halved after 90 more feedbacks.
#[test]
fn the_fraction_of_marks_is_found_within_two_seconds() {
    let mut scream = Scream::new(config(50.0));
    (1..=80).for_each(|turn| tell(&mut scream, turn * 25, 2, 0, 0));
    close(scream.marked(), 0.2, 0.01);
    (81..=81 + 89).for_each(|turn| tell(&mut scream, turn * 25, 0, 0, 0));
    close(scream.marked(), 0.2 * 0.5, 0.002);
}

/// If this test fails, the losses of one full queue, spread over many reports, reduce the window to its minimum.
#[test]
fn the_losses_of_one_round_trip_are_one_congestion() {
    let mut scream = Scream::new(config(50.0));
    tell(&mut scream, 1000, 0, 0, 0);
    scream.window = 100_000.0;
    tell(&mut scream, 1100, 0, 5, 0);
    close(scream.window, 70_000.0, 300.0);
    tell(&mut scream, 1130, 0, 5, 0);
    close(scream.window, 70_000.0, 600.0);
    assert_eq!(scream.snapshot().reason.map(Reason::name), Some("app-limited"), "40 kB in flight bear no more");
    tell(&mut scream, 1200, 0, 5, 0);
    close(scream.window, 49_000.0, 900.0);
    assert_eq!(scream.snapshot().reason.map(Reason::name), Some("loss"));
}

#[test]
fn classic_marks_reduce_by_a_factor_and_those_of_l4s_by_their_fraction() {
    // For L4S, alpha is 1/8 after the first marks. The reduction is alpha/2, divided by 2 because the round-trip time
    // is twice `VIRTUAL_RTT`.
    for (marking, expected) in [(Marking::Classic, 0.8), (Marking::L4s, 1.0 - 1.0 / 32.0)] {
        let mut scream = Scream::new(ScreamConfig { marking, ..config(50.0) });
        tell(&mut scream, 1000, 0, 0, 0);
        scream.window = 30_000.0;
        // The queue is at least a quarter of its target. With a shorter queue, the reduction for L4S marks would be
        // smaller near the window of the last congestion.
        tell(&mut scream, 1100, 10, 0, 15);
        close(scream.window, 30_000.0 * expected, 1e-6);
    }
}

#[test]
fn losses_that_are_rare_and_come_without_a_queue_count_by_the_full_form_only_if_they_are_many() {
    let run = |form, every: u64, queue| {
        let mut scream = Scream::new(ScreamConfig { form, ..config(50.0) });
        tell(&mut scream, 1000, 0, 0, 0);
        scream.window = 30_000.0;
        (1..=40).for_each(|turn| tell(&mut scream, 1000 + turn * 25, 0, u64::from(turn % every == 0), queue));
        scream.window
    };
    let kept = |form, every, queue| run(form, every, queue) / run(form, u64::MAX, queue);
    assert!(kept(Form::Full, 40, 0) > 0.95, "one of 400");
    assert!(kept(Form::Core, 40, 0) < 0.75);
    assert!(kept(Form::Full, 40, 20) < 0.75, "one of 400, and a queue");
    assert!(kept(Form::Full, 2, 0) < 0.3, "one of 20");
}

#[test]
fn an_unlimited_path_is_filled_within_a_hundred_reports() {
    let path = Bottleneck { capacity_bps: |_| 1e9, report_every: Span::from_millis(25), ..Bottleneck::default() };
    let seen = path.run(&mut Scream::new(config(2.0)), 5);
    close(seen[0].rate_bps, 300_000.0, 0.0);
    assert!(seen.iter().any(|moment| moment.at_s < 2.5 && moment.rate_bps >= 2e6), "{seen:?}");
}

/// Capacities, one-way delays and bounds of the rate are those of libwebrtc's tests. In libwebrtc's tests, every rate
/// must be within the bounds. In this test, only the mean rate must be within the bounds.
#[test]
fn marks_a_queue_and_losses_each_hold_the_rate_to_the_capacity() {
    let base = Bottleneck { report_every: Span::from_millis(25), ..Bottleneck::default() };
    let by_marks = Bottleneck { ecn: Ecn::Ect1, mark_above: Span::from_millis(5), ..base };
    let by_delay = Bottleneck { capacity_bps: |_| 2e6, way: Span::from_millis(10), ..base };
    let by_loss = Bottleneck { capacity_bps: |_| 5e6, way: Span::from_millis(10), queue: Span::from_millis(5), ..base };
    for form in [Form::Core, Form::Full] {
        let run = |path: Bottleneck| {
            let seen = path.run(&mut Scream::new(ScreamConfig { form, ..config(10.0) }), 60);
            mean(&seen, 10.0, 60.0)
        };
        let (rate, queue) = run(by_marks);
        assert!((0.65e6..1.1e6).contains(&rate) && queue < 0.025, "{form:?} by marks: {rate} {queue}");
        let (rate, queue) = run(by_delay);
        assert!((1.5e6..2.5e6).contains(&rate) && queue < 0.06, "{form:?} by delay: {rate} {queue}");
        let (rate, queue) = run(by_loss);
        assert!((1.5e6..5.4e6).contains(&rate) && queue < 0.005, "{form:?} by loss: {rate} {queue}");
    }
}

/// If this test fails, a receiver's clock that runs fast or was set forward looks like a permanent queueing delay.
#[test]
fn a_base_delay_that_is_too_low_is_found_out() {
    let mut scream = Scream::new(config(2.0));
    (1..100).for_each(|turn| tell(&mut scream, turn * 25, 0, 0, 0));
    (100..2000).for_each(|turn| tell(&mut scream, turn * 25, 0, 0, 80));
    assert!(scream.path.queue_s() < 1e-9, "{}", scream.path.queue_s());
    assert!(scream.halved_until.is_some());
}

#[test]
fn silence_and_timeouts_halve_and_other_feedback_leaves_it() {
    let mut scream = Scream::new(config(2.0));
    scream.window = 20_000.0;
    scream.on_feedback(at(0), &Feedback::Silent { reports: 3 });
    close(scream.window, 10_000.0, 0.0);
    let allowed = |scream: &Scream| (scream.allowance().rate, scream.allowance().window);
    assert_eq!(allowed(&scream), (Some(Rate::from_bps(150_000)), Some(Size::from_bytes(30_000))));
    (0..9).for_each(|_| scream.on_feedback(at(1), &Feedback::TimedOut { in_flight: PACKET }));
    let floor = Allowance::paced_window(Rate::from_bps(100_000), Size::from_bytes(9000));
    let floor = floor.with_pace(Rate::from_bps(150_000));
    assert_eq!(scream.allowance(), floor);
    scream.on_feedback(at(3), &Feedback::Interval(IntervalSummary::unmeasured()));
    scream.on_feedback(at(4), &Feedback::Packets(&PacketFeedback::new(&[], Size::from_bytes(u64::MAX))));
    assert_eq!(scream.allowance(), floor);
}

/// Generates reports on packets as any peer may send them.
fn packets() -> impl Strategy<Value = Vec<PacketReport>> {
    let arrived =
        prop_oneof![Just(None), any::<u64>().prop_map(Some), (9_000..60_000u64).prop_map(|ms| Some(ms * 1_000_000))];
    let ecn = prop_oneof![Just(Ecn::Ce), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    let fate = prop_oneof![
        Just(Fate::Lost),
        (arrived, ecn).prop_map(|(at, ecn)| Fate::Arrived { at: at.map(Instant::from_nanos), ecn }),
    ];
    let packet = (any::<u16>(), 0..40_000u64, fate, any::<u64>()).prop_map(|(number, departed, fate, size)| {
        PacketReport::new(number.into(), Size::from_bytes(size), at(departed), fate)
    });
    proptest::collection::vec(packet, 0..12)
}

proptest! {
    #[test]
    fn no_feedback_whatever_brings_rate_and_window_out_of_their_limits(
        full in any::<bool>(),
        reports in proptest::collection::vec((packets(), proptest::option::of(any::<i64>()), 0..40_000u64, any::<u64>()), 1..30),
    ) {
        let form = if full { Form::Full } else { Form::Core };
        let mut scream = Scream::new(ScreamConfig { form, ..config(2.0) });
        for (packets, round_trip, now, in_flight) in &reports {
            scream.on_sent(at(*now), &SentPacket::new(1, PACKET, Size::from_bytes(*in_flight)));
            let mut feedback = PacketFeedback::new(packets, Size::from_bytes(*in_flight));
            feedback.round_trip = round_trip.map(Span::from_nanos);
            scream.on_feedback(at(*now), &Feedback::Packets(&feedback));
            scream.on_frame(at(*now), &frame(Span::from_nanos(round_trip.unwrap_or(0)), *in_flight));
            prop_assert!((Rate::from_bps(100_000)..=Rate::from_bps(2_000_000)).contains(&scream.target));
            prop_assert!(scream.window.is_finite() && scream.window >= 3000.0, "{}", scream.window);
            prop_assert!((0.0..=1.0).contains(&scream.marked()));
        }
    }

    /// Reports in which all packets are lost or marked never raise the window or the rate.
    #[test]
    fn losses_and_marks_alone_never_raise_window_or_rate(
        start in 3000.0f64..100_000.0, turns in proptest::collection::vec((any::<bool>(), 0..100u64), 1..40),
    ) {
        let mut scream = Scream::new(config(10.0));
        tell(&mut scream, 1000, 0, 0, 0);
        scream.window = start;
        tell(&mut scream, 1025, 10, 0, 0);
        for (turn, (lost, queue)) in (2u64..).zip(&turns) {
            let (window, target) = (scream.window, scream.target);
            let (marked, lost) = if *lost { (0, 10) } else { (10, 0) };
            tell(&mut scream, 1000 + turn * 25, marked, lost, *queue);
            prop_assert!(scream.window <= window && scream.target <= target);
        }
    }

    /// For any numbers as input, the equations return numbers in their ranges.
    #[test]
    fn the_equations_are_total(a in proptest::num::f64::ANY, b in proptest::num::f64::ANY, c in proptest::num::f64::ANY) {
        let law = law();
        prop_assert!((0.0..=0.5).contains(&law.mark_backoff(a, b, c, a, b)));
        prop_assert!((0.0..=0.5).contains(&law.delay_backoff(a, b)));
        prop_assert!((0.1..=1.0).contains(&ScreamLaw::nearness(a, b)));
        let growth = Growth { window: a, unmarked: b, round_trip_s: c, nearness: a, calm: b, recovered: c };
        prop_assert!(law.increase(growth).is_finite() && law.increase(growth) >= 0.0);
        let unknown = Growth { unmarked: f64::NAN, ..growth };
        prop_assert!(law.increase(unknown) < f64::MIN_POSITIVE);
        let target = law.target_bps(a, b, MediaQueue::default());
        prop_assert!(target.is_finite() && target >= 0.0);
        prop_assert!((0.0..=1.0).contains(&ScreamLaw::alpha(0.3, a)));
        prop_assert!((1.5..=3.0).contains(&ScreamLaw::overhead(a)));
    }

    /// The reduction of the window never becomes smaller if more packets are marked or the queue is longer.
    #[test]
    fn the_window_falls_with_marks_and_queue(
        alpha in 0.0f64..1.0, more in 0.0f64..1.0, queue in 0.0f64..0.1, round_trip in 0.001f64..1.0,
    ) {
        let law = law();
        let by_marks = |alpha| law.mark_backoff(alpha, round_trip, queue, 0.5, 0.5);
        prop_assert!(by_marks(alpha + more) >= by_marks(alpha));
        prop_assert!(law.delay_backoff(queue + more, round_trip) >= law.delay_backoff(queue, round_trip));
        prop_assert!(ScreamLaw::alpha(alpha, more) >= ScreamLaw::alpha(alpha, 0.0));
        let windows = [2, 8].map(|marked| {
            let mut scream = Scream::new(config(10.0));
            tell(&mut scream, 1000, 0, 0, 0);
            scream.window = 20_000.0;
            tell(&mut scream, 1100, marked, 0, (queue * 1e3) as u64);
            scream.window
        });
        prop_assert!(windows[1] <= windows[0]);
    }
}
