use equipoise::units::Span;
use equipoise_net::{Clock, NetError, Socket, TimestampSource};
use equipoise_session::Transmit;

use super::{any_port, receive, socket};

/// If this test fails, a stall of the reader lengthens the measured delays.
#[test]
fn arrivals_are_stamped_by_the_kernel_when_they_come_and_not_when_they_are_read() {
    let clock = Clock::new();
    let (mut from, mut to) = (socket(&clock), socket(&clock));
    assert_eq!(to.timestamps(), TimestampSource::Kernel);
    let mut sent = Vec::new();
    for number in 0..200_u8 {
        let before = clock.now();
        from.send_to(to.address(), &Transmit { media: 100, ..Transmit::datagram(&[number]) }).unwrap();
        sent.push((before, clock.now()));
    }
    clock.sleep_until(clock.now() + Span::from_millis(30));
    let received = receive(&mut to, 200);
    assert_eq!(received.len(), 200);
    assert!(received.is_sorted_by_key(|(received, _)| received.at));
    // On the loopback interface, a datagram is delivered during the call that sends it. The kernel's timestamp is
    // converted from the wall clock to the test's clock, with a small error.
    let error = Span::from_micros(500);
    for ((received, payload), (before, after)) in received.iter().zip(&sent) {
        assert!(received.at >= *before - error && received.at <= *after + error, "{received:?} {before:?} {after:?}");
        assert_eq!((received.from, payload.len()), (from.address(), 101));
    }
}

#[test]
fn media_follows_the_head_as_zeros() {
    let clock = Clock::new();
    let (mut from, mut to) = (socket(&clock), socket(&clock));
    from.send_to(to.address(), &Transmit { media: 6, ..Transmit::datagram(b"head") }).unwrap();
    let received = receive(&mut to, 1);
    assert_eq!(received[0].1, b"head\0\0\0\0\0\0");
    assert_eq!(to.recv(&mut [0; 10]).unwrap(), None);
}

#[test]
fn a_peer_that_is_not_there_is_no_error() {
    let clock = Clock::new();
    let gone = Socket::bind(any_port(), &clock).unwrap().address();
    let mut from = socket(&clock);
    for _ in 0..3 {
        from.send_to(gone, &Transmit::datagram(b"anybody?")).unwrap();
        assert_eq!(from.recv(&mut [0; 10]).unwrap(), None);
    }
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let clock = Clock::new();
    let holder = Socket::bind(any_port(), &clock).unwrap();
    let error = Socket::bind(holder.address(), &clock).unwrap_err();
    assert!(matches!(error, NetError::PortInUse { address } if address == holder.address()), "{error:?}");
    assert!(error.to_string().contains("choose another port"), "{error}");
}

#[test]
fn an_address_of_another_host_is_no_port_in_use() {
    // An address that is reserved for documentation, so that no host has it (RFC 5737).
    let error = Socket::bind("192.0.2.1:0".parse().unwrap(), &Clock::new()).unwrap_err();
    assert!(matches!(error, NetError::Bind { .. }), "{error:?}");
}

#[test]
fn a_datagram_too_long_for_udp_is_refused_by_name() {
    let clock = Clock::new();
    let mut from = socket(&clock);
    for (head, media) in [(1, 65_507), (0, 65_508), (0, usize::MAX)] {
        let bytes = vec![0; head];
        let error = from.send_to(from.address(), &Transmit { media, ..Transmit::datagram(&bytes) }).unwrap_err();
        assert!(matches!(error, NetError::Send { length, .. } if length == head.saturating_add(media)), "{error:?}");
    }
    assert_eq!(from.stats().unsent, 3);
}

#[test]
fn an_address_that_no_datagram_reaches_is_refused_by_name() {
    let mut from = socket(&Clock::new());
    for nowhere in ["127.0.0.1:0", "[::1]:9"] {
        let error = from.send_to(nowhere.parse().unwrap(), &Transmit::datagram(b"anybody?")).unwrap_err();
        assert!(matches!(error, NetError::Send { peer, .. } if peer.to_string() == nowhere), "{error:?}");
    }
    assert_eq!(from.stats().unsent, 2);
}
