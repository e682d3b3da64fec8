//! Tests of payload that an application sends, including over paths that lose, duplicate or reorder packets.

use alloc::vec;
use alloc::vec::Vec;

use super::two_ends::{MILLI, TwoEnds, media};
use super::{Payload, Receiver, ReceiverConfig, SenderConfig};
use crate::wire::rtp::RtpHeader;
use crate::{DropReason, Endpoint, Event, Input};
use equipoise::control::{Reason, find};
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Size, Span};

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_stream_comes_out_as_it_went_in_though_the_path_reorders_and_doubles() {
    // Every seventh packet takes 50 ms longer than the others, and every fifth is duplicated.
    let path = media(|number, _| match number {
        n if n % 7 == 0 => vec![55],
        n if n % 5 == 0 => vec![5, 9],
        _ => vec![5],
    });
    let mut bench = TwoEnds::cbr(Payload::Stream, path);
    let (stream, mut fed, mut millis) = (bytes(1_000_000), 0, 0);
    while fed < stream.len() {
        fed += bench.feed(&stream[fed..]);
        millis += 100;
        bench.run_until(millis);
    }
    while bench.sender.waiting() > 0 {
        millis += 100;
        bench.run_until(millis);
    }
    bench.tell(true, Input::Stop);
    bench.run_until(millis + 1000);
    assert_eq!((bench.given.len(), bench.missing), (stream.len(), 0));
    assert!(bench.given == stream, "the bytes are those that went in");
    assert_eq!(bench.count(|event| matches!(event, Event::Ended { by_peer: true })), 1);
}

#[test]
fn what_the_path_loses_is_missing_and_nothing_else() {
    let mut bench = TwoEnds::cbr(Payload::Stream, media(|number, _| if number % 10 == 3 { vec![] } else { vec![5] }));
    let stream = bytes(200_000);
    bench.feed(&stream);
    bench.run_until(2000);
    bench.tell(true, Input::Stop);
    bench.run_until(3000);
    let sent = bench.count(|event| matches!(event, Event::MediaSent { .. })) as u64;
    let received = bench.count(|event| matches!(event, Event::MediaReceived { .. })) as u64;
    assert_eq!(sent, received + bench.missing, "sent = received + lost");
    assert_eq!(sent, 200_000u64.div_ceil(1000 - 28 - 28), "all of the stream was sent, in full packets");
}

#[test]
fn another_programs_packets_come_out_byte_by_byte() {
    let mut bench = TwoEnds::cbr(Payload::Rtp, media(|_, _| vec![5]));
    let packets: Vec<Vec<u8>> = (0..50u16)
        .map(|number| {
            let [high, low] = (65_520u16.wrapping_add(number)).to_be_bytes();
            let mut packet = vec![0x80, 0x60 | 0x80, high, low, 9, 9, 9, number as u8, 1, 2, 3, 4];
            packet.extend(bytes(usize::from(number) * 20));
            packet
        })
        .collect();
    for (at, packet) in packets.iter().enumerate() {
        bench.run_until(at as u64 * 10);
        bench.tell(true, Input::payload(packet));
    }
    bench.tell(true, Input::payload(b"no RTP at all"));
    bench.run_until(2000);
    assert!(bench.packets == packets, "the sequence number wraps, the lengths differ, and the bytes are the same");
    assert_eq!(bench.count(|event| *event == Event::Ignored(DropReason::Malformed)), 1);
}

/// If this test fails, the allowed rate rises to its upper limit while the encoder uses only a part of the rate. When
/// the encoder later uses the whole rate, it overloads the path.
#[test]
fn an_application_that_does_not_fill_its_rate_does_not_raise_it() {
    let given = [("target", "50 ms"), ("min_rate", "1 Mbit/s"), ("max_rate", "50 Mbit/s")];
    let ap = find("ap").expect("in the catalogue");
    let controller = ap.build(&ap.parse(&given).expect("right"), Size::from_bytes(1000)).expect("right");
    // The delay varies a little, because the control law needs a variance.
    let mut bench = TwoEnds::new(Payload::Stream, controller, media(|number, _| vec![5 + number % 3]));
    // The application sends 0.4 Mbit/s, and 1 Mbit/s is allowed.
    for at in 0..1000 {
        bench.feed(&bytes(500));
        bench.run_until((at + 1) * 10);
    }
    let rates = bench.events.iter().filter_map(|(_, event)| match event {
        Event::RateDecided { rate, snapshot } => Some((*rate, snapshot.reason)),
        _ => None,
    });
    let decided: Vec<_> = rates.skip(1).collect();
    assert!(decided.len() > 15, "a report every half second: {}", decided.len());
    assert!(decided.iter().all(|(rate, _)| *rate == Rate::from_bps(1_000_000)), "{decided:?}");
    assert!(decided.iter().any(|(_, reason)| *reason == Some(Reason::AppLimited)), "{decided:?}");
    assert_eq!(bench.count(|event| matches!(event, Event::PacingReset { .. })), 0, "a pause is not a late timer");
}

/// Returns the times after `from` at which media was sent, in ms.
fn sent_since<F>(bench: &TwoEnds<F>, from: u64) -> Vec<u64> {
    let media = bench.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. }));
    media.map(|(at, _)| at / MILLI).filter(|at| *at > from).collect()
}

#[test]
fn without_any_report_the_media_stops_and_three_answers_let_it_begin_again() {
    let mut bench = TwoEnds::cbr(Payload::Generated, media(|_, _| vec![5]));
    bench.run_until(3000);
    // The sender's packets now reach a receiver of another session, which ignores them.
    let receiver = core::mem::replace(&mut bench.receiver, {
        let foreign = ReceiverConfig::new(9, "receiver@test", 77, ClockMap::SYNCHRONISED, 2);
        Receiver::new(foreign).expect("a valid configuration")
    });
    bench.run_until(40_000);
    let media = |bench: &TwoEnds<_>| {
        bench.events.iter().filter(|(_, event)| matches!(event, Event::MediaSent { .. })).map(|(at, _)| *at).max()
    };
    let last = media(&bench).expect("some media") / MILLI;
    assert!((17_500..18_600).contains(&last), "15 s after the last report, at {last} ms");
    bench.receiver = receiver;
    bench.run_until(50_000);
    let again: Vec<u64> = sent_since(&bench, 40_000);
    assert!((41_000..46_000).contains(&again[0]), "three answers later: {}", again[0]);
    assert!((18..=22).contains(&(again[1] - again[0])), "with a tenth of the rate");
    assert_eq!(again[again.len() - 1] - again[again.len() - 2], 2, "and with all of it soon");
    assert_eq!(bench.count(|event| matches!(event, Event::CircuitBroken(_))), 1);
    assert_eq!(bench.count(|event| *event == Event::CircuitClosed), 1);
}

#[test]
fn payload_beyond_the_room_is_refused_whole_and_counted() {
    let mut bench = TwoEnds::cbr(Payload::Stream, media(|_, _| vec![5]));
    let room = bench.sender.room();
    bench.tell(true, Input::payload(&bytes(room + 1)));
    assert_eq!((bench.sender.waiting(), bench.count(|event| *event == Event::Ignored(DropReason::Full))), (0, 1));
    bench.tell(true, Input::payload(&bytes(room)));
    assert!(bench.sender.room() < 2000, "full except for the packets that left at once");
}

/// Returns an RTP packet of another program. The session sends this packet in an IP packet of about 1000 bytes.
fn foreign(sequence: u16) -> Vec<u8> {
    let header = RtpHeader { payload_type: 96, sequence, ssrc: 0x0102_0304, ..RtpHeader::default() };
    let mut packet = Vec::new();
    header.encode(&mut packet);
    packet.resize(950, 7);
    packet
}

/// If this test fails, the packets of a program that sends faster than the session's rate are delayed by seconds, and
/// packets dropped at the sender look like losses of the path.
#[test]
fn what_has_waited_for_too_long_is_given_up_and_is_no_loss_of_the_path() {
    let mut bench = TwoEnds::cbr(Payload::Rtp, media(|_, _| vec![5]));
    // The program sends 8 Mbit/s through a session with 4 Mbit/s.
    for number in 0..3000u64 {
        bench.tell(true, Input::payload(&foreign(number as u16)));
        bench.run_until(number + 1);
    }
    bench.run_until(4000);
    let waits = bench.events.iter().filter_map(|(_, event)| match event {
        Event::MediaSent { waited, .. } => Some(*waited),
        _ => None,
    });
    let longest = waits.max().expect("media");
    assert!((Span::from_millis(250)..=SenderConfig::PATIENCE).contains(&longest), "{longest}");
    let expired: u64 = bench
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::PayloadExpired { packets } => Some(*packets),
            _ => None,
        })
        .sum();
    let sent = bench.count(|event| matches!(event, Event::MediaSent { .. })) as u64;
    assert_eq!(sent + expired, 3000);
    assert!(expired > 1000, "{expired}");
    let lost = bench.events.iter().rev().find_map(|(_, event)| match event {
        Event::ReportApplied { lost, .. } => Some(*lost),
        _ => None,
    });
    assert_eq!(lost, Some(0), "the path loses nothing");
    assert_eq!(bench.missing, 0, "nor is anything missing on it");
    let numbers: Vec<_> = bench.packets.iter().map(|packet| u16::from_be_bytes([packet[2], packet[3]])).collect();
    let gaps: u64 = numbers.windows(2).map(|pair| u64::from(pair[1] - pair[0] - 1)).sum();
    assert!(gaps >= expired - 10, "and the other program knows by its own numbers: {gaps}");
}

/// An encoder that restarts repeats its sequence numbers or chooses new ones. If the test fails, the restart looks
/// like an outage of thousands of packets.
#[test]
fn another_programs_numbers_may_repeat_jump_and_begin_anew() {
    let mut bench = TwoEnds::cbr(Payload::Rtp, media(|_, _| vec![5]));
    let given = (1000..1050).chain(1040..1060).chain(60_000..60_050).chain(9..59);
    for (at, number) in given.clone().enumerate() {
        bench.tell(true, Input::payload(&foreign(number)));
        bench.run_until(at as u64 * 3);
    }
    bench.run_until(2000);
    let once = (1000..1060).chain(60_000..60_050).chain(9..59).map(foreign).collect::<Vec<_>>();
    assert!(bench.packets == once, "{} of {}", bench.packets.len(), once.len());
    assert_eq!(bench.count(|event| *event == Event::Ignored(DropReason::Duplicate)), 10);
    assert_eq!(bench.missing, 0);
}

#[test]
fn a_stream_is_taken_no_faster_than_it_leaves_in_time() {
    let mut bench = TwoEnds::cbr(Payload::Stream, media(|_, _| vec![5]));
    for millis in 0..2000 {
        while bench.feed(&bytes(50_000)) > 0 {}
        bench.run_until(millis);
    }
    let longest = bench.events.iter().filter_map(|(_, event)| match event {
        Event::MediaSent { waited, .. } => Some(*waited),
        _ => None,
    });
    let longest = longest.max().expect("media");
    assert!(longest <= SenderConfig::PATIENCE + Span::from_millis(30), "{longest}");
    assert!(longest > Span::from_millis(300), "it is filled: {longest}");
}
