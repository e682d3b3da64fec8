//! Tests of surprising behaviour ("traps") of the DTLS library. Each trap has a number, which is in the name of its
//! test.

use super::*;
use crate::secure::association::Association;
use crate::secure::{Role, record};

/// An unencrypted handshake record that contains a message of type `kind`.
fn record(number: u64, kind: u8, message_number: u16, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    let header = [&[kind], &length[1..], &message_number.to_be_bytes(), &[0; 3], &length[1..]].concat();
    let mut record = vec![22, 254, 253];
    record.extend_from_slice(&number.to_be_bytes());
    record.extend_from_slice(&(header.len() as u16 + body.len() as u16).to_be_bytes());
    record.extend(header);
    record.extend_from_slice(body);
    record
}

/// An unencrypted alert record.
fn alert(level: u8, description: u8) -> Vec<u8> {
    vec![21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, level, description]
}

/// The first ClientHello of the active endpoint.
fn hello() -> Vec<u8> {
    let fingerprint = *Identity::generate().fingerprint();
    let config = PeerConfig { address: place(1), fingerprint, setup: Setup::Active };
    let mut end = DtlsSrtp::new(config, Identity::generate(), START).expect("a configuration");
    end.poll().expect("a first word").1
}

/// Trap 1: the DTLS library completes a handshake even if the certificate is wrong. The library also reports a
/// certificate before the peer has proved its possession of the private key. Therefore keys must not be available
/// before this proof.
#[test]
fn trap_1_keys_are_given_to_nobody_before_his_certificate_is_proved_and_is_the_right_one() {
    let mut seen = false;
    let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
        // The server's certificate arrives at the client. After that, no message of the client arrives at the server.
        seen |= end == 0 && bytes.len() > 500;
        if seen && end == 1 { Vec::new() } else { straight(end, bytes) }
    });
    ends.run(Span::from_secs(3));
    assert_eq!(ends.both[1].standing(), Standing::Opening, "the receiver has no proof of who is there");
    assert!(ends.both[1].keys().is_none());
}

/// Traps 3 and 8: the library exports keys only once per handshake. Therefore the keys must stay the same, however many
/// media packets are sent and however much time passes.
#[test]
fn traps_3_and_8_media_of_any_length_leaves_the_association_as_it_is() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    ends.run(Span::from_secs(3));
    let before = ends.both[0].keys().map(|keys| keys.material().to_vec());
    let sent = ends.sent;
    for sequence in 0..20_000 {
        assert!(ends.passes(sequence % 2, &media(7, sequence as u16)));
    }
    ends.run(Span::from_secs(3600));
    assert_eq!(ends.sent, sent, "DTLS has nothing to say");
    assert_eq!(ends.both[0].keys().map(|keys| keys.material().to_vec()), before);
    assert!(ends.passes(0, &media(7, 20_001)));
}

/// Trap 4: a handshake of the library yields only one set of keys. A second handshake must yield different keys.
#[test]
fn trap_4_each_handshake_has_keys_of_its_own() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    let first = ends.both[1].keys().map(|keys| keys.material().to_vec());
    restart(&mut ends);
    ends.run(Span::from_secs(1));
    assert!(ends.are_open());
    assert_ne!(ends.both[1].keys().map(|keys| keys.material().to_vec()), first);
}

/// Restarts the active endpoint at the same port.
fn restart<F: FnMut(usize, &[u8]) -> Copies>(ends: &mut Ends<F>) {
    let config =
        PeerConfig { address: place(1), fingerprint: *ends.both[1].identity().fingerprint(), setup: Setup::Active };
    let identity = ends.both[0].identity().clone();
    ends.both[0] = DtlsSrtp::new(config, identity, ends.now).expect("a configuration");
}

/// Trap 6: the library must be told the current time before each datagram.
#[test]
fn trap_6_who_never_calls_a_timer_opens_all_the_same() {
    let identities = [Identity::generate(), Identity::generate()];
    let mut ends = [Role::Client, Role::Server]
        .map(|role| Association::foreign(role, &identities[usize::from(role == Role::Server)], START));
    let (mut now, mut done) = (START, [false; 2]);
    for turn in 0..40 {
        now = now + Span::from_millis(5);
        let mut said = Vec::new();
        while let Some(step) = ends[turn % 2].poll() {
            match step {
                crate::secure::association::Step::Carry(bytes) => said.push(bytes.to_vec()),
                crate::secure::association::Step::Done(..) => done[turn % 2] = true,
            }
        }
        for bytes in &said {
            ends[1 - turn % 2].handle(now, bytes);
        }
    }
    assert_eq!(done, [true; 2]);
}

/// Trap 7: an open instance of the library does not notice that its peer was restarted.
#[test]
fn trap_7_a_peer_that_is_started_again_opens_beside_the_session_that_there_is() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    let mut late = Vec::new();
    ends.both[0].protect(&media(7, 1), &mut late).expect("it is open");
    restart(&mut ends);
    let began = ends.now;
    while !ends.are_open() && ends.now < began + Span::from_secs(2) {
        ends.run(Span::from_millis(1));
        if !ends.are_open() {
            assert!(
                ends.both[1].protect(&report(9), &mut Vec::new()).is_ok(),
                "the old keys serve until there are others"
            );
        }
    }
    assert!(ends.now - began < WAY * 6, "{}", ends.now - began);
    let (mut plain, now) = (Vec::new(), ends.now);
    assert_eq!(ends.both[1].handle(now, place(0), &late, &mut plain), Arrival::Rtp, "a late packet of the old keys");
    assert!(ends.passes(0, &media(7, 1)) && ends.passes(1, &media(9, 1)));
    ends.run(Span::from_secs(6));
    let now = ends.now;
    assert!(matches!(ends.both[1].handle(now, place(0), &late, &mut plain), Arrival::Ignored(_)));
}

/// Trap 9: in the DTLS library, a cookie is bound to an instance of the library, and not to the address of the client.
/// An instance must not accept the cookie of another instance.
#[test]
fn trap_9_a_cookie_is_good_at_the_instance_that_gave_it_alone() {
    let words = std::cell::RefCell::new(Vec::new());
    let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
        if end == 1 {
            words.borrow_mut().push(bytes.to_vec());
        }
        straight(end, bytes)
    });
    ends.open(Span::from_secs(2)).expect("it opens");
    let words = words.borrow().clone();
    let identity = ends.both[1].identity().clone();
    let config =
        PeerConfig { address: place(0), fingerprint: *ends.both[0].identity().fingerprint(), setup: Setup::Passive };
    let mut fresh = DtlsSrtp::new(config, identity, START).expect("a configuration");
    let mut plain = Vec::new();
    for word in words.iter().chain(&words) {
        fresh.handle(START, place(0), word, &mut plain);
        while let Some((_, answer)) = fresh.poll() {
            assert!(record::asks_for_cookie(&answer), "it goes on with one who has not its cookie");
        }
    }
    assert_eq!(fresh.standing(), Standing::Opening);
}

/// Trap 10: the cipher suites with pre-shared keys have no forward secrecy, so they must not be offered.
#[test]
fn trap_10_no_suite_without_forward_secrecy_is_offered() {
    let hello = hello();
    // After the headers, a ClientHello has the fields version, random, session and cookie. The cipher suites follow.
    let mut at = 13 + 12 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 1 + usize::from(hello[at]);
    let length = usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    let suites: Vec<_> =
        hello[at + 2..at + 2 + length].chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
    // The permitted suites are those of TLS 1.3, and those with ECDHE and ECDSA (RFC 5289, RFC 7905, RFC 7251).
    let is_fit = |suite: &u16| matches!(suite, 0x1301..=0x1305 | 0xC02B | 0xC02C | 0xCCA9 | 0xC0AC..=0xC0AF);
    assert!(suites.len() >= 3 && suites.iter().all(is_fit), "{suites:04x?}");
}

/// Trap 12: the library is new, and its releases fix errors. The version is pinned, so that each update is deliberate.
#[test]
fn trap_12_the_librarys_version_is_pinned() {
    assert!(include_str!("../../../Cargo.toml").contains("dimpl = { version = \"=0."));
}

/// If this test fails, anybody can prevent a handshake: an unencrypted alert ends an instance of the library, although
/// the alert is not authenticated.
#[test]
fn alerts_in_the_clear_disturb_no_opening() {
    for (level, description) in [(2, 40), (1, 0), (2, 0)] {
        let mut ends = Ends::new(|_: usize, bytes: &[u8]| {
            let disturbed = [&alert(level, description), bytes].concat();
            [alert(level, description), disturbed, [bytes, &alert(level, description)].concat()]
                .map(|bytes| (Span::ZERO, bytes))
                .to_vec()
        });
        assert!(ends.open(Span::from_millis(100)).is_some(), "alert {description}");
        assert!(ends.passes(0, &media(7, 1)));
    }
}

/// If this test fails, anybody can prevent a handshake: about thirty invalid records permanently fill the queue of an
/// instance of the library. Such an instance must be replaced by a new one.
#[test]
fn an_opening_that_was_disturbed_is_begun_anew() {
    let noise = |kind: u8| (0..40).map(move |at| (Span::ZERO, record(at, kind, at as u16 + 1, &[at as u8; 20])));
    // For some time, the invalid records are sent to the client, the server, or both. They contain messages that a
    // server sends, messages that a client sends, or messages of an unknown type.
    for (victim, kind) in [(0, 2), (0, 11), (0, 3), (1, 11), (1, 1), (2, 20), (2, 99)] {
        let mut count = 0;
        let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
            count += 1;
            let mut copies: Copies = Vec::new();
            if count < 6 && (victim == 2 || victim == end) {
                copies.extend(noise(kind));
            }
            copies.push((Span::ZERO, bytes.to_vec()));
            copies
        });
        assert!(ends.open(Span::from_secs(12)).is_some(), "{victim} by {kind}: {:?}", ends.both[0].trouble());
    }
}

/// The DTLS library's client accepts the first cookie request that it receives, even a forged one. If this test fails,
/// a forged cookie request prevents a handshake.
#[test]
fn a_forged_request_for_a_cookie_delays_an_opening_and_does_not_prevent_it() {
    let mut is_first = true;
    let mut ends = Ends::new(|end: usize, bytes: &[u8]| {
        let mut copies: Copies = Vec::new();
        if end == 0 && std::mem::take(&mut is_first) {
            copies.push((Span::ZERO, record(0, 3, 0, &[254, 255, 4, 1, 2, 3, 4])));
        }
        copies.push((Span::ZERO, bytes.to_vec()));
        copies
    });
    assert!(ends.open(Span::from_secs(12)).is_some(), "{:?}", ends.both[0].trouble());
}

#[test]
fn noise_does_no_harm_to_a_session_that_is_open() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    let (now, mut plain) = (ends.now, Vec::new());
    let mut noise: Vec<_> = (0..40).map(|at| record(at, (at % 25) as u8, at as u16, &[at as u8; 60])).collect();
    noise.extend([alert(2, 40), alert(1, 0), hello(), vec![22; 50], vec![63; 50], vec![20], vec![23; 13]]);
    for bytes in &noise {
        for end in 0..2 {
            ends.both[end].handle(now, place(1 - end), bytes, &mut plain);
        }
    }
    ends.run(Span::from_secs(20));
    for end in 0..2 {
        assert!(matches!(ends.both[end].standing(), Standing::Open(_)));
        assert!(ends.passes(end, &media(7, 1)));
        assert_eq!(ends.both[end].half_open(), 0);
    }
}
