//! Tests of acknowledgements (RFC 5681, Sec. 4.2) and their SACK blocks (RFC 2018, Sec. 4).

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::tcp::{DelayedAcks, Receiver, ReceiverConfig, TcpError};

/// A TCP receiver whose peer is the test.
struct Listener {
    receiver: Receiver,
    now: Time,
}

impl Listener {
    fn new(config: ReceiverConfig) -> Self {
        Self { receiver: Receiver::new(config).unwrap(), now: Time::ZERO }
    }

    fn gets(&mut self, number: u64) -> Option<Segment> {
        self.receiver.on_segment(self.now, Segment::Data { number, payload: Size::from_bytes(FULL) })
    }

    /// Sends segment `number` to the receiver, and asserts that the receiver sends no acknowledgement yet.
    #[track_caller]
    fn keeps(&mut self, number: u64) -> &mut Self {
        assert_eq!(self.gets(number), None);
        self
    }

    /// Sends segment `number` to the receiver. Asserts that the receiver acknowledges at once, with the next expected
    /// segment `next` and the SACK blocks `blocks`.
    #[track_caller]
    fn answers(&mut self, number: u64, next: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let answer = self.gets(number);
        let Some(Segment::Ack(ack)) = answer else { panic!("{answer:?}") };
        assert_eq!((ack.next, ack.sacked.iter().collect::<Vec<_>>()), (next, blocks.to_vec()));
        self
    }

    /// Returns the acknowledgement that the timer causes within `millis` ms, and when it is sent; `None` if there is
    /// none.
    fn after(&mut self, millis: i64) -> Option<(Time, Segment)> {
        let until = self.now + ms(millis);
        while let Some(wake) = self.receiver.wake().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            if let Some(segment) = self.receiver.on_timer(self.now) {
                return Some((self.now, segment));
            }
        }
        self.now = until;
        None
    }
}

fn ack(next: u64) -> Segment {
    Segment::Ack(Ack { next, window: 1 << 30, sacked: SackBlocks::NONE })
}

#[test]
fn every_second_segment_is_answered_and_a_lone_one_after_200_ms() {
    let mut listener = Listener::new(ReceiverConfig::new());
    listener.keeps(0).answers(1, 2, &[]).keeps(2);
    assert_eq!(listener.after(1000), Some((Time::ZERO + ms(200), ack(3))));
    assert_eq!(listener.after(1000), None);
    // The delay timer must start at the first unacknowledged segment, not at a segment that was already acknowledged.
    let begun = listener.now;
    listener.keeps(3);
    assert_eq!(listener.after(150), None);
    listener.answers(4, 5, &[]);
    assert_eq!(listener.after(10), None);
    listener.keeps(5);
    assert_eq!(listener.after(1000), Some((begun + ms(360), ack(6))));
}

#[test]
fn without_delay_every_segment_is_answered() {
    let mut listener = Listener::new(ReceiverConfig { delayed_acks: None, ..ReceiverConfig::new() });
    listener.answers(0, 1, &[]).answers(1, 2, &[]);
    let four = DelayedAcks { segments: 4, timeout: ms(40) };
    let mut listener = Listener::new(ReceiverConfig { delayed_acks: Some(four), ..ReceiverConfig::new() });
    listener.keeps(0).keeps(1).keeps(2).answers(3, 4, &[]).keeps(4);
    assert_eq!(listener.after(1000), Some((Time::ZERO + ms(40), ack(5))));
}

#[test]
fn a_gap_and_what_fills_it_are_answered_at_once() {
    let mut listener = Listener::new(ReceiverConfig::new());
    listener.keeps(0).answers(2, 1, &[(2, 3)]).answers(3, 1, &[(2, 4)]).answers(6, 1, &[(6, 7), (2, 4)]);
    listener.answers(1, 4, &[(6, 7)]).answers(4, 5, &[(6, 7)]).answers(5, 7, &[]);
    listener.keeps(7).answers(8, 9, &[]);
    assert_eq!(listener.receiver.delivered(), Size::from_bytes(9 * FULL));
    assert_eq!(listener.after(1000), None);
}

#[test]
fn what_came_before_is_answered_at_once_and_delivered_once() {
    let mut listener = Listener::new(ReceiverConfig::new());
    listener.keeps(0).answers(0, 1, &[]).answers(3, 1, &[(3, 4)]).answers(5, 1, &[(5, 6), (3, 4)]);
    // The range that contains the duplicate segment must be reported first.
    listener.answers(3, 1, &[(3, 4), (5, 6)]).answers(0, 1, &[(3, 4), (5, 6)]);
    assert_eq!(listener.receiver.received(), (6, 3));
    assert_eq!(listener.receiver.delivered(), Size::from_bytes(3 * FULL));
}

/// RFC 2018, Sec. 4: an acknowledgement reports as many ranges as fit. If a range in the previous acknowledgement no
/// longer exists, an older range takes its place.
#[test]
fn an_older_range_moves_up_where_a_newer_one_is_gone() {
    let mut listener = Listener::new(ReceiverConfig::new());
    listener.answers(8, 0, &[(8, 9)]).answers(6, 0, &[(6, 7), (8, 9)]).answers(4, 0, &[(4, 5), (6, 7), (8, 9)]);
    listener.answers(1, 0, &[(1, 2), (4, 5), (6, 7)]).answers(0, 2, &[(4, 5), (6, 7), (8, 9)]);
    listener.answers(5, 2, &[(4, 7), (8, 9)]);
}

#[test]
fn without_sack_only_the_next_is_told() {
    let mut listener = Listener::new(ReceiverConfig { sack: false, ..ReceiverConfig::new() });
    listener.keeps(0).answers(2, 1, &[]).answers(3, 1, &[]).answers(1, 4, &[]);
}

#[test]
fn what_the_window_has_no_room_for_is_not_taken() {
    let mut listener = Listener::new(ReceiverConfig { window: 3, ..ReceiverConfig::new() });
    listener.answers(3, 0, &[]).answers(u64::MAX, 0, &[]).answers(2, 0, &[(2, 3)]);
    assert_eq!(listener.receiver.delivered(), Size::from_bytes(FULL));
    let all = ReceiverConfig { window: u64::MAX, ..ReceiverConfig::new() };
    Listener::new(all).answers(u64::MAX, 0, &[]).answers(u64::MAX - 1, 0, &[(u64::MAX - 1, u64::MAX)]);
    assert_eq!(Receiver::new(ReceiverConfig { window: 0, ..ReceiverConfig::new() }).err(), Some(TcpError::NoWindow));
}

/// An IP packet has 40 bytes of headers. The SACK option is padded to a multiple of four bytes (RFC 2018, Sec. 3), and
/// contains at most three blocks.
#[test]
fn acknowledgements_are_as_long_as_their_blocks() {
    for (blocks, bytes) in [(0, 40), (1, 52), (2, 60), (3, 68), (9, 68)] {
        let sacked = SackBlocks::new((0..blocks).map(|number| (3 * number, 3 * number + 1)));
        assert_eq!(Segment::Ack(Ack { next: 0, window: 1, sacked }).size(), Size::from_bytes(bytes));
    }
}

/// Finds the ranges of consecutive segments received after `next`. Returns at most three ranges: the ranges in which
/// segments arrived most recently, the most recent range first.
fn runs(came: &BTreeMap<u64, usize>, next: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(usize, u64, u64)> = Vec::new();
    for (&number, &last) in came.range(next..) {
        match runs.last_mut() {
            Some((latest, _, end)) if *end == number => (*latest, *end) = (last.max(*latest), number + 1),
            _ => runs.push((last, number, number + 1)),
        }
    }
    runs.sort_unstable();
    runs.iter().rev().take(3).map(|&(_, first, end)| (first, end)).collect()
}

proptest! {
    /// Compares the receiver with a set of all received segments. The next expected segment must be the first missing
    /// segment, and the SACK blocks must be the ranges of received segments after this segment.
    #[test]
    fn the_answers_are_those_of_a_set(numbers in proptest::collection::vec(0u64..40, 1..200), window in 1u64..50) {
        let config = ReceiverConfig { window, delayed_acks: None, sack: true };
        let mut listener = Listener::new(config);
        let (mut came, mut next) = (BTreeMap::new(), 0);
        for (moment, &number) in numbers.iter().enumerate() {
            if number < next + window {
                came.insert(number, moment);
            }
            while came.contains_key(&next) {
                next += 1;
            }
            let answer = listener.gets(number);
            let Some(Segment::Ack(ack)) = answer else { panic!("{answer:?}") };
            prop_assert_eq!(ack.next, next);
            prop_assert_eq!(ack.sacked.iter().collect::<Vec<_>>(), runs(&came, next));
            prop_assert_eq!(listener.receiver.delivered().as_bytes(), FULL * came.len() as u64);
        }
    }

    /// If this test fails, a segment waits longer than 200 ms for its acknowledgement, or two segments wait at the same
    /// time.
    #[test]
    fn no_segment_waits_too_long(steps in proptest::collection::vec((0u64..12, 0i64..150), 1..100)) {
        let mut listener = Listener::new(ReceiverConfig::new());
        let (mut told, mut waiting) = (0, Vec::new());
        for (ahead, pause) in steps {
            let until = listener.now + ms(pause);
            while let Some((_, Segment::Ack(ack))) = listener.after(((until - listener.now).as_nanos() / 1_000_000).max(0)) {
                told = ack.next;
                waiting.clear();
            }
            let number = told + ahead;
            match listener.gets(number) {
                Some(Segment::Ack(ack)) => (told, waiting) = (ack.next, Vec::new()),
                _ => waiting.push(listener.now),
            }
            prop_assert!(waiting.len() < 2);
            prop_assert!(waiting.iter().all(|since| listener.now - *since <= ms(200)));
        }
    }
}
