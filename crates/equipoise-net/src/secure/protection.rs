use equipoise::measure::{Novelty, ReplayWindow};
use equipoise_session::wire::is_rtcp;
use rtc_srtp::context::Context;

use super::{Keys, Role};

/// Encryption and authentication of the datagrams of a session.
pub(crate) enum Protection {
    /// No protection: anybody can read and forge packets.
    None,
    /// SRTP and SRTCP with AES-GCM (RFC 3711, RFC 7714). Each RTP packet is encrypted inside an outer RTP packet.
    Srtp(Box<Contexts>),
}

/// The SRTP contexts for the packets that this endpoint sends and receives.
///
/// A media packet is encrypted inside an outer RTP packet. The encrypted part contains the sequence number and the
/// header extensions of the media packet, which contain its sending time and its path.
///
/// | bits | content | |
/// | --- | --- | --- |
/// | 8 | `0x80`: version 2, no padding, extension or contributors | not encrypted |
/// | 8 | marker and payload type of the media packet | |
/// | 16 | sequence number of the outer packet, counted from 0 for each key | |
/// | 32 | timestamp of the media packet | |
/// | 32 | SSRC of the media packet | |
/// | 8 | first byte of the media packet | encrypted |
/// | 16 | sequence number of the media packet | |
/// | | the bytes of the media packet after the SSRC | |
/// | 128 | AES-GCM tag | |
///
/// The nonce is computed from the outer sequence number (RFC 7714, Sec. 8.1). Two packets with the same nonce would
/// reveal their contents and the authentication key. Therefore this type counts the outer number itself, and no caller
/// can choose or repeat it.
pub(crate) struct Contexts {
    outward: Context,
    /// The extended sequence number of the next outer RTP packet, inside which the next media packet is encrypted.
    next: u64,
    /// Number of reports that were encrypted with the current key.
    reports: u32,
    inward: Context,
    /// The replay window of received sequence numbers. The replay window of the SRTP library is not used, because it
    /// starts at the first packet, even if this packet is forged.
    window: ReplayWindow,
    /// Buffer for a packet before encryption.
    plain: Vec<u8>,
}

/// Maximum number of media packets and maximum number of reports that one key may encrypt (RFC 3711, Sec. 9.2).
pub(crate) const MOST_MEDIA: u64 = 1 << 48;
pub(crate) const MOST_REPORTS: u32 = 1 << 31;
/// Length of the fixed header of an RTP packet, in bytes (RFC 3550, Sec. 5.1).
const HEADER: usize = 12;
/// The encrypted part begins with this many bytes of the media packet's header: its first byte and the sequence number.
const SEALED: usize = 3;
/// The first byte of an RTP packet with version 2 and no other bits set.
const VERSION: u8 = 0x80;

impl Protection {
    /// Number of bytes that encryption adds to an RTP packet: the AES-GCM tag of 16 bytes (RFC 7714, Sec. 13.2), and
    /// the `SEALED` bytes at the start of the encrypted part.
    pub(crate) const OVERHEAD: u64 = 16 + SEALED as u64;

    /// Creates the protection of the endpoint that has the role `role` and uses `keys`.
    pub(crate) fn new(keys: &Keys, role: Role) -> Self {
        let outward = keys.context(role);
        let inward = keys.context(role.other());
        Self::Srtp(Box::new(Contexts {
            outward,
            next: 0,
            reports: 0,
            inward,
            window: ReplayWindow::default(),
            plain: Vec::new(),
        }))
    }

    /// Encrypts `datagram` and writes the result to `out`. Returns false if the datagram cannot be encrypted; then it
    /// must not be sent.
    pub(crate) fn protect(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        match self {
            Self::None => out.extend_from_slice(datagram),
            Self::Srtp(contexts) if is_rtcp(datagram) => return contexts.protect_report(datagram, out).is_some(),
            Self::Srtp(contexts) => return contexts.seal(datagram, out).is_some(),
        }
        true
    }

    /// Decrypts `datagram` and writes the content to `out`. Returns false if the datagram is forged, damaged or a
    /// replay.
    ///
    /// Only packets with this `ssrc` are decrypted. The SRTP library stores a state for every SSRC, so forged SSRCs
    /// would otherwise use up memory.
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
        if is_rtcp(datagram) {
            return context.decrypt_rtcp(datagram).map(|plain| out.extend_from_slice(&plain)).is_ok();
        }
        let Some(&[high, low]) = datagram.get(2..4).and_then(<[u8]>::first_chunk) else { return false };
        let number = u16::from_be_bytes([high, low]);
        let is_right = contexts.window.novelty(number) == Novelty::New
            && context.decrypt_rtp(datagram).is_ok_and(|sealed| unseal(&sealed, out).is_some());
        if is_right {
            contexts.window.mark(number);
        }
        is_right
    }
}

impl Contexts {
    fn protect_report(&mut self, report: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if self.reports >= MOST_REPORTS {
            return None;
        }
        self.reports += 1;
        out.extend_from_slice(&self.outward.encrypt_rtcp(report).ok()?);
        Some(())
    }

    /// Encrypts a media packet inside an outer packet with the next outer sequence number.
    fn seal(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (header, rest) = packet.split_at_checked(HEADER)?;
        let &[first, kind, high, low, ref after @ ..] = header else { return None };
        if self.next >= MOST_MEDIA {
            return None;
        }
        let number = (self.next as u16).to_be_bytes();
        // The outer sequence number counts as used even if the encryption fails.
        self.next += 1;
        let plain = &mut self.plain;
        plain.clear();
        plain.extend_from_slice(&[VERSION, kind, number[0], number[1]]);
        plain.extend_from_slice(after);
        plain.extend_from_slice(&[first, high, low]);
        plain.extend_from_slice(rest);
        out.extend_from_slice(&self.outward.encrypt_rtp(plain).ok()?);
        Some(())
    }
}

/// Restores the media packet from `sealed`, the decrypted outer packet, and appends the media packet to `out`. Returns
/// `None` if the outer packet contains no media packet.
fn unseal(sealed: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (header, rest) = sealed.split_at_checked(HEADER)?;
    let (&[first, high, low], rest) = rest.split_first_chunk::<SEALED>()?;
    let &[_, kind, _, _, ref after @ ..] = header else { return None };
    out.extend_from_slice(&[first, kind, high, low]);
    out.extend_from_slice(after);
    out.extend_from_slice(rest);
    Some(())
}

/// The SSRC of an RTP or RTCP datagram. SRTP does not encrypt the SSRC (RFC 3711, Sec. 3.1, 3.4).
pub(crate) fn source_of(datagram: &[u8]) -> Option<u32> {
    let at = if is_rtcp(datagram) { 4 } else { 8 };
    Some(u32::from_be_bytes(datagram.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSRC: u32 = 0x0102_0304;

    fn ends() -> (Protection, Protection) {
        (Protection::new(&Keys::of(1), Role::Client), Protection::new(&Keys::of(1), Role::Server))
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

    /// Returns the sequence number in the unencrypted header. The nonce contains this number (RFC 7714, Sec. 8.1).
    fn number_of(wire: &[u8]) -> u16 {
        u16::from_be_bytes([wire[2], wire[3]])
    }

    /// If this test fails, a restarted encoder, or a copy of a packet on another path, makes the sender use a sequence
    /// number twice with one key. With AES-GCM, this reveals the authentication key, and an observer can forge packets.
    #[test]
    fn no_number_is_used_twice_under_a_key_whatever_is_repeated() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain, mut numbers) = (Vec::new(), Vec::new(), std::collections::BTreeSet::new());
        let repeated = (1000..1050).chain(1040..1050).chain([7; 100]).chain((0..200).rev());
        for sequence in repeated {
            assert!(sender.protect(&media(sequence), &mut wire));
            assert!(numbers.insert(number_of(&wire)), "{sequence}");
            assert!(receiver.unprotect(&wire, SSRC, &mut plain));
            assert_eq!(plain, media(sequence));
        }
    }

    /// A packet that is not authentic must not move the replay window. There are two sources of such packets. After a
    /// session was opened again, packets with the previous keys may still arrive. And anybody who knows the session's
    /// SSRC can forge packets. If such a packet with a high number moved the window, authentic packets with lower
    /// numbers would be rejected as replays.
    #[test]
    fn what_is_not_authentic_moves_no_window() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        let mut other = Protection::new(&Keys::of(9), Role::Client);
        for _ in 0..20_000 {
            other.protect(&media(1), &mut wire);
        }
        assert!(!receiver.unprotect(&wire, SSRC, &mut plain), "it is number 19 999 of other keys");
        (0..20_000).for_each(|_| assert!(other.protect(&report(), &mut wire)));
        assert!(!receiver.unprotect(&wire, SSRC, &mut plain), "and so is the report");
        assert!(sender.protect(&report(), &mut wire) && receiver.unprotect(&wire, SSRC, &mut plain));
        for sequence in 0..100 {
            assert!(sender.protect(&media(sequence), &mut wire));
            assert!(receiver.unprotect(&wire, SSRC, &mut plain), "{sequence}");
            assert!(!receiver.unprotect(&wire, SSRC, &mut plain), "a replay");
        }
    }

    #[test]
    fn numbers_go_on_over_the_cycles_and_a_key_that_is_spent_protects_nothing() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        for sequence in 0..200_000u32 {
            assert!(sender.protect(&media(sequence as u16), &mut wire));
            assert!(receiver.unprotect(&wire, SSRC, &mut plain), "{sequence}");
        }
        let Protection::Srtp(contexts) = &mut sender else { panic!("it has a key") };
        (contexts.next, contexts.reports) = (MOST_MEDIA, MOST_REPORTS);
        assert!(!sender.protect(&media(0), &mut wire) && wire.is_empty());
        assert!(!sender.protect(&report(), &mut wire) && wire.is_empty());
    }

    /// If this test fails, an observer learns the host's clock to a nanosecond, and the sequence numbers of the media
    /// packets.
    #[test]
    fn neither_the_sending_time_nor_the_number_of_a_packet_is_in_the_clear() {
        let (mut sender, mut receiver) = ends();
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        let time = [0xEE, 0x9A, 0x3C, 0x11, 0x22, 0x33, 0x44, 0x55];
        let mut packet = media(0xABCD);
        packet[0] |= 0x10;
        packet.splice(12..12, [&[0xBE, 0xDE, 0, 3, 0xE7][..], &time, &[0; 3]].concat());
        assert!(sender.protect(&packet, &mut wire));
        assert_eq!((wire[0], number_of(&wire)), (0x80, 0), "no sign of an extension, and a number of its own");
        assert!(!wire.windows(4).any(|bytes| time.windows(4).any(|part| part == bytes)));
        assert!(!wire.windows(2).any(|bytes| bytes == [0xAB, 0xCD]));
        assert!(receiver.unprotect(&wire, SSRC, &mut plain));
        assert_eq!(plain, packet);
    }

    #[test]
    fn what_is_no_packet_is_not_sealed() {
        let (mut sender, _) = ends();
        let mut wire = Vec::new();
        for length in 0..HEADER {
            assert!(!sender.protect(&media(1)[..length], &mut wire) || is_rtcp(&media(1)[..length]));
        }
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
        let mut later = Protection::new(&Keys::of(2), Role::Server);
        assert!(!later.unprotect(&wire, SSRC, &mut plain), "replayed to a receiver that was restarted");
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
