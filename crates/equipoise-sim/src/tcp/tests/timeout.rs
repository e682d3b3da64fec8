//! Tests of the retransmission timer (RFC 6298), and of the sender's reaction when the timer expires.

use super::*;
use crate::tcp::Supply;

const BOTH: [LossRecovery; 2] = [LossRecovery::NewReno, LossRecovery::Sack];

/// RFC 6298, Sec. 2.1, 2.5, 5.5: the first timeout is 1 s. It doubles each time the timer expires, up to a minute.
#[test]
fn the_timeout_doubles_up_to_a_minute_and_the_law_hears_of_it_once() {
    for recovery in BOTH {
        let law = Fixed::new(2.0, 2.0);
        let mut talk = Talk::new(bulk(recovery), law.clone());
        talk.sends([0, 1]);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            talk.after(1000 * seconds - 1).is_quiet().after(1).sends([0]);
        }
        assert_eq!(talk.stats().timeouts, 9);
        assert_eq!(law.news(), [Told::Timeout { in_flight: 2 }]);
    }
}

/// Karn 1987 (RFC 6298, Sec. 3 and 5): the acknowledgement of a retransmission does not measure the round-trip time,
/// so the timeout stays doubled.
#[test]
fn a_retransmission_measures_no_round_trip_and_the_timeout_stays_doubled() {
    for recovery in BOTH {
        let mut talk = Talk::new(bulk(recovery), Fixed::new(1.0, 1.0));
        talk.sends([0]).after(1000).sends([0]).after(50).ack(1).sends([1]);
        assert_eq!(talk.stats().round_trip, None);
        talk.after(1999).is_quiet().after(1).sends([1]).after(10).ack(2).sends([2]);
        // Segment 2 is the first segment that was sent only once. Its round-trip time of 80 ms would result in a
        // timeout of 80 ms + 4 · 40 ms, but the minimum is 1 s.
        talk.after(80).ack(3).sends([3]);
        assert_eq!(talk.stats().round_trip, Some(ms(80)));
        talk.after(999).is_quiet().after(1).sends([3]);
    }
}

/// RFC 6298, Sec. 2.2, 2.3: `RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|`, `SRTT = 7/8 SRTT + 1/8 R`, `RTO = SRTT + 4 RTTVAR`.
/// `R` is the measured round-trip time, `SRTT` its mean, `RTTVAR` its variation, and `RTO` the timeout.
#[test]
fn the_timeout_follows_mean_and_variation_of_the_round_trips() {
    let config = SenderConfig { min_rto: ms(10), ..bulk(LossRecovery::Sack) };
    // Expected timeouts in ms: 100 + 4 * 50 after a round-trip time of 100 ms; 100 + 4 * 37.5 after a second one of 100
    // ms; 110 + 4 * (28.125 + 20) after a third one of 180 ms.
    for (round_trips, timeout) in [(&[100][..], 300.0), (&[100, 100], 250.0), (&[100, 100, 180], 302.5)] {
        let mut talk = Talk::new(config.clone(), Fixed::new(1.0, 1.0));
        for (number, round_trip) in round_trips.iter().enumerate() {
            talk.sends([number as u64]).after(*round_trip).ack(number as u64 + 1);
        }
        talk.sends([round_trips.len() as u64]);
        let mut found: f64 = 0.0;
        while talk.stats().timeouts == 0 && found < 1000.0 {
            found += 1.0;
            talk.is_quiet().after(1);
        }
        assert!((found - timeout).abs() < 1.0, "{round_trips:?}: {found} ms, not {timeout}");
    }
}

/// RFC 6298, Sec. 5.3: an acknowledgement of new segments restarts the retransmission timer, a duplicate
/// acknowledgement does not.
#[test]
fn progress_puts_the_timer_off() {
    let mut talk = Talk::new(bulk(LossRecovery::NewReno), Fixed::new(3.0, 3.0));
    talk.sends(0..3).after(600).ack(1).sends([3]).after(600).ack(1).sends([4]).after(400);
    // The first acknowledgement gives a round-trip time of 600 ms. The timer expires 600 + 4 * 300 ms after this
    // acknowledgement. The second acknowledgement is a duplicate and does not restart the timer.
    talk.is_quiet().after(799).is_quiet().after(1).sends([1]);
}

/// RFC 5681, Sec. 3.1: a timeout sets the slow start threshold to half of the data in flight.
#[test]
fn after_a_timeout_what_was_lost_is_sent_again_in_slow_start() {
    for recovery in BOTH {
        let mut talk = Talk::reno(recovery, 8.0);
        talk.sends(0..8).after(1000).sends([0]);
        assert_eq!((talk.stats().window as u64, talk.stats().slow_start_threshold), (1, Some(4.0)));
        talk.after(100).ack(1).sends([1, 2]).after(100).ack(2).sends([3, 4]).ack(3).sends([5, 6]);
        // The window has reached the slow start threshold of four segments, so each acknowledgement adds a quarter of a
        // segment.
        talk.after(100).ack(4).sends([7]).ack(5).sends([8]).ack(6).sends([9]);
        assert_eq!(talk.stats().resent_after_timeout, 8);
        assert_eq!((talk.stats().timeouts, talk.stats().recoveries), (1, 0));
    }
}

/// If new segments were acknowledged between two timeouts, the second timeout is for another segment. Therefore the
/// window law must also learn of the second timeout (RFC 5681, Sec. 3.1).
#[test]
fn the_law_hears_of_a_timeout_again_after_progress() {
    let law = Fixed::new(4.0, 2.0);
    let mut talk = Talk::new(bulk(LossRecovery::Sack), law.clone());
    talk.sends(0..4).after(1000).sends([0]).after(50).ack(1).sends([1]).after(2000).sends([1]).after(4000).sends([1]);
    assert_eq!(law.news(), [Told::Timeout { in_flight: 4 }, Told::Timeout { in_flight: 1 }]);
}

/// RFC 6298, Sec. 5.2: if no segments are in flight, the retransmission timer is off.
#[test]
fn with_all_acknowledged_no_timer_runs() {
    let supply = Supply::Transfer(Size::from_bytes(2 * FULL));
    let mut talk = Talk::new(SenderConfig { supply, ..bulk(LossRecovery::Sack) }, Fixed::new(4.0, 2.0));
    talk.sends([0, 1]).after(100).ack(2).after(100_000).is_quiet();
    assert_eq!((talk.stats().timeouts, talk.sender.wake()), (0, None));
}
