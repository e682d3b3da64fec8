//! Tests of opening a TCP connection, limiting its rate, and ending it.

use equipoise_path::source::Content;

use super::*;
use crate::tcp::{Supply, TcpError};

fn with(supply: Supply) -> SenderConfig {
    SenderConfig { supply, ..bulk(LossRecovery::Sack) }
}

fn payloads(talk: &mut Talk) -> Vec<u64> {
    let sent = talk.out.drain(..);
    sent.filter_map(|segment| if let Segment::Data { payload, .. } = segment { Some(payload.as_bytes()) } else { None })
        .collect()
}

#[test]
fn a_handshake_goes_before_the_data_and_measures_the_first_round_trip() {
    let mut talk = Talk::new(SenderConfig { handshake: true, ..bulk(LossRecovery::Sack) }, Reno::new(3.0));
    assert_eq!(talk.out.drain(..).collect::<Vec<_>>(), [Segment::Syn]);
    talk.after(100).ack(0).is_quiet().hears(Segment::SynAck { window: 100 }).sends(0..3);
    assert_eq!(talk.stats().round_trip, Some(ms(100)));
    // A second SYN-ACK must be ignored.
    talk.hears(Segment::SynAck { window: 100 }).is_quiet();
}

/// After a lost SYN, data transmission starts with a retransmission timeout of 3 s (RFC 6298, Sec. 5.7) and a window of
/// one segment (RFC 5681, Sec. 3.1).
#[test]
fn a_lost_syn_costs_a_second_and_the_initial_window() {
    let mut talk = Talk::new(SenderConfig { handshake: true, ..bulk(LossRecovery::Sack) }, Reno::new(10.0));
    talk.after(999);
    assert_eq!(talk.out.drain(..).collect::<Vec<_>>(), [Segment::Syn]);
    talk.after(1);
    assert_eq!(talk.out.drain(..).collect::<Vec<_>>(), [Segment::Syn]);
    talk.after(1999).is_quiet().hears(Segment::SynAck { window: 100 }).sends([0]);
    assert_eq!((talk.stats().round_trip, talk.stats().window as u64), (None, 1));
    talk.after(2999).is_quiet().after(1).sends([0]);
}

#[test]
fn a_connection_opens_at_its_time() {
    let mut talk = Talk::new(SenderConfig { start: Time::ZERO + ms(50), ..bulk(LossRecovery::Sack) }, Reno::new(2.0));
    talk.after(49).is_quiet().after(1).sends([0, 1]);
}

#[test]
fn a_transfer_ends_with_a_short_segment_and_says_when() {
    let mut talk = Talk::new(with(Supply::Transfer(Size::from_bytes(2 * FULL + 1))), Reno::new(10.0));
    assert_eq!(payloads(&mut talk), [FULL, FULL, 1]);
    talk.after(100).ack(2).is_quiet();
    assert_eq!(talk.stats().finished, None);
    talk.after(100).ack(3).after(10_000).is_quiet();
    assert_eq!(talk.stats().finished, Some(Time::ZERO + ms(200)));
    // The retransmission of a short segment must also be short.
    let mut talk = Talk::new(with(Supply::Transfer(Size::from_bytes(FULL + 7))), Reno::new(10.0));
    talk.after(1000).ack(1);
    assert_eq!(payloads(&mut talk), [FULL, 7, FULL, 7]);
}

#[test]
fn a_transfer_of_nothing_is_finished_when_the_connection_is_open() {
    for handshake in [false, true] {
        let config = SenderConfig { handshake, ..with(Supply::Transfer(Size::ZERO)) };
        let mut talk = Talk::new(config, Reno::new(10.0));
        talk.out.clear();
        talk.after(100).hears(Segment::SynAck { window: 9 }).after(1000).is_quiet();
        assert_eq!(talk.stats().finished, Some(Time::ZERO + ms(if handshake { 100 } else { 0 })));
    }
}

#[test]
fn a_stop_lets_what_is_under_way_come_to_its_end() {
    let config = SenderConfig { stop: Some(Time::ZERO + ms(50)), ..bulk(LossRecovery::Sack) };
    let mut talk = Talk::new(config, Reno::new(4.0));
    talk.sends(0..4).after(100).ack(2).is_quiet();
    assert_eq!(talk.stats().finished, None);
    // Segments 2 and 3 are lost. The timer expires 1 s after the last acknowledgement, and segment 2 is retransmitted.
    // When segment 2 is acknowledged, segment 3 is retransmitted.
    talk.after(1000).sends([2]).after(100).ack(3).sends([3]).after(100).ack(4).is_quiet();
    assert_eq!(talk.stats().finished, Some(talk.now));
    assert_eq!(talk.sender.wake().filter(|wake| *wake <= talk.now), None);
}

#[test]
fn a_stop_before_the_start_leaves_the_connection_closed() {
    let config = SenderConfig { handshake: true, start: Time::ZERO + ms(500), ..bulk(LossRecovery::Sack) };
    let mut talk = Talk::new(SenderConfig { stop: Some(Time::ZERO + ms(100)), ..config }, Reno::new(4.0));
    talk.after(10_000).is_quiet();
    assert_eq!(talk.sender.wake(), None);
}

#[test]
fn the_receivers_window_limits_what_is_under_way() {
    let law = Fixed::new(100.0, 50.0);
    let mut talk = Talk::new(SenderConfig { handshake: true, ..bulk(LossRecovery::Sack) }, law.clone());
    talk.out.clear();
    talk.after(100).hears(Segment::SynAck { window: 4 }).sends(0..4).after(100);
    let ack = |next, window| Segment::Ack(Ack { next, window, sacked: SackBlocks::NONE });
    talk.hears(ack(2, 4)).sends([4, 5]).hears(ack(2, 6)).sends([6, 7]);
    assert!(!law.acks()[0].window_limited, "the receiver held it back");
    // An acknowledgement that arrives after a newer one must not enlarge the receive window.
    talk.hears(ack(1, 100)).is_quiet();
}

/// RFC 9293, Sec. 3.8.6.1: the sender probes a closed receive window, because the acknowledgement that opens the window
/// may be lost.
#[test]
fn a_closed_window_is_probed_with_one_segment() {
    let mut talk = Talk::new(bulk(LossRecovery::Sack), Fixed::new(4.0, 2.0));
    let ack = |next, window| Segment::Ack(Ack { next, window, sacked: SackBlocks::NONE });
    talk.sends(0..4).after(100).hears(ack(4, 0)).sends([4]).after(1000).sends([4]).after(2000).sends([4]);
    talk.hears(ack(5, 9)).sends([5]);
}

/// RFC 5681, Sec. 4.1: an idle time longer than the retransmission timeout restarts the window. In this test, the
/// application supplies one segment every 2 s, and the timeout is 1 s.
#[test]
fn the_window_begins_anew_after_idleness_where_that_is_asked_for() {
    for (idle_restart, told) in [(true, vec![Told::Restart { window: 7.0 }; 2]), (false, vec![])] {
        let law = Fixed::new(7.0, 3.0);
        let config = SenderConfig { idle_restart, ..with(Supply::Rate(Rate::from_bps(4 * FULL))) };
        let mut talk = Talk::new(config, law.clone());
        for number in 0..3 {
            talk.after(if number == 0 { 2000 } else { 1900 }).sends([number]).after(100).ack(number + 1);
        }
        assert_eq!(law.news(), told);
    }
}

/// RFC 9438, Sec. 5.8: the congestion window must not grow while the application limits the rate.
#[test]
fn a_flow_that_its_application_limits_does_not_grow_its_window() {
    // The application sends 50 segments per second. The round-trip time is 110 ms, so five segments are in flight after
    // each acknowledgement.
    let mut talk = Talk::new(with(Supply::Rate(Rate::from_bps(50 * 8 * FULL))), Reno::new(10.0));
    talk.after(90);
    for number in 0..1000u64 {
        talk.after(20).ack(number);
    }
    assert!((talk.stats().window - 10.0).abs() < 1e-9, "{:?}", talk.stats());
    assert_eq!((talk.stats().in_flight, talk.stats().timeouts), (5, 0));
    // If more data is available than the window allows, the window must grow.
    let mut talk = Talk::new(with(Supply::Unlimited), Reno::new(10.0));
    talk.after(100).ack(1).ack(2);
    assert!((talk.stats().window - 12.0).abs() < 1e-9);
}

#[test]
fn a_pacer_spaces_the_window() {
    // At 1 Mbit/s a packet of 1500 bytes takes 12 ms.
    let law = Fixed { pacing: Some(Rate::from_bps(1_000_000)), ..Fixed::new(3.0, 2.0) };
    let mut talk = Talk::new(bulk(LossRecovery::Sack), law);
    talk.sends([0]).after(11).is_quiet().after(1).sends([1]).after(12).sends([2]).after(100).is_quiet();
}

#[test]
fn a_packet_without_room_for_data_is_refused() {
    let config = SenderConfig::new(Size::from_bytes(40));
    let error = Sender::new(config, Law::Window(Box::new(Reno::new(1.0)))).err();
    assert_eq!(error, Some(TcpError::NoPayload { packet: Size::from_bytes(40) }));
}

/// Content of four segments, one every 20 ms. The sender must wait until each segment is available. The fourth segment
/// ends the transfer.
#[test]
fn content_is_sent_as_it_comes_to_be_and_then_no_more() {
    let content = Content::constant(Rate::from_bps(600_000), PACKET, ms(80));
    let mut talk = Talk::new(with(Supply::Content(content)), Reno::new(10.0));
    talk.sends([0]).after(19).is_quiet().after(1).sends([1]).after(40).sends([2, 3]).after(40);
    talk.ack(3).is_quiet();
    assert_eq!(talk.stats().finished, None);
    talk.ack(4).after(1000).is_quiet();
    assert_eq!(talk.stats().finished, Some(Time::ZERO + ms(100)));
}
