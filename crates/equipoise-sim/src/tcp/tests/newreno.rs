//! Tests of loss recovery by duplicate acknowledgements (RFC 6582, RFC 5681, Sec. 3.2, RFC 3042).

use super::*;

const NEW_RENO: LossRecovery = LossRecovery::NewReno;

fn without_limited_transmit() -> SenderConfig {
    SenderConfig { limited_transmit: false, ..bulk(NEW_RENO) }
}

#[test]
fn one_lost_segment_is_sent_again_on_the_third_duplicate_and_recovery_ends_with_it() {
    let law = Fixed::new(10.0, 5.0);
    let mut talk = Talk::new(bulk(NEW_RENO), law.clone());
    talk.sends(0..10);
    // Segment 0 is lost, segments 1 to 9 arrive. The first two duplicate acknowledgements each allow a new segment.
    talk.after(100).ack(0).sends([10]).ack(0).sends([11]);
    talk.ack(0).sends([0]);
    assert_eq!(law.news(), [Told::Loss { in_flight: 10 }], "limited transmit does not count");
    // 12 segments are in flight, and each duplicate acknowledgement means that one segment has arrived. Therefore a
    // window of 5 segments allows new segments from the eighth duplicate acknowledgement on.
    for _ in 4..8 {
        talk.ack(0).is_quiet();
    }
    talk.ack(0).sends([12]).ack(0).sends([13]);
    // Segments 10 and 11 arrive, then the retransmitted segment 0.
    talk.after(100).ack(0).sends([14]).ack(0).sends([15]);
    talk.ack(12).sends([16]);
    assert_eq!((law.news().len(), law.acks().len()), (1, 0), "the end of recovery is no news to the law");
    talk.ack(14).sends([17, 18]);
    assert_eq!(law.acks().len(), 1);
    let stats = talk.stats();
    assert_eq!((stats.recoveries, stats.resent_in_recovery, stats.timeouts), (1, 1, 0));
}

#[test]
fn of_three_lost_segments_one_is_sent_again_each_round_trip() {
    let mut talk = Talk::new(without_limited_transmit(), Fixed::new(10.0, 5.0));
    talk.sends(0..10);
    // Segments 0, 3 and 6 are lost; the other seven segments arrive.
    talk.after(100).ack(0).ack(0).is_quiet().ack(0).sends([0]);
    talk.ack(0).ack(0).is_quiet().ack(0).sends([10]).ack(0).sends([11]);
    // A partial acknowledgement causes the retransmission of the next lost segment, and allows one new segment.
    talk.after(100).ack(3).sends([3, 12]).ack(3).sends([13]).ack(3).sends([14]);
    talk.after(100).ack(6).sends([6, 15]).ack(6).sends([16]).ack(6).sends([17]).ack(6).sends([18]);
    talk.after(100).ack(15).sends([19]);
    let stats = talk.stats();
    assert_eq!((stats.recoveries, stats.resent_in_recovery, stats.timeouts), (1, 3, 0));
}

/// RFC 6582, Sec. 4, the impatient variant: only the first partial acknowledgement restarts the retransmission timer.
#[test]
fn many_losses_in_a_window_end_in_a_timeout() {
    let mut talk = Talk::new(without_limited_transmit(), Fixed::new(10.0, 5.0));
    talk.sends(0..10);
    // The timer is set to 1 s at the fast retransmit, and again at the first partial acknowledgement. The second
    // partial acknowledgement does not restart the timer.
    talk.after(100).ack(0).ack(0).ack(0).sends([0]);
    talk.after(500).ack(1).sends([1]);
    talk.after(500).ack(2).sends([2]);
    talk.after(499).is_quiet();
    assert_eq!(talk.stats().timeouts, 0);
    talk.after(1).sends([2]);
    assert_eq!(talk.stats().timeouts, 1);
}

#[test]
fn without_limited_transmit_the_first_two_duplicates_let_nothing_out() {
    let mut talk = Talk::new(without_limited_transmit(), Fixed::new(4.0, 2.0));
    talk.sends(0..4).after(100).ack(0).ack(0).is_quiet().ack(0).sends([0, 4]);
}

#[test]
fn reordering_by_two_is_no_loss_and_by_three_one_that_is_over_at_once() {
    for (duplicates, recoveries) in [(1, 0), (2, 0), (3, 1)] {
        let mut talk = Talk::reno(NEW_RENO, 10.0);
        talk.sends(0..10).after(100);
        for _ in 0..duplicates {
            talk.ack(0);
        }
        talk.ack(duplicates + 1);
        assert_eq!(talk.stats().recoveries, recoveries, "{duplicates} duplicates");
        let next = talk.stats().in_flight + talk.stats().acknowledged;
        talk.ack(next);
        assert_eq!((talk.stats().timeouts, talk.stats().recoveries), (0, recoveries));
        assert_eq!(talk.stats().acknowledged, next);
    }
}

/// RFC 6582, Sec. 3.2, steps 2 and 4: duplicate acknowledgements caused by unnecessary retransmissions are not a sign
/// of loss.
#[test]
fn duplicates_after_a_timeout_are_no_sign_of_loss() {
    let law = Fixed::new(6.0, 3.0);
    let mut talk = Talk::new(bulk(NEW_RENO), law.clone());
    talk.sends(0..6);
    // Nothing is lost, but the acknowledgements arrive after the timeout of 1 s.
    talk.after(1000).sends([0]);
    for next in 1..6 {
        talk.ack(next).sends([next]);
    }
    talk.ack(6).sends([6]);
    // The retransmissions cause six duplicate acknowledgements. The first two each allow a new segment.
    talk.after(100).ack(6).sends([7]).ack(6).sends([8]);
    talk.ack(6).ack(6).ack(6).ack(6).is_quiet();
    assert_eq!(talk.stats().recoveries, 0);
    assert_eq!(law.news(), [Told::Timeout { in_flight: 6 }]);
    // After an acknowledgement beyond the retransmitted segments, three duplicate acknowledgements are a sign of loss
    // again.
    talk.ack(7).sends([]).ack(9).sends([9]).ack(9).ack(9).ack(9);
    assert_eq!(talk.stats().recoveries, 1);
}

#[test]
fn duplicates_behind_a_recovery_that_ended_exactly_are_no_sign_of_loss() {
    let mut talk = Talk::new(without_limited_transmit(), Fixed::new(8.0, 8.0));
    talk.sends(0..8).after(100).ack(0).ack(0).ack(0).sends([0, 8, 9, 10]);
    talk.after(100).ack(8).sends(11..16);
    talk.ack(8).ack(8).ack(8).is_quiet();
    assert_eq!(talk.stats().recoveries, 1);
}

/// An acknowledgement covers all segments before its number, even if earlier acknowledgements were lost.
#[test]
fn lost_acknowledgements_cost_nothing() {
    let law = Fixed::new(10.0, 5.0);
    let mut talk = Talk::new(bulk(NEW_RENO), law.clone());
    talk.sends(0..10).after(100).ack(9).sends(10..19);
    let ack = law.acks()[0];
    assert_eq!((ack.segments, ack.in_flight, ack.round_trip), (9, 10, Some(ms(100))));
    assert!(ack.window_limited);
    assert_eq!((talk.stats().timeouts, talk.stats().recoveries), (0, 0));
}

/// An acknowledgement that arrives after a newer one has no effect.
#[test]
fn acknowledgements_out_of_order_are_no_duplicates() {
    let mut talk = Talk::new(bulk(NEW_RENO), Fixed::new(10.0, 5.0));
    talk.sends(0..10).after(100).ack(6).sends(10..16);
    talk.ack(2).ack(3).ack(4).ack(5).is_quiet();
    assert_eq!(talk.stats().recoveries, 0);
}
