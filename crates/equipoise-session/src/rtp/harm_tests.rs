//! No controller of the catalogue does harm on any path: whatever it decides, what is sent stays within twice what arrives,
//! yields to losses, and comes back.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use rand_distr::{Distribution, StandardUniform};

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Breaker, Delays, Payload, Sender, SenderConfig, StreamConfig};
use crate::wire::rtcp::{ReportBlock, RtcpPacket, encode_receiver_report, parse_compound};
use crate::wire::{DelayOrigin, DelayReport, Receipt, ReportRequest, is_rtcp};
use crate::{Endpoint as _, Event, Input, Output};
use equipoise::control::{BoxedController, Entry, entries};
use equipoise::measure::DelaySummary;
use equipoise::random::generator;
use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit, Verdict};

const SECOND: u64 = 1000 * MILLI;
const PACKET: Size = Size::from_bytes(1000);
const LOWEST: f64 = 100e3;
const INTERVAL: Span = Span::from_millis(250);
/// Time for which more than twice what arrives may be sent: the longer of 2 s, and two report intervals and a round trip.
const GRACE: u64 = 2 * SECOND;
/// What is sent and what arrives is compared over so much time.
const BIN: u64 = SECOND / 4;

/// What the network does to a packet of media, and from when to when; requests and reports take 10 ms each way.
enum Harm {
    /// A link of so many Mbit/s with a queue.
    Link(f64, Span),
    /// The same without a queue.
    Policer(f64),
    /// Nothing of the media comes through from 8 s to 18 s.
    BlackHole,
    /// Nothing at all comes through from 8 s to 18 s.
    Outage,
    /// Such a share is lost, from 8 s to 18 s.
    Loss(f64),
    /// Off and on for 300 ms each, from 8 s to 18 s.
    Flapping,
}

impl Harm {
    fn path(self) -> impl FnMut(&Passing) -> Vec<u64> {
        let (mbps, queue) = match self {
            Self::Link(mbps, queue) => (mbps, queue),
            Self::Policer(mbps) => (mbps, Span::from_millis(2)),
            _ => (6.0, Span::from_millis(200)),
        };
        let rate = Schedule::constant(Rate::from_bps_f64(mbps * 1e6).expect("a rate"));
        let config = LinkConfig { rate, propagation_delay: Span::ZERO, queue: QueueLimit::Time(queue) };
        let mut link = FifoLink::<ReceiverClock>::new(config, Instant::ZERO).expect("a valid link");
        let mut random = generator(1, 0);
        move |passing: &Passing| {
            let at = passing.at;
            let drawn: f64 = StandardUniform.sample(&mut random);
            let is_hit = (8 * SECOND..18 * SECOND).contains(&at)
                && match self {
                    Self::Link(..) | Self::Policer(_) => false,
                    Self::BlackHole => !passing.is_rtcp,
                    Self::Outage => true,
                    Self::Loss(share) => drawn < share,
                    Self::Flapping => at / (300 * MILLI) % 2 == 1,
                };
            if is_hit {
                return vec![];
            }
            match passing.from_sender.then(|| link.offer(Instant::from_nanos(at), passing.size)) {
                Some(Verdict::Dropped) => vec![],
                Some(Verdict::ArrivesAt(due)) => vec![due.as_nanos() - at + 10 * MILLI],
                None => vec![10 * MILLI],
            }
        }
    }
}

/// What was sent and what arrived in each bin, in bit/s.
struct Told {
    name: &'static str,
    sent: Vec<f64>,
    arrived: Vec<f64>,
}

impl Told {
    /// The rate at which it sent, from one second to another.
    fn rate(&self, from: u64, to: u64) -> f64 {
        let bins = &self.sent[(from * SECOND / BIN) as usize..(to * SECOND / BIN) as usize];
        bins.iter().sum::<f64>() / bins.len() as f64
    }

    /// The longest time for which more than twice what arrives was sent, over the last second each.
    fn longest_excess(&self) -> u64 {
        let over = |of: &[f64], at: usize| of[at.saturating_sub(3)..=at].iter().sum::<f64>() / 4.0;
        let (mut longest, mut present) = (0, 0);
        for at in 3..self.sent.len() {
            let is_over = over(&self.sent, at) > 2.0 * over(&self.arrived, at) + 1.5 * LOWEST;
            present = if is_over { present + BIN } else { 0 };
            longest = longest.max(present);
        }
        longest
    }
}

fn build(entry: &Entry, start: &str) -> BoxedController {
    let given = [
        ("target", "40 ms"),
        ("min_rate", "100 kbit/s"),
        ("max_rate", "20 Mbit/s"),
        ("initial_rate", start),
        ("increase", "50 kbit/s"),
    ];
    let given: Vec<_> =
        given.into_iter().filter(|(name, _)| entry.parameters.iter().any(|known| known.name == *name)).collect();
    let parsed = entry.parse(&given).expect("right");
    entry.build(&parsed, PACKET).expect("right")
}

fn run(entry: &Entry, start: &str, harm: Harm) -> Told {
    let mut ends = TwoEnds::between(Delays::Queueing, Payload::Generated, build(entry, start), harm.path());
    let stream = StreamConfig::new(0x0102_0304, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, INTERVAL, Instant::from_nanos(EPOCH), 1);
    ends.sender = Sender::new(SenderConfig { delays: Delays::Queueing, ..base }, build(entry, start)).expect("valid");
    ends.run_until(40_000);
    let bins = (40 * SECOND / BIN) as usize;
    let (mut sent, mut arrived) = (vec![0.0; bins], vec![0.0; bins]);
    for (at, event) in &ends.events {
        let (bins, size) = match event {
            Event::MediaSent { size, .. } => (&mut sent, size),
            Event::MediaReceived { size, .. } => (&mut arrived, size),
            _ => continue,
        };
        if let Some(bin) = bins.get_mut((at / BIN) as usize) {
            *bin += size.as_bits() as f64 / (BIN as f64 / SECOND as f64);
        }
    }
    Told { name: entry.name, sent, arrived }
}

/// Those that a session over one path can hold without a playout buffer, and that it holds to what is proved.
fn adaptive() -> impl Iterator<Item = &'static Entry> {
    entries().iter().filter(|entry| {
        entry.parse(&[("target", "40 ms")]).or_else(|_| entry.parse(&[])).is_ok_and(|parsed| {
            entry
                .build(&parsed, PACKET)
                .is_ok_and(|controller| controller.is_held_to_proof() && Sender::PROVIDES.contains(controller.needs()))
        })
    })
}

#[test]
fn every_adaptive_controller_leaves_its_start_and_stays_within_twice_what_arrives() {
    let names: Vec<_> = adaptive().map(|entry| entry.name).collect();
    assert_eq!(names, ["ap", "aimd", "lda", "ldaf", "rap", "tfrc"], "a new one has to be looked at");
    for entry in adaptive() {
        for (start, harm, leaves) in [
            ("100 kbit/s", Harm::Link(4.0, Span::from_millis(100)), true),
            ("100 kbit/s", Harm::Link(0.5, Span::from_millis(50)), false),
            ("20 Mbit/s", Harm::Link(2.0, Span::from_millis(300)), false),
            ("20 Mbit/s", Harm::Policer(2.0), false),
            ("100 kbit/s", Harm::Policer(2.0), false),
            ("100 kbit/s", Harm::Flapping, true),
        ] {
            let told = run(entry, start, harm);
            let excess = told.longest_excess();
            assert!(excess <= GRACE, "{} from {start}: {} ms beyond twice what arrives", told.name, excess / MILLI);
            if leaves {
                assert!(told.rate(30, 40) > 1.5 * LOWEST, "{}: {}", told.name, told.rate(30, 40));
            }
        }
    }
}

#[test]
fn every_adaptive_controller_yields_to_losses_and_comes_back() {
    for entry in adaptive() {
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

/// A fixed rate is not held to anything, nor a law that is to be seen as printed: the breakers stop them.
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
        let mut ends = TwoEnds::between(Delays::Queueing, Payload::Generated, controller(), Harm::BlackHole.path());
        ends.run_until(30_000);
        let broken = ends.count(|event| matches!(event, Event::CircuitBroken(_)));
        let closed = ends.count(|event| *event == Event::CircuitClosed);
        assert!(broken >= 1 && closed == broken, "{name}: {broken} {closed}");
        let sent = ends
            .events
            .iter()
            .filter(|(at, event)| (13 * SECOND..18 * SECOND).contains(at) && matches!(event, Event::MediaSent { .. }));
        // Five seconds at 1000 packets a second, but for trials at the lowest rate.
        assert!(sent.count() < 250, "{name}");
    }
}

/// A receiver that hears requests and no media, and says of it what `lie` makes of the nonce and the packets sent so
/// far, each report so many times. Returns the breaker that stopped the sender, when, and the highest rate until then.
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

/// If it fails, who has the key sends a flood to where nobody listens, for a fortieth of its rate.
#[test]
fn who_reports_on_media_that_it_does_not_get_is_found_out() {
    // Blind, at 100 guesses an interval.
    let guess = lied_to(|_, sent| Receipt { nonce: 0xBAD, arrived: sent, stamp: None }, 100);
    let (breaker, second, highest) = guess.expect("it stops");
    assert!(breaker == Breaker::Receipts && second < 2 && highest <= LOWEST, "{breaker:?} {second} {highest}");
    // With the requests before its eyes.
    let (breaker, second, highest) =
        lied_to(|nonce, arrived| Receipt { nonce, arrived, stamp: None }, 1).expect("it stops");
    assert!(breaker == Breaker::Receipts && second < 10, "{breaker:?} after {second} s at {highest}");
    let invented = lied_to(|nonce, arrived| Receipt { nonce, arrived, stamp: Some(1) }, 1).expect("it stops");
    assert!(invented.0 == Breaker::Receipts && invented.1 < 2, "{invented:?}");
    // More than was ever sent is implausible, and so is no report at all.
    let flood = lied_to(|nonce, sent| Receipt { nonce, arrived: sent + 1, stamp: None }, 1).expect("it stops");
    assert!(flood.0 == Breaker::Reports && flood.2 <= LOWEST, "{flood:?}");
}
