//! Tests of loss recovery by selective acknowledgements (RFC 6675).

use super::*;

const SACK: LossRecovery = LossRecovery::Sack;

fn transfer(segments: u64) -> SenderConfig {
    SenderConfig { supply: super::super::Supply::Transfer(Size::from_bytes(FULL * segments)), ..bulk(SACK) }
}

fn without_limited_transmit() -> SenderConfig {
    SenderConfig { limited_transmit: false, ..bulk(SACK) }
}

#[test]
fn one_lost_segment_is_sent_again_once_three_behind_it_have_come() {
    let law = Fixed::new(10.0, 5.0);
    let mut talk = Talk::new(bulk(SACK), law.clone());
    talk.sends(0..10).after(100);
    talk.sack(0, &[(1, 2)]).sends([10]).sack(0, &[(1, 3)]).sends([11]).sack(0, &[(1, 4)]).sends([0]);
    assert_eq!(law.news(), [Told::Loss { in_flight: 10 }], "limited transmit does not count");
    // Segments on the path (`pipe`): 12 sent - 3 selectively acknowledged - 1 lost + 1 retransmitted = 9.
    for end in 5..8 {
        talk.sack(0, &[(1, end)]).is_quiet();
    }
    talk.sack(0, &[(1, 8)]).is_quiet().sack(0, &[(1, 9)]).sends([12]).sack(0, &[(1, 10)]).sends([13]);
    talk.after(100).sack(0, &[(1, 11)]).sends([14]).sack(0, &[(1, 12)]).sends([15]);
    talk.ack(12).sends([16]);
    assert_eq!((law.news().len(), law.acks().len()), (1, 0));
    let stats = talk.stats();
    assert_eq!((stats.recoveries, stats.resent_in_recovery, stats.timeouts), (1, 1, 0));
}

#[test]
fn three_lost_segments_are_sent_again_in_one_round_trip() {
    let mut talk = Talk::new(without_limited_transmit(), Fixed::new(10.0, 5.0));
    talk.sends(0..10).after(100);
    // Segments 0, 3 and 6 are lost; the others arrive.
    talk.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).is_quiet();
    // Segments on the path (`pipe`): 10 sent - 3 acknowledged - 1 lost + 1 retransmitted = 7.
    talk.sack(0, &[(4, 5), (1, 3)]).sends([0]);
    talk.sack(0, &[(4, 6), (1, 3)]).is_quiet();
    // Segment 3 is now detected as lost. Segments on the path: 10 sent - 5 acknowledged - 2 lost + 1 retransmitted = 4.
    talk.sack(0, &[(7, 8), (4, 6), (1, 3)]).sends([3]);
    talk.sack(0, &[(7, 9), (4, 6), (1, 3)]).sends([10]);
    // Segment 6 is now detected as lost. Segments on the path: 11 sent - 7 acknowledged - 3 lost + 2 retransmitted = 3.
    talk.sack(0, &[(7, 10), (4, 6), (1, 3)]).sends([6, 11]);
    talk.after(100).sack(3, &[(7, 10), (4, 6)]).sends([12]).sack(6, &[(7, 10)]).sends([13]);
    talk.sack(6, &[(7, 11)]).sends([14]).ack(11).sends([15]);
    let stats = talk.stats();
    assert_eq!((stats.recoveries, stats.resent_in_recovery, stats.timeouts), (1, 3, 0));
}

#[test]
fn reordering_by_two_is_no_loss_and_by_three_one_that_is_over_at_once() {
    for (early, recoveries) in [(1, 0), (2, 0), (3, 1)] {
        let mut talk = Talk::reno(SACK, 10.0);
        talk.sends(0..10).after(100);
        for end in 2..=early + 1 {
            talk.sack(0, &[(1, end)]);
        }
        talk.ack(early + 1);
        assert_eq!(talk.stats().recoveries, recoveries, "{early} segments come early");
        let next = talk.stats().in_flight + talk.stats().acknowledged;
        talk.ack(next);
        assert_eq!((talk.stats().timeouts, talk.stats().recoveries), (0, recoveries));
        assert_eq!(talk.stats().acknowledged, next);
    }
}

/// A duplicate acknowledgement without a new selective acknowledgement is not a sign of loss (RFC 6675, Sec. 2).
#[test]
fn duplicates_without_news_are_no_sign_of_loss() {
    let mut talk = Talk::new(bulk(SACK), Fixed::new(6.0, 3.0));
    talk.sends(0..6).after(100);
    for _ in 0..10 {
        talk.sack(0, &[(1, 3)]);
    }
    talk.sends([6, 7]);
    assert_eq!(talk.stats().recoveries, 0);
}

/// RFC 6675, Sec. 5.1: a lost retransmission is repeated when the timer expires. Received segments are not
/// retransmitted.
#[test]
fn a_lost_retransmission_takes_a_timeout_that_spares_what_has_come() {
    let law = Fixed::new(6.0, 6.0);
    let mut talk = Talk::new(transfer(6), law.clone());
    talk.sends(0..6).after(100);
    // Segments 0 and 4 are lost, and the retransmission of segment 0 is also lost.
    talk.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).is_quiet().sack(0, &[(1, 4)]).sends([0, 5]);
    talk.sack(0, &[(5, 6), (1, 4)]).sends([4]);
    talk.after(100).sack(0, &[(1, 6)]).is_quiet();
    // The timer was restarted at the first retransmission, 100 ms ago. The timer expires 1 s after that retransmission.
    talk.after(899).is_quiet().after(1).sends([0]);
    assert_eq!(law.news(), [Told::Loss { in_flight: 6 }, Told::Timeout { in_flight: 6 }]);
    talk.after(100).ack(6).is_quiet();
    assert_eq!(talk.stats().finished, Some(talk.now));
}

#[test]
fn after_a_timeout_no_recovery_begins_before_all_that_was_lost_is_acknowledged() {
    let law = Fixed::new(8.0, 4.0);
    let mut talk = Talk::new(bulk(SACK), law.clone());
    talk.sends(0..8).after(1000).sends([0]);
    talk.sack(0, &[(4, 6)]).is_quiet().sack(0, &[(4, 8)]).is_quiet();
    assert_eq!(talk.stats().recoveries, 0, "three behind 0 have come, but the timer had run out");
    for next in 1..4 {
        talk.sack(next, &[(4, 8)]).sends([next]);
    }
    talk.ack(8).sends([8]);
    assert_eq!((talk.stats().resent_after_timeout, law.news().len()), (4, 1));
}

/// RFC 6675, Sec. 4, `NextSeg`, rule 4: if there is no new data, the last segment is retransmitted, because no later
/// segment can reveal its loss.
#[test]
fn the_tail_is_sent_again_once_for_want_of_new_data() {
    let mut talk = Talk::new(transfer(10), Fixed::new(10.0, 5.0));
    talk.sends(0..10).after(100);
    // Segments 0 and 9 are lost; the others arrive.
    talk.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).is_quiet().sack(0, &[(1, 4)]).sends([0]);
    // After the three acknowledgements on the next line, the number of segments on the path (`pipe`) is 4: the
    // retransmitted segment 0, and segments 7, 8 and 9.
    talk.sack(0, &[(1, 5)]).sack(0, &[(1, 6)]).is_quiet().sack(0, &[(1, 7)]).sends([9]);
    talk.sack(0, &[(1, 8)]).sack(0, &[(1, 9)]).is_quiet();
    talk.after(100).ack(9).is_quiet().ack(10).is_quiet();
    assert_eq!(talk.stats().finished, Some(talk.now));
    assert_eq!((talk.stats().timeouts, talk.stats().resent_in_recovery), (0, 2));
}

/// RFC 6675, Sec. 4, `NextSeg`, rule 3: if there is no new data, segments that are possibly lost are retransmitted.
#[test]
fn for_want_of_new_data_doubtful_segments_are_sent_again() {
    let mut talk = Talk::new(transfer(10), Fixed::new(10.0, 10.0));
    talk.sends(0..10).after(100);
    talk.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).is_quiet();
    // Below the highest received segment, only segment 0 is missing, and it was just retransmitted. Rule 3 of `NextSeg`
    // (RFC 6675, Sec. 4) therefore selects no segment, and rule 4 applies.
    talk.sack(0, &[(1, 4)]).sends([0, 9]);
    talk.sack(0, &[(5, 6), (1, 4)]).sends([4]);
    talk.sack(0, &[(7, 8), (5, 6), (1, 4)]).sends([6]);
    talk.after(100).ack(10);
    assert_eq!(talk.stats().finished, Some(talk.now));
    assert_eq!(talk.stats().recoveries, 1);
}

/// A recovery may retransmit a segment that the previous recovery retransmitted (RFC 6675, Sec. 5, step 4.3), because
/// that retransmission may have been lost.
#[test]
fn a_new_recovery_sends_again_what_an_earlier_one_had_sent_in_doubt() {
    let rate = Rate::from_bps(8 * FULL * 10);
    let config = SenderConfig { supply: super::super::Supply::Rate(rate), ..bulk(SACK) };
    let mut talk = Talk::new(SenderConfig { min_rto: Span::from_secs(9), ..config }, Fixed::new(10.0, 10.0));
    // Ten segments are available per second, the first after 100 ms. Segment 0 is lost.
    talk.after(450).sends(0..4).sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).sack(0, &[(1, 4)]).sends([0]);
    // Segment 4 is sent as new data. Until segment 5 is available, there is no new data. Therefore segment 4, the
    // highest segment sent, is retransmitted (RFC 6675, Sec. 4, `NextSeg`, rule 4). Both copies are lost. When segment
    // 5 is acknowledged, segment 4 is retransmitted again (rule 3). The third copy is lost, too.
    talk.after(200).sends([4, 4, 5]).sack(0, &[(5, 6), (1, 4)]).sends([4]);
    talk.sack(4, &[(5, 6)]);
    assert_eq!(talk.stats().recoveries, 1);
    talk.sends([]).after(200).sends([6, 7]).sack(4, &[(5, 8)]).sends([4]);
    assert_eq!(talk.stats().recoveries, 2);
    talk.after(49).ack(8);
    assert_eq!((talk.stats().in_flight, talk.stats().timeouts), (0, 0));
}

/// If this test fails, the retransmission of the last segment (RFC 6675, Sec. 4, `NextSeg`, rule 4) counts as sent
/// before the pacer allows it to leave.
#[test]
fn a_pacer_does_not_swallow_the_rescue() {
    let law = Fixed { pacing: Some(Rate::from_bps(12_000 * 100)), ..Fixed::new(10.0, 10.0) };
    let mut talk = Talk::new(transfer(5), law);
    talk.after(100).sends(0..5);
    // Segments 0 and 4 are lost. The retransmission of segment 0 does not wait for the pacer. The retransmission of
    // segment 4, the last segment, waits for 10 ms.
    talk.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).is_quiet().sack(0, &[(1, 4)]).sends([0]);
    talk.after(9).is_quiet().after(1).sends([4]);
}

/// RFC 2018, Sec. 8: a receiver may drop segments that it had selectively acknowledged. If the first unacknowledged
/// segment is selectively acknowledged when the timer expires, the sender discards all selective acknowledgements.
#[test]
fn a_receiver_that_goes_back_on_its_word_gets_all_again() {
    let mut talk = Talk::new(transfer(4), Reno::new(4.0));
    talk.sends(0..4).after(100).sack(0, &[(0, 4)]).is_quiet();
    talk.after(1000).sends([0]).ack(1).sends([1, 2]).ack(3).sends([3]).ack(4);
    assert_eq!(talk.stats().finished, Some(talk.now));
}
