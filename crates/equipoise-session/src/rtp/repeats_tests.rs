//! Tests of lost packets that the receiver requests and the sender retransmits.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use equipoise::control::{Allowance, Cbr, Controller, Feedback, Snapshot};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Payload, Receiver, ReceiverConfig, Repeating, Sender, SenderConfig, StreamConfig};
use crate::wire::nack::encode_nack;
use crate::{DropReason, Event, Input};

/// Creates a session at 1 Mbit/s over `path`, in which the sender retransmits the packets that the receiver requests.
fn ends<F: FnMut(&Passing) -> Vec<u64>>(payload: Payload, path: F) -> TwoEnds<F> {
    let stream = StreamConfig::new(0x0102_0304, 96, Size::from_bytes(1000), "sender@test");
    let config = SenderConfig {
        payload,
        repeating: Some(Repeating::default()),
        ..SenderConfig::new(stream, Span::from_millis(500), Instant::from_nanos(EPOCH), 1)
    };
    let controller = Box::new(Cbr::new(Rate::from_bps(1_000_000)));
    let receiver = ReceiverConfig {
        payload,
        repairs: true,
        ..ReceiverConfig::new(9, "receiver@test", 0x0102_0304, ClockMap::SYNCHRONISED, 2)
    };
    TwoEnds {
        sender: Sender::new(config, controller).expect("valid"),
        receiver: Receiver::new(receiver).expect("valid"),
        ..TwoEnds::cbr(payload, path)
    }
}

/// Returns a path with a delay of `millis` ms that loses about one media packet in ten.
fn lossy(millis: u64) -> impl FnMut(&Passing) -> Vec<u64> {
    move |passing| {
        let is_lost = !passing.is_rtcp && passing.number % 10 == 3;
        if is_lost { vec![] } else { vec![millis * MILLI] }
    }
}

/// Sends 80 packets of another program within about a second, and waits half a second more. Returns the packets.
fn second_of_packets<F: FnMut(&Passing) -> Vec<u64>>(bench: &mut TwoEnds<F>) -> Vec<Vec<u8>> {
    let packets: Vec<Vec<u8>> = (0..80u8)
        .map(|number| {
            let head = [0x80, 96, 7, number, 0, 0, 0, number, 1, 2, 3, 4];
            [&head[..], &[number; 900]].concat()
        })
        .collect();
    for (packet, at) in packets.iter().zip(0..) {
        bench.run_until(at * 12);
        bench.tell(true, Input::payload(packet));
    }
    bench.run_until(1500);
    packets
}

#[test]
fn what_is_lost_takes_its_place_byte_by_byte_in_time_and_no_measure_knows_of_it() {
    let mut bench = ends(Payload::Rtp, lossy(20));
    let packets = second_of_packets(&mut bench);
    let repeated = bench.count(|event| matches!(event, Event::MediaRepeated { .. }));
    let repaired = bench.count(|event| matches!(event, Event::MediaRepaired { .. }));
    assert!(bench.missing == 0 && bench.packets == packets, "{} came, {} missing", bench.packets.len(), bench.missing);
    // Some of the retransmissions are lost as well.
    assert!((6..=12).contains(&repaired) && repeated >= repaired, "{repaired} of {repeated}");
    assert_eq!(bench.count(|event| matches!(event, Event::MediaSent { .. })), packets.len());
    let received = bench.count(|event| matches!(event, Event::MediaReceived { .. }));
    assert_eq!(received + repaired, packets.len(), "each came once, for the first time or again");
    let lost = bench.events.iter().rev().find_map(|(_, event)| match event {
        Event::ReportApplied { lost, .. } => Some(*lost),
        _ => None,
    });
    assert!(lost >= Some(6), "the controller learns what the path loses: {lost:?}");
    let latest = bench.events.iter().filter_map(|(at, event)| match event {
        Event::MediaReceived { delay, .. } => Some((*at, delay.as_nanos())),
        _ => None,
    });
    assert!(latest.clone().all(|(_, delay)| delay <= 21 * MILLI as i64), "no delay is that of a repetition");
}

#[test]
fn a_stream_is_repaired_like_packets() {
    let mut bench = ends(Payload::Stream, lossy(20));
    let stream: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
    let (mut fed, mut millis) = (0, 0);
    while fed < stream.len() {
        fed += bench.feed(&stream[fed..]);
        millis += 100;
        bench.run_until(millis);
    }
    bench.run_until(millis + 1000);
    assert!(bench.given == stream && bench.missing == 0, "{} bytes, {} missing", bench.given.len(), bench.missing);
}

/// If this test fails, the receiver requests packets that will arrive too late, and the sender retransmits them.
#[test]
fn over_a_path_too_long_for_it_the_asking_ends() {
    let mut bench = ends(Payload::Rtp, lossy(80));
    second_of_packets(&mut bench);
    assert_eq!(bench.count(|event| matches!(event, Event::MediaRepaired { .. })), 0);
    assert!(bench.missing >= 6);
    let asked: Vec<u64> = bench
        .events
        .iter()
        .filter_map(|(at, event)| matches!(event, Event::RepetitionAsked { .. }).then_some(at / MILLI))
        .collect();
    // The receiver sends some requests at the start, when the response time is not known yet.
    assert!(!asked.is_empty() && asked.iter().all(|at| *at < 500), "asked at {asked:?} ms");
}

#[test]
fn what_is_only_reordered_is_not_asked_for() {
    let path = |passing: &Passing| vec![if passing.number.is_multiple_of(7) { 23 } else { 20 } * MILLI];
    let mut bench = ends(Payload::Rtp, path);
    let packets = second_of_packets(&mut bench);
    assert_eq!(bench.count(|event| matches!(event, Event::RepetitionAsked { .. })), 0);
    assert!(bench.packets == packets);
}

#[test]
fn a_flood_of_requests_gets_no_more_than_an_eighth_and_strangers_get_nothing() {
    let mut bench = ends(Payload::Rtp, |passing: &Passing| if passing.is_rtcp { vec![] } else { vec![MILLI] });
    let written = |ssrc, media| {
        let mut out = Vec::new();
        encode_nack(ssrc, media, (0..16).map(|entry| 0x0102 + entry * 30), 16, &mut out);
        out
    };
    bench.tell(true, Input::datagram(&written(9, 7)));
    for number in 0..200u16 {
        let [high, low] = number.to_be_bytes();
        let packet = [&[0x80, 96, high, low, 0, 0, 0, 0, 1, 2, 3, 4][..], &[7; 900]].concat();
        bench.tell(true, Input::payload(&packet));
        bench.run_until(u64::from(number + 1) * 10);
        for first in (0..0x8000u32).step_by(17 * 16) {
            let mut all = Vec::new();
            encode_nack(9, 0x0102_0304, (first..first + 17 * 16).map(|number| number as u16), 16, &mut all);
            bench.tell(true, Input::datagram(&all));
        }
    }
    let repeated = bench.count(|event| matches!(event, Event::MediaRepeated { .. }));
    // The limit is about 47 packets: 22 from the credit at the start, and an eighth of the 200 packets sent.
    assert!((10..=48).contains(&repeated), "{repeated} packets were sent again");
    assert_eq!(bench.count(|event| *event == Event::Ignored(DropReason::Foreign)), 1);
}

/// A controller with a fixed rate that counts the intervals reported to it, and how many of them were app-limited.
#[derive(Debug)]
struct Counting(Cbr, Arc<[AtomicU32; 2]>);

impl Controller for Counting {
    fn on_feedback(&mut self, _: Instant<SenderClock>, feedback: &Feedback<'_>) {
        if let Feedback::Interval(interval) = feedback {
            self.1[0].fetch_add(1, Ordering::Relaxed);
            self.1[1].fetch_add(u32::from(interval.app_limited), Ordering::Relaxed);
        }
    }

    fn allowance(&self) -> Allowance {
        self.0.allowance()
    }

    fn lowest_rate(&self) -> Rate {
        self.0.lowest_rate()
    }

    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

/// If this test fails, retransmissions count as data from the application. Then a receiver that requests packets it
/// already has makes the controller assume that the application uses the full rate.
#[test]
fn what_is_sent_again_is_no_use_that_the_application_makes_of_the_rate() {
    let heard = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let mut bench = ends(Payload::Rtp, |_: &Passing| vec![MILLI]);
    let config = SenderConfig {
        payload: Payload::Rtp,
        repeating: Some(Repeating::default()),
        ..SenderConfig::new(
            StreamConfig::new(0x0102_0304, 96, Size::from_bytes(1000), "sender@test"),
            Span::from_millis(500),
            Instant::from_nanos(EPOCH),
            1,
        )
    };
    let controller = Counting(Cbr::new(Rate::from_bps(1_000_000)), Arc::clone(&heard));
    bench.sender = Sender::new(config, Box::new(controller)).expect("valid");
    let mut repeated = 0;
    for number in 0..400u16 {
        let [high, low] = number.to_be_bytes();
        let packet = [&[0x80, 96, high, low, 0, 0, 0, 0, 1, 2, 3, 4][..], &[7; 930]].concat();
        bench.tell(true, Input::payload(&packet));
        // With one packet every 10 ms, media takes four fifths of the controller's rate, including headers. After each
        // packet, the receiver requests a retransmission of all 65 536 sequence numbers.
        bench.run_until(u64::from(number + 1) * 10);
        for first in (0..0x1_0000u32).step_by(17 * 16) {
            let mut all = Vec::new();
            encode_nack(9, 0x0102_0304, (first..first + 17 * 16).map(|number| number as u16), 16, &mut all);
            bench.tell(true, Input::datagram(&all));
        }
        repeated = bench.count(|event| matches!(event, Event::MediaRepeated { .. }));
    }
    let [intervals, limited] = [0, 1].map(|place: usize| heard[place].load(Ordering::Relaxed));
    assert!(repeated >= 40 && intervals >= 6, "{repeated} packets, {intervals} intervals");
    assert_eq!(limited, intervals, "of {intervals} intervals with {repeated} packets sent again");
}

#[test]
fn a_sender_that_repeats_nothing_says_so_and_a_repetition_that_nobody_asked_for_is_dropped() {
    let mut bench = TwoEnds::cbr(Payload::Rtp, |_: &Passing| vec![MILLI]);
    let mut nack = Vec::new();
    encode_nack(9, 0x0102_0304, [1], 16, &mut nack);
    bench.tell(true, Input::datagram(&nack));
    assert_eq!(bench.count(|event| *event == Event::Ignored(DropReason::Stray)), 1);
    let mut bench = ends(Payload::Rtp, |_: &Passing| vec![MILLI]);
    second_of_packets(&mut bench);
    let stamp = crate::wire::relay::Stamp {
        ssrc: 0x0102_0304,
        number: 3,
        time: crate::wire::NtpTime::from_instant(Instant::<SenderClock>::from_nanos(bench.now)),
        subflow: None,
        is_repetition: true,
    };
    let mut again = Vec::new();
    crate::wire::relay::stamp(&[0x80, 96, 0, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5], stamp, &mut again).expect("room");
    let before = bench.packets.len();
    bench.tell(false, Input::datagram(&again));
    assert_eq!((bench.packets.len(), bench.count(|event| *event == Event::Ignored(DropReason::Late))), (before, 1));
}
