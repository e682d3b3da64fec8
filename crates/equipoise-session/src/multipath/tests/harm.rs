//! Tests that no adaptive controller of the catalogue harms other traffic in a session over several paths, whatever
//! scheduler divides the total rate.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::super::{PathLaws, Sender, Total};
use super::bench::{Bench, EPOCH, Passing, SSRC, scheduler};
use crate::Event;
use crate::feedback::{Format, Reporting};
use crate::harm::{Datagram, Harm, INTERVAL, LOWEST, MILLI, PACKET, SECOND, Told, adaptive, build};
use crate::rtp::{Delays, Payload, SenderConfig, StreamConfig};
use equipoise::control::{Entry, Needs};
use equipoise::units::{Instant, Span};

/// Runs a session over two paths, each with its own fault. If the controller uses per-packet feedback, each path has
/// its own controller; otherwise both paths have one controller together.
fn run(entry: &'static Entry, split: &str, start: &'static str, harms: [Harm; 2]) -> (Bench, Told) {
    let stream = StreamConfig::new(SSRC, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, INTERVAL, Instant::from_nanos(EPOCH), 1);
    let (total, reporting) = if build(entry, start).needs().contains(Needs::PACKETS) {
        let reporting = Reporting { format: Format::CongestionFeedback, interval: Reporting::INTERVAL };
        (Total::PerPath(PathLaws::new(move || Some(build(entry, start)), None)), Some(reporting))
    } else {
        (Total::Pooled(build(entry, start)), None)
    };
    let config = SenderConfig { delays: Delays::Queueing, payload: Payload::Generated, reporting, ..base };
    let mut paths = harms.map(Harm::path);
    let network = Box::new(move |&Passing { at, size, path, to_sender, is_rtcp, .. }: &Passing| -> Vec<u64> {
        paths[usize::from(path)](Datagram { at, size, from_sender: !to_sender, is_rtcp }).into_iter().collect()
    });
    let mut bench = Bench::between(config, 2, (total, scheduler(split, &[])), network);
    bench.run_until(40_000);
    let told = Told::by(entry.name, 40, bench.events.iter().map(|(millis, _, event)| (millis * MILLI, event)));
    (bench, told)
}

/// Time in ns for which the sending rate may exceed twice the delivery rate: about two periods of 1 s, a round trip
/// through a full queue, and 0.75 s. The test compares means over the last second every 0.25 s. An excess also raises
/// the next three means, which takes 0.75 s.
const GRACE: u64 = 3 * SECOND;
const IDLE: Harm = Harm::Loss(0.0);

fn link(mbps: f64, queue_ms: i64) -> Harm {
    Harm::Link(mbps, Span::from_millis(queue_ms))
}

#[test]
fn every_adaptive_controller_stays_within_twice_what_arrives_and_comes_back() {
    let names = |provided| adaptive(provided).map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names(Sender::PROVIDES), ["ap", "aimd", "rap", "tfrc"], "a new one has to be looked at");
    assert_eq!(
        names(Sender::PROVIDES_PER_PATH),
        ["equipoise", "gcc", "nada", "scream"],
        "a new one has to be looked at"
    );
    let pooled = adaptive(Sender::PROVIDES).flat_map(|entry| ["ap", "equal"].map(|split| (entry, split)));
    // For laws that control each path separately, one scheduler is enough: the total rate is not limited, so with any
    // scheduler each path gets the rate that its law allows.
    for (entry, split) in pooled.chain(adaptive(Sender::PROVIDES_PER_PATH).map(|entry| (entry, "ap"))) {
        for (start, harms, comes_back) in [
            ("100 kbit/s", [link(4.0, 100), link(2.0, 100)], true),
            ("20 Mbit/s", [link(2.0, 300), link(1.0, 300)], true),
            ("20 Mbit/s", [Harm::Policer(2.0), Harm::Policer(1.0)], false),
            ("100 kbit/s", [Harm::Flapping, Harm::Flapping], true),
            ("100 kbit/s", [Harm::BlackHole, IDLE], true),
            ("100 kbit/s", [Harm::BlackHole, Harm::BlackHole], true),
            ("100 kbit/s", [Harm::Outage, IDLE], true),
            ("100 kbit/s", [Harm::Outage, Harm::Outage], true),
            ("100 kbit/s", [Harm::Loss(0.3), Harm::Loss(0.3)], true),
        ] {
            let (_, told) = run(entry, split, start, harms);
            let controllers = 1 + u32::from(build(entry, start).needs().contains(Needs::PACKETS));
            let excess = told.longest_excess(controllers);
            assert!(
                excess <= GRACE,
                "{} {split} {harms:?}: {} ms beyond twice what arrives",
                told.name,
                excess / MILLI
            );
            let (before, then, back) = (told.rate(6, 8), told.rate(16, 18), told.rate(30, 40));
            assert!(!comes_back || back > 1.5 * LOWEST, "{} {split} {harms:?}: back at {back}", told.name);
            if matches!(harms[1], Harm::BlackHole | Harm::Outage | Harm::Loss(0.3)) {
                assert!(then < 2.0 * LOWEST || then < 0.5 * before, "{} {split} {harms:?}: {then}", told.name);
            }
        }
    }
}

/// If this test fails, half of the media is sent on a path on which reports arrive but all media is lost.
#[test]
fn a_path_that_swallows_media_is_left_to_the_others_until_it_carries_again() {
    let entry = adaptive(Sender::PROVIDES).next().expect("there is one");
    let (bench, _) = run(entry, "equal", "100 kbit/s", [Harm::BlackHole, IDLE]);
    let broken = |on| bench.count(|path, event| path == on && matches!(event, Event::CircuitBroken(_)));
    assert_eq!((broken(None), broken(Some(1))), (0, 0), "the session goes on");
    assert!((1..=3).contains(&broken(Some(0))), "with longer and longer pauses: {}", broken(Some(0)));
    assert_eq!(bench.count(|path, event| path == Some(0) && *event == Event::CircuitClosed), broken(Some(0)));
    let (left, other) = (bench.sent_on(0, 10_000, 18_000), bench.sent_on(1, 10_000, 18_000));
    assert!(left * 3 < other && other > 200, "{left} into the hole, {other} beside it");
    assert!(bench.sent_on(0, 35_000, 40_000) > 100, "it carries again");
}
