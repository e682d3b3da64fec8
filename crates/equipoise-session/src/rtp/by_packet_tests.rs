//! Tests of sessions with per-packet feedback. The tests check which feedback is passed to control laws, and that
//! forged feedback does not raise the rate.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::*;
use proptest::prelude::*;

use crate::feedback::{Format, Reporting};
use crate::harm::{Datagram, Harm, PACKET, adaptive, build};
use crate::wire::feedback::{
    ArrivalTime, PacketArrival, PacketStatus, TransportHead, encode_congestion_feedback, encode_transport_feedback,
};
use crate::wire::is_rtcp;
use crate::wire::rtp::RtpPacket;
use crate::{DropReason, Ecn, Endpoint as _, Event, Input, Output};
use equipoise::control::{
    Allowance, BoxedController, Controller, Entry, Fate, Feedback, Needs, Probe, SentPacket, find,
};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

const FORMATS: [Format; 2] = [Format::CongestionFeedback, Format::TransportWide];
const SSRC: u32 = 0x0102_0304;

const fn reporting(format: Format) -> Reporting {
    Reporting { format, interval: Span::from_millis(50) }
}

fn config(format: Format) -> SenderConfig {
    let stream = StreamConfig::new(SSRC, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(250), Instant::from_nanos(EPOCH), 1);
    SenderConfig { reporting: Some(reporting(format)), delays: Delays::Queueing, ..base }
}

/// Creates the sender and the receiver of a session with per-packet feedback over `path`.
fn ends<F: FnMut(&Passing) -> Vec<u64>>(format: Format, controller: BoxedController, path: F) -> TwoEnds<F> {
    let mut ends = TwoEnds::cbr(Payload::Generated, path);
    ends.sender = Sender::new(config(format), controller).expect("valid");
    let receiver = ReceiverConfig::new(9, "receiver@test", SSRC, equipoise::measure::ClockMap::SYNCHRONISED, 2);
    let receiver = ReceiverConfig { clocks: Clocks::Apart, reporting: Some(reporting(format)), ..receiver };
    ends.receiver = Receiver::new(receiver).expect("valid");
    ends
}

fn link(mbps: f64, queue: Span) -> impl FnMut(&Passing) -> Vec<u64> {
    let mut path = Harm::Link(mbps, queue).path();
    move |&Passing { at, size, from_sender, is_rtcp, .. }| {
        path(Datagram { at, size, from_sender, is_rtcp }).into_iter().collect()
    }
}

/// Returns the rate, in bit/s, at which media arrived between two times in ms.
fn arrived<F>(ends: &TwoEnds<F>, from: u64, to: u64) -> f64 {
    let sizes =
        ends.events.iter().filter(|(at, _)| (from * MILLI..to * MILLI).contains(at)).map(|(_, event)| match event {
            Event::MediaReceived { size, .. } => size.as_bits(),
            _ => 0,
        });
    sizes.sum::<u64>() as f64 * 1e3 / (to - from) as f64
}

/// A controller with the given allowance and probe. The controller asserts three things: it gets no interval summaries,
/// feedback on arrived packets has a round-trip time, and each packet of a probe belongs to the probe that the
/// controller wants.
#[derive(Debug)]
struct Told {
    allowance: Allowance,
    probe: Option<Probe>,
}

impl Default for Told {
    fn default() -> Self {
        Self { allowance: Allowance::rate(Rate::from_bps(800_000)), probe: None }
    }
}

impl Controller for Told {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        assert!(!matches!(feedback, Feedback::Interval(_)), "an interval for a law by packet");
        let Feedback::Packets(packets) = feedback else { return };
        let arrived = packets.packets.iter().filter(|packet| packet.fate != Fate::Lost).count();
        assert!(packets.round_trip.is_some() || arrived == 0, "{packets:?}");
    }

    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn on_sent(&mut self, _now: Instant<SenderClock>, packet: &SentPacket) {
        let (Some(probe), Some(Probe { number, rate, packets, size, .. })) = (packet.probe, self.probe) else { return };
        assert_eq!(probe, number);
        self.probe = packets.checked_sub(1).filter(|left| *left > 0).map(|left| Probe::new(number, rate, left, size));
    }

    fn wanted_probe(&self) -> Option<Probe> {
        self.probe
    }
}

fn entry(name: &str) -> &'static Entry {
    find(name).expect("in the catalogue")
}

/// Tests per-packet laws, and interval laws through the adapter [`Intervals`](equipoise::control::adapt::Intervals).
/// With each law, media must arrive at a rate of 60 % to 101 % of the link's 2 Mbit/s. For LDA, AIMD and RAP, the lower
/// limit is 20 %.
#[test]
fn every_law_fills_a_link_by_either_format() {
    let provided = config(Format::TransportWide).provides();
    let names: Vec<_> = adaptive(provided).map(|entry| entry.name).collect();
    assert_eq!(
        names,
        ["ap", "aimd", "lda", "ldaf", "rap", "tfrc", "equipoise", "gcc", "nada", "scream"],
        "a new one has to be looked at"
    );
    for (entry, format) in adaptive(provided).flat_map(|entry| FORMATS.map(|format| (entry, format))) {
        let mut ends = ends(format, build(entry, "300 kbit/s"), link(2.0, Span::from_millis(200)));
        ends.run_until(40_000);
        let share = arrived(&ends, 20_000, 40_000) / 2e6;
        let least = if matches!(entry.name, "lda" | "ldaf" | "aimd" | "rap") { 0.2 } else { 0.6 };
        assert!((least..1.01).contains(&share), "{} by {format:?}: {share}", entry.name);
        let reports = ends.count(|event| matches!(event, Event::PacketsReported { .. }));
        assert!(reports > 500, "{}: {reports} reports", entry.name);
    }
}

/// Returns a path that loses every third report of the receiver and delays every fifth report by 300 ms, so that two or
/// more later reports overtake it.
fn with_bad_feedback(mut path: impl FnMut(&Passing) -> Vec<u64>) -> impl FnMut(&Passing) -> Vec<u64> {
    let mut reports = 0;
    move |passing: &Passing| {
        let arrivals = path(passing);
        if passing.from_sender || !passing.is_rtcp {
            return arrivals;
        }
        reports += 1;
        match (reports % 3, reports % 5) {
            (0, _) => Vec::new(),
            (_, 0) => arrivals.into_iter().map(|at| at + 300 * MILLI).collect(),
            _ => arrivals,
        }
    }
}

/// If this test fails, packets whose report was lost count as lost packets, and the rate of media falls to almost zero.
#[test]
fn packets_of_lost_and_late_reports_are_unknown_and_not_lost() {
    for format in FORMATS {
        let mut told = ends(format, Box::new(Told::default()), with_bad_feedback(link(4.0, Span::from_millis(200))));
        told.run_until(20_000);
        let counted = told.events.iter().fold((0, 0, 0), |sum, (_, event)| match event {
            Event::PacketsReported { arrived, lost, unknown, .. } => (sum.0 + arrived, sum.1 + lost, sum.2 + unknown),
            _ => sum,
        });
        let sent = told.count(|event| matches!(event, Event::MediaReceived { .. })) as u64;
        // An RFC 8888 report covers the last packets of the previous report again. Therefore almost all packets are
        // reported, although some reports are lost. A transport-wide report does not cover packets again.
        let enough = match format {
            Format::CongestionFeedback => counted.0 > sent / 20 * 19,
            Format::TransportWide => counted.0 > sent / 2 && counted.2 > sent / 20,
        };
        assert!(enough, "{format:?}: {counted:?} of {sent}");
        assert_eq!(counted.1, 0, "{format:?}: {counted:?}");
        for name in ["equipoise", "gcc", "nada", "scream"] {
            let law = build(entry(name), "300 kbit/s");
            let mut ends = ends(format, law, with_bad_feedback(link(2.0, Span::from_millis(200))));
            ends.run_until(40_000);
            let share = arrived(&ends, 20_000, 40_000) / 2e6;
            // Laws that compute the delivery rate from the number of reported packets reduce their rate if reports are
            // lost, unless later reports repeat the packets of lost reports.
            let counts_reports = matches!(name, "gcc" | "nada") && format == Format::TransportWide;
            let least = if counts_reports { 0.05 } else { 0.4 };
            assert!((least..1.01).contains(&share), "{name} by {format:?}: {share}");
        }
    }
}

#[test]
fn a_law_by_packet_is_refused_where_there_is_no_feedback_by_packet() {
    let config = SenderConfig { reporting: None, ..config(Format::TransportWide) };
    let refused = Sender::new(config, build(entry("gcc"), "300 kbit/s")).err();
    assert!(matches!(refused, Some(SessionError::Needs(unmet)) if unmet.missing == Needs::PACKETS), "{refused:?}");
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let late = Some(Reporting { format: Format::CongestionFeedback, interval: Span::from_secs(1) });
    let rare =
        Sender::new(SenderConfig { reporting: late, ..config(Format::CongestionFeedback) }, Box::new(Told::default()));
    let message = alloc::format!("{}", rare.err().expect("too rare"));
    assert_eq!(message, "the interval of feedback by packet is 1 s; it must be 5 ms to 500 ms");
    let stream = SenderConfig { payload: Payload::Stream, ..config(Format::TransportWide) };
    assert_eq!(Sender::new(stream, Box::new(Told::default())).err(), Some(SessionError::TransportWide));
    let stream = SenderConfig { payload: Payload::Stream, ..config(Format::CongestionFeedback) };
    assert!(Sender::new(stream, Box::new(Told::default())).is_ok());
}

/// The controller's window is four packets. The delay is 100 ms for media and 10 ms for RTCP. From 2 s to 8 s, all RTCP
/// packets are lost. If the test fails, the controller's window has no effect, or the session never sends again after
/// its reports were lost.
#[test]
fn no_more_is_under_way_than_the_window_and_silence_empties_it() {
    for format in FORMATS {
        let window = Size::from_bytes(4 * PACKET.as_bytes());
        let told = Told { allowance: Allowance::paced_window(Rate::from_bps(8_000_000), window), probe: None };
        let mut ends = ends(format, Box::new(told), |passing: &Passing| {
            let is_cut = passing.is_rtcp && (2000 * MILLI..8000 * MILLI).contains(&passing.at);
            let way = if passing.from_sender && !passing.is_rtcp { 100 } else { 10 };
            if is_cut { Vec::new() } else { vec![way * MILLI] }
        });
        ends.run_until(20_000);
        let sent: Vec<_> = ends.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. })).collect();
        let most = sent.windows(5).map(|five| five[4].0 - five[0].0).min().expect("many packets");
        assert!(most >= 100 * MILLI, "{format:?}: five packets within {} ms", most / MILLI);
        let between =
            |from: u64, to: u64| sent.iter().filter(|(at, _)| (from * MILLI..to * MILLI).contains(at)).count();
        assert!(between(1000, 2000) > 20, "{format:?}: {}", between(1000, 2000));
        assert!((1..40).contains(&between(3000, 8000)), "{format:?}: {}", between(3000, 8000));
        assert!(between(10_000, 20_000) > 200, "{format:?}: {}", between(10_000, 20_000));
    }
}

/// The packets of a probe are sent at the probe's rate, or at the allowed rate if the allowed rate is higher.
#[test]
fn a_probe_is_sent_at_its_rate_and_within_what_a_session_may_send_unproved() {
    let probe = |packets| Probe::new(7, Rate::from_bps(4_000_000), packets, Size::ZERO);
    for (packets, leave) in [(5, 5), (1_000_000, 65)] {
        let told = Told { probe: Some(probe(packets)), ..Told::default() };
        let mut ends = ends(Format::TransportWide, Box::new(told), link(20.0, Span::from_millis(100)));
        ends.run_until(500);
        let sent = ends.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. }));
        // Packets of the probe are 2 ms apart. The probe budget is 14 600 bytes plus the data of half a second at 800
        // kbit/s, which is 50 000 bytes. The sum, 64 600 bytes, is about 65 packets.
        let times: Vec<_> = sent.map(|(at, _)| *at).collect();
        let burst = times.windows(2).take_while(|pair| pair[1] - pair[0] < 3 * MILLI).count() + 1;
        assert!(burst.abs_diff(leave) <= 1, "{packets}: {burst}");
    }
}

/// Runs a sender for `millis` ms without a receiver. Returns the sender, and the sequence number and transport-wide
/// number of each packet that it sent.
fn sender_after(millis: u64, format: Format) -> (Sender, Vec<(u16, Option<u16>)>) {
    let mut sender = Sender::new(config(format), build(entry("gcc"), "300 kbit/s")).expect("valid");
    let mut numbers = Vec::new();
    while let Some(wake) = sender.wake().filter(|wake| wake.at.as_nanos() < EPOCH + millis * MILLI) {
        sender.handle(wake.at, Input::Timer);
        while let Some(output) = sender.poll() {
            let Output::Transmit { transmit, .. } = output else { continue };
            let datagram = transmit.head;
            if !is_rtcp(datagram) {
                let header = RtpPacket::parse(datagram).expect("a packet").header;
                numbers.push((header.sequence, header.transport_sequence));
            }
        }
    }
    (sender, numbers)
}

/// Returns a report of the source `from` on the media of `about`, which states that `count` consecutive packets from
/// number `begin` on arrived, one millisecond apart.
fn report(format: Format, (from, about): (u32, u32), begin: u16, count: u16) -> Vec<u8> {
    let mut packets = (0..count).map(|offset| {
        let time = ArrivalTime::At(Instant::from_nanos(EPOCH + u64::from(offset) * MILLI));
        PacketStatus {
            sequence: begin.wrapping_add(offset),
            arrival: Some(PacketArrival { time, ecn: Ecn::NotCapable }),
        }
    });
    let mut bytes = Vec::new();
    let at = Instant::from_nanos(EPOCH + 1000 * MILLI);
    match format {
        Format::CongestionFeedback => {
            encode_congestion_feedback(from, at, 1200, &mut bytes, |writer| writer.stream(about, &mut packets))
                .expect("room");
        }
        Format::TransportWide => {
            let head = TransportHead { ssrc: from, media_ssrc: about, number: 0, at };
            encode_transport_feedback(&head, &mut packets, 1200, &mut bytes).expect("room");
        }
    }
    bytes
}

/// Passes a datagram to a sender. Returns how many reports the sender applied, why it dropped packets, and whether it
/// stopped its media.
fn heard(sender: &mut Sender, datagram: &[u8]) -> (usize, Vec<DropReason>, bool) {
    sender.handle(Instant::from_nanos(EPOCH + 1100 * MILLI), Input::datagram(datagram));
    let (mut taken, mut ignored, mut stopped) = (0, Vec::new(), false);
    while let Some(output) = sender.poll() {
        match output {
            Output::Event { event: Event::PacketsReported { .. }, .. } => taken += 1,
            Output::Event { event: Event::Ignored(reason), .. } => ignored.push(reason),
            Output::Event { event: Event::CircuitBroken(_), .. } => stopped = true,
            _ => {}
        }
    }
    (taken, ignored, stopped)
}

/// The false feedback covers packets that were never sent or not sent yet, covers another stream, has the other format,
/// is cut short, or is a duplicate.
#[test]
fn invented_feedback_is_counted_and_changes_nothing() {
    for format in FORMATS {
        let (mut sender, numbers) = sender_after(1000, format);
        let number = |at: usize| numbers[at].1.unwrap_or(numbers[at].0);
        let (first, last) = (number(0), number(numbers.len() - 1));
        heard(&mut sender, &[]);
        let rate = sender.rate();
        let other = if format == FORMATS[0] { FORMATS[1] } else { FORMATS[0] };
        for (what, datagram, reason) in [
            ("before the first", report(format, (9, SSRC), first.wrapping_sub(3), 2), DropReason::Stray),
            ("from the future", report(format, (9, SSRC), last.wrapping_add(1), 4), DropReason::Stray),
            ("far from the future", report(format, (9, SSRC), last.wrapping_add(20_000), 4), DropReason::Stray),
            ("of the other format", report(other, (9, SSRC), first, 1), DropReason::Foreign),
        ] {
            assert_eq!(heard(&mut sender, &datagram), (0, vec![reason], false), "{what}");
        }
        if format == Format::CongestionFeedback {
            let foreign = report(format, (9, 0xBAD), first, 1);
            assert_eq!(heard(&mut sender, &foreign), (0, vec![DropReason::Foreign], false), "another source");
        }
        let cut = &report(format, (9, SSRC), first, 8)[..18];
        assert_eq!(heard(&mut sender, cut), (0, vec![DropReason::Malformed], false), "cut short");
        assert_eq!(sender.rate(), rate);
        let honest = report(format, (9, SSRC), first, 1);
        assert_eq!(heard(&mut sender, &honest), (1, Vec::new(), false));
        let rate = sender.rate();
        assert_eq!(heard(&mut sender, &honest), (1, Vec::new(), false), "twice");
        assert!(sender.rate() <= rate);
    }
}

/// A peer may acknowledge packets that it has not received (RFC 9000, Sec. 21.4). If the test fails, a peer that
/// acknowledges all numbers can raise the sender's rate to the maximum of the sender's control law.
#[test]
fn who_acknowledges_numbers_that_were_left_out_stops_the_media() {
    let (mut sender, numbers) = sender_after(8000, Format::TransportWide);
    let gap = numbers.windows(2).find_map(|pair| {
        let (before, after) = (pair[0].1?, pair[1].1?);
        (after == before.wrapping_add(2)).then_some(before)
    });
    let blind = report(Format::TransportWide, (9, SSRC), gap.expect("one in some sixty is left out"), 3);
    assert_eq!(heard(&mut sender, &blind), (0, vec![DropReason::Stray], true));
    assert!(sender.is_circuit_broken());
}

/// Generates the actions of a hostile or faulty receiver. In each action, the receiver waits and then sends a report.
/// An action consists of the waiting time in ms, the first packet number in the report relative to the session's first
/// number, and the number of packets in the report.
fn mischief() -> impl Strategy<Value = Vec<(u64, u16, u16)>> {
    let begin = prop_oneof![60_000u16..=u16::MAX, 5000u16..40_000];
    proptest::collection::vec((0u64..400, begin, 1u16..60), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With any law, the rate must not increase if there is no feedback, or if the feedback contradicts the packets
    /// sent.
    #[test]
    fn no_rate_rises_on_silence_or_on_feedback_that_contradicts_what_was_sent(
        law: prop::sample::Index,
        format in 0usize..2,
        mischief in mischief(),
    ) {
        let format = FORMATS[format];
        let laws: Vec<_> = adaptive(config(format).provides()).collect();
        let entry = laws[law.index(laws.len())];
        let mut ends = ends(format, build(entry, "300 kbit/s"), link(2.0, Span::from_millis(200)));
        ends.run_until(4000);
        // From here on, no packet of the sender arrives.
        let first = first_number(format);
        let (mut sender, mut now, mut highest) = (ends.sender, ends.now, None);
        for (passes, begin, count) in mischief {
            let end = now + passes * MILLI;
            while let Some(wake) = sender.wake().filter(|wake| wake.at.as_nanos() < end) {
                sender.handle(wake.at, Input::Timer);
                drain(&mut sender);
            }
            now = end;
            let report = report(format, (9, SSRC), first.wrapping_add(begin), count);
            sender.handle(Instant::from_nanos(now), Input::datagram(&report));
            drain(&mut sender);
            let highest = highest.get_or_insert(sender.rate());
            prop_assert!(sender.rate() <= *highest, "{}: {} after {highest}", entry.name, sender.rate());
            *highest = sender.rate();
        }
    }
}

fn drain(sender: &mut Sender) {
    while sender.poll().is_some() {}
}

/// Returns the number of a session's first packet in reports in `format`. All sessions in this file have the same first
/// number.
fn first_number(format: Format) -> u16 {
    let (_, numbers) = sender_after(100, format);
    let (sequence, transport) = numbers[0];
    transport.unwrap_or(sequence)
}
