//! Tests of a sender and a receiver over a path with configured delay, loss and duplication. Many of them compare the
//! session's transcript with the expected one.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::wire::rtcp::{self, RtcpPacket};
use crate::wire::{NtpTime, is_rtcp};
use crate::{DropReason, Endpoint, Event, Input, Output};
use equipoise::control::{Allowance, Controller, Feedback};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// A controller with a constant rate: 100 packets of 1000 bytes per second in these tests. If reports are missing, the
/// session halves the rate.
#[derive(Debug)]
struct Steady(Rate);

impl Controller for Steady {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}
    fn allowance(&self) -> Allowance {
        Allowance::rate(self.0)
    }
    fn is_held_to_proof(&self) -> bool {
        false
    }
}

const SENDER: u32 = 0x5E4D;
const RECEIVER: u32 = 0x4ECE;

fn sender() -> Sender {
    let stream = StreamConfig::new(SENDER, 96, Size::from_bytes(1000), "sender@test");
    let config = SenderConfig::new(stream, Span::from_secs(1), Instant::from_nanos(EPOCH), 1);
    Sender::new(config, Box::new(Steady(Rate::from_bps(800_000)))).expect("a valid configuration")
}

fn receiver() -> Receiver {
    let config = ReceiverConfig::new(RECEIVER, "receiver@test", SENDER, ClockMap::SYNCHRONISED, 2);
    Receiver::new(config).expect("a valid configuration")
}

/// A day in November 2026, so that NTP times have realistic values.
const EPOCH: u64 = 1_795_000_000_000_000_000;

/// The kind of a datagram. Except for compound packets, the value is the datagram's number among the datagrams of its
/// kind. The kind and the number determine what the path does with the datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Media(u64),
    Request(u64),
    Report(u64),
    Compound,
}

struct Dialogue<F> {
    sender: Sender,
    receiver: Receiver,
    /// Returns the delay, in ms, of each copy of a datagram; empty if the datagram is lost.
    path: F,
    /// Datagrams in flight: arrival time in ns, order of sending, whether the datagram goes to the receiver, bytes.
    in_flight: Vec<(u64, usize, bool, Vec<u8>)>,
    order: usize,
    counts: [u64; 3],
    lines: Vec<String>,
    ignored: Vec<(bool, DropReason)>,
}

impl<F: FnMut(Kind) -> Vec<u64>> Dialogue<F> {
    fn new(path: F) -> Self {
        Self {
            sender: sender(),
            receiver: receiver(),
            path,
            in_flight: Vec::new(),
            order: 0,
            counts: [0; 3],
            lines: Vec::new(),
            ignored: Vec::new(),
        }
    }

    fn kind(&mut self, from_sender: bool, bytes: &[u8]) -> Kind {
        let mut count = |index: usize| {
            self.counts[index] += 1;
            self.counts[index] - 1
        };
        match (is_rtcp(bytes), bytes.len()) {
            (false, _) => Kind::Media(count(0)),
            (true, 36) if from_sender => Kind::Request(count(1)),
            (true, 44) if !from_sender => Kind::Report(count(2)),
            _ => Kind::Compound,
        }
    }

    /// Takes the outputs of the sender or the receiver at `now`: passes datagrams to the path, and writes events into
    /// the transcript.
    fn drain(&mut self, now: u64, is_sender: bool) {
        loop {
            let output = if is_sender { self.sender.poll() } else { self.receiver.poll() };
            match output {
                None => break,
                Some(Output::Transmit { transmit, .. }) => {
                    let mut bytes = transmit.head.to_vec();
                    bytes.resize(transmit.len(), 0);
                    let kind = self.kind(is_sender, &bytes);
                    for way in (self.path)(kind) {
                        self.order += 1;
                        self.in_flight.push((now + way * 1_000_000, self.order, is_sender, bytes.clone()));
                    }
                }
                Some(Output::Event { event, .. }) => self.note(now, is_sender, event),
                Some(Output::Payload { .. }) => unreachable!("generated media is not given out"),
            }
        }
    }

    fn note(&mut self, now: u64, is_sender: bool, event: Event) {
        let said = match event {
            Event::ReportRequested { number } => format!("asks {number}"),
            Event::ReportApplied { number, delay, .. } => {
                format!("applies {number} of {} packets", delay.map_or(0, |d| d.samples))
            }
            Event::ReportsMissing => "misses reports".to_string(),
            Event::ReportSent { delay } => format!("answers with {} packets", delay.map_or(0, |d| d.samples)),
            Event::Ended { by_peer } => format!("ends{}", if by_peer { " on goodbye" } else { "" }),
            Event::Ignored(reason) => {
                self.ignored.push((is_sender, reason));
                format!("ignores {}", reason.name())
            }
            _ => return,
        };
        let who = if is_sender { "sender" } else { "receiver" };
        self.lines.push(format!("{:5} ms {who} {said}", (now - EPOCH) / 1_000_000));
    }

    fn run(&mut self, until_ms: u64) -> &[String] {
        let until = EPOCH + until_ms * 1_000_000;
        self.drain(EPOCH, true);
        loop {
            let wake = |at: Option<u64>| at.unwrap_or(u64::MAX);
            let sender_wake = wake(self.sender.wake().map(|wake| wake.at.as_nanos()));
            let receiver_wake = wake(self.receiver.wake().map(|wake| wake.at.as_nanos()));
            let arrival = self.in_flight.iter().map(|(at, order, ..)| (*at, *order)).min();
            let now = sender_wake.min(receiver_wake).min(arrival.map_or(u64::MAX, |(at, _)| at));
            if now > until {
                return &self.lines;
            }
            if arrival.is_some_and(|(at, _)| at == now) {
                let index = self.in_flight.iter().position(|(at, order, ..)| Some((*at, *order)) == arrival);
                let (_, _, to_receiver, bytes) = self.in_flight.remove(index.expect("the arrival was found there"));
                self.deliver(now, to_receiver, &bytes);
            } else if now == sender_wake {
                self.sender.handle(Instant::from_nanos(now), Input::Timer);
                assert!(self.sender.wake().is_none_or(|wake| wake.at.as_nanos() > now), "a wake-up in the past");
                self.drain(now, true);
            } else {
                self.receiver.handle(Instant::from_nanos(now), Input::Timer);
                self.drain(now, false);
            }
        }
    }

    fn deliver(&mut self, now: u64, to_receiver: bool, bytes: &[u8]) {
        if to_receiver {
            self.receiver.handle(Instant::from_nanos(now), Input::datagram(bytes));
        } else {
            self.sender.handle(Instant::from_nanos(now), Input::datagram(bytes));
        }
        self.drain(now, !to_receiver);
    }
}

/// Runs a session for `until_ms` ms and compares its transcript with the expected one.
fn transcript(until_ms: u64, path: impl FnMut(Kind) -> Vec<u64>, expected: &[&str]) {
    let mut dialogue = Dialogue::new(path);
    let lines: Vec<_> = dialogue.run(until_ms).iter().map(|line| line.trim_start().to_string()).collect();
    assert_eq!(lines, expected);
}

#[test]
fn every_request_is_answered_and_applied() {
    // A packet is sent every 10 ms, and the one-way delay is 10 ms. A report covers the packets sent more than 20 ms
    // (twice the one-way delay) after its interval begins. The intervals begin at 0 and 1000 ms. So report 0 covers
    // packets sent from 30 to 990 ms, and report 1 covers packets sent from 1030 to 1990 ms.
    transcript(
        2500,
        |_| vec![10],
        &[
            "1000 ms sender asks 0",
            "1010 ms receiver answers with 97 packets",
            "1020 ms sender applies 0 of 97 packets",
            "2000 ms sender asks 1",
            "2010 ms receiver answers with 97 packets",
            "2020 ms sender applies 1 of 97 packets",
        ],
    );
}

#[test]
fn a_lost_report_leaves_the_cut_of_eq_13() {
    // A packet is sent every 10 ms, and its one-way delay is 10 ms. The interval of report 1 begins at 1000 ms with
    // request 0, which has the same delay. The report covers packets sent more than 20 ms (twice the one-way delay)
    // after the interval begins, so the first is the packet of 1030 ms. Request 1 is sent at 2000 ms and arrives at
    // 2040 ms. The last packet that arrives earlier is the packet of 2020 ms.
    transcript(
        2500,
        |kind| match kind {
            Kind::Report(0) => vec![],
            Kind::Request(1) => vec![40],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "1010 ms receiver answers with 97 packets",
            "2000 ms sender asks 1",
            "2040 ms receiver answers with 100 packets",
            "2050 ms sender applies 1 of 100 packets",
        ],
    );
}

#[test]
fn a_lost_request_makes_the_cut_that_of_eq_14() {
    // The interval begins at 1000 ms. Request 0 is lost, so its delay is not known. The delay of request 1 is 40 ms.
    // Therefore Eq. 14 uses twice 40 ms, and the report covers packets sent after 1080 ms.
    transcript(
        2500,
        |kind| match kind {
            Kind::Request(0) => vec![],
            Kind::Request(1) => vec![40],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "2000 ms sender asks 1",
            "2040 ms receiver answers with 94 packets",
            "2050 ms sender applies 1 of 94 packets",
        ],
    );
}

#[test]
fn three_missing_reports_halve_skip_and_then_ask_about_the_lower_rate_alone() {
    // At 4000 ms three reports are missing. From then on packets are sent every 20 ms: at 4010 ms, 4030 ms and so on.
    // The request at 5000 ms states that the interval begins at 4000 ms. The report covers only packets sent more than
    // 20 ms (twice the one-way delay) after 4000 ms: the packets from 4030 to 4990 ms.
    transcript(
        5500,
        |kind| match kind {
            Kind::Report(0..=2) => vec![],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "1010 ms receiver answers with 97 packets",
            "2000 ms sender asks 1",
            "2010 ms receiver answers with 97 packets",
            "3000 ms sender asks 2",
            "3010 ms receiver answers with 97 packets",
            "4000 ms sender misses reports",
            "5000 ms sender asks 3",
            "5010 ms receiver answers with 49 packets",
            "5020 ms sender applies 3 of 49 packets",
        ],
    );
}

#[test]
fn a_path_that_stays_silent_is_asked_at_every_other_interval() {
    transcript(
        8500,
        |kind| if matches!(kind, Kind::Request(_)) { vec![] } else { vec![10] },
        &[
            "1000 ms sender asks 0",
            "2000 ms sender asks 1",
            "3000 ms sender asks 2",
            "4000 ms sender misses reports",
            "5000 ms sender asks 3",
            "6000 ms sender misses reports",
            "7000 ms sender asks 4",
            "8000 ms sender misses reports",
        ],
    );
}

#[test]
fn two_missing_reports_and_a_third_in_time_halve_nothing() {
    let mut dialogue = Dialogue::new(|kind| match kind {
        Kind::Report(0 | 1) => vec![],
        _ => vec![10],
    });
    dialogue.run(4500);
    assert!(!dialogue.lines.iter().any(|line| line.contains("misses")), "{:?}", dialogue.lines);
}

#[test]
fn a_late_report_is_applied_if_nothing_newer_was_and_dropped_otherwise() {
    // Report 0 arrives after request 1 was sent, and is applied. Report 1 arrives after report 2, and is not applied.
    transcript(
        3500,
        |kind| match kind {
            Kind::Report(0) => vec![1000],
            Kind::Report(1) => vec![1100],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "1010 ms receiver answers with 97 packets",
            "2000 ms sender asks 1",
            "2010 ms sender applies 0 of 97 packets",
            "2010 ms receiver answers with 97 packets",
            "3000 ms sender asks 2",
            "3010 ms receiver answers with 97 packets",
            "3020 ms sender applies 2 of 97 packets",
            "3110 ms sender ignores late",
        ],
    );
}

#[test]
fn doubled_requests_and_reports_count_once() {
    transcript(
        1500,
        |kind| match kind {
            Kind::Request(_) | Kind::Report(_) => vec![10, 15],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "1010 ms receiver answers with 97 packets",
            "1015 ms receiver ignores duplicate",
            "1020 ms sender applies 0 of 97 packets",
            "1025 ms sender ignores duplicate",
        ],
    );
}

#[test]
fn an_overtaken_request_is_not_answered() {
    transcript(
        2500,
        |kind| match kind {
            Kind::Request(0) => vec![1200],
            _ => vec![10],
        },
        &[
            "1000 ms sender asks 0",
            "2000 ms sender asks 1",
            "2010 ms receiver answers with 97 packets",
            "2020 ms sender applies 1 of 97 packets",
            "2200 ms receiver ignores late",
        ],
    );
}

#[test]
fn reordered_lost_and_doubled_media_are_measured_once_each() {
    let mut dialogue = Dialogue::new(|kind| match kind {
        Kind::Media(40) => vec![35],
        Kind::Media(50) => vec![],
        Kind::Media(60) => vec![10, 25],
        _ => vec![10],
    });
    dialogue.run(1500);
    let answers: Vec<_> = dialogue.lines.iter().filter(|line| line.contains("answers")).collect();
    assert!(answers[0].ends_with("96 packets"), "97 less the lost one: {answers:?}");
    assert_eq!(dialogue.ignored, [(false, DropReason::Duplicate)]);
}

#[test]
fn too_few_packets_are_said_as_such() {
    let mut dialogue = Dialogue::new(|kind| match kind {
        Kind::Media(n) if n > 1 => vec![],
        _ => vec![10],
    });
    dialogue.run(1500);
    assert!(dialogue.lines.iter().any(|line| line.contains("applies 0 of 0 packets")), "{:?}", dialogue.lines);
}

#[test]
fn both_goodbyes_end_the_other_side_at_once() {
    for from_sender in [true, false] {
        let mut dialogue = Dialogue::new(|_| vec![10]);
        dialogue.run(1500);
        let now = EPOCH + 1_500_000_000;
        if from_sender {
            dialogue.sender.handle(Instant::from_nanos(now), Input::Stop);
        } else {
            dialogue.receiver.handle(Instant::from_nanos(now), Input::Stop);
        }
        dialogue.drain(now, from_sender);
        let lines = dialogue.run(3000).to_vec();
        assert!(lines[lines.len() - 2].contains("ends"), "{lines:?}");
        assert!(lines[lines.len() - 1].contains("1510 ms") && lines[lines.len() - 1].contains("ends on goodbye"));
        assert_eq!((dialogue.sender.wake(), dialogue.receiver.wake()), (None, None));
    }
}

#[test]
fn strangers_forgeries_and_noise_are_counted_and_change_nothing() {
    let mut dialogue = Dialogue::new(|_| vec![10]);
    dialogue.run(1500);
    let now = EPOCH + 1_500_000_000;
    let instant = Instant::from_nanos(now);
    let report = |ssrc: u32, about: u32, last_sr: u32, held: u32| {
        let block = rtcp::ReportBlock {
            ssrc: about,
            fraction_lost: 0,
            cumulative_lost: 0,
            extended_highest: 0,
            jitter: 0,
            last_sr,
            delay_since_last_sr: held,
        };
        let extension = crate::wire::DelayReport::agreed(None).to_bytes();
        let mut out = Vec::new();
        rtcp::encode_receiver_report(ssrc, &[block], &extension, &mut out);
        out
    };
    let asked = NtpTime::from_instant(Instant::from_nanos(EPOCH + 1_000_000_000)).middle();
    let forged = [
        (vec![], DropReason::Foreign),
        (vec![0x80, 96, 0, 1], DropReason::Foreign),
        (vec![0x81, 201, 0, 7, 1, 2, 3], DropReason::Malformed),
        (report(0xBAD, SENDER, asked, 0), DropReason::Foreign),
        (report(RECEIVER, 0xBAD, asked, 0), DropReason::Foreign),
        (report(RECEIVER, SENDER, 12345, 0), DropReason::Stray),
        (report(RECEIVER, SENDER, asked, 0), DropReason::Duplicate),
    ];
    for (bytes, reason) in forged {
        dialogue.ignored.clear();
        dialogue.sender.handle(instant, Input::datagram(&bytes));
        dialogue.drain(now, true);
        assert_eq!(dialogue.ignored, [(true, reason)], "{bytes:02x?}");
    }
    let untouched = dialogue.lines.iter().filter(|line| line.contains("applies")).count();
    assert_eq!(untouched, 1);
}

#[test]
fn a_report_that_was_held_longer_than_it_was_under_way_is_implausible() {
    let mut dialogue = Dialogue::new(|kind| if matches!(kind, Kind::Report(_)) { vec![] } else { vec![10] });
    dialogue.run(1500);
    let block = rtcp::ReportBlock {
        ssrc: SENDER,
        fraction_lost: 0,
        cumulative_lost: 0,
        extended_highest: 0,
        jitter: 0,
        last_sr: NtpTime::from_instant(Instant::from_nanos(EPOCH + 1_000_000_000)).middle(),
        delay_since_last_sr: u32::MAX,
    };
    let extension = crate::wire::DelayReport::agreed(None).to_bytes();
    let mut out = Vec::new();
    rtcp::encode_receiver_report(RECEIVER, &[block], &extension, &mut out);
    dialogue.sender.handle(Instant::from_nanos(EPOCH + 1_500_000_000), Input::datagram(&out));
    dialogue.drain(EPOCH + 1_500_000_000, true);
    assert_eq!(dialogue.ignored, [(true, DropReason::Implausible)]);
}

#[test]
fn a_receiver_drops_foreign_sources_and_implausible_times() {
    let mut dialogue = Dialogue::new(|_| vec![10]);
    dialogue.run(500);
    let media = |ssrc: u32, sent: Option<u64>| {
        let header = crate::wire::rtp::RtpHeader {
            ssrc,
            payload_type: 96,
            send_time: sent.map(|at| NtpTime::from_instant(Instant::from_nanos(at))),
            ..Default::default()
        };
        let mut out = Vec::new();
        header.encode(&mut out);
        out
    };
    let now = EPOCH + 500_000_000;
    let hostile = [
        (media(0xBAD, Some(now)), DropReason::Foreign),
        (media(SENDER, None), DropReason::Foreign),
        (media(SENDER, Some(now - 3_600_000_000_000)), DropReason::Implausible),
        (vec![0x40; 40], DropReason::Malformed),
    ];
    for (bytes, reason) in hostile {
        dialogue.ignored.clear();
        dialogue.receiver.handle(Instant::from_nanos(now), Input::datagram(&bytes));
        dialogue.drain(now, false);
        assert_eq!(dialogue.ignored, [(false, reason)], "{bytes:02x?}");
    }
}

#[test]
fn compounds_carry_the_names_and_disturb_no_interval() {
    let mut compounds = Vec::new();
    let mut dialogue = Dialogue::new(|_| vec![10]);
    dialogue.run(20_500);
    let answers = dialogue.lines.iter().filter(|line| line.contains("answers with 97 packets")).count();
    assert_eq!(answers, 20, "{:?}", dialogue.lines);
    assert!(dialogue.ignored.is_empty());
    // The BYE is sent in a compound with SR and SDES. The compound must have at most `MAX_HEAD` bytes.
    dialogue.sender.handle(Instant::from_nanos(EPOCH + 20_600_000_000), Input::Stop);
    while let Some(output) = dialogue.sender.poll() {
        if let Output::Transmit { transmit, .. } = output {
            assert!(transmit.head.len() <= crate::Transmit::MAX_HEAD);
            compounds.push(transmit.head.to_vec());
        }
    }
    let packets: Vec<_> = rtcp::parse_compound(&compounds[0]).expect("well formed").collect();
    assert!(matches!(
        packets.as_slice(),
        [RtcpPacket::SenderReport(_), RtcpPacket::SourceDescription(_), RtcpPacket::Goodbye(_)]
    ));
}
