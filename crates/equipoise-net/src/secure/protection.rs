use equipoise_session::wire::is_rtcp;
use rtc_crypto::providers::RingCrypto;
use rtc_srtp::context::Context;
use rtc_srtp::option::{srtcp_replay_protection, srtp_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;

use super::Key;
use super::key::Nonce;

/// What is done to every datagram of a session.
pub(crate) enum Protection {
    /// Nothing: anybody may read and forge.
    None,
    /// SRTP and SRTCP with AES-GCM (RFC 3711, RFC 7714).
    Srtp(Box<Contexts>),
}

pub(crate) struct Contexts {
    outward: Context,
    inward: Context,
}

/// Which end of the session this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It sends media.
    Sender,
    /// It receives media.
    Receiver,
}

/// Packets that may overtake each other and still be told from replays. Ours: what [`SequenceTracker`] tells apart.
///
/// [`SequenceTracker`]: equipoise::measure::SequenceTracker
const REPLAY_WINDOW: usize = 1024;

impl Protection {
    /// Bytes that AES-GCM adds to an RTP packet (RFC 7714, Sec. 13.2).
    pub(crate) const OVERHEAD: u64 = 16;

    /// Keys for the session between a sender and a receiver who drew these numbers.
    pub(crate) fn new(key: &Key, role: Role, sender: &Nonce, receiver: &Nonce) -> Self {
        let keys = key.session(sender, receiver);
        let context = |(key, salt): ([u8; 16], [u8; 12])| {
            let replay = (srtp_replay_protection(REPLAY_WINDOW), srtcp_replay_protection(REPLAY_WINDOW));
            let profile = ProtectionProfile::AeadAes128Gcm;
            let context = Context::new(&key, &salt, profile, Some(replay.0), Some(replay.1), &RingCrypto);
            // Its only errors are keys and salts of another length, and a provider without AES-GCM.
            context.unwrap_or_else(|error| unreachable!("AES-128-GCM with its own lengths: {error}"))
        };
        let (to_receiver, to_sender) = (context(keys.to_receiver), context(keys.to_sender));
        let (outward, inward) = match role {
            Role::Sender => (to_receiver, to_sender),
            Role::Receiver => (to_sender, to_receiver),
        };
        Self::Srtp(Box::new(Contexts { outward, inward }))
    }

    /// Puts the protected form of `datagram` into `out`. False where it cannot be protected, which is not to be sent then.
    pub(crate) fn protect(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let Self::Srtp(contexts) = self else {
            out.extend_from_slice(datagram);
            return true;
        };
        let context = &mut contexts.outward;
        let protected = if is_rtcp(datagram) { context.encrypt_rtcp(datagram) } else { context.encrypt_rtp(datagram) };
        protected.map(|bytes| out.extend_from_slice(&bytes)).is_ok()
    }

    /// Puts what `datagram` protects into `out`. False where it is forged, damaged or was seen before.
    ///
    /// `ssrc` is the only source that is looked at: the library remembers something of every source.
    pub(crate) fn unprotect(&mut self, datagram: &[u8], ssrc: u32, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Self::Srtp(contexts) = self else {
            out.extend_from_slice(datagram);
            return true;
        };
        if source_of(datagram) != Some(ssrc) {
            return false;
        }
        let context = &mut contexts.inward;
        let plain = if is_rtcp(datagram) { context.decrypt_rtcp(datagram) } else { context.decrypt_rtp(datagram) };
        plain.map(|bytes| out.extend_from_slice(&bytes)).is_ok()
    }
}

/// The source that an RTP or RTCP datagram names in the clear (RFC 3711, Sec. 3.1, 3.4).
pub(crate) fn source_of(datagram: &[u8]) -> Option<u32> {
    let at = if is_rtcp(datagram) { 4 } else { 8 };
    Some(u32::from_be_bytes(datagram.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSRC: u32 = 0x0102_0304;

    fn ends() -> (Protection, Protection) {
        let key = Key::new(b"0123456789abcdef").expect("long enough");
        let end = |role| Protection::new(&key, role, &[1; 16], &[2; 16]);
        (end(Role::Sender), end(Role::Receiver))
    }

    fn media(sequence: u16) -> Vec<u8> {
        let mut packet = vec![0x80, 96];
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 1]);
        packet.extend_from_slice(&SSRC.to_be_bytes());
        packet.extend_from_slice(b"secret media");
        packet
    }

    fn report() -> Vec<u8> {
        let mut report = vec![0x80, 201, 0, 1];
        report.extend_from_slice(&SSRC.to_be_bytes());
        report
    }

    #[test]
    fn what_is_protected_comes_back_once_and_shows_no_media() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        for datagram in [media(65_535), media(0), report(), media(2), media(1)] {
            assert!(sender.protect(&datagram, &mut wire));
            assert!(!wire.windows(6).any(|window| window == b"secret"));
            assert!(receiver.unprotect(&wire, SSRC, &mut plain));
            assert_eq!(plain, datagram);
            assert!(!receiver.unprotect(&wire, SSRC, &mut plain), "a replay");
        }
    }

    #[test]
    fn media_grows_by_the_overhead_that_is_stated() {
        let (mut sender, _) = ends();
        let mut wire = Vec::new();
        sender.protect(&media(7), &mut wire);
        assert_eq!(wire.len() as u64, media(7).len() as u64 + Protection::OVERHEAD);
    }

    #[test]
    fn a_changed_byte_anywhere_is_noticed_and_the_true_packet_is_still_taken() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        for datagram in [media(7), report()] {
            sender.protect(&datagram, &mut wire);
            for at in 0..wire.len() {
                let mut changed = wire.clone();
                changed[at] ^= 0x40;
                assert!(!receiver.unprotect(&changed, SSRC, &mut plain), "byte {at}");
            }
            assert!(receiver.unprotect(&wire, SSRC, &mut plain));
        }
    }

    #[test]
    fn the_other_direction_and_other_sessions_have_other_keys() {
        let (mut sender, _) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        sender.protect(&media(7), &mut wire);
        let (mut same_end, _) = ends();
        assert!(!same_end.unprotect(&wire, SSRC, &mut plain), "reflected");
        let key = Key::new(b"0123456789abcdef").expect("long enough");
        let mut later = Protection::new(&key, Role::Receiver, &[1; 16], &[3; 16]);
        assert!(!later.unprotect(&wire, SSRC, &mut plain), "replayed to a receiver that was started anew");
    }

    #[test]
    fn short_and_foreign_datagrams_do_no_harm() {
        let (_, mut receiver) = ends();
        let mut plain = Vec::new();
        for length in 0..40 {
            for first in [0x80, 0x90, 0xBF] {
                let mut datagram = vec![0xFF; length];
                datagram.iter_mut().take(1).for_each(|byte| *byte = first);
                assert!(!receiver.unprotect(&datagram, u32::MAX, &mut plain));
            }
        }
    }
}
