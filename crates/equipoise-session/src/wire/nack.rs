//! Requests for missing packets: the generic NACK of RTCP.

use alloc::vec::Vec;

use super::WireError;
use super::feedback::TRANSPORT_LAYER_FEEDBACK;
use super::reader::Reader;
use super::rtcp::{RtcpPacket, packet};

/// A receiver's request for missing packets (RFC 4585, Sec. 6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// Synchronisation source of the requester.
    pub ssrc: u32,
    /// Synchronisation source of the media.
    pub media_ssrc: u32,
    entries: &'a [u8],
}

/// Format number (FMT) of a generic NACK (RFC 4585, Sec. 6.2.1).
const NACK_FORMAT: u8 = 1;
/// Length of an entry in bytes: a packet's number, and one bit for each of the sixteen packets after it.
const ENTRY: usize = 4;
/// Number of packets for which an entry has a bit.
const FOLLOWING: u16 = 16;

impl<'a> Nack<'a> {
    /// Parses a packet of an RTCP compound; `None` if the packet is not a generic NACK.
    ///
    /// # Errors
    /// [`WireError`] if the NACK has no entry. The offset in the error counts from the packet's first byte.
    pub fn of(packet: &RtcpPacket<'a>) -> Option<Result<Self, WireError>> {
        let RtcpPacket::Other { packet_type: TRANSPORT_LAYER_FEEDBACK, count: NACK_FORMAT, body } = *packet else {
            return None;
        };
        let parse = || {
            let mut reader = Reader::new(body, 4);
            let (ssrc, media_ssrc) = (reader.u32("SSRC of the NACK")?, reader.u32("media SSRC of the NACK")?);
            let entries = reader.rest();
            // An RTCP packet consists of whole 32-bit words, so the rest consists of whole entries.
            reader.bytes(ENTRY, "entry of a NACK")?;
            Ok(Self { ssrc, media_ssrc, entries })
        };
        Some(parse())
    }

    /// Returns the sequence numbers of the requested packets, in the order of the entries.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.entries.chunks_exact(ENTRY).flat_map(|entry| {
            let mut reader = Reader::new(entry, 0);
            let (first, bits) = (reader.u16("number").unwrap_or(0), reader.u16("bits").unwrap_or(0));
            let following = (0..FOLLOWING).filter(move |at| bits >> at & 1 == 1);
            core::iter::once(first).chain(following.map(move |at| first.wrapping_add(at).wrapping_add(1)))
        })
    }
}

/// Appends a packet in which `ssrc` requests the packets `numbers` from the source `media_ssrc`. The numbers should
/// increase (modulo 2¹⁶), so that one entry can cover up to 17 of them. The packet has a head of 12 bytes, and at
/// most `most` entries of 4 bytes each. Returns how many of the numbers it contains.
pub fn encode_nack(
    ssrc: u32,
    media_ssrc: u32,
    numbers: impl IntoIterator<Item = u16>,
    most: usize,
    out: &mut Vec<u8>,
) -> usize {
    packet(TRANSPORT_LAYER_FEEDBACK, NACK_FORMAT.into(), out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        out.extend_from_slice(&media_ssrc.to_be_bytes());
        let (mut entry, mut entries, mut asked) = (None, 0usize, 0usize);
        let mut write = |(first, bits): (u16, u16)| {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&bits.to_be_bytes());
        };
        for number in numbers {
            match &mut entry {
                Some((first, bits)) if (1..=FOLLOWING).contains(&number.wrapping_sub(*first)) => {
                    *bits |= 1 << number.wrapping_sub(*first).wrapping_sub(1);
                }
                _ if entries >= most => break,
                _ => {
                    entry.replace((number, 0)).into_iter().for_each(&mut write);
                    entries = entries.saturating_add(1);
                }
            }
            asked = asked.saturating_add(1);
        }
        entry.into_iter().for_each(write);
        asked
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::rtcp::parse_compound;

    fn read(datagram: &[u8]) -> Option<Result<Vec<u16>, WireError>> {
        let packet = parse_compound(datagram).expect("a compound").next().expect("a packet");
        Nack::of(&packet).map(|nack| nack.map(|nack| nack.numbers().collect()))
    }

    #[test]
    fn numbers_come_back_over_the_wrap_and_seventeen_to_an_entry() {
        let mut out = Vec::new();
        let numbers = [0xFFFE, 0xFFFF, 0x000E, 0x000F, 0x1234];
        assert_eq!(encode_nack(2, 1, numbers, 8, &mut out), 5);
        let entries = [0xFF, 0xFE, 0x80, 0x01, 0, 0x0F, 0, 0, 0x12, 0x34, 0, 0];
        assert_eq!(out[..12], [0x81, 205, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1]);
        assert_eq!(out[12..], entries);
        assert_eq!(read(&out), Some(Ok(numbers.to_vec())));
    }

    #[test]
    fn what_has_no_room_is_not_asked_for() {
        let mut out = Vec::new();
        assert_eq!(encode_nack(2, 1, [1, 17, 100, 200], 2, &mut out), 3);
        assert_eq!(read(&out), Some(Ok(vec![1, 17, 100])));
    }

    #[test]
    fn a_nack_of_nothing_is_refused_and_other_feedback_is_none() {
        let empty = [0x81, 205, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1];
        assert!(matches!(read(&empty), Some(Err(WireError::Truncated { offset: 12, need: 4, have: 0, .. }))));
        let short = [0x81, 205, 0, 1, 0, 0, 0, 2];
        assert!(matches!(read(&short), Some(Err(WireError::Truncated { offset: 8, need: 4, have: 0, .. }))));
        assert_eq!(read(&[0x81, 206, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1]), None);
    }

    proptest! {
        #[test]
        fn any_numbers_that_rise_come_back(first: u16, steps in proptest::collection::vec(1u16..40, 1..40)) {
            let numbers: Vec<u16> = steps.iter().scan(first, |at, step| { *at = at.wrapping_add(*step); Some(*at) }).collect();
            let mut out = Vec::new();
            let asked = encode_nack(2, 1, numbers.iter().copied(), 16, &mut out);
            prop_assert!(out.len() <= 12 + 4 * 16);
            prop_assert_eq!(read(&out), Some(Ok(numbers[..asked].to_vec())));
        }
    }
}
