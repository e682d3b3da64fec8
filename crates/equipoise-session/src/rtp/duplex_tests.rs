//! Tests of two endpoints that both send and receive, over a path in simulated time.

mod ends;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use self::ends::{Ends, SSRCS, applied, cbr, config, sending};
use super::*;
use crate::wire::key_frames::KeyFrameRequest;
use crate::wire::rtcp;
use crate::wire::{DelayReport, ReportRequest, is_rtcp};
use crate::{DropReason, Ecn, Endpoint, Event, Half, Input};
use equipoise::control::{BoxedController, find};
use equipoise::units::{Instant, SenderClock, Size, Span};

#[test]
fn both_ends_ask_and_answer_as_senders_with_a_block_on_the_other() {
    let mut ends = Ends::plain();
    ends.run(2500);
    // Both endpoints send a request at the same time, and each answers when the peer's request arrives.
    let second = ["0 near SR1 request", "0 far SR1 request", "10 far SR1 report", "10 near SR1 report"];
    let expected: Vec<_> = [1000, 2000]
        .into_iter()
        .flat_map(|base| {
            second.map(|line| {
                let (at, rest) = line.split_once(' ').expect("a time");
                format!("{} {rest}", base + at.parse::<u64>().expect("a number"))
            })
        })
        .collect();
    assert_eq!(ends.exchange(0), expected);
    // As in a one-way session, a report has samples of the packets that were sent more than 20 ms after the previous
    // request and before the present request.
    assert_eq!([applied(&ends, 0), applied(&ends, 1)], [vec![(97, 0.0), (97, 0.0)], vec![(97, 0.0), (97, 0.0)]]);
    assert_eq!(ends.ignored(), []);
}

/// A request and an answer that are due at the same time share a datagram. Here the request of the endpoint `far` is
/// due when the request of the endpoint `near` arrives.
#[test]
fn a_request_that_is_due_stands_in_the_answer() {
    let mut far = config(1);
    far.sending.start = far.sending.start + Span::from_millis(10);
    let mut ends = Ends::new([config(0), far], [cbr(800_000), cbr(800_000)], Box::new(|_, _, _| vec![10]));
    ends.run(1100);
    assert_eq!(
        ends.exchange(0),
        ["1000 near SR1 request", "1010 far SR1 report request", "1020 near SR1 report"],
        "{:?}",
        ends.lines(0)
    );
    assert_eq!((ends.ignored(), applied(&ends, 0).len(), applied(&ends, 1).len()), (vec![], 1, 1));
}

/// RFC 3550, Sec. 6.4: an endpoint that has sent no media since its second-last report is not a sender.
#[test]
fn a_silent_end_reports_as_a_receiver_and_asks_for_nothing() {
    let mut far = config(1);
    // The endpoint `far` sends for 2.5 s and then pauses for 4 s.
    let at = |millis| far.sending.start + Span::from_millis(millis);
    far.sending.pauses = vec![Pause { from: at(2500), until: Some(at(6500)) }];
    let mut ends = Ends::new([config(0), far], [cbr(800_000), cbr(800_000)], Box::new(|_, _, _| vec![10]));
    ends.run(9500);
    let of_far: Vec<_> = ends.exchange(0).into_iter().filter(|line| line.contains("far")).collect();
    assert_eq!(
        of_far,
        [
            "1000 far SR1 request",
            "1010 far SR1 report",
            "2000 far SR1 request",
            "2010 far SR1 report",
            "3000 far SR1 request",
            "3010 far SR1 report",
            // The endpoint `far` sends media until 2.5 s. Before the request at 4 s, its second-last request is that of
            // 2 s, so `far` is still a sender. Before the report at 4.01 s, its second-last request is that of 3 s, so
            // `far` is no longer a sender.
            "4000 far SR1 request",
            "4010 far RR1 report",
            "5010 far RR1 report",
            "6010 far RR1 report",
            "7000 far SR1 request",
            "7010 far SR1 report",
            "8000 far SR1 request",
            "8010 far SR1 report",
            "9000 far SR1 request",
            "9010 far SR1 report",
        ]
    );
    // While no media arrives at the endpoint `near`, `near` sends no report block but continues to send media.
    let of_near = |at: &str| ends.exchange(0).into_iter().find(|line| line.starts_with(at)).expect("a request");
    assert_eq!([of_near("5000 near"), of_near("8000 near")], ["5000 near SR0 request", "8000 near SR1 request"]);
    assert_eq!(applied(&ends, 0).len(), 9);
    assert_eq!((ends.count(1, |event| matches!(event, Event::CircuitBroken(_))), ends.ignored()), (0, vec![]));
}

/// While an endpoint sends no media, it requests no reports. The circuit breaker of this endpoint must not count this
/// time as time without reports.
#[test]
fn after_a_minute_of_silence_media_goes_on_at_once() {
    let mut far = config(1);
    let at = |secs| far.sending.start + Span::from_secs(secs);
    far.sending.pauses = vec![Pause { from: at(3), until: Some(at(63)) }];
    let mut ends = Ends::new([config(0), far], [cbr(800_000), cbr(800_000)], Box::new(|_, _, _| vec![10]));
    ends.run(70_000);
    let stops = |event: &Event| matches!(event, Event::CircuitBroken(_) | Event::ReportsMissing);
    assert_eq!([ends.count(0, stops), ends.count(1, stops)], [0, 0]);
    let sent = ends
        .events
        .iter()
        .filter(|(at_ms, end, event)| *end == 1 && *at_ms >= 63_000 && matches!(event, Event::MediaSent { .. }));
    assert!((690..=702).contains(&sent.count()), "7 s of 100 packets");
}

#[test]
fn a_goodbye_of_one_end_ends_both_directions() {
    let mut ends = Ends::plain();
    ends.run(1500);
    ends.tell(0, Some(Input::Stop));
    ends.run(3000);
    let lines = ends.lines(1500);
    assert_eq!(lines.first().map(String::as_str), Some("1500 near SR1 + SDES + BYE"));
    assert_eq!(ends.exchange(1500), [] as [String; 0], "nobody asks any more");
    let ended = |end| {
        let is = |event: &Event| matches!(event, Event::Ended { .. });
        ends.events
            .iter()
            .filter(|(_, from, event)| *from == end && is(event))
            .map(|(at, _, event)| (*at, *event))
            .collect::<Vec<_>>()
    };
    assert_eq!(ended(0), [(1500, Event::Ended { by_peer: false })]);
    assert_eq!(ended(1), [(1510, Event::Ended { by_peer: true })]);
    // The endpoint that ended the session still receives and counts the packets that were in flight to it.
    let [sent, received] = [
        ends.count(1, |event| matches!(event, Event::MediaSent { .. })),
        ends.count(0, |event| matches!(event, Event::MediaReceived { .. })),
    ];
    assert_eq!(sent, received);
    assert_eq!((ends.far.wake(), ends.ignored()), (None, vec![]));
}

#[test]
fn goodbyes_that_cross_end_each_end_once() {
    let mut ends = Ends::plain();
    ends.run(1500);
    ends.tell(0, Some(Input::Stop));
    ends.tell(1, Some(Input::Stop));
    ends.run(3000);
    for end in [0, 1] {
        assert_eq!(ends.count(end, |event| matches!(event, Event::Ended { by_peer: false })), 1);
        assert_eq!(ends.count(end, |event| matches!(event, Event::Ended { by_peer: true })), 0);
    }
    assert_eq!((ends.near.wake(), ends.far.wake()), (None, None));
    assert_eq!(ends.lines(1500), ["1500 near SR1 + SDES + BYE", "1500 far SR1 + SDES + BYE"]);
}

/// An endpoint checks the source of each packet, as a sender and as a receiver. Packets from a source other than the
/// peer have no effect.
#[test]
fn strangers_and_echoes_are_only_counted() {
    let mut ends = Ends::plain();
    ends.run(1005);
    let (at_rates, request) = ((ends.near.rate(), ends.far.rate()), ends.reports.last().expect("a request").clone());
    ends.events.clear();
    // Endpoint 0 gets a request, a report and a BYE from an unknown source, an RR of the peer that contains a request,
    // and a truncated packet. Endpoint 1 gets a request that it sent itself.
    let mut stranger = Vec::new();
    let info = crate::wire::rtcp::SenderInfo {
        ssrc: 0xDEAD,
        ntp: crate::wire::NtpTime::from_instant(Instant::<SenderClock>::from_nanos(ends.now)),
        rtp_timestamp: 0,
        packet_count: 1,
        octet_count: 1,
    };
    let asked = ReportRequest { interval_start: 0, receipt: None }.to_bytes();
    info.encode(&[], &asked, &mut stranger);
    let mut report = Vec::new();
    let block = crate::wire::rtcp::ReportBlock { ssrc: SSRCS[0], ..Default::default() };
    rtcp::encode_receiver_report(0xDEAD, &[block], &DelayReport::agreed(None).to_bytes(), &mut report);
    let mut goodbye = Vec::new();
    rtcp::encode_receiver_report(0xDEAD, &[], &[], &mut goodbye);
    rtcp::encode_goodbye(0xDEAD, &mut goodbye);
    let mut asks_as_receiver = Vec::new();
    rtcp::encode_receiver_report(SSRCS[1], &[], &asked, &mut asks_as_receiver);
    let count = ends.reports.len();
    for datagram in [&stranger, &report, &goodbye, &asks_as_receiver, &vec![0x80, 200, 0]] {
        ends.tell(0, Some(Input::datagram(datagram)));
    }
    assert_eq!(request.from, 1);
    ends.tell(1, Some(Input::datagram(&request.bytes)));
    let foreign = DropReason::Foreign;
    assert_eq!(
        ends.ignored(),
        [
            (0, foreign),
            (0, foreign),
            (0, foreign),
            (0, DropReason::Malformed),
            (0, DropReason::Malformed),
            (1, foreign)
        ]
    );
    assert_eq!((ends.reports.len(), (ends.near.rate(), ends.far.rate())), (count, at_rates), "no answer, no decision");
    ends.run(5000);
    assert_eq!(applied(&ends, 0).len() + applied(&ends, 1).len(), 8);
}

#[test]
fn what_comes_twice_or_late_is_taken_once() {
    // A copy of each RTCP datagram arrives 300 ms after the datagram.
    let way = |_: usize, _: u64, bytes: &[u8]| if is_rtcp(bytes) { vec![10, 310] } else { vec![10] };
    let mut ends = Ends::new([config(0), config(1)], [cbr(800_000), cbr(800_000)], Box::new(way));
    ends.run(5500);
    assert_eq!([applied(&ends, 0), applied(&ends, 1)].map(|all| all.len()), [5, 5]);
    let answers = ends.exchange(0).iter().filter(|line| line.ends_with("report")).count();
    assert_eq!(answers, 10, "one for each request");
    assert!(ends.ignored().iter().all(|(_, why)| matches!(why, DropReason::Duplicate | DropReason::Late)));
}

/// If this test fails, loss in one direction slows or stops the other direction.
#[test]
fn a_direction_that_breaks_leaves_the_other_alone() {
    // All media of the endpoint `far` is lost from 3 s on, but its reports arrive.
    let way = |from: usize, at_ms: u64, bytes: &[u8]| {
        if from == 1 && at_ms >= 3000 && !is_rtcp(bytes) { vec![] } else { vec![10] }
    };
    let mut ends = Ends::new([config(0), config(1)], [cbr(800_000), cbr(800_000)], Box::new(way));
    ends.run(30_000);
    // The breaker trips because no media arrives (RFC 8083, Sec. 4.2).
    let broken = |event: &Event| matches!(event, Event::CircuitBroken(Breaker::Media));
    let first = ends.events.iter().find(|(.., event)| broken(event)).map(|(at, end, _)| (*at, *end));
    assert_eq!((first, ends.count(0, broken)), (Some((8020, 1)), 0));
    assert!(applied(&ends, 0).iter().all(|(samples, lost)| *samples >= 97 && *lost == 0.0));
    assert_eq!(applied(&ends, 0).len(), 29);
    // While media is stopped, requests continue in sender reports, so that media can restart.
    assert!(ends.exchange(0).contains(&"10000 far SR1 request".into()), "{:?}", ends.exchange(8000));
}

#[test]
fn where_no_reports_pass_both_circuit_breakers_trip() {
    let way = |_: usize, _: u64, bytes: &[u8]| if is_rtcp(bytes) { vec![] } else { vec![10] };
    let mut ends = Ends::new([config(0), config(1)], [cbr(800_000), cbr(800_000)], Box::new(way));
    ends.run(20_000);
    assert!(ends.near.is_circuit_broken() && ends.far.is_circuit_broken());
}

#[test]
fn payload_goes_both_ways_and_comes_out_in_order() {
    let [near, far] = [config(0), config(1)].map(|config| DuplexConfig {
        sending: SenderConfig { payload: Payload::Stream, ..config.sending.clone() },
        receives: Payload::Stream,
        ..config
    });
    // Later packets overtake every tenth media packet.
    let mut count = 0u64;
    let way = move |_: usize, _: u64, bytes: &[u8]| {
        count += u64::from(!is_rtcp(bytes));
        if count.is_multiple_of(10) { vec![25] } else { vec![10] }
    };
    let mut ends = Ends::new([near, far], [cbr(4_000_000), cbr(4_000_000)], Box::new(way));
    let texts = [vec![b'n'; 20_000], vec![b'f'; 20_000]];
    for end in [0, 1] {
        ends.tell(end, None);
        ends.tell(end, Some(Input::payload(&texts[end])));
    }
    ends.run(1000);
    assert_eq!(ends.given[1], texts[0]);
    assert_eq!(ends.given[0], texts[1]);
}

#[test]
fn one_source_number_for_two_ends_is_refused_and_a_playout_buffer_is_not_promised() {
    let same = DuplexConfig { peer: SSRCS[0], ..config(0) };
    assert_eq!(Duplex::<SenderClock>::new(same, cbr(1)).err(), Some(SessionError::Source { found: SSRCS[0] }));
    let mut tq = config(0);
    tq.sending.reports_playout = true;
    let entry = find("tq").expect("in the catalogue");
    let law = entry.build(&entry.parse(&[]).expect("defaults"), Size::from_bytes(1000)).expect("right");
    assert!(matches!(Duplex::<SenderClock>::new(tq, law).err(), Some(SessionError::Needs(_))));
}

/// Reports are longest with receipts, unsynchronised clocks and ECN marks. [`Ends::tell`] asserts that each RTCP
/// datagram has at most `Transmit::MAX_HEAD` bytes. This test asserts that each request is answered.
#[test]
fn the_longest_reports_fit_in_a_datagram_or_in_two() {
    let long = |end| DuplexConfig {
        sending: SenderConfig {
            delays: Delays::Queueing,
            ecn: Ecn::Ect0,
            stream: StreamConfig { cname: "n".repeat(StreamConfig::MAX_CNAME), ..sending(end).stream },
            ..sending(end)
        },
        clocks: Clocks::Apart,
        ..config(end)
    };
    let mut far = long(1);
    far.sending.start = far.sending.start + Span::from_millis(10);
    let mut ends = Ends::new([long(0), far], [ap(), ap()], Box::new(|_, _, _| vec![10]));
    ends.run(20_000);
    ends.tell(0, Some(Input::Stop));
    ends.run(21_000);
    assert!(ends.exchange(0).iter().filter(|line| line.ends_with("report request")).count() > 15);
    assert_eq!([applied(&ends, 0).len(), applied(&ends, 1).len()], [19, 19]);
    assert_eq!(ends.ignored(), []);
    // Without ECN marks, a datagram with a report and a request has 120 bytes: 28 for the SR, 24 for its report block,
    // 12 + 16 + 20 for the report (statistics, clock origin, receipt), and 8 + 12 for the request (start, receipt
    // request).
    // With marks, the datagram would be longer than `Transmit::MAX_HEAD` (128 bytes), so the report and the request are
    // sent in two datagrams.
    let longest = ends.reports.iter().map(|said| said.bytes.len()).max();
    assert_eq!(longest, Some(120));
}

fn ap() -> BoxedController {
    let entry = find("ap").expect("in the catalogue");
    let parameters = entry.parse(&[("target", "40 ms")]).expect("right");
    entry.build(&parameters, Size::from_bytes(1000)).expect("right")
}

/// Returns the rates that an endpoint's controller decided, in bit/s, with their times in ms.
fn rates(ends: &Ends, end: usize) -> Vec<(u64, u64)> {
    let rate = |(at, from, event): &(u64, usize, Event)| match event {
        Event::RateDecided { rate, .. } if *from == end => Some((*at, rate.as_bps())),
        _ => None,
    };
    ends.events.iter().filter_map(rate).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// If this test fails, loss or delay of the media in one direction changes the rates that the controller of the
    /// other direction decides.
    #[test]
    fn the_controllers_of_the_two_directions_do_not_mix(
        ways in proptest::collection::vec(5u64..60, 1..20), lost in 2u64..20, constant in 5u64..40,
    ) {
        // In the disturbed run, the media of the endpoint `far` has losses and varying delays. All other datagrams
        // arrive after the same delay.
        let run = |disturbed: bool| {
            let ways = ways.clone();
            let mut number = 0;
            let way = move |from: usize, _: u64, bytes: &[u8]| {
                if is_rtcp(bytes) {
                    return vec![constant];
                }
                if from == 0 || !disturbed {
                    return vec![constant];
                }
                number += 1;
                if number % lost == 0 { vec![] } else { vec![ways[number as usize % ways.len()]] }
            };
            let mut ends = Ends::new([config(0), config(1)], [ap(), ap()], Box::new(way));
            ends.run(8000);
            ends
        };
        let (plain, disturbed) = (run(false), run(true));
        prop_assert_eq!(rates(&plain, 0), rates(&disturbed, 0));
        prop_assert_ne!(applied(&plain, 1), applied(&disturbed, 1), "the other one is disturbed");
        // Events on received media, sent reports and ignored datagrams belong to the receiving role, and all other
        // events to the sending role.
        for (_, _, event) in &disturbed.events {
            let receives = matches!(event, Event::MediaReceived { .. } | Event::ReportSent { .. } | Event::Ignored(_));
            prop_assert_eq!(event.half() == Half::Receiving, receives);
        }
    }

    /// If this test fails, datagrams of arbitrary bytes disturb a running session.
    #[test]
    fn any_bytes_do_no_harm(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..20), kind in 200u8..206) {
        let mut ends = Ends::plain();
        ends.run(1500);
        for mut datagram in datagrams {
            if let [first, second, ..] = &mut datagram[..] {
                *first = 0x80 | (*first & 0x1F);
                *second = kind;
            }
            ends.tell(0, Some(Input::datagram(&datagram)));
        }
        ends.run(4500);
        prop_assert_eq!([applied(&ends, 0).len(), applied(&ends, 1).len()], [4, 4]);
    }
}

#[test]
fn each_end_may_want_a_key_frame_of_the_other() {
    let mut ends = Ends::plain();
    ends.run(1500);
    for end in 0..2 {
        ends.tell(end, Some(Input::KeyFrame(KeyFrameRequest::PictureLoss)));
    }
    ends.run(2000);
    let wanted = |event: &Event| matches!(event, Event::KeyFrameWanted(KeyFrameRequest::PictureLoss));
    let asked = |event: &Event| matches!(event, Event::KeyFrameAsked(KeyFrameRequest::PictureLoss));
    for end in 0..2 {
        assert_eq!((ends.count(end, asked), ends.count(end, wanted)), (1, 1));
    }
    assert_eq!(ends.ignored(), []);
}
