//! Tests of sessions in which each path has its own control law, which uses per-packet reports.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::super::{MAX_PATHS, PathLaws, Sender, Total};
use super::bench::{Bench, EPOCH, MILLI, Passing, SSRC, scheduler};
use crate::feedback::{Format, Reporting};
use crate::harm::{PACKET, adaptive, build};
use crate::rtp::{Delays, Payload, SenderConfig, SessionError, StreamConfig};
use crate::wire::feedback::{ArrivalTime, PacketArrival, PacketStatus, encode_congestion_feedback};
use crate::wire::rtcp::{ReportBlock, encode_receiver_report, encode_subflow};
use crate::{DropReason, Ecn, Event, Input, PathChange, PathId};
use equipoise::control::{Allowance, Cbr, Controller, Entry, Feedback, Needs, find};
use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, SenderClock, Span};
use equipoise_path::link::{FifoLink, LinkConfig, Passage, QueueLimit};

const FORMAT: Format = Format::CongestionFeedback;

fn config(format: Option<Format>) -> SenderConfig {
    let stream = StreamConfig::new(SSRC, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(200), Instant::from_nanos(EPOCH), 1);
    let reporting = format.map(|format| Reporting { format, interval: Span::from_millis(50) });
    SenderConfig { reporting, delays: Delays::Queueing, payload: Payload::Generated, ..base }
}

fn of(name: &'static str, highest: Option<u64>) -> Total {
    let entry = find(name).expect("in the catalogue");
    Total::PerPath(PathLaws::new(move || Some(build(entry, "300 kbit/s")), highest.map(Rate::from_bps)))
}

/// A law that requires per-packet feedback but keeps a constant rate whatever the feedback.
#[derive(Debug)]
struct Steady(Rate);

impl Controller for Steady {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.0)
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn lowest_rate(&self) -> Rate {
        Rate::from_bps(100_000)
    }

    fn is_held_to_proof(&self) -> bool {
        false
    }
}

fn fixed(bps: u64) -> Total {
    Total::PerPath(PathLaws::new(move || Some(Box::new(Steady(Rate::from_bps(bps)))), None))
}

/// A network path: the rate of its link in Mbit/s, an optional change of this rate (the time in s, and the new rate in
/// Mbit/s), and the one-way delay in ms.
#[derive(Clone, Copy)]
struct Way {
    mbps: f64,
    then: Option<(i64, f64)>,
    millis: u64,
}

const fn way(mbps: f64, millis: u64) -> Way {
    Way { mbps, then: None, millis }
}

const TWO: [Way; 2] = [way(6.0, 10), way(4.0, 40)];

/// Creates a session over the network paths `ways`, whose queues hold 200 ms of data. `total` has the controllers, and
/// `split` is the name of the scheduler. Packets for which `loses` returns true are lost.
fn over(total: Total, split: &str, ways: &[Way], mut loses: impl FnMut(&Passing) -> bool + 'static) -> Bench {
    let link = |way: &Way| {
        let rate = |mbps: f64| Rate::from_bps_f64(mbps * 1e6).expect("a rate");
        let steps = way.then.map(|(at, mbps)| (Span::from_secs(at), rate(mbps)));
        let rate = Schedule::new(rate(way.mbps), steps.into_iter().collect());
        let queue = QueueLimit::Time(Span::from_millis(200));
        let config = LinkConfig { rate, propagation_delay: Span::from_millis(way.millis as i64), queue };
        (FifoLink::<ReceiverClock>::new(config, Instant::ZERO).expect("a valid link"), way.millis)
    };
    let mut links: Vec<_> = ways.iter().map(link).collect();
    let network = move |passing: &Passing| {
        let (link, millis) = &mut links[usize::from(passing.path)];
        if loses(passing) {
            return vec![];
        }
        if passing.to_sender {
            return vec![*millis * MILLI];
        }
        let passage = link.offer(Instant::from_nanos(passing.at), passing.size);
        passage.map(|Passage { arrives_at, .. }| arrives_at.as_nanos() - passing.at).into_iter().collect()
    };
    let paths = ways.len() as u16;
    Bench::between(config(Some(FORMAT)), paths, (total, scheduler(split, &[])), Box::new(network))
}

/// Returns two values for the media that arrived on a path within `seconds`: the rate in Mbit/s, and the mean delay
/// minus `millis`, in ms.
fn arrived(bench: &Bench, path: u16, seconds: [u64; 2], millis: u64) -> (f64, f64) {
    let (mut bits, mut packets, mut queued) = (0, 0u32, 0.0);
    for (at, on, event) in &bench.events {
        let Event::MediaReceived { size, delay, .. } = event else { continue };
        if *on == Some(PathId(path)) && (seconds[0] * 1000..seconds[1] * 1000).contains(at) {
            (bits, packets) = (bits + size.as_bits(), packets + 1);
            queued += delay.as_millis_f64() - millis as f64;
        }
    }
    (bits as f64 / 1e6 / (seconds[1] - seconds[0]) as f64, queued / f64::from(packets.max(1)))
}

/// Returns the rates, in bit/s, that were decided between two times in s for a path, or for the session if `path` is
/// `None`.
fn decided(bench: &Bench, path: Option<u16>, seconds: [u64; 2]) -> Vec<u64> {
    let within = |at: u64| (seconds[0] * 1000..seconds[1] * 1000).contains(&at);
    let rates = bench.events.iter().filter_map(|(at, on, event)| match event {
        Event::RateDecided { rate, .. } if within(*at) && *on == path.map(PathId) => Some(rate.as_bps()),
        _ => None,
    });
    rates.collect()
}

fn by_packet() -> impl Iterator<Item = &'static Entry> {
    adaptive(Needs::PACKETS)
}

/// If this test fails, a law leaves paths unused, or fills their queues.
#[test]
fn each_path_is_filled_by_its_own_law_whatever_its_capacity_and_its_delay() {
    let names: Vec<_> = by_packet().map(|entry| entry.name).collect();
    assert_eq!(names, ["equipoise", "gcc", "nada", "scream"], "a new one has to be looked at");
    for name in names {
        let mut bench = over(of(name, None), "ap", &TWO, |_| false);
        bench.run_until(40_000);
        let both = [0, 1].map(|path| arrived(&bench, path, [20, 40], TWO[usize::from(path)].millis));
        let all = both[0].0 + both[1].0;
        // The bounds leave room around the measured values, which are in the book (`docs`). The other laws have lower
        // rates or longer queues than `equipoise`, as in a session over one path.
        let (least, longest) = if name == "equipoise" { (9.0, 25.0) } else { (7.0, 120.0) };
        assert!(all > least && both.iter().all(|(_, queued)| *queued < longest), "{name}: {both:?}");
        assert!(both[0].0 > 4.0 && both[1].0 > 2.5, "{name}: each path by its capacity: {both:?}");
    }
}

/// If this test fails, the total rate exceeds the application's maximum, or the scheduler does not divide a limited
/// total rate according to the paths' delays.
#[test]
fn a_total_that_is_bounded_goes_to_the_shorter_path_as_far_as_its_law_allows() {
    let mut bench = over(of("equipoise", Some(7_000_000)), "ap", &TWO, |_| false);
    bench.run_until(40_000);
    let totals = decided(&bench, None, [0, 40]);
    assert!(totals.iter().all(|total| *total <= 7_000_000) && totals.iter().filter(|it| **it > 6_900_000).count() > 20);
    let both = [0, 1].map(|path| arrived(&bench, path, [20, 40], TWO[usize::from(path)].millis));
    // Path 0 has 6 Mbit/s. A scheduler that ignores the laws' maximum rates would assign 6.8 Mbit/s to path 0, so its
    // queue would grow.
    assert!(both[0].0 > 4.5 && both[1].0 > 0.5, "{both:?}");
    assert!(both.iter().all(|(_, queued)| *queued < 25.0), "{both:?}");
    assert!((6.6..7.1).contains(&(both[0].0 + both[1].0)), "{both:?}");
}

#[test]
fn where_a_path_loses_capacity_its_law_alone_goes_down() {
    let falls = Way { then: Some((20, 2.0)), ..TWO[0] };
    let mut bench = over(of("equipoise", None), "ap", &[falls, TWO[1]], |_| false);
    bench.run_until(40_000);
    let (fallen, other) = (arrived(&bench, 0, [25, 40], 10), arrived(&bench, 1, [20, 40], 40));
    assert!((1.7..2.0).contains(&fallen.0) && fallen.1 < 40.0, "{fallen:?}");
    assert!(other.0 > 3.4 && other.1 < 25.0, "{other:?}");
}

/// If this test fails, the failure of one path affects the other path, or a path that is usable again starts at a rate
/// that no report has shown to be possible.
#[test]
fn a_dead_path_leaves_the_other_alone_and_begins_anew_from_below() {
    let dead = |passing: &Passing| passing.path == 0 && (15_000..25_000).contains(&passing.millis);
    let mut bench = over(of("equipoise", None), "ap", &TWO, dead);
    bench.run_until(45_000);
    assert_eq!(bench.sent_on(0, 15_850, 24_900), 0, "it is dead");
    let other = arrived(&bench, 1, [15, 25], 40);
    assert!(other.0 > 3.4 && other.1 < 25.0, "{other:?}");
    let back = decided(&bench, Some(0), [25, 45]);
    let first = back.iter().find(|rate| **rate > 0).expect("it comes back");
    assert_eq!(*first, 100_000, "the lowest rate");
    // The largest step follows a successful probe. This step raises the rate to three times the rate that was proved
    // before the probe. The test allows 3.5 times the previous rate.
    assert!(back.windows(2).all(|pair| pair[1] <= pair[0].max(100_000) * 7 / 2), "no leap: {back:?}");
    assert!(arrived(&bench, 0, [35, 45], 10).0 > 5.0);
}

#[test]
fn where_a_paths_reports_are_lost_its_law_alone_falls() {
    // On path 0, all packets to the sender are lost, but media to the receiver still arrives.
    let deaf = |passing: &Passing| passing.path == 0 && passing.to_sender && passing.millis >= 15_000;
    let mut bench = over(of("equipoise", None), "ap", &TWO, deaf);
    bench.run_until(30_000);
    let deaf = decided(&bench, Some(0), [20, 30]);
    assert!(deaf.iter().all(|rate| *rate <= 200_000), "{deaf:?}");
    let other = arrived(&bench, 1, [16, 30], 40);
    assert!(other.0 > 3.4, "{other:?}");
}

/// No reports arrive on any path: each law halves its own rate, and nothing is sent after the circuit breaker trips.
/// When reports arrive again, all laws restart at the lowest rate.
#[test]
fn where_all_paths_are_silent_all_laws_fall_until_the_circuit_breaks() {
    let silent = |passing: &Passing| (10_000..40_000).contains(&passing.millis) && passing.to_sender;
    let mut bench = over(of("equipoise", None), "ap", &TWO, silent);
    bench.run_until(60_000);
    let sent = |from, to| bench.sent_on(0, from, to) + bench.sent_on(1, from, to);
    assert!(sent(14_000, 15_000) < 60 && sent(14_000, 20_000) > 0, "{}", sent(14_000, 15_000));
    assert_eq!(sent(25_500, 40_000), 0, "the circuit is broken");
    let again = decided(&bench, None, [40, 60]);
    assert!(again[0] <= 200_000, "each at its lowest rate: {again:?}");
    assert!(sent(55_000, 60_000) > 4000, "{}", sent(55_000, 60_000));
}

/// If this test fails, the circuit breaker's cut of the rate to a tenth is reported but not applied. In the test, three
/// of four packets are lost on the only path.
#[test]
fn a_cut_to_a_tenth_is_sent_and_not_only_decided() {
    let cut_off = |passing: &Passing| {
        !passing.is_rtcp && !passing.to_sender && passing.millis >= 10_000 && !passing.number.is_multiple_of(4)
    };
    let mut bench = over(fixed(3_000_000), "ap", &[way(6.0, 200)], cut_off);
    let strained = |bench: &Bench| bench.events.iter().find(|it| it.2 == Event::CircuitStrained).map(|it| it.0);
    while strained(&bench).is_none() {
        bench.run_until(bench.millis() + 100);
        assert!(bench.millis() < 30_000, "it is not cut");
    }
    let at = strained(&bench).expect("it is");
    bench.run_until(at + 150);
    let sent = |from, to| bench.sent_on(0, from, to) * 1000 / (to - from) as usize;
    let (before, after) = (sent(at - 150, at), sent(at, at + 150));
    assert!(before > 0 && after * 3 < before, "{before} and {after} packets a second");
}

/// A circuit breaker stops path 0, and later path 1 drops all packets. If the test fails, path 0 then gets its old rate
/// again.
#[test]
fn a_stopped_path_does_not_come_back_at_its_old_rate_because_the_other_one_is_silent() {
    let network = |passing: &Passing| {
        let swallows = passing.path == 0 && !passing.is_rtcp && passing.millis >= 10_000;
        swallows || passing.path == 1 && passing.millis >= 20_000
    };
    let mut bench = over(fixed(3_000_000), "ap", &TWO, network);
    bench.run_until(30_000);
    let broken = |path: Option<u16>, event: &Event| path == Some(0) && matches!(event, Event::CircuitBroken(_));
    assert!(bench.count(broken) > 0);
    let before = bench.sent_on(0, 5000, 10_000) / 5;
    let after = (20_000..30_000).step_by(500).map(|at| bench.sent_on(0, at, at + 500) * 2).max();
    assert!(after.is_some_and(|after| after * 5 < before), "{before} and then {after:?} packets a second");
}

/// Path 0 drops all media for 3 s, and again 50 s later. Each time, a circuit breaker stops path 0 for a pause. If the
/// test fails, the second pause is longer than the first, although the path worked well between the pauses.
#[test]
fn a_path_that_worked_again_has_the_first_pause_at_its_next_stop() {
    let swallows = |passing: &Passing| {
        passing.path == 0
            && !passing.is_rtcp
            && [10_000, 60_000].iter().any(|at| (*at..at + 3000).contains(&passing.millis))
    };
    for controller in [fixed(3_000_000), of("equipoise", None)] {
        let mut bench = over(controller, "ap", &TWO, swallows);
        bench.run_until(90_000);
        let times = |is: fn(&Event) -> bool| {
            let all = bench.events.iter().filter(|(_, path, event)| *path == Some(PathId(0)) && is(event));
            all.map(|(at, ..)| *at).collect::<Vec<_>>()
        };
        let stopped = times(|event| matches!(event, Event::CircuitBroken(_)));
        let closed = times(|event| *event == Event::CircuitClosed);
        let pauses: Vec<_> = stopped.iter().zip(&closed).map(|(from, to)| to - from).collect();
        assert!(pauses.len() == 2 && pauses.iter().all(|pause| (5000..8000).contains(pause)), "{pauses:?}");
    }
}

/// If this test fails, packets that arrived before a path became unusable prove a delivery rate when the path is usable
/// again, although the path now drops all media.
#[test]
fn what_arrived_before_a_path_went_down_proves_nothing_when_it_is_up_again() {
    let swallows = |passing: &Passing| passing.path == 0 && !passing.is_rtcp && passing.millis >= 10_000;
    let mut bench = over(of("equipoise", None), "ap", &TWO, swallows);
    bench.run_until(10_000);
    bench.change(0, PathChange::Down);
    bench.run_until(10_050);
    bench.change(0, PathChange::Up);
    bench.run_until(12_000);
    let rates = decided(&bench, Some(0), [10, 12]);
    let first = rates.iter().position(|rate| *rate <= 100_000).expect("the lowest rate");
    assert!(rates[first..].iter().all(|rate| *rate <= 100_000), "{rates:?}");
}

/// If this test fails, an attacker who knows the synchronisation sources of an unencrypted session can stop all its
/// paths, by sending false reports on a dead path.
#[test]
fn guesses_at_a_dead_path_stop_no_other() {
    let dead = |passing: &Passing| passing.path == 0 && passing.millis >= 5000;
    let mut bench = over(of("equipoise", None), "ap", &TWO, dead);
    bench.run_until(8000);
    let mut guess = Vec::new();
    encode_subflow(9, SSRC, 0, &mut guess, |out| {
        let block = ReportBlock { ssrc: SSRC, last_sr: 1, ..ReportBlock::default() };
        encode_receiver_report(9, &[block], &[], out);
    });
    for _ in 0..200 {
        bench.tell(true, Input::Datagram { path: PathId(0), datagram: &guess, ecn: Ecn::NotCapable });
    }
    bench.run_until(12_000);
    let broken = |path: Option<u16>, event: &Event| path != Some(0) && matches!(event, Event::CircuitBroken(_));
    assert_eq!(bench.count(broken), 0);
    assert!(arrived(&bench, 1, [9, 12], 40).0 > 3.4);
}

/// Returns feedback from `reporter`, which states that all these packets of a sub-flow arrived.
fn feedback(subflow: u16, (reporter, media): (u32, u32), numbers: impl Iterator<Item = u16>) -> Vec<u8> {
    let arrival = Some(PacketArrival { time: ArrivalTime::At(Instant::from_nanos(EPOCH)), ecn: Ecn::NotCapable });
    let mut statuses = numbers.map(|sequence| PacketStatus { sequence, arrival }).peekable();
    let mut out = Vec::new();
    encode_subflow(reporter, media, subflow, &mut out, |out| {
        let at = Instant::from_nanos(EPOCH);
        encode_congestion_feedback(reporter, at, 900, out, |writer| writer.stream(media, &mut statuses))
            .expect("there is room");
    });
    out
}

/// If this test fails, an attacker who guesses sequence numbers can change the rate of a session.
#[test]
fn invented_feedback_is_counted_and_moves_nothing() {
    let run = |forge: bool| {
        let mut bench = over(of("equipoise", None), "ap", &TWO, |_| false);
        bench.run_until(5000);
        let before = bench.events.len();
        for round in 0..50u16 {
            // The first number is below 0x8000, and about 3000 packets were sent on each path. So the numbers from
            // 0xA000 on were never sent.
            let numbers = || (0..40).map(move |at| 0xA000 + round * 400 + at);
            let forged = [
                // Numbers that were never sent, on either path; an unknown path; another reporter; other media;
                // feedback outside any sub-flow; a truncated datagram. All except the feedback outside any sub-flow
                // must count as ignored.
                feedback(0, (9, SSRC), numbers()),
                feedback(1, (9, SSRC), numbers()),
                feedback(7, (9, SSRC), numbers()),
                feedback(0, (10, SSRC), numbers()),
                feedback(0, (9, SSRC + 1), numbers()),
                feedback(0, (9, SSRC), numbers())[16..].to_vec(),
                feedback(0, (9, SSRC), numbers())[..60].to_vec(),
            ];
            for datagram in forged.iter().filter(|_| forge) {
                let input = Input::Datagram { path: PathId(round % 3), datagram, ecn: Ecn::NotCapable };
                bench.tell(true, input);
            }
        }
        let ignored = bench.events[before..].iter().filter(|(_, _, event)| matches!(event, Event::Ignored(_))).count();
        let told = bench.events[before..].iter().any(|(_, _, event)| matches!(event, Event::PacketsReported { .. }));
        bench.run_until(10_000);
        (ignored, told, [0, 1].map(|path| decided(&bench, Some(path), [5, 10])))
    };
    let (quiet, forged) = (run(false), run(true));
    assert!(quiet.0 == 0 && forged.0 == 50 * 6 && !forged.1, "{} ignored", forged.0);
    assert_eq!(quiet.2, forged.2, "the same decisions");
}

/// All genuine reports are lost, and an attacker acknowledges every possible packet number. If the test fails, these
/// acknowledgements raise the rate, although they do not prove that the packets arrived.
#[test]
fn who_acknowledges_what_nobody_proves_raises_no_rate() {
    let mut bench = over(of("equipoise", None), "ap", &TWO, |passing| passing.to_sender);
    bench.run_until(1000);
    for number in 0..0x8100u16 {
        let datagram = feedback(0, (9, SSRC), core::iter::once(number));
        bench.tell(true, Input::Datagram { path: PathId(0), datagram: &datagram, ecn: Ecn::NotCapable });
    }
    let reported = |event: &Event| matches!(event, Event::PacketsReported { arrived: 1, .. });
    assert!(bench.count(|path, event| path == Some(0) && reported(event)) > 20);
    bench.run_until(6000);
    let rates = [Some(0), Some(1)].map(|path| decided(&bench, path, [0, 6]));
    assert!(rates.iter().flatten().all(|rate| *rate <= 300_000), "they begin with that: {rates:?}");
    assert!(rates.iter().all(|rates| rates.last().is_some_and(|last| *last <= 100_000)), "{rates:?}");
}

#[test]
fn sixteen_paths_have_a_law_each_and_a_stranger_makes_no_more() {
    let ways = [way(1.0, 20); MAX_PATHS];
    let mut bench = over(of("equipoise", None), "equal", &ways, |_| false);
    bench.change(16, PathChange::Up);
    assert_eq!(bench.count(|_, event| *event == Event::Ignored(DropReason::Full)), 1);
    bench.run_until(15_000);
    for path in 0..MAX_PATHS as u16 {
        let (mbps, queued) = arrived(&bench, path, [10, 15], 20);
        assert!(mbps > 0.75 && queued < 60.0, "path {path}: {mbps} Mbit/s, {queued} ms");
        let reported = |on, event: &Event| on == Some(path) && matches!(event, Event::PacketsReported { .. });
        assert!(bench.count(reported) > 200, "path {path}");
    }
}

#[test]
fn the_same_session_does_the_same_twice() {
    let run = || {
        let lossy = |passing: &Passing| passing.number.is_multiple_of(97);
        let mut bench = over(of("gcc", Some(8_000_000)), "ap", &TWO, lossy);
        bench.run_until(12_000);
        bench.events.iter().map(|event| format!("{event:?}\n")).collect::<String>()
    };
    assert!(run() == run());
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let refused = |format, total| {
        let config = SenderConfig { ..config(format) };
        Sender::new(config, Span::from_secs(1), total, scheduler("ap", &[])).err().expect("refused")
    };
    let laws = || PathLaws::new(|| None, None);
    let pooled = || Total::Pooled(Box::new(Cbr::new(Rate::from_bps(1_000_000))));
    assert_eq!(refused(Some(FORMAT), pooled()), SessionError::ByPacket);
    assert_eq!(refused(Some(Format::TransportWide), of("gcc", None)), SessionError::TransportWide);
    assert!(matches!(refused(None, of("gcc", None)), SessionError::Needs(unmet) if unmet.missing == Needs::PACKETS));
    assert_eq!(refused(Some(FORMAT), Total::PerPath(laws())), SessionError::NoController);
    let gcc = || build(find("gcc").expect("in the catalogue"), "300 kbit/s");
    assert!(matches!(refused(None, Total::Pooled(gcc())), SessionError::Needs(_)), "pooled intervals report no packet");
    // `Total::of` detects the kind of the controller, so the caller need not know it.
    assert!(matches!(Total::of(gcc(), laws()), Total::PerPath(_)));
    assert!(matches!(Total::of(Box::new(Cbr::new(Rate::ZERO)), laws()), Total::Pooled(_)));
}
