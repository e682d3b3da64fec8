//! Tests that the controllers of the catalogue do not harm other traffic. With an adaptive controller, the sending rate
//! stays within twice the delivery rate, decreases with losses, and recovers. With a fixed rate, or a law that must act
//! exactly as in its paper, the circuit breakers stop the media. They also stop media whose receiver sends false
//! reports.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::two_ends::{EPOCH, Passing, TwoEnds};
use super::{Breaker, Clocks, Delays, Payload, Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use crate::feedback::{Format, Reporting};
use crate::harm::{Datagram, GRACE, Harm, INTERVAL, LOWEST, MILLI, PACKET, SECOND, Told, adaptive, build};
use crate::wire::rtcp::{ReportBlock, RtcpPacket, encode_receiver_report, parse_compound};
use crate::wire::{DelayOrigin, DelayReport, Receipt, ReportRequest, is_rtcp};
use crate::{Endpoint as _, Event, Input, Output};
use equipoise::control::{BoxedController, Entry, Needs, entries};
use equipoise::measure::{ClockMap, DelaySummary};
use equipoise::units::{Instant, Rate, Span};

/// The feedback that a session provides if its receiver sends per-packet reports.
const PROVIDED: Needs = Sender::PROVIDES.and(Needs::PACKETS);

fn run(entry: &Entry, start: &str, harm: Harm) -> Told {
    let mut ends = TwoEnds::cbr(Payload::Generated, path(harm));
    let stream = StreamConfig::new(0x0102_0304, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, INTERVAL, Instant::from_nanos(EPOCH), 1);
    let controller = build(entry, start);
    let by_packet = Reporting { format: Format::TransportWide, interval: Reporting::INTERVAL };
    let reporting = controller.needs().contains(Needs::PACKETS).then_some(by_packet);
    ends.sender = Sender::new(SenderConfig { delays: Delays::Queueing, reporting, ..base }, controller).expect("valid");
    let receiver = ReceiverConfig::new(9, "receiver@test", 0x0102_0304, ClockMap::SYNCHRONISED, 2);
    ends.receiver = Receiver::new(ReceiverConfig { clocks: Clocks::Apart, reporting, ..receiver }).expect("valid");
    ends.run_until(40_000);
    Told::by(entry.name, 40, ends.events.iter().map(|(at, event)| (*at, event)))
}

fn path(harm: Harm) -> impl FnMut(&Passing) -> Vec<u64> {
    let mut path = harm.path();
    move |&Passing { at, size, from_sender, is_rtcp, .. }| {
        path(Datagram { at, size, from_sender, is_rtcp }).into_iter().collect()
    }
}

#[test]
fn every_adaptive_controller_leaves_its_start_and_stays_within_twice_what_arrives() {
    let names: Vec<_> = adaptive(PROVIDED).map(|entry| entry.name).collect();
    let known = ["ap", "aimd", "lda", "ldaf", "rap", "tfrc", "equipoise", "gcc", "nada", "scream"];
    assert_eq!(names, known, "a new one has to be looked at");
    for entry in adaptive(PROVIDED) {
        for (start, harm, leaves) in [
            ("100 kbit/s", Harm::Link(4.0, Span::from_millis(100)), true),
            ("100 kbit/s", Harm::Link(0.5, Span::from_millis(50)), false),
            ("20 Mbit/s", Harm::Link(2.0, Span::from_millis(300)), false),
            ("20 Mbit/s", Harm::Policer(2.0), false),
            ("100 kbit/s", Harm::Policer(2.0), false),
            ("100 kbit/s", Harm::Flapping, true),
        ] {
            let told = run(entry, start, harm);
            let excess = told.longest_excess(1);
            assert!(excess <= GRACE, "{} from {start}: {} ms beyond twice what arrives", told.name, excess / MILLI);
            if leaves {
                assert!(told.rate(30, 40) > 1.5 * LOWEST, "{}: {}", told.name, told.rate(30, 40));
            }
        }
    }
}

#[test]
fn every_adaptive_controller_yields_to_losses_and_comes_back() {
    for entry in adaptive(PROVIDED) {
        let before = run(entry, "100 kbit/s", Harm::Loss(0.0)).rate(6, 8);
        for harm in [Harm::BlackHole, Harm::Outage, Harm::Loss(0.3)] {
            let told = run(entry, "100 kbit/s", harm);
            let (lowest, back) = (told.rate(16, 18), told.rate(36, 40));
            assert!(lowest < 2.0 * LOWEST, "{}: {lowest} of {before}", told.name);
            assert!(back > 1.5 * LOWEST || back > 0.3 * before, "{}: {back} of {before}", told.name);
        }
        let told = run(entry, "100 kbit/s", Harm::Loss(0.01));
        assert!(told.rate(10, 18) > 1.2 * LOWEST, "{} bears a hundredth: {}", told.name, told.rate(10, 18));
    }
}

/// The delivery rate in the reports does not limit a fixed rate, or a law that must act exactly as in its paper. In
/// these cases, only the circuit breakers stop the media.
#[test]
fn what_is_not_adaptive_is_stopped_by_the_breakers() {
    for (name, rate) in [("cbr", 8_000_000u64), ("ap-printed", 0)] {
        let entry = entries().iter().find(|entry| entry.name == name).expect("in the catalogue");
        let controller = || -> BoxedController {
            if rate > 0 {
                Box::new(equipoise::control::Cbr::new(Rate::from_bps(rate)))
            } else {
                build(entry, "100 kbit/s")
            }
        };
        let mut ends = TwoEnds::between(Delays::Queueing, Payload::Generated, controller(), path(Harm::BlackHole));
        ends.run_until(30_000);
        let broken = ends.count(|event| matches!(event, Event::CircuitBroken(_)));
        let closed = ends.count(|event| *event == Event::CircuitClosed);
        assert!(broken >= 1 && closed == broken, "{name}: {broken} {closed}");
        let sent = ends
            .events
            .iter()
            .filter(|(at, event)| (13 * SECOND..18 * SECOND).contains(at) && matches!(event, Event::MediaSent { .. }));
        // At the full rate of 1000 packets per second, the sender would send 5000 packets in these five seconds. The
        // circuit breaker stops the media. When the media restarts, its rate is the lowest rate.
        assert!(sent.count() < 250, "{name}");
    }
}

/// Runs a sender whose peer gets requests but no media. The peer sends `reports` copies of each report. `lie` returns
/// the receipt in a report; the arguments of `lie` are the request's nonce and the number of packets sent so far.
/// Returns the breaker that stopped the sender, the time of the stop in s, and the highest rate before the stop in
/// bit/s.
fn lied_to(lie: impl Fn(u32, u32) -> Receipt, reports: usize) -> Option<(Breaker, u64, f64)> {
    let entry = entries().iter().find(|entry| entry.name == "ap").expect("in the catalogue");
    let stream = StreamConfig::new(7, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, INTERVAL, Instant::from_nanos(EPOCH), 1);
    let config = SenderConfig { delays: Delays::Queueing, ..base };
    let mut sender = Sender::new(config, build(entry, "100 kbit/s")).expect("valid");
    let (mut now, mut sent, mut highest) = (EPOCH, 0u32, 0.0);
    while now < EPOCH + 60 * SECOND {
        now = now.max(sender.wake()?.at.as_nanos());
        sender.handle(Instant::from_nanos(now), Input::Timer);
        let mut answers = Vec::new();
        while let Some(output) = sender.poll() {
            match output {
                Output::Event { event: Event::MediaSent { .. }, .. } => sent += 1,
                Output::Event { event: Event::CircuitBroken(breaker), .. } => {
                    return Some((breaker, (now - EPOCH) / SECOND, highest));
                }
                Output::Event { event: Event::RateDecided { rate, .. }, .. } => {
                    highest = rate.as_bps_f64().max(highest);
                }
                Output::Transmit { transmit, .. } if is_rtcp(transmit.head) => {
                    let packet = parse_compound(transmit.head).expect("well formed").next();
                    let Some(RtcpPacket::SenderReport(request)) = packet else { continue };
                    let Ok(asked) = ReportRequest::parse(request.extension) else { continue };
                    let nonce = asked.receipt.expect("it asks for one").nonce;
                    let block = ReportBlock {
                        ssrc: 7,
                        extended_highest: sent,
                        last_sr: request.ntp.middle(),
                        ..ReportBlock::default()
                    };
                    let delay = Some(DelaySummary { mean_s: 0.0, variance_s2: 0.0, samples: 9 });
                    let origin = Some(DelayOrigin { origin: Span::ZERO, least: Some(Span::ZERO) });
                    let report = DelayReport { origin, receipt: Some(lie(nonce, sent)), ..DelayReport::agreed(delay) };
                    let mut bytes = Vec::new();
                    encode_receiver_report(9, &[block], &report.to_bytes(), &mut bytes);
                    answers.push(bytes);
                }
                _ => {}
            }
        }
        now += MILLI;
        for answer in answers.iter().cycle().take(answers.len() * reports) {
            sender.handle(Instant::from_nanos(now), Input::datagram(answer));
        }
    }
    None
}

/// If this test fails, an attacker who has the session's key can make the sender flood a third party with media, by
/// sending false reports at only a fortieth of the media's rate.
#[test]
fn who_reports_on_media_that_it_does_not_get_is_found_out() {
    // This attacker does not see the requests. In each interval it sends 100 reports with a guessed nonce.
    let guess = lied_to(|_, sent| Receipt { nonce: 0xBAD, arrived: sent, stamp: None }, 100);
    let (breaker, second, highest) = guess.expect("it stops");
    assert!(breaker == Breaker::Receipts && second < 2 && highest <= LOWEST, "{breaker:?} {second} {highest}");
    // This attacker sees the requests.
    let (breaker, second, highest) =
        lied_to(|nonce, arrived| Receipt { nonce, arrived, stamp: None }, 1).expect("it stops");
    assert!(breaker == Breaker::Receipts && second < 10, "{breaker:?} after {second} s at {highest}");
    let invented = lied_to(|nonce, arrived| Receipt { nonce, arrived, stamp: Some(1) }, 1).expect("it stops");
    assert!(invented.0 == Breaker::Receipts && invented.1 < 2, "{invented:?}");
    // A report that more packets arrived than were sent is implausible, and has the same effect as a missing report.
    let flood = lied_to(|nonce, sent| Receipt { nonce, arrived: sent + 1, stamp: None }, 1).expect("it stops");
    assert!(flood.0 == Breaker::Reports && flood.2 <= LOWEST, "{flood:?}");
}
