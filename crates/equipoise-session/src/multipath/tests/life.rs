//! Tests of paths that are added, die, are usable again, and are removed.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::super::{MAX_PATHS, Total};
use super::bench::{Bench, EPOCH, MILLI, Network, SSRC, scheduler};
use crate::rtp::{Payload, SenderConfig, StreamConfig};
use crate::wire::key_frames::KeyFrameRequest;
use crate::{DropReason, Endpoint, Event, Input, PathChange, PathId};
use equipoise::control::{Allowance, Controller, Feedback};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Time between two reports.
const INTERVAL: Span = Span::from_millis(200);

/// A law that always allows 4 Mbit/s. Only the session can reduce this rate.
#[derive(Debug)]
struct Steady;

impl Controller for Steady {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn allowance(&self) -> Allowance {
        Allowance::rate(Rate::from_bps(4_000_000))
    }
}

fn constant(ways: [u64; 2]) -> Network {
    Box::new(move |passing| vec![ways[usize::from(passing.path % 2)]])
}

/// Both paths have the same rate. Each path has its own requests and answers.
#[test]
fn paths_begin_alike_and_each_is_asked_and_answers_by_itself() {
    let mut bench = Bench::new(Payload::Generated, 2, scheduler("equal", &[]), constant([10, 40]));
    bench.run_until(450);
    let mut rates = bench.events.iter().filter_map(|(_, path, event)| match event {
        Event::RateDecided { rate, .. } => path.map(|path| (path.0, *rate)),
        _ => None,
    });
    assert_eq!(rates.next_back(), Some((1, Rate::from_bps(2_000_000))));
    for path in 0..2 {
        // 2 Mbit/s are 250 packets of 1000 bytes per second. The first packet is sent at once.
        assert_eq!(bench.sent_on(path, 0, 400), 100, "path {path}");
        let applied = bench.count(|on, event| on == Some(path) && matches!(event, Event::ReportApplied { .. }));
        assert_eq!(applied, 1 + usize::from(path == 0), "the second answer of path 1 is due at 480 ms");
    }
    let delays = bench.events.iter().filter_map(|(_, path, event)| match event {
        Event::ReportApplied { delay, round_trip, .. } => {
            Some((path.map_or(9, |path| path.0), delay.map(|delay| delay.mean_s), round_trip.as_millis_f64()))
        }
        _ => None,
    });
    for (path, mean_s, round_trip) in delays {
        let way = if path == 0 { 10.0 } else { 40.0 };
        assert!((mean_s.expect("enough samples") - way / 1e3).abs() < 1e-6 && (round_trip - 2.0 * way).abs() < 0.1);
    }
}

#[test]
fn a_dead_path_costs_a_moment_and_is_used_again_when_it_is_back() {
    let network = Box::new(|passing: &super::bench::Passing| {
        let dead = passing.path == 1 && (10_000..20_000).contains(&passing.millis);
        // The delay varies. With constant delays, a rounding error would make one path look faster, and the
        // scheduler would fill that path.
        if dead { vec![] } else { vec![20 + passing.number * 7 % 11] }
    });
    let mut bench = Bench::new(Payload::Generated, 2, scheduler("ap", &[]), network);
    bench.run_until(40_000);
    // No packet passes path 1 from 10.0 s on. The last report about path 1 arrives on path 0 at about 10.05 s. Three
    // report intervals (600 ms) later, no further report has arrived. When the next request on path 1 is due, the
    // sender declares path 1 dead.
    assert!(bench.sent_on(1, 10_000, 10_850) > 50, "it was used");
    assert_eq!(bench.sent_on(1, 10_850, 20_000), 0, "it is dead");
    assert!(bench.sent_on(0, 11_000, 20_000).abs_diff(9 * 500) <= 2, "the other one carries all");
    assert!(bench.sent_on(1, 20_000, 21_000) > 0, "it is heard from within two intervals");
    let all = bench.sent_on(0, 21_000, 40_000) + bench.sent_on(1, 21_000, 40_000);
    assert!(all.abs_diff(19 * 500) <= 4, "{all}: the total stands");
    assert!(bench.sent_on(1, 30_000, 40_000) > 1000, "and it has its share again");
}

#[test]
fn paths_may_be_added_taken_down_and_removed_at_any_time() {
    let mut bench = Bench::new(Payload::Generated, 1, scheduler("equal", &[]), constant([10, 30]));
    bench.run_until(1000);
    bench.change(1, PathChange::Up);
    bench.run_until(2000);
    bench.change(0, PathChange::Down);
    bench.run_until(3000);
    bench.change(0, PathChange::Up);
    bench.run_until(4000);
    bench.change(1, PathChange::Removed);
    bench.run_until(5000);
    let seconds = |path| (0..5).map(|s| bench.sent_on(path, s * 1000, (s + 1) * 1000)).collect::<Vec<_>>();
    for (path, expected) in [(0, [500, 250, 0, 250, 500]), (1, [0, 250, 500, 250, 0])] {
        let found = seconds(path);
        assert!(found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 3), "{path}: {found:?}");
    }
    let lost = bench.count(|_, event| matches!(event, Event::ReportApplied { lost, .. } if *lost != 0));
    assert_eq!((lost, bench.count(|_, event| matches!(event, Event::ReportsMissing))), (0, 0));
    assert_eq!(bench.count(|_, event| matches!(event, Event::Ignored(DropReason::Implausible))), 0);
}

/// If this test fails, an interface that goes down lowers the rate on the other interfaces, or a session that had no
/// interface at all continues at its full rate on an unknown path.
#[test]
fn a_path_that_is_down_lowers_no_other_but_after_no_path_the_rate_is_low() {
    let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "sender@test");
    let start = Instant::from_nanos(EPOCH);
    let config = SenderConfig { payload: Payload::Generated, ..SenderConfig::new(stream, INTERVAL, start, 1) };
    let ways = Box::new(|passing: &super::bench::Passing| vec![(10 + passing.number * 7 % 11) * MILLI]);
    let total = Total::Pooled(Box::new(Steady));
    let mut bench = Bench::between(config, 2, (total, scheduler("equal", &[])), ways);
    bench.run_until(3000);
    bench.change(1, PathChange::Down);
    bench.run_until(9000);
    let rates = |bench: &Bench, from: u64, to: u64| {
        let of = |(at, path, event): &(u64, Option<PathId>, Event)| match event {
            Event::RateDecided { rate, .. } if path.is_none() && (from..to).contains(at) => Some(rate.as_bps()),
            _ => None,
        };
        bench.events.iter().filter_map(of).collect::<Vec<_>>()
    };
    let before = rates(&bench, 0, 9000);
    // When path 1 goes down, half of the session's rate still arrives over path 0. The session may send at up to twice
    // the rate at which data arrives, so it keeps its rate.
    assert!(before.iter().all(|rate| *rate > 3_900_000), "{before:?}");
    assert!(bench.sent_on(0, 4000, 9000).abs_diff(5 * 500) <= 3, "it carries all");
    bench.change(0, PathChange::Down);
    bench.run_until(11_000);
    bench.change(0, PathChange::Up);
    bench.run_until(20_000);
    let again = rates(&bench, 11_000, 20_000);
    assert!(again.first().is_some_and(|rate| *rate <= 2_000_000), "{again:?}");
    assert_eq!(again.last(), Some(&4_000_000), "and what arrives lets it come back: {again:?}");
}

#[test]
fn there_are_no_more_paths_than_there_is_room_for() {
    let mut bench = Bench::new(Payload::Generated, 0, scheduler("equal", &[]), constant([10, 10]));
    bench.run_until(3000);
    assert_eq!(bench.count(|_, event| matches!(event, Event::MediaSent { .. })), 0, "there is no path yet");
    (0..=MAX_PATHS as u16).for_each(|path| bench.change(path, PathChange::Up));
    bench.change(77, PathChange::Down);
    assert_eq!(bench.count(|_, event| *event == Event::Ignored(DropReason::Full)), 1);
    assert_eq!(bench.count(|_, event| *event == Event::Ignored(DropReason::Stray)), 1);
    bench.run_until(6000);
    assert!(bench.sent_on(15, 3000, 6000) > 90 && bench.sent_on(16, 0, 6000) == 0);
}

/// If no report arrives on any path, no path is known to be better than another. The sender uses all paths until the
/// circuit breaker stops the media.
#[test]
fn where_all_paths_are_silent_the_media_goes_on_until_the_circuit_breaks() {
    let network =
        Box::new(
            |passing: &super::bench::Passing| {
                if (5000..40_000).contains(&passing.millis) && passing.to_sender { vec![] } else { vec![10] }
            },
        );
    let mut bench = Bench::new(Payload::Generated, 2, scheduler("ap", &[]), network);
    bench.run_until(80_000);
    assert!(bench.sent_on(0, 10_000, 15_000) > 0 && bench.sent_on(1, 10_000, 15_000) > 0);
    let sent = |from, to| bench.sent_on(0, from, to) + bench.sent_on(1, from, to);
    assert_eq!(sent(20_500, 40_000), 0, "the circuit is broken");
    let again = sent(40_000, 42_500);
    assert!((50..=900).contains(&again), "a tenth of the rate at first, and more with each period: {again}");
    assert!(sent(70_000, 80_000).abs_diff(10 * 500) <= 4, "and all of it in the end");
    assert_eq!(bench.count(|_, event| matches!(event, Event::CircuitBroken(_))), 1);
    assert_eq!(bench.count(|_, event| *event == Event::CircuitClosed), 1);
}

#[test]
fn either_end_may_say_goodbye_and_the_other_ends_too() {
    for by_sender in [true, false] {
        let mut bench = Bench::new(Payload::Generated, 2, scheduler("equal", &[]), constant([10, 50]));
        bench.run_until(2000);
        bench.tell(by_sender, Input::Stop);
        bench.run_until(4000);
        let ended = |by_peer| bench.count(|_, event| *event == Event::Ended { by_peer });
        assert_eq!((ended(true), ended(false)), (1, 1), "{by_sender}");
        assert!(bench.sender.wake().is_none() && bench.receiver.wake().is_none());
    }
}

#[test]
fn a_wish_for_a_key_frame_goes_back_by_the_path_that_the_sender_was_heard_on() {
    let mut bench = Bench::new(Payload::Generated, 2, scheduler("equal", &[]), Box::new(|_| vec![10]));
    bench.run_until(1000);
    bench.tell(false, Input::KeyFrame(KeyFrameRequest::FullIntra));
    bench.tell(true, Input::KeyFrame(KeyFrameRequest::FullIntra));
    bench.run_until(1100);
    let wanted = |path: Option<u16>, event: &Event| {
        path.is_none() && *event == Event::KeyFrameWanted(KeyFrameRequest::FullIntra)
    };
    assert_eq!(bench.count(wanted), 1, "it is asked of the session and of no path");
    assert_eq!(bench.count(|_, event| *event == Event::Ignored(DropReason::Stray)), 1, "a sender wants none");
}
