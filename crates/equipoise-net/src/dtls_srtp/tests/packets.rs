//! Tests of protecting packets with the keys of a handshake.

use equipoise_session::DropReason;

use super::super::srtp::Srtp;
use super::*;
use crate::secure::{Keys, Role};

const SSRC: u32 = 7;

fn srtp() -> [Srtp; 2] {
    [Role::Client, Role::Server].map(|role| Srtp::new(Keys::of(1), role))
}

/// If this test fails, a restarted encoder or a repeated packet uses a sequence number twice. A repeated number
/// reveals the contents of the packets and, with AES-GCM, the authentication key.
#[test]
fn a_number_is_protected_once() {
    let [mut sender, mut receiver] = srtp();
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    for sequence in [100, 101, 103, 102, 1123] {
        assert_eq!(sender.protect(&media(SSRC, sequence), &mut wire), Ok(()));
        assert_eq!(wire[2..4], sequence.to_be_bytes(), "plain SRTP: the number is the packet's own");
        assert_eq!((receiver.unprotect(&wire, &mut plain), &plain), (Ok(()), &media(SSRC, sequence)));
    }
    // The sequence numbers 100, 103 and 1123 were used. 1123 is the newest one. The sender does not remember whether 99
    // and 0 were used, because 1123 exceeds both numbers by more than 1023. The last number of the list differs from
    // 1123 by 32768, so it could be older or newer than 1123.
    for sequence in [100, 103, 1123, 99, 0, 1123 + (1 << 15)] {
        let repeated = ProtectError::Repeated { ssrc: SSRC, sequence };
        assert_eq!(sender.protect(&media(SSRC, sequence), &mut wire), Err(repeated));
        assert!(wire.is_empty());
    }
    // A packet of another source has another nonce. Therefore, it may have a sequence number that was already used.
    assert_eq!(sender.protect(&media(SSRC + 1, 100), &mut wire), Ok(()));
}

#[test]
fn numbers_go_on_over_the_cycles() {
    let [mut sender, mut receiver] = srtp();
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    for sequence in 60_000..200_000u32 {
        let packet = media(SSRC, sequence as u16);
        assert_eq!(sender.protect(&packet, &mut wire), Ok(()));
        assert_eq!((receiver.unprotect(&wire, &mut plain), &plain), (Ok(()), &packet));
        if sequence % 1000 == 0 {
            assert_eq!(receiver.unprotect(&wire, &mut plain), Err(DropReason::Duplicate));
        }
    }
}

/// If this test fails, packets with forged sources fill the memory, or move the replay window beyond the numbers of
/// packets that are still to arrive.
#[test]
fn what_is_forged_leaves_nothing() {
    let [mut sender, mut receiver] = srtp();
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    let mut stranger = Srtp::new(Keys::of(9), Role::Client);
    for ssrc in 0..60 {
        for packet in [media(ssrc, 40_000), report(ssrc)] {
            assert_eq!(stranger.protect(&packet, &mut wire), Ok(()));
            assert_eq!(receiver.unprotect(&wire, &mut plain), Err(DropReason::Forged));
        }
    }
    assert_eq!(receiver.sources(), 0);
    for ssrc in 0..64 {
        for packet in [media(ssrc, 1), report(ssrc)] {
            assert_eq!(sender.protect(&packet, &mut wire), Ok(()));
            assert_eq!(receiver.unprotect(&wire, &mut plain), Ok(()), "source {ssrc}");
            assert_eq!(plain, packet);
        }
    }
    // The real peer may have up to the maximum number of sources, despite the forged packets before.
    assert_eq!(sender.protect(&media(64, 1), &mut wire), Err(ProtectError::Sources));
    assert_eq!(receiver.sources(), MAX_SOURCES);
}

#[test]
fn a_changed_byte_anywhere_is_noticed_and_no_length_does_harm() {
    let [mut sender, mut receiver] = srtp();
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    for packet in [media(SSRC, 1), report(SSRC)] {
        assert_eq!(sender.protect(&packet, &mut wire), Ok(()));
        for at in 0..wire.len() {
            let mut changed = wire.clone();
            changed[at] ^= 0x40;
            assert!(receiver.unprotect(&changed, &mut plain).is_err() && plain.is_empty(), "byte {at}");
            assert!(receiver.unprotect(&wire[..at], &mut plain).is_err() && plain.is_empty(), "{at} bytes");
        }
        assert_eq!(receiver.unprotect(&wire, &mut plain), Ok(()));
        // If a packet is sent back to its sender, it must not be accepted as a packet of the peer.
        let mut reflected = Vec::new();
        assert!(sender.unprotect(&wire, &mut reflected).is_err());
    }
    for length in 0..12 {
        assert_eq!(sender.protect(&media(SSRC, 9)[..length], &mut wire), Err(ProtectError::Malformed));
    }
}

/// If this test fails, a restarted stream reuses sequence numbers. Two packets with the same number reveal the XOR of
/// their contents.
#[test]
fn of_a_stream_that_begins_anew_nothing_leaves_under_numbers_that_have_left() {
    let mut ends = Ends::new(straight);
    ends.open(Span::from_secs(2)).expect("it opens");
    let mut wire = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for sequence in (500..1500).chain(500..1600) {
        if ends.both[0].protect(&media(SSRC, sequence), &mut wire).is_ok() {
            assert!(seen.insert(sequence), "{sequence} left twice");
        }
    }
    assert_eq!(seen.len(), 1100);
}
