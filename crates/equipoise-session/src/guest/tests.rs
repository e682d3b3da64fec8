//! Tests a controller as a guest in a foreign protocol stack. The stack is minimal: it sends a packet whenever the
//! pacer allows one, and gets feedback every 50 ms.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use equipoise::control::{Allowance, Cbr, Controller, Ecn, Entry, Feedback, PacketReport, find};
use equipoise::pace::{Pacer, Readiness};

use super::*;
use crate::Event;
use crate::harm::{Datagram, GRACE, Harm, LOWEST, MILLI, PACKET, SECOND, Told, adaptive, build};

const PROVIDED: Needs = Needs::PACKETS;
/// All feedback that a controller can get in the [`Stack`]: per-packet feedback from the stack, and interval summaries,
/// which the guest computes from the per-packet feedback.
const ADAPTED: Needs = PROVIDED.and(Needs::INTERVALS);
const REPORTS: u64 = 50 * MILLI;

fn intervals() -> IntervalConfig {
    IntervalConfig::new(Span::from_millis(250))
}

fn at<C>(nanos: u64) -> Instant<C> {
    Instant::from_nanos(nanos)
}

/// If this test fails, the error for a packet number does not say which numbers are too high.
#[test]
fn packet_numbers_end_below_2_to_the_62() {
    let law = alloc::boxed::Box::new(Cbr::new(Rate::from_bps(1_000_000)));
    let mut paced = PacedGuest::new(law, PacedConfig::new(FeedbackKind::Acks), at(0)).expect("it needs nothing");
    paced.on_sent(at(0), 1, (1 << 62) - 1, PACKET).expect("the highest number");
    let refused = paced.on_sent(at(MILLI), 1, 1 << 62, PACKET).expect_err("too high");
    assert_eq!(refused, PacedError::Number { number: 1 << 62 });
    assert!(alloc::format!("{refused}").contains("or is 2^62 or more"), "{refused}");
}

/// A protocol stack with a guest, and the state of the packets that it sent. Times are in ns.
struct Stack<F> {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    path: F,
    /// Packets that have not arrived yet. A key is the arrival time and the number of a packet. A value is the
    /// departure time.
    under_way: BTreeMap<(u64, u64), u64>,
    /// Packets without feedback so far: number, departure time, and arrival time; `None` for a lost packet.
    unreported: VecDeque<(u64, u64, Option<u64>)>,
    feedback: VecDeque<(u64, Vec<PacketReport>)>,
    events: Vec<(u64, Event)>,
}

impl<F: FnMut(Datagram) -> Option<u64>> Stack<F> {
    fn new(controller: BoxedController, path: F) -> Self {
        let guest = Guest::new(controller, PROVIDED, intervals(), at(0)).expect("its needs are met");
        let pacer = Pacer::new(guest.rate());
        let (under_way, unreported, feedback) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { guest, pacer, path, under_way, unreported, feedback, events: Vec::new() }
    }

    fn run_until(&mut self, end: u64) {
        let (mut now, mut number, mut report) = (0, 0u64, REPORTS);
        while now < end {
            self.pacer.set_rate(self.guest.pace(1.0));
            if self.pacer.poll(at(now)) == Readiness::Now {
                self.send(now, number);
                number += 1;
            }
            let media = match self.pacer.poll(at(now)) {
                Readiness::At(due) => due.as_nanos(),
                Readiness::Now => now + 1,
                Readiness::Never => end,
            };
            let arrival = self.under_way.first_key_value().map_or(end, |((at, _), _)| *at);
            let told = self.feedback.front().map_or(end, |(at, _)| *at);
            let timer = self.guest.next_timer().map_or(end, Instant::as_nanos);
            now = [media, arrival, told, timer, report].into_iter().min().unwrap_or(end).max(now + 1);
            self.arrive(now);
            if now >= report {
                report += REPORTS;
                self.report(now);
            }
            if let Some((_, packets)) = self.feedback.pop_front_if(|(due, _)| *due <= now) {
                let in_flight = (self.unreported.len() + packets.len()) as u64 * PACKET.as_bytes();
                let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(in_flight));
                feedback.round_trip = packets.iter().rfind(|it| it.fate != Fate::Lost).map(|it| at(now) - it.departed);
                self.guest.on_feedback(at(now), &feedback, 1.0);
            }
            if self.guest.next_timer().is_some_and(|due| due <= at(now)) {
                self.guest.on_timer(at(now));
            }
        }
    }

    fn send(&mut self, now: u64, number: u64) {
        self.pacer.on_departure(at(now), PACKET);
        let in_flight = Size::from_bytes((self.unreported.len() as u64 + 1) * PACKET.as_bytes());
        self.guest.on_sent(at(now), SentPacket::new(number, PACKET, in_flight));
        self.events
            .push((now, Event::MediaSent { sequence: number, size: PACKET, waited: Span::ZERO, fragment: None }));
        let takes = (self.path)(Datagram { at: now, size: PACKET, from_sender: true, is_rtcp: false });
        self.unreported.push_back((number, now, takes.map(|takes| now + takes)));
        if let Some(takes) = takes {
            self.under_way.insert((now + takes, number), now);
        }
    }

    fn arrive(&mut self, now: u64) {
        while let Some(((arrived, sequence), sent)) = self.under_way.pop_first() {
            if arrived > now {
                self.under_way.insert((arrived, sequence), sent);
                return;
            }
            let delay = Span::from_nanos((arrived - sent) as i64);
            let event =
                Event::MediaReceived { sequence, sent: at(sent), delay, size: PACKET, ecn: crate::Ecn::NotCapable };
            self.events.push((arrived, event));
        }
    }

    /// Reports all packets up to the last one that arrived.
    fn report(&mut self, now: u64) {
        let has_arrived = |it: &(u64, u64, Option<u64>)| it.2.is_some_and(|arrived| arrived <= now);
        let Some(last) = self.unreported.iter().rposition(has_arrived) else { return };
        let told = self.unreported.drain(..=last).map(|(number, sent, arrived)| {
            let fate = arrived.map_or(Fate::Lost, |nanos| Fate::Arrived { at: Some(at(nanos)), ecn: Ecn::NotEct });
            PacketReport::new(number, PACKET, at(sent), fate)
        });
        let packets: Vec<_> = told.collect();
        if let Some(takes) = (self.path)(Datagram { at: now, size: PACKET, from_sender: false, is_rtcp: true }) {
            self.feedback.push_back((now + takes, packets));
        }
    }
}

fn run(entry: &Entry, start: &str, harm: Harm) -> Told {
    let mut stack = Stack::new(build(entry, start), harm.path());
    stack.run_until(40 * SECOND);
    Told::by(entry.name, 40, stack.events.iter().map(|(at, event)| (*at, event)))
}

/// If this test fails, one of our control laws in a foreign protocol stack overloads a path.
#[test]
fn every_adaptive_controller_stays_within_twice_what_arrives() {
    let names: Vec<_> = adaptive(ADAPTED).map(|entry| entry.name).collect();
    // Laws that need packet pairs are excluded, because other protocol stacks do not send packet pairs.
    let known = ["ap", "aimd", "rap", "tfrc", "equipoise", "gcc", "nada", "scream"];
    assert_eq!(names, known, "a new one has to be looked at");
    for entry in adaptive(ADAPTED) {
        for (start, harm) in [
            ("100 kbit/s", Harm::Link(0.5, Span::from_millis(50))),
            ("20 Mbit/s", Harm::Link(2.0, Span::from_millis(300))),
            ("20 Mbit/s", Harm::Policer(2.0)),
            ("100 kbit/s", Harm::Flapping),
        ] {
            let excess = run(entry, start, harm).longest_excess(1);
            assert!(excess <= GRACE, "{} from {start} over {harm:?}: {} ms", entry.name, excess / MILLI);
        }
    }
}

#[test]
fn every_adaptive_controller_yields_to_silence_and_losses_and_comes_back() {
    for entry in adaptive(ADAPTED) {
        for harm in [Harm::BlackHole, Harm::Outage, Harm::Loss(0.3)] {
            let told = run(entry, "100 kbit/s", harm);
            let (lowest, back) = (told.rate(16, 18), told.rate(36, 40));
            assert!(lowest < 2.0 * LOWEST, "{} over {harm:?}: {lowest}", told.name);
            assert!(back > 1.5 * LOWEST, "{} after {harm:?}: {back}", told.name);
        }
    }
}

#[test]
fn our_own_law_uses_a_link_as_a_guest_too() {
    let entry = find("equipoise").expect("in the catalogue");
    let told = run(entry, "300 kbit/s", Harm::Link(4.0, Span::from_millis(300)));
    assert!((3.4e6..4.1e6).contains(&told.rate(10, 40)), "{}", told.rate(10, 40));
}

/// Packets of 1000 bytes are sent every 20 ms and arrive every 40 ms. The ten packets after the first packet arrive
/// within 400 ms, which proves a rate of 0.2 Mbit/s.
#[test]
fn a_proof_is_what_arrived_over_the_time_in_which_it_did() {
    let mut tally = Tally::default();
    let packets: Vec<_> = (0..11)
        .map(|number| {
            let fate = Fate::Arrived { at: Some(at((100 + 40 * number) * MILLI)), ecn: Ecn::NotEct };
            PacketReport::new(number, PACKET, at(20 * number * MILLI), fate)
        })
        .collect();
    let feedback = PacketFeedback::new(&packets, Size::ZERO);
    let proof = tally.take(at(SECOND), &feedback).expect("enough for one");
    assert_eq!((proof.sent, proof.arrived, proof.arriving), (10, 10, Span::from_millis(400)));
    assert_eq!(proof.delivered(), Some(Rate::from_bps(200_000)));
}

/// If this test fails, a receiver whose clock is frozen makes the sender flood a path that loses half of the packets.
#[test]
fn arrivals_all_at_once_prove_no_more_than_was_sent() {
    let mut tally = Tally::default();
    let packets: Vec<_> = (0..11)
        .map(|number| {
            let arrived = Fate::Arrived { at: Some(at(SECOND)), ecn: Ecn::NotEct };
            let fate = if number % 2 == 1 { Fate::Lost } else { arrived };
            PacketReport::new(number, PACKET, at(20 * number * MILLI), fate)
        })
        .collect();
    let proof = tally.take(at(SECOND), &PacketFeedback::new(&packets, Size::ZERO)).expect("enough for one");
    assert_eq!((proof.sent, proof.arrived, proof.delivered()), (10, 5, Some(Rate::from_bps(200_000))));
}

/// If this test fails, an acknowledgement of two packets that arrived together proves an arbitrarily high rate.
#[test]
fn acknowledgements_of_a_few_packets_prove_something_together() {
    let mut tally = Tally::default();
    let mut take = |numbers: core::ops::Range<u64>| {
        let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
        let packets: Vec<_> =
            numbers.clone().map(|number| PacketReport::new(number, PACKET, at(50 * number * MILLI), fate)).collect();
        tally.take(at((50 + 50 * numbers.end) * MILLI), &PacketFeedback::new(&packets, Size::ZERO))
    };
    assert_eq!([take(0..2), take(2..4)], [None, None]);
    let proof = take(4..6).expect("five packets behind the first");
    assert_eq!((proof.arrived, proof.sending), (5, Span::from_millis(250)));
}

#[test]
fn silence_halves_the_rate_after_three_reports_and_a_round_trip() {
    let entry = find("equipoise").expect("in the catalogue");
    let mut guest = Guest::new(build(entry, "800 kbit/s"), PROVIDED, intervals(), at(0)).expect("right");
    assert_eq!(guest.rate().as_bps(), 800_000);
    let mut halved = Vec::new();
    for milli in 0..1600 {
        if milli % 10 == 0 {
            guest.on_sent(at(milli * MILLI), SentPacket::new(milli / 10, PACKET, PACKET));
        }
        let before = guest.rate();
        let is_silent = guest.on_timer(at(milli * MILLI));
        if guest.rate() < before {
            halved.push((milli, is_silent));
        }
    }
    assert_eq!(halved.first(), Some(&(1000, true)), "three reports and the usual round trip: {halved:?}");
    assert!(guest.rate().as_bps() <= 200_000, "{}", guest.rate());
}

/// Returns reports on twenty packets. They were sent one per 20 ms, and each arrived 20 ms after it was sent.
fn arrived() -> Vec<PacketReport> {
    let packet = |number| {
        let fate = Fate::Arrived { at: Some(at((20 * number + 20) * MILLI)), ecn: Ecn::NotEct };
        PacketReport::new(number, PACKET, at(20 * number * MILLI), fate)
    };
    (0..20).map(packet).collect()
}

/// If this test fails, an encoder that pauses after its last packets were lost restarts at the lowest rate.
#[test]
fn who_sends_nothing_is_not_halved_for_hearing_nothing() {
    let entry = find("gcc").expect("in the catalogue");
    let mut guest = Guest::new(build(entry, "800 kbit/s"), PROVIDED, intervals(), at(0)).expect("right");
    let packets = arrived();
    for it in &packets {
        guest.on_sent(it.departed, SentPacket::new(it.number, PACKET, PACKET));
    }
    guest.on_feedback(at(450 * MILLI), &PacketFeedback::new(&packets, PACKET), 1.0);
    let rate = guest.rate();
    guest.on_sent(at(460 * MILLI), SentPacket::new(20, PACKET, PACKET));
    let forgotten = (460..4000).filter(|milli| guest.on_timer(at(milli * MILLI))).count();
    assert_eq!(forgotten, 1);
    assert!(guest.rate() >= rate, "{} before, {} after", rate, guest.rate());
}

/// If this test fails, a sender whose window is full of lost packets stays silent forever. No feedback covers the lost
/// packets, because no later packet arrives.
#[test]
fn packets_that_feedback_leaves_out_are_waited_for_though_nothing_else_leaves() {
    let entry = find("gcc").expect("in the catalogue");
    let mut guest = Guest::new(build(entry, "800 kbit/s"), PROVIDED, intervals(), at(0)).expect("right");
    let packets = arrived();
    for it in &packets {
        guest.on_sent(it.departed, SentPacket::new(it.number, PACKET, PACKET));
    }
    for number in 20..23 {
        guest.on_sent(at(20 * number * MILLI), SentPacket::new(number, PACKET, PACKET));
    }
    guest.on_feedback(at(450 * MILLI), &PacketFeedback::new(&packets, PACKET), 1.0);
    assert!(guest.next_timer().is_some_and(|due| due < at(2 * SECOND)), "{:?}", guest.next_timer());
    let forgotten = (450..4000).filter(|milli| guest.on_timer(at(milli * MILLI))).count();
    assert_eq!(forgotten, 1, "what was in flight is given up once");
}

#[test]
fn a_window_alone_is_refused_and_a_fixed_rate_is_kept() {
    let rate = Rate::from_bps(1_000_000);
    let mut guest =
        Guest::new(alloc::boxed::Box::new(Cbr::new(rate)), PROVIDED, intervals(), at(0)).expect("it needs nothing");
    guest.on_sent(at(0), SentPacket::new(0, PACKET, PACKET));
    guest.on_timer(at(10 * SECOND));
    assert_eq!(guest.rate(), rate);
    let tq = find("tq").expect("in the catalogue");
    let controller = tq.build(&tq.parse(&[]).expect("defaults"), PACKET).expect("right");
    let refused = Guest::new(controller, PROVIDED, intervals(), at(0)).expect_err("there is no playout buffer");
    assert!(matches!(refused, SessionError::Needs(unmet) if unmet.missing.contains(Needs::PLAYOUT)), "{refused}");
}

/// A law that always decides on 8 Mbit/s, and records whether the last feedback was application-limited.
#[derive(Debug)]
struct Listener(Arc<AtomicBool>);

impl Controller for Listener {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        if let Feedback::Packets(packets) = feedback {
            self.0.store(packets.app_limited, Ordering::Relaxed);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(Rate::from_bps(8_000_000))
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }
}

/// While the application sends little, the guest must limit the rate, and must set `app_limited` in the feedback to the
/// law. Otherwise a law may raise its rate without end. When the application sends more, the guest must do neither.
#[test]
fn a_law_whose_rate_is_held_is_told_that_its_rate_is_not_used() {
    let is_limited = Arc::new(AtomicBool::new(false));
    let law = alloc::boxed::Box::new(Listener(is_limited.clone()));
    let mut guest = Guest::new(law, PROVIDED, intervals(), at(0)).expect("its needs are met");
    let mut found = Vec::new();
    // The packets have 1000 bytes, so 50 packets a second are 0.4 Mbit/s, and 1000 packets a second are 8 Mbit/s.
    for (apart, from, to) in [(20, 0, 2000), (1, 2000, 8000)] {
        let mut packets = Vec::new();
        for milli in (from..to).step_by(apart) {
            let now = at(milli * MILLI);
            guest.on_sent(now, SentPacket::new(milli, PACKET, PACKET));
            let fate = Fate::Arrived { at: Some(at((milli + 20) * MILLI)), ecn: Ecn::NotEct };
            packets.push(PacketReport::new(milli, PACKET, now, fate));
            if milli % 100 == 0 {
                let mut feedback = PacketFeedback::new(&packets, PACKET);
                feedback.round_trip = Some(Span::from_millis(40));
                guest.on_feedback(now, &feedback, 1.0);
                packets.clear();
            }
        }
        found.push((guest.rate().as_bps() < 1_000_000, is_limited.load(Ordering::Relaxed)));
    }
    assert_eq!(found, [(true, true), (false, false)]);
}
