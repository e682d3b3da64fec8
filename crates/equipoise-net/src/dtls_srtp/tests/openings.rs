//! Tests that two endpoints agree on keys, and that attackers cannot prevent this.

use super::*;
use crate::secure::tests::bad_path;

#[test]
fn two_ends_open_by_dtls_1_3_and_packets_pass_both_ways() {
    let mut is_13 = false;
    let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
        // Encrypted DTLS 1.3 records have their own header format, with a first byte of 32 to 63 (RFC 9147, Sec. 4).
        is_13 |= (32..64).contains(&bytes[0]);
        straight(end, bytes)
    });
    let took = ends.open(Span::from_secs(2)).expect("it opens");
    assert!(took <= WAY * 5 + Span::from_millis(2), "{took}");
    for end in 0..2 {
        assert_eq!(ends.both[end].standing(), Standing::Open(Profile::Aes256Gcm));
        assert_eq!(ends.both[end].peer(), Some(place(1 - end)));
        for sequence in [65_534, 65_535, 0, 1] {
            assert!(ends.passes(end, &media(7, sequence)), "end {end}, {sequence}");
        }
        assert!(ends.passes(end, &report(8)));
    }
    drop(ends);
    assert!(is_13);
}

#[test]
fn loss_and_reordering_delay_an_opening_and_do_not_prevent_it() {
    let mut late = 0;
    for seed in 0..50 {
        let mut path = bad_path(seed);
        late += u32::from(Ends::new(|_, bytes: &[u8]| path(bytes)).open(Span::from_secs(5)).is_none());
    }
    assert!(late <= 1, "{late} of 50 took more than 5 s");
}

#[test]
fn who_has_another_certificate_is_nobody_and_that_is_said() {
    let mut ends = Ends::new(straight);
    let stranger = Identity::generate();
    let found = *stranger.fingerprint();
    let expected = *ends.both[1].identity().fingerprint();
    let config =
        PeerConfig { address: place(0), fingerprint: *ends.both[0].identity().fingerprint(), setup: Setup::Passive };
    ends.both[1] = DtlsSrtp::new(config, stranger, START).expect("a configuration");
    ends.run(Span::from_secs(5));
    assert_eq!(ends.both[0].standing(), Standing::Opening, "it goes on looking for the right one");
    match ends.both[0].trouble() {
        Some(HandshakeError::OtherCertificate { found: is, expected: was }) => {
            assert_eq!((*is, *was), (found, expected));
        }
        other => panic!("{other:?}"),
    }
    ends.run(Span::from_secs(60));
    assert_eq!((ends.both[0].standing(), ends.both[0].wake()), (Standing::Failed, None));
    // Here, the active endpoint has another certificate than the passive endpoint expects.
    let mut ends = Ends::new(straight);
    let config =
        PeerConfig { address: place(1), fingerprint: *ends.both[1].identity().fingerprint(), setup: Setup::Active };
    ends.both[0] = DtlsSrtp::new(config, Identity::generate(), START).expect("a configuration");
    ends.run(Span::from_secs(5));
    assert_eq!(ends.both[1].standing(), Standing::Opening);
    assert!(matches!(ends.both[1].trouble(), Some(HandshakeError::OtherCertificate { .. })));
}

#[test]
fn nobody_there_is_said_after_a_while() {
    let mut ends = Ends::new(|_: usize, _: &[u8]| Vec::new());
    ends.run(Span::from_secs(45));
    assert_eq!(ends.both[0].standing(), Standing::Failed);
    assert!(matches!(ends.both[0].trouble(), Some(HandshakeError::NoAnswer { alert: None })));
    assert_eq!(ends.both[0].poll(), None);
    assert!(ends.sent[0] < 150_000, "{} bytes to nobody", ends.sent[0]);
}

/// If this test fails, an attacker can make a receiver send large answers to any victim's address (amplification).
#[test]
fn a_first_word_is_answered_once_and_by_less_where_its_sender_may_be_somebody_else() {
    let mut hellos = Vec::new();
    let mut ends = Ends::new(|_: usize, bytes: &[u8]| {
        hellos.push(bytes.to_vec());
        Vec::new()
    });
    ends.run(Span::from_secs(1));
    let Ends { both: [_, mut receiver], now, .. } = ends;
    let (mut asked, mut answered, mut plain) = (0, 0, Vec::new());
    for hello in &hellos {
        asked += hello.len();
        receiver.handle(now, place(0), hello, &mut plain);
    }
    let mut at = now;
    for _ in 0..60_000 {
        at = at + Span::from_millis(1);
        receiver.on_timer(at);
        while let Some((to, answer)) = receiver.poll() {
            assert_eq!(to, place(0));
            answered += answer.len();
        }
    }
    assert!(hellos.len() > 2 && answered > 0 && answered < asked, "{answered} bytes for {asked}");
    assert_eq!((receiver.half_open(), receiver.wake()), (0, None), "and it is forgotten");
    // Datagrams from an unexpected address must be dropped.
    assert_eq!(
        receiver.handle(at, "198.51.100.7:5000".parse().expect("an address"), &hellos[0], &mut plain),
        Arrival::Ignored(equipoise_session::DropReason::Foreign)
    );
    assert_eq!((receiver.half_open(), receiver.poll()), (0, None));
}

/// If this test fails, a flood of ClientHello messages fills the memory, or removes the handshake of the real peer,
/// whose address is already verified.
#[test]
fn a_flood_of_first_words_is_bounded_and_pushes_out_nobody_who_is_there() {
    let held = std::cell::RefCell::new(Vec::new());
    let mut hold = false;
    let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
        // The answer to the second ClientHello and all later datagrams are held back.
        hold |= end == 0 && bytes.len() > 300;
        if hold {
            held.borrow_mut().push((end, bytes.to_vec()));
            return Vec::new();
        }
        straight(end, bytes)
    });
    ends.run(Span::from_millis(45));
    let flight = held.borrow().clone();
    assert!(flight.iter().any(|(end, _)| *end == 0), "its answer is in flight");
    let now = ends.now;
    let mut plain = Vec::new();
    let identity = Identity::generate();
    for port in 1..2000 {
        let fingerprint = *ends.both[1].identity().fingerprint();
        let config = PeerConfig { address: place(1), fingerprint, setup: Setup::Active };
        let mut other = DtlsSrtp::new(config, identity.clone(), now).expect("a configuration");
        let (_, hello) = other.poll().expect("a first word");
        let from = SocketAddr::new(place(0).ip(), 10_000 + port);
        ends.both[1].handle(now, from, &hello, &mut plain);
        while ends.both[1].poll().is_some() {}
    }
    assert!(ends.both[1].half_open() <= 33, "{}", ends.both[1].half_open());
    let Ends { both: [mut sender, mut receiver], .. } = ends;
    // The datagrams that were held back arrive.
    for (_, bytes) in flight.iter().filter(|(end, _)| *end == 0) {
        sender.handle(now, place(1), bytes, &mut plain);
    }
    while let Some((_, bytes)) = sender.poll() {
        receiver.handle(now, place(0), &bytes, &mut plain);
    }
    assert!(matches!(receiver.standing(), Standing::Open(_)), "{:?}", receiver.standing());
}

#[test]
fn who_closes_says_so_and_the_passive_end_can_be_opened_again() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    let now = ends.now;
    ends.both[0].close(now);
    ends.run(Span::from_secs(1));
    assert_eq!(ends.both.each_ref().map(DtlsSrtp::standing), [Standing::Closed; 2]);
    assert_eq!(ends.both[1].protect(&media(1, 1), &mut Vec::new()), Err(ProtectError::NotOpen));
    assert_eq!(ends.both.each_ref().map(DtlsSrtp::wake), [None; 2]);
    let config =
        PeerConfig { address: place(1), fingerprint: *ends.both[1].identity().fingerprint(), setup: Setup::Active };
    let identity = ends.both[0].identity().clone();
    ends.both[0] = DtlsSrtp::new(config, identity, now).expect("a configuration");
    assert!(ends.open(Span::from_secs(2)).is_some() && ends.passes(0, &media(1, 1)));
}
