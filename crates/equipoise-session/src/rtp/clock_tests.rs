//! Tests of sessions between hosts with unsynchronised clocks.

use alloc::vec;
use alloc::vec::Vec;

use super::two_ends::{MILLI, TwoEnds, media};
use super::{Delays, Payload};
use crate::Event;
use equipoise::control::{BoxedController, find};
use equipoise::units::Size;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Creates the controller AP with a target delay of 12 ms and a rate of 1 Mbit/s to 8 Mbit/s.
fn ap() -> BoxedController {
    let given = [("target", "12 ms"), ("min_rate", "1 Mbit/s"), ("max_rate", "8 Mbit/s")];
    let ap = find("ap").expect("in the catalogue");
    ap.build(&ap.parse(&given).expect("right"), Size::from_bytes(1000)).expect("right")
}

/// Returns the delay, in ms, of the media packet that is datagram `number`: 20 ms, plus a queueing delay of 0 to 9 ms
/// that does not depend on the session's rate.
fn path(number: u64, _: bool) -> Vec<u64> {
    vec![20 + number * 7_919 % 10]
}

/// What happened in a session. `means` contains the reported mean delays in ms, and `rates` the decided rates in bit/s,
/// each with its time in ms. `steps` contains the clock steps in s.
struct Story {
    means: Vec<(u64, f64)>,
    rates: Vec<(u64, f64)>,
    steps: Vec<f64>,
}

fn story(delays: Delays, ahead: fn(u64) -> i64, seconds: u64) -> Story {
    let mut bench = TwoEnds::between(delays, Payload::Generated, ap(), media(path));
    bench.ahead = ahead;
    bench.run_until(seconds * 1000);
    let mut story = Story { means: Vec::new(), rates: Vec::new(), steps: Vec::new() };
    for (at, event) in &bench.events {
        match event {
            Event::ReportApplied { delay: Some(delay), .. } => story.means.push((at / MILLI, delay.mean_s * 1e3)),
            Event::RateDecided { rate, .. } => story.rates.push((at / MILLI, rate.as_bps_f64())),
            Event::ClockStepped { by } => story.steps.push(by.as_secs_f64()),
            _ => {}
        }
    }
    story
}

fn between(values: &[(u64, f64)], from: u64, to: u64) -> impl Iterator<Item = f64> + Clone + '_ {
    values.iter().filter(move |(at, _)| (from..to).contains(at)).map(|(_, value)| *value)
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

/// The queueing delays are 0 to 9 ms, so their mean is 4.5 ms.
#[test]
fn a_queueing_delay_needs_no_clock() {
    for ahead in [|_: u64| 0i64, |_| 7 * HOUR_NS, |_| -7 * HOUR_NS] {
        let story = story(Delays::Queueing, ahead, 60);
        let settled = mean(between(&story.means, 10_000, 60_000));
        assert!((settled - 4.5).abs() < 0.3, "{settled} ms");
        assert!(story.steps.is_empty());
    }
}

/// The mean one-way delay of media packets is 24.5 ms. A request and its report take only 5 ms each, so the measured
/// round-trip time is 10 ms.
#[test]
fn an_estimated_one_way_delay_is_off_by_no_more_than_it_says() {
    let mut bench = TwoEnds::between(Delays::Estimated, Payload::Generated, ap(), media(path));
    bench.ahead = |_| 2 * HOUR_NS;
    bench.run_until(60_000);
    let compared = bench.events.iter().rev().find_map(|(_, event)| match event {
        Event::ClocksCompared { offset, .. } => *offset,
        _ => None,
    });
    let offset = compared.expect("many reports");
    let off = (offset.receiver_ahead.as_secs_f64() - 7200.0).abs();
    // Media packets take at least 15 ms longer than requests. An estimate from the round-trip times of requests and
    // reports cannot detect this difference. Therefore the error of the estimate may exceed the stated uncertainty by
    // 15 ms.
    assert!(off <= offset.uncertainty.as_secs_f64() + 0.015, "{off} s of {}", offset.uncertainty);
}

#[test]
fn crystals_that_differ_by_a_hundred_millionths_do_not_move_the_delay() {
    for ahead in [|ns: u64| (ns / 10_000) as i64, |ns: u64| -((ns / 10_000) as i64)] {
        let story = story(Delays::Queueing, ahead, 400);
        let settled = mean(between(&story.means, 200_000, 400_000));
        assert!((settled - 4.5).abs() < 0.5, "{settled} ms, where the clocks went apart by 20 ms");
    }
}

#[test]
fn a_clock_that_is_set_is_noticed_and_moves_the_rate_by_no_more_than_one_halving() {
    const AT: u64 = 100_000;
    type Ahead = fn(u64) -> i64;
    let stories: [(f64, Ahead); 4] = [
        (3.0, |ns| if ns < AT * MILLI { 0 } else { 3_000_000_000 }),
        (-3.0, |ns| if ns < AT * MILLI { 0 } else { -3_000_000_000 }),
        (3600.0, |ns| if ns < AT * MILLI { 0 } else { HOUR_NS }),
        (-3600.0, |ns| if ns < AT * MILLI { 0 } else { -HOUR_NS }),
    ];
    for (by, ahead) in stories {
        let story = story(Delays::Queueing, ahead, 160);
        assert_eq!(story.steps.len(), 1, "{:?}", story.steps);
        assert!((story.steps[0] - by).abs() < 0.02, "{by}: {:?}", story.steps);
        let before = mean(between(&story.rates, 80_000, AT));
        let after = between(&story.rates, AT, AT + 10_000).fold(f64::MAX, f64::min);
        assert!(after > 0.4 * before, "{by}: from {before} to {after}");
        let highest = between(&story.rates, AT, 160_000).fold(0.0, f64::max);
        assert!(highest < 2.0 * before.max(1e6) + 1.0, "{by}: from {before} to {highest}");
        let settled = mean(between(&story.means, AT + 10_000, 160_000));
        assert!((settled - 4.5).abs() < 0.5, "{by}: {settled} ms");
    }
}
