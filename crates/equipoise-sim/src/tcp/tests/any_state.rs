//! Tests that compare the scoreboard with a literal implementation of RFC 6675, and tests of the sender and of the
//! receiver with an arbitrary peer.

use proptest::prelude::*;

use super::*;
use crate::tcp::Supply;
use crate::tcp::scoreboard::Scoreboard;

/// A simple scoreboard of RFC 6675, Sec. 2 to 4, with which the scoreboard of the TCP sender is compared. It stores no
/// counts: every query counts all segments again.
///
/// In addition to RFC 6675: a segment may be marked as lost by the timer, by the start of a recovery, or by a partial
/// acknowledgement.
#[derive(Debug, Default)]
struct Recount {
    /// Number of the first unacknowledged segment: `HighACK` + 1, in segments.
    first: u64,
    /// Number of the first segment that was never sent: `HighData` + 1, in segments.
    next: u64,
    sacked: Vec<u64>,
    given_up: Vec<u64>,
    /// All segments before this one were retransmitted in this recovery or needed no retransmission: `HighRxt` + 1, in
    /// segments.
    resent_before: u64,
}

impl Recount {
    fn flight(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        self.first..self.next
    }
    fn is_sacked(&self, number: u64) -> bool {
        self.sacked.contains(&number)
    }
    /// `IsLost` of RFC 6675: a segment is lost if `DupThresh` later segments were selectively acknowledged.
    fn is_lost(&self, number: u64) -> bool {
        self.given_up.contains(&number) || self.sacked.iter().filter(|sacked| **sacked > number).count() >= 3
    }
    /// `SetPipe` of RFC 6675: the number of segments assumed to be on the path.
    fn pipe(&self) -> u64 {
        let unsacked = self.flight().filter(|number| !self.is_sacked(*number));
        unsacked.map(|number| u64::from(!self.is_lost(number)) + u64::from(number < self.resent_before)).sum()
    }
    /// `NextSeg` of RFC 6675, conditions 1.a to 1.c.
    fn rule_1(&self) -> Option<u64> {
        self.flight().find(|number| !self.is_sacked(*number) && *number >= self.resent_before && self.is_lost(*number))
    }
    /// `NextSeg` of RFC 6675, rule 3: conditions 1.a and 1.b.
    fn rule_3(&self) -> Option<u64> {
        let highest = self.sacked.iter().max()?;
        self.flight().find(|number| !self.is_sacked(*number) && *number >= self.resent_before && number < highest)
    }
    /// The last unacknowledged segment, if this recovery has not retransmitted it yet (`NextSeg` of RFC 6675, rule 4).
    fn rule_4(&self) -> Option<u64> {
        self.flight().rfind(|number| !self.is_sacked(*number)).filter(|number| *number >= self.resent_before)
    }
    fn advance(&mut self, next: u64) {
        self.first = self.first.max(next.min(self.next));
        self.sacked.retain(|number| *number >= self.first);
    }
    fn sack(&mut self, blocks: &[(u64, u64)]) {
        for number in self.flight() {
            if blocks.iter().any(|(begin, end)| (*begin..*end).contains(&number)) && !self.is_sacked(number) {
                self.sacked.push(number);
            }
        }
    }
    fn give_up_first(&mut self) {
        if self.first < self.next && !self.is_sacked(self.first) {
            self.given_up.push(self.first);
        }
    }
    fn time_out(&mut self) {
        if self.is_sacked(self.first) {
            self.sacked.clear();
        }
        self.given_up = self.flight().collect();
        self.resent_before = self.first;
    }
}

#[derive(Clone, Debug)]
enum Step {
    New(u64),
    Rule1,
    Rule3,
    Rule4,
    Advance(u64),
    Sack(Vec<(u64, u64)>),
    GiveUpFirst,
    BeginRecovery,
    TimeOut,
}

fn steps() -> impl Strategy<Value = Step> {
    // The ranges of a selective acknowledgement: the distance of each range from the first unacknowledged segment, and
    // the length of the range, in segments. A dishonest peer may acknowledge any ranges.
    let near = proptest::collection::vec((0u64..40, 0u64..12), 0..4);
    prop_oneof![
        4 => (1u64..8).prop_map(Step::New),
        4 => Just(Step::Rule1),
        1 => Just(Step::Rule3),
        1 => Just(Step::Rule4),
        4 => (0u64..12).prop_map(Step::Advance),
        8 => near.prop_map(Step::Sack),
        1 => Just(Step::GiveUpFirst),
        1 => Just(Step::BeginRecovery),
        1 => Just(Step::TimeOut),
    ]
}

fn take(step: &Step, board: &mut Scoreboard, recount: &mut Recount) {
    let at = Time::ZERO;
    match step {
        Step::New(count) => {
            (0..*count).for_each(|_| board.push(at));
            recount.next += count;
        }
        Step::Rule1 | Step::Rule3 => {
            let number = if matches!(step, Step::Rule1) { recount.rule_1() } else { recount.rule_3() };
            if let Some(number) = number {
                board.push_again(number, at);
                recount.resent_before = number + 1;
            }
        }
        Step::Rule4 => {
            if let Some(number) = recount.rule_4() {
                board.push_rescue(number, at);
            }
        }
        Step::Advance(by) => {
            board.advance(recount.first + by);
            recount.advance(recount.first + by);
        }
        Step::Sack(blocks) => {
            let blocks: Vec<_> =
                blocks.iter().map(|(from, len)| (recount.first + from, recount.first + from + len)).collect();
            board.mark_sacked(&SackBlocks::new(blocks.iter().copied()));
            recount.sack(&blocks[..blocks.len().min(SackBlocks::MOST)]);
        }
        Step::GiveUpFirst => {
            board.mark_first_lost();
            recount.give_up_first();
        }
        Step::BeginRecovery => {
            board.begin_recovery();
            recount.give_up_first();
            recount.resent_before = recount.first;
        }
        Step::TimeOut => {
            board.mark_all_lost();
            recount.time_out();
        }
    }
}

/// A number in a segment from a peer: usually plausible, sometimes arbitrary.
fn said() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..60, 1 => any::<u64>(), 1 => (0u64..3).prop_map(|less| u64::MAX - less)]
}

fn segments() -> impl Strategy<Value = Segment> {
    let acks = (said(), said(), proptest::collection::vec((said(), said()), 0..4))
        .prop_map(|(next, window, blocks)| Segment::Ack(Ack { next, window, sacked: SackBlocks::new(blocks) }));
    let data =
        (said(), said()).prop_map(|(number, payload)| Segment::Data { number, payload: Size::from_bytes(payload) });
    prop_oneof![
        12 => acks,
        1 => Just(Segment::Syn),
        1 => said().prop_map(|window| Segment::SynAck { window }),
        1 => data,
    ]
}

proptest! {
    #[test]
    fn the_scoreboard_counts_what_a_recount_finds(steps in proptest::collection::vec(steps(), 1..120)) {
        let (mut board, mut recount) = (Scoreboard::default(), Recount::default());
        for step in &steps {
            take(step, &mut board, &mut recount);
            prop_assert_eq!((board.first(), board.next()), (recount.first, recount.next), "{:?}", step);
            prop_assert_eq!(board.in_flight(), recount.next - recount.first);
            prop_assert_eq!(board.pipe(), recount.pipe(), "{:?}", step);
            prop_assert_eq!(board.next_lost(), recount.rule_1(), "{:?}", step);
            prop_assert_eq!(board.last_unsacked(), recount.rule_4());
            if recount.rule_1().is_none() {
                prop_assert_eq!(board.next_below_highest(), recount.rule_3(), "{:?}", step);
            }
            let first_is_lost = recount.first < recount.next
                && !recount.is_sacked(recount.first) && recount.is_lost(recount.first);
            // A selective acknowledgement of the first unacknowledged segment means that the peer has reneged. Only a
            // timeout handles this (RFC 6675, Sec. 5.1), so `first_is_lost` is not compared.
            if !recount.is_sacked(recount.first) {
                prop_assert_eq!(board.first_is_lost(), first_is_lost, "{:?}", step);
            }
        }
    }

    /// If this test fails, a dishonest peer can cause a panic, an endless loop or a stuck timer in the sender, or the
    /// transfer does not end after the peer becomes honest.
    #[test]
    fn no_acknowledgement_harms_a_sender(
        steps in proptest::collection::vec((0i64..1500, segments()), 1..60),
        (sack, handshake, transfer, window) in (any::<bool>(), any::<bool>(), 0u64..100 * FULL, 1.0f64..20.0),
    ) {
        let recovery = if sack { LossRecovery::Sack } else { LossRecovery::NewReno };
        let supply = Supply::Transfer(Size::from_bytes(transfer));
        let mut talk = Talk::new(SenderConfig { supply, handshake, ..bulk(recovery) }, Reno::new(window));
        for (pause, segment) in steps {
            talk.after(pause).hears(segment);
            talk.out.clear();
        }
        talk.hears(Segment::SynAck { window: 1 << 30 });
        for _ in 0..2000 {
            let stats = talk.stats();
            let next = stats.acknowledged + stats.in_flight;
            talk.ack(next).after(100).out.clear();
        }
        talk.hears(Segment::SynAck { window: 1 << 30 }).after(100);
        let stats = talk.stats();
        let next = stats.acknowledged + stats.in_flight;
        talk.ack(next);
        prop_assert!(talk.stats().finished.is_some(), "{:?}", talk.stats());
    }

    /// If this test fails, some segment makes a receiver panic or leaves its timer stuck.
    #[test]
    fn no_segment_harms_a_receiver(steps in proptest::collection::vec((0i64..300, segments()), 1..60), window in said()) {
        let config = crate::tcp::ReceiverConfig { window: window.max(1), ..crate::tcp::ReceiverConfig::new() };
        let mut receiver = crate::tcp::Receiver::new(config).unwrap();
        let mut now = Time::ZERO;
        for (pause, segment) in steps {
            now = now + ms(pause);
            if receiver.wake().is_some_and(|wake| wake <= now) {
                receiver.on_timer(now);
                prop_assert!(receiver.wake().is_none_or(|wake| wake > now));
            }
            receiver.on_segment(now, segment);
        }
    }
}

/// A SACK block that covers all segment numbers must take no more computing time than a block that covers only the
/// segments in flight.
#[test]
fn a_block_of_everything_is_clipped_to_what_is_under_way() {
    let mut talk = Talk::new(bulk(LossRecovery::Sack), Fixed::new(5.0, 3.0));
    talk.sends(0..5).after(100).sack(0, &[(1, u64::MAX), (u64::MAX, 0), (0, 0)]);
    // Segments 1 to 4 count as arrived. The window is three segments; one of them is the retransmission.
    talk.sends([0, 5, 6]);
    // The SACK block up to `u64::MAX` arrived before segments 5 and 6 were sent, so these segments must not count as
    // acknowledged by this block.
    talk.sack(0, &[(1, 5)]).is_quiet();
    talk.ack(u64::MAX).is_quiet();
    assert_eq!(talk.stats().acknowledged, 0);
}
