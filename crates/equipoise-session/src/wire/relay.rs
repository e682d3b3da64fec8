//! Puts the session's sequence number and synchronisation source into another program's RTP packet, adds the sending
//! time and the sub-flow, and restores the original packet from the result.
//!
//! The rest of the packet is unchanged: payload type, timestamp, contributors, other extension elements, padding (RFC
//! 3550, Sec. 5.1; RFC 8285, Sec. 4). A further extension element is added if the packet's original number or source
//! differs from that of the session, or if the packet is a retransmission. The element contains the original number. If
//! the original source differs, the element also contains the original source.

use alloc::vec::Vec;

use super::reader::Reader;
use super::rtp::{Elements, OwnElements, Relayed, RtpHeader, Subflow};
use super::{NtpTime, WireError};

/// Maximum size of our three extension elements in bytes, including their heads and the padding to whole 32-bit words.
const ELEMENTS_MAX: usize = 28;
/// Length in bytes of the head of a header extension: profile and length (RFC 3550, Sec. 5.3.1).
const EXTENSION_HEAD: usize = 4;
/// The profile of a header extension that we add to a packet without an extension.
const ONE_BYTE_PROFILE: [u8; 2] = [0xBE, 0xDE];
const EXTENSION: u8 = 0x10;
const CSRC_COUNT: u8 = 0x0F;

/// Maximum number of bytes by which [`stamp`] lengthens a packet.
pub const STAMP_MAX: usize = EXTENSION_HEAD + ELEMENTS_MAX;

/// An RTP packet, split into three parts.
struct Parts<'a> {
    /// Fixed header and contributors.
    fixed: &'a [u8],
    /// Profile and data of the header extension, if there is one.
    extension: Option<([u8; 2], &'a [u8])>,
    /// Payload and padding.
    rest: &'a [u8],
}

/// The data that [`stamp`] adds to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Synchronisation source of the session.
    pub ssrc: u32,
    /// The lower 16 bits of the packet's number in the session.
    pub number: u16,
    /// The sending time.
    pub time: NtpTime,
    /// The packet's sub-flow and its number in that sub-flow, if the session has several paths.
    pub subflow: Option<Subflow>,
    /// Whether the packet is a retransmission of a packet that was sent with the same `number`.
    pub is_repetition: bool,
}

/// Appends `packet` to `out` with the source and number of `stamp`. The other fields of the stamp are added as
/// extension elements. A further element is added if the packet's original number or original source differs from that
/// of the stamp, or if the packet is a retransmission. This element contains the original number. If the source
/// differs, the element also contains the original source.
///
/// # Errors
/// [`WireError`] if `packet` is not an RTP packet, or if its header extension cannot take the new elements: the profile
/// is not one of RFC 8285, the present elements and padding do not fill the extension exactly, the identifier of a new
/// element is already in use, or the extension would be too long. After an error, nothing is appended.
pub fn stamp(packet: &[u8], stamp: Stamp, out: &mut Vec<u8>) -> Result<(), WireError> {
    let Stamp { ssrc, number, time, subflow, is_repetition } = stamp;
    let parts = Parts::of(packet)?;
    let source = Some(parts.source()).filter(|own| *own != ssrc);
    let relayed = Relayed { number: parts.number(), is_repetition, source };
    let relayed = Some(relayed).filter(|own| own.number != number || is_repetition || source.is_some());
    let (profile, data) = parts.extension.unwrap_or((ONE_BYTE_PROFILE, &[]));
    let elements = Elements::of(u16::from_be_bytes(profile), data)
        .filter(Elements::are_whole)
        .ok_or(WireError::Profile { found: u16::from_be_bytes(profile) })?;
    let is_ours = |id: u8| {
        id == RtpHeader::NTP_EXTENSION_ID
            || (subflow.is_some() && id == RtpHeader::SUBFLOW_EXTENSION_ID)
            || (relayed.is_some() && id == RtpHeader::RELAYED_EXTENSION_ID)
    };
    if let Some((id, _)) = elements.clone().find(|(id, _)| is_ours(*id)) {
        return Err(WireError::IdentifierInUse { id });
    }
    let own = OwnElements::new(elements.form(), Some(time), subflow, relayed);
    let words = data.len().saturating_add(own.padded_len()) / 4;
    let words = u16::try_from(words).map_err(|_| WireError::Profile { found: u16::from_be_bytes(profile) })?;
    parts.append_fixed(true, (number, ssrc), out);
    out.extend_from_slice(&profile);
    out.extend_from_slice(&words.to_be_bytes());
    out.extend_from_slice(data);
    // If the packet had an empty extension, the padding is put before our elements. By this order, `unstamp` knows that
    // there was an extension.
    let was_empty = parts.extension.is_some() && data.is_empty();
    out.extend_from_slice(if was_empty { own.padding() } else { &[] });
    out.extend_from_slice(own.bytes());
    out.extend_from_slice(if was_empty { &[] } else { own.padding() });
    out.extend_from_slice(parts.rest);
    Ok(())
}

/// Restores `packet` to its form before [`stamp`], and appends the result to `out`. If the header extension of `packet`
/// does not end with the elements that [`stamp`] adds, `packet` is appended unchanged.
///
/// # Errors
/// [`WireError`] if `packet` is not an RTP packet. Then nothing is appended.
pub fn unstamp(packet: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let parts = Parts::of(packet)?;
    let stamped = parts.extension.and_then(|(profile, data)| {
        let elements = Elements::of(u16::from_be_bytes(profile), data)?;
        let time = elements.clone().send_time()?;
        let (subflow, relayed) = (elements.clone().subflow(), elements.clone().relayed());
        // If the extension ends exactly with elements that `stamp` would have written, `stamp` added them. The sub-flow
        // and `relayed` may be from `stamp` or from the original packet, so there are four combinations. At most one of
        // them matches.
        let before = |(subflow, relayed): (Option<Subflow>, Option<Relayed>)| {
            let own = OwnElements::new(elements.form(), Some(time), subflow, relayed);
            let before = data.len().checked_sub(own.padded_len())?;
            let (before, end) = data.split_at_checked(before)?;
            let behind = end.strip_prefix(own.bytes()) == Some(own.padding());
            let was_empty = before.is_empty() && end.strip_prefix(own.padding()) == Some(own.bytes());
            (behind || was_empty).then_some((profile, before, was_empty || !before.is_empty(), relayed))
        };
        [(subflow, relayed), (subflow, None), (None, relayed), (None, None)].into_iter().find_map(before)
    });
    let Some((profile, before, was_there, relayed)) = stamped else {
        out.extend_from_slice(packet);
        return Ok(());
    };
    let own = relayed.map_or((parts.number(), None), |relayed| (relayed.number, relayed.source));
    parts.append_fixed(was_there, (own.0, own.1.unwrap_or(parts.source())), out);
    if was_there {
        out.extend_from_slice(&profile);
        out.extend_from_slice(&((before.len() / 4) as u16).to_be_bytes());
        out.extend_from_slice(before);
    }
    out.extend_from_slice(parts.rest);
    Ok(())
}

/// Whether a packet is marked as a retransmission.
pub fn is_repetition(packet: &[u8]) -> bool {
    let extension = Parts::of(packet).ok().and_then(|parts| parts.extension);
    let elements = extension.and_then(|(profile, data)| Elements::of(u16::from_be_bytes(profile), data));
    elements.and_then(Elements::relayed).is_some_and(|relayed| relayed.is_repetition)
}

impl<'a> Parts<'a> {
    fn of(packet: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(packet, 0);
        let first = reader.u8("RTP version")?;
        if first >> 6 != 2 {
            return Err(WireError::Version { found: first >> 6, offset: 0 });
        }
        reader.bytes(11, "RTP header")?;
        reader.bytes(usize::from(first & CSRC_COUNT).saturating_mul(4), "CSRC list")?;
        let fixed = packet.get(..reader.offset()).unwrap_or_default();
        let extension = if first & EXTENSION == 0 {
            None
        } else {
            let profile = reader.array("header extension profile")?;
            let words = usize::from(reader.u16("header extension length")?);
            Some((profile, reader.bytes(words.saturating_mul(4), "header extension")?))
        };
        Ok(Self { fixed, extension, rest: reader.rest() })
    }

    /// Returns the packet's sequence number.
    fn number(&self) -> u16 {
        match self.fixed {
            [_, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        }
    }

    /// Returns the packet's synchronisation source.
    fn source(&self) -> u32 {
        match self.fixed {
            [_, _, _, _, _, _, _, _, source @ ..] => {
                source.first_chunk().map_or(0, |source| u32::from_be_bytes(*source))
            }
            _ => 0,
        }
    }

    /// Appends the fixed header and the contributing sources to `out`. In the header, `number` and `source` replace the
    /// sequence number and the SSRC, and `extended` determines the extension bit.
    fn append_fixed(&self, extended: bool, (number, source): (u16, u32), out: &mut Vec<u8>) {
        if let [first, second, _, _, t0, t1, t2, t3, _, _, _, _, contributors @ ..] = self.fixed {
            out.extend_from_slice(&[if extended { first | EXTENSION } else { first & !EXTENSION }, *second]);
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(&[*t0, *t1, *t2, *t3]);
            out.extend_from_slice(&source.to_be_bytes());
            out.extend_from_slice(contributors);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::rtp::RtpPacket;

    const TIME: NtpTime = NtpTime::from_bits(0xEE9A_3C00_8000_0001);

    /// Returns a stamp whose number and source are those of the packet.
    fn unmoved(packet: &[u8], subflow: Option<Subflow>) -> Stamp {
        let number = packet.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let ssrc = packet.get(8..12).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four")));
        Stamp { ssrc, number, time: TIME, subflow, is_repetition: false }
    }

    fn stamped(packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        stamp(packet, unmoved(packet, None), &mut out).expect("room for a time");
        out
    }

    /// Returns a packet with the marker bit, payload type 97, two contributing sources (CSRCs), and padding.
    fn packet(extension: &[u8], payload: &[u8]) -> Vec<u8> {
        let sign = if extension.is_empty() { 0 } else { EXTENSION };
        let mut packet = vec![0xA2 | sign, 0xE1, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 1, 9, 9, 9, 2];
        packet.extend_from_slice(extension);
        packet.extend_from_slice(payload);
        packet.extend_from_slice(&[0, 0, 3]);
        packet
    }

    #[test]
    fn a_packet_without_an_extension_gets_ours_and_loses_it_again() {
        let before = packet(&[], b"media");
        let with = stamped(&before);
        assert_eq!(with.len(), before.len() + EXTENSION_HEAD + 12);
        let parsed = RtpPacket::parse(&with).expect("well formed");
        assert_eq!((parsed.header.send_time, parsed.payload), (Some(TIME), &b"media"[..]));
        assert_eq!((parsed.header.sequence, parsed.header.payload_type, parsed.header.marker), (0x1234, 97, true));
        let mut after = Vec::new();
        unstamp(&with, &mut after).expect("well formed");
        assert_eq!(after, before);
    }

    #[test]
    fn other_elements_of_either_form_stay() {
        let extensions: [&[u8]; 4] = [
            // One-byte form, empty.
            &[0xBE, 0xDE, 0, 0],
            // Two-byte form, empty.
            &[0x10, 0x00, 0, 0],
            // One-byte form: an element with ID 1 (an audio level), and padding.
            &[0xBE, 0xDE, 0, 1, 0x10, 0x55, 0, 0],
            // Two-byte form: an element of five bytes with ID 3, an empty element with ID 4, and padding.
            &[0x10, 0x00, 0, 3, 3, 5, 1, 2, 3, 4, 5, 4, 0, 0, 0, 0],
        ];
        for extension in extensions {
            let before = packet(extension, b"media");
            let (mut with, mut after) = (Vec::new(), Vec::new());
            let subflow = Some(Subflow { id: 7, sequence: 0xFFFE });
            stamp(&before, unmoved(&before, subflow), &mut with).expect("room for both");
            let header = RtpPacket::parse(&with).expect("well formed").header;
            assert_eq!((header.send_time, header.subflow), (Some(TIME), subflow));
            unstamp(&with, &mut after).expect("well formed");
            assert_eq!(after, before);
            let with = stamped(&before);
            assert_eq!(with.len(), before.len() + 12);
            assert_eq!(RtpPacket::parse(&with).expect("well formed").header.send_time, Some(TIME));
            let mut after = Vec::new();
            unstamp(&with, &mut after).expect("well formed");
            assert_eq!(after, before);
        }
    }

    #[test]
    fn what_has_no_room_is_refused_and_nothing_is_written() {
        let mut out = Vec::new();
        let foreign = packet(&[0xAB, 0xCD, 0, 1, 1, 2, 3, 4], b"");
        assert_eq!(stamp(&foreign, unmoved(&foreign, None), &mut out), Err(WireError::Profile { found: 0xABCD }));
        let ended = packet(&[0xBE, 0xDE, 0, 1, 0xF0, 0, 0, 0], b"");
        assert_eq!(stamp(&ended, unmoved(&ended, None), &mut out), Err(WireError::Profile { found: 0xBEDE }));
        let taken_too = packet(&[0xBE, 0xDE, 0, 1, 0xD0, 1, 0, 0], b"");
        let subflow = Some(Subflow::default());
        assert_eq!(
            stamp(&taken_too, unmoved(&taken_too, subflow), &mut out),
            Err(WireError::IdentifierInUse { id: 13 })
        );
        let taken = packet(&[0xBE, 0xDE, 0, 1, 0xE0, 1, 0, 0], b"");
        assert_eq!(stamp(&taken, unmoved(&taken, None), &mut out), Err(WireError::IdentifierInUse { id: 14 }));
        assert!(matches!(stamp(b"\x80", unmoved(b"\x80", None), &mut out), Err(WireError::Truncated { .. })));
        assert!(out.is_empty());
    }

    #[test]
    fn a_packet_that_was_never_stamped_comes_out_as_it_is() {
        let before = packet(&[0xBE, 0xDE, 0, 1, 0x10, 0x55, 0, 0], b"media");
        let mut after = Vec::new();
        unstamp(&before, &mut after).expect("well formed");
        assert_eq!(after, before);
    }

    proptest! {
        #[test]
        fn any_packet_comes_back_or_is_refused(bytes: Vec<u8>, number: u16, ssrc in prop_oneof![Just(0x0707_0707u32), any::<u32>()], again: bool, csrcs in 0u8..4, extension in proptest::option::of((any::<bool>(), proptest::collection::vec(any::<[u8; 4]>(), 0..8))), place: Option<(u16, u16)>) {
            let subflow = place.map(|(id, sequence)| Subflow { id, sequence });
            let mut before = vec![0x80 | csrcs, 96];
            before.extend_from_slice(&[7; 10]);
            before.extend(core::iter::repeat_n(8, usize::from(csrcs) * 4));
            if let Some((two_byte, words)) = &extension {
                before[0] |= EXTENSION;
                before.extend_from_slice(if *two_byte { &[0x10, 0] } else { &ONE_BYTE_PROFILE });
                before.extend_from_slice(&[0, words.len() as u8]);
                before.extend(words.iter().flatten());
            }
            before.extend_from_slice(&bytes);
            let (mut with, mut after) = (Vec::new(), Vec::new());
            if stamp(&before, Stamp { ssrc, number, time: TIME, subflow, is_repetition: again }, &mut with).is_ok() {
                prop_assert!(with.len() <= before.len() + STAMP_MAX);
                let header = RtpPacket::parse(&with).map(|packet| packet.header);
                prop_assert!(header.is_err() || header.is_ok_and(|h| h.send_time == Some(TIME) && h.sequence == number && h.ssrc == ssrc && (subflow.is_none() || h.subflow == subflow)));
                prop_assert!(is_repetition(&with) == again || RtpPacket::parse(&with).is_err());
                unstamp(&with, &mut after).unwrap();
                prop_assert_eq!(after, before);
            }
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes: Vec<u8>) {
            let mut out = Vec::new();
            let _ = stamp(&bytes, unmoved(&bytes, None), &mut out);
            let _ = stamp(&bytes, unmoved(&bytes, Some(Subflow::default())), &mut out);
            let _ = unstamp(&bytes, &mut out);
            let _ = is_repetition(&bytes);
        }
    }
}
