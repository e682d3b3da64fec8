use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use equipoise::control::{Fate, PacketReport};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};
use proptest::prelude::*;

use super::*;
use crate::Ecn;
use crate::wire::feedback::{ArrivalReport, ArrivalTime, PacketArrival, PacketStatus};

const SSRC: u32 = 5;
const PACKET: Size = Size::from_bytes(1000);
const MILLI: Span = Span::from_millis(1);
/// One-way delay of each packet, if both clocks agree.
const WAY: Span = Span::from_millis(20);

/// Returns the time at which packet `number` is sent: `number` milliseconds.
fn departure(number: u64) -> Instant<SenderClock> {
    Instant::ZERO + MILLI * number as i64
}

fn arrival(number: u64) -> Instant<ReceiverClock> {
    departure(number).assume_clock() + WAY
}

fn history(numbers: impl IntoIterator<Item = u64>) -> History {
    let mut history = History::new(Scope::Stream(SSRC), 1024);
    numbers.into_iter().for_each(|number| history.on_sent(number, PACKET, departure(number)));
    history
}

fn status(number: u64, arrived: bool) -> PacketStatus {
    let arrival = PacketArrival { time: ArrivalTime::At(arrival(number)), ecn: Ecn::Marked };
    PacketStatus { sequence: number as u16, arrival: arrived.then_some(arrival) }
}

/// Returns a report on the numbers from `begin` on. Each letter of `said` is one packet's status: arrived (`+`) or not
/// (`-`). The report is made 5 ms after the last of these packets would arrive.
fn report(begin: u64, said: &str) -> ArrivalReport<alloc::vec::IntoIter<PacketStatus>> {
    let packets: Vec<_> = (begin..).zip(said.chars()).map(|(number, letter)| status(number, letter == '+')).collect();
    let made = arrival(begin + said.len() as u64 - 1) + MILLI * 5;
    ArrivalReport { ssrc: SSRC, made: Some(made), packets: packets.into_iter() }
}

/// Applies a report. Returns a list of the packets whose state changed, and the number of packets that became unknown.
/// An entry of the list is the packet's number, and whether the packet arrived.
fn told(history: &mut History, begin: u64, said: &str) -> (Vec<(u64, bool)>, u64) {
    let now = departure(begin + said.len() as u64) + MILLI * 45;
    let joined = history.on_report(now, &report(begin, said)).expect("an honest report");
    (joined.packets.iter().map(|packet| (packet.number, packet.fate != Fate::Lost)).collect(), joined.unknown)
}

#[test]
fn a_report_is_joined_with_what_was_sent() {
    let mut history = history(65_534..65_540);
    assert_eq!(history.in_flight(), Size::from_bytes(6000));
    let now = departure(65_536) + MILLI * 45;
    let joined = history.on_report(now, &report(65_534, "+-+")).expect("an honest report");
    let fate = |number| Fate::Arrived { at: Some(arrival(number)), ecn: equipoise::control::Ecn::Ce };
    let packet = |number, fate| PacketReport::new(number, PACKET, departure(number), fate);
    assert_eq!(
        joined.packets,
        [packet(65_534, fate(65_534)), packet(65_535, Fate::Lost), packet(65_536, fate(65_536))]
    );
    // The newest packet was sent 45 ms ago, and the receiver held the report for 5 ms.
    assert_eq!(joined.round_trip, Some(MILLI * 40));
    let feedback = joined.feedback(true);
    assert_eq!((feedback.in_flight, feedback.app_limited), (Size::from_bytes(6000), true));
    assert_eq!(history.in_flight(), Size::from_bytes(3000));
}

#[test]
fn a_late_arrival_repairs_an_earlier_loss_once() {
    let mut history = history(0..10);
    assert_eq!(told(&mut history, 0, "+-+"), ([(0, true), (1, false), (2, true)].to_vec(), 0));
    assert_eq!(told(&mut history, 1, "+++"), ([(1, true), (3, true)].to_vec(), 0));
    assert_eq!(told(&mut history, 1, "+++").0, []);
    let counts = history.counts();
    assert_eq!((counts.repaired, counts.repeated, history.in_flight()), (1, 4, Size::from_bytes(6000)));
}

/// If this test fails, the loss of a report looks like a burst of lost packets, or keeps the sender's window full
/// forever.
#[test]
fn packets_between_two_reports_are_unknown_until_the_missing_report_comes() {
    let mut history = history(0..10);
    assert_eq!(told(&mut history, 0, "++").1, 0);
    assert_eq!(told(&mut history, 6, "++"), ([(6, true), (7, true)].to_vec(), 4));
    assert_eq!((history.outcome(3), history.in_flight()), (Some(Outcome::Unknown), Size::from_bytes(2000)));
    assert_eq!(told(&mut history, 2, "+-"), ([(2, true), (3, false)].to_vec(), 0));
    let outcomes = [2, 3, 4, 7, 8].map(|number| history.outcome(number));
    assert_eq!(
        outcomes,
        [Outcome::Arrived, Outcome::Lost, Outcome::Unknown, Outcome::Arrived, Outcome::UnderWay].map(Some)
    );
    assert_eq!((history.outcome(10), history.in_flight()), (None, Size::from_bytes(2000)));
}

/// If all packets in flight are lost, no report arrives. If this test fails, the lost packets fill the sender's window
/// forever.
#[test]
fn what_is_given_up_is_under_way_no_more_and_may_still_be_reported_on() {
    let mut waiting = history(0..10);
    waiting.give_up_before(departure(4));
    assert_eq!((waiting.outcome(3), waiting.outcome(4)), (Some(Outcome::Unknown), Some(Outcome::UnderWay)));
    assert_eq!((waiting.in_flight(), waiting.counts().unknown), (Size::from_bytes(6000), 4));
    assert_eq!(told(&mut waiting, 2, "++"), ([(2, true), (3, true)].to_vec(), 0));
    waiting.on_silence();
    assert_eq!((waiting.in_flight(), waiting.outcome(9)), (Size::ZERO, Some(Outcome::Unknown)));
}

/// If this test fails, a report that acknowledges no packet removes earlier packets from the data in flight. A
/// dishonest receiver could then make the sender exceed its window.
#[test]
fn a_report_that_nothing_came_frees_nothing_that_it_passes_over() {
    let mut history = history(0..10);
    assert_eq!(told(&mut history, 9, "-"), ([(9, false)].to_vec(), 0));
    assert_eq!((history.outcome(3), history.in_flight()), (Some(Outcome::UnderWay), Size::from_bytes(9000)));
    assert_eq!(told(&mut history, 8, "+").1, 8, "a report with an arrival does");
}

#[test]
fn a_report_that_another_has_overtaken_takes_nothing_back() {
    let mut history = history(0..4);
    told(&mut history, 0, "++++");
    assert_eq!(told(&mut history, 0, "+-").0, []);
    assert_eq!((history.counts().contradicted, history.outcome(1)), (1, Some(Outcome::Arrived)));
}

/// If this test fails, a receiver that acknowledges blindly can make the sender exceed the path's rate (RFC 9000,
/// Sec. 21.4).
#[test]
fn a_number_left_out_on_purpose_must_not_be_acknowledged() {
    let mut history = history([0, 1, 3, 4]);
    assert_eq!(history.outcome(2), Some(Outcome::Skipped));
    let blind = history.on_report(departure(50), &report(0, "+++++"));
    assert_eq!(blind, Err(Refusal::Skipped { sequence: 2 }));
    let joined = history.on_report(departure(50), &report(0, "++-++")).expect("an honest report");
    assert_eq!((joined.packets.len(), joined.traps), (4, 1), "nobody lost the number that was left out");
    assert_eq!((history.counts().refused, history.in_flight()), (1, Size::ZERO));
}

#[test]
fn what_was_never_sent_has_not_yet_left_or_is_anothers_is_refused_without_effect() {
    let mut history = history(10..20);
    let before = history.clone();
    let now = departure(100);
    assert_eq!(history.on_report(now, &report(9, "++")), Err(Refusal::NeverSent { sequence: 9 }));
    assert_eq!(history.on_report(now, &report(19, "++")), Err(Refusal::Ahead { sequence: 20 }));
    assert_eq!(history.on_report(now, &report(9 + (1 << 15), "+")), Err(Refusal::Ahead { sequence: 32_777 }));
    let foreign = ArrivalReport { ssrc: 6, ..report(10, "+") };
    assert_eq!(history.on_report(now, &foreign), Err(Refusal::Foreign { found: 6, expected: 5 }));
    assert_eq!(history.counts(), FeedbackCounts { refused: 4, ..before.counts() });
    assert!((10..20).all(|number| history.outcome(number) == Some(Outcome::UnderWay)));
    // A report may state that packets before the first or after the last sent packet did not arrive. This is true, and
    // has no effect.
    assert_eq!(told(&mut history, 8, "--+").0, [(10, true)]);
    assert_eq!(told(&mut history, 18, "+-----").0, [(18, true), (19, false)]);
    assert_eq!(History::new(Scope::Transport, 9).on_report(now, &foreign), Err(Refusal::NeverSent { sequence: 10 }));
}

#[test]
fn fates_by_whole_numbers_come_in_any_order_and_each_brings_news_once() {
    let mut history = history([100_000, 100_001, 100_002, 100_004]);
    let arrived = Fate::Arrived { at: None, ecn: equipoise::control::Ecn::NotEct };
    let now = departure(100_050);
    let joined = history.on_fates(now, &[(100_004, arrived), (100_000, Fate::Lost), (100_007, Fate::Lost)]);
    let joined = joined.expect("what was sent");
    assert_eq!(joined.packets.iter().map(|packet| packet.number).collect::<Vec<_>>(), [100_000, 100_004]);
    assert_eq!((joined.round_trip, joined.in_flight), (Some(MILLI * 46), Size::from_bytes(4000)));
    assert_eq!(history.in_flight(), Size::from_bytes(2000), "the others are in flight");
    let again = history.on_fates(now, &[(100_004, arrived), (100_000, arrived)]).expect("what was sent");
    assert_eq!(again.packets.iter().map(|packet| packet.number).collect::<Vec<_>>(), [100_000]);
    for (number, refusal) in [
        (99_999, Refusal::NeverSent { sequence: 34_463 }),
        (100_003, Refusal::Skipped { sequence: 34_467 }),
        (100_005, Refusal::Ahead { sequence: 34_469 }),
    ] {
        assert_eq!(history.on_fates(now, &[(100_001, arrived), (number, arrived)]), Err(refusal));
        assert_eq!(history.outcome(100_001), Some(Outcome::UnderWay), "nothing of it has effect");
    }
    assert_eq!(history.counts().refused, 3);
}

#[test]
fn what_is_forgotten_is_counted_and_no_longer_under_way() {
    let mut history = History::new(Scope::Transport, 4);
    (0..6).for_each(|number| history.on_sent(number, PACKET, departure(number)));
    assert_eq!((history.outcome(1), history.in_flight()), (None, Size::from_bytes(4000)));
    assert_eq!(told(&mut history, 0, "+++++").0, [(2, true), (3, true), (4, true)]);
    assert_eq!((history.counts().forgotten, history.counts().unknown), (2, 2));
    // The history has a capacity of 4 packets, and the last number is 5. Number 1000 is more than 4 above number 5, so
    // the history forgets all earlier packets. Number 999 comes after number 1000, so the history ignores number 999.
    history.on_sent(1000, PACKET, departure(7));
    history.on_sent(999, PACKET, departure(8));
    assert_eq!((history.outcome(999), history.outcome(1000)), (None, Some(Outcome::UnderWay)));
    assert_eq!(history.in_flight(), PACKET);
}

#[test]
fn a_time_that_cannot_be_gives_no_round_trip() {
    let mut history = history(0..10);
    let made = |history: &mut History, begin, made| {
        let report = ArrivalReport { made, ..report(begin, "+") };
        history.on_report(departure(40), &report).expect("honest except for its time").round_trip
    };
    assert_eq!(made(&mut history, 0, Some(arrival(0) - MILLI)), None, "made before the arrival");
    assert_eq!(made(&mut history, 1, Some(arrival(1) + MILLI * 39)), None, "held for longer than since the departure");
    assert_eq!(made(&mut history, 2, None), Some(MILLI * 38), "not known to have been held");
}

/// What the network does with one packet: whether the packet is lost, its additional delay in milliseconds, and whether
/// the packet is duplicated.
#[derive(Clone, Copy, Debug)]
struct Course {
    is_lost: bool,
    delay: u64,
    is_doubled: bool,
}

fn course() -> impl Strategy<Value = Course> {
    (prop::bool::weighted(0.1), 0u64..12, prop::bool::weighted(0.1)).prop_map(|(is_lost, delay, is_doubled)| Course {
        is_lost,
        delay,
        is_doubled,
    })
}

proptest! {
    /// Tests all parts together: numbers that are skipped on purpose, a network with loss, reordering and duplication,
    /// a recorder, reports of which some are lost, and the history.
    #[test]
    fn between_honest_ends_every_outcome_is_what_happened(
        courses in proptest::collection::vec(course(), 1..400), start: u16, seed: u64, overlap in 0u64..30,
        losses in proptest::collection::vec(prop::bool::weighted(0.2), 64),
    ) {
        let mut history = History::new(Scope::Stream(SSRC), 2048);
        let mut recorder = Recorder::new(1024);
        let mut traps = Traps::new(seed, 20);
        let (mut number, mut on_the_way, mut sent) = (u64::from(start), Vec::new(), Vec::new());
        for (time, course) in (0u64..).zip(&courses) {
            number += u64::from(traps.skips());
            history.on_sent(number, PACKET, departure(time));
            sent.push(number);
            if !course.is_lost {
                on_the_way.push((time + 20 + course.delay, number));
                on_the_way.extend(course.is_doubled.then_some((time + 30, number)));
            }
            number += 1;
        }
        on_the_way.sort_unstable();
        // Each key is the number of a packet that a report covered. Only reports that reached the sender count. The
        // value tells whether any of these reports acknowledged the packet.
        let mut said = BTreeMap::new();
        let mut lost_reports = losses.iter().cycle();
        let mut made = 0;
        for (index, (time, number)) in on_the_way.iter().enumerate() {
            recorder.on_arrival(*number, Instant::ZERO + MILLI * *time as i64, Ecn::Ect1);
            if index % 16 == 15 || index + 1 == on_the_way.len() {
                made += 1;
                let stretch = recorder.report(overlap);
                if *lost_reports.next().unwrap() {
                    continue;
                }
                let begin = stretch.begin();
                for (number, status) in (begin..).zip(stretch.clone()) {
                    *said.entry(number).or_insert(false) |= status.arrival.is_some();
                }
                let at = Instant::ZERO + MILLI * *time as i64;
                let report = ArrivalReport { ssrc: SSRC, made: Some(at), packets: stretch };
                prop_assert!(history.on_report(at.assume_clock() + MILLI, &report).is_ok());
            }
        }
        let last = said.keys().next_back().copied();
        let mut in_flight = 0;
        for number in sent {
            let expected = match said.get(&number) {
                Some(true) => Outcome::Arrived,
                Some(false) => Outcome::Lost,
                None if last.is_some_and(|last| number < last) => Outcome::Unknown,
                None => Outcome::UnderWay,
            };
            in_flight += u64::from(expected == Outcome::UnderWay) * PACKET.as_bytes();
            prop_assert_eq!(history.outcome(number), Some(expected), "{}", number);
        }
        prop_assert_eq!(history.in_flight().as_bytes(), in_flight);
        prop_assert!(history.counts().reports <= made && history.counts().refused == 0);
    }
}
