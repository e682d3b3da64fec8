//! Encodes TCP segments as bytes. Headers are as long as real TCP headers, so packet sizes are realistic.
//!
//! Segment numbers count segments, not bytes, and have 64 bits. Therefore this format is not usable on a real network.
//! The first byte distinguishes a TCP segment from RTP and RTCP, whose first byte is above 127.

use equipoise::units::Size;
use equipoise_session::{Carrier, Ecn, Transmit};

use super::{Ack, SackBlocks, Segment};

/// Size of a TCP header without options, in bytes (RFC 9293, Sec. 3.1).
const HEADER: usize = 20;
/// Size of the options of a SYN, in bytes: segment size, SACK permitted, window scale, padding (RFC 9293, RFC 2018, RFC
/// 7323).
const SYN_OPTIONS: usize = 12;
/// Size of the header and the padding of a SACK option, in bytes. Each range adds 8 bytes (RFC 2018, Sec. 3).
const SACK_HEAD: usize = 4;
const SACK_BLOCK: usize = 8;
/// The maximum header length, in bytes.
const LONGEST: usize = HEADER + SACK_HEAD + SACK_BLOCK * SackBlocks::MOST;

/// Byte offset of the connection number, which distinguishes successive connections on one path.
const TAG: usize = 18;

const SYN: u8 = 0;
const SYN_ACK: u8 = 1;
const DATA: u8 = 2;
const ACK: u8 = 3;

/// The encoded header of a segment, and the size of its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded {
    bytes: [u8; LONGEST],
    len: usize,
    payload: usize,
}

impl Encoded {
    /// The value before a header is encoded.
    pub(crate) const EMPTY: Self = Self { bytes: [0; LONGEST], len: 0, payload: 0 };

    /// Returns the header with a connection number, which distinguishes successive connections on one path. Without
    /// this call, the number is 0.
    #[must_use]
    pub(crate) fn tagged(mut self, tag: u16) -> Self {
        if let Some(place) = self.bytes.get_mut(TAG..TAG + 2) {
            place.copy_from_slice(&tag.to_be_bytes());
        }
        self
    }

    /// The segment as an output of a TCP host.
    pub(crate) fn transmit(&self) -> Transmit<'_> {
        Transmit {
            head: self.bytes.get(..self.len).unwrap_or_default(),
            media: self.payload,
            carrier: Carrier::Tcp,
            ecn: Ecn::NotCapable,
        }
    }
}

impl Segment {
    /// Encodes the segment.
    pub(crate) fn encode(&self) -> Encoded {
        let mut encoded = Encoded::EMPTY;
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = encoded.bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        let (kind, len, payload) = match self {
            Self::Syn => (SYN, HEADER + SYN_OPTIONS, 0),
            Self::SynAck { window } => {
                put(2, &window.to_be_bytes());
                (SYN_ACK, HEADER + SYN_OPTIONS, 0)
            }
            Self::Data { number, payload } => {
                put(2, &number.to_be_bytes());
                (DATA, HEADER, payload.as_bytes() as usize)
            }
            Self::Ack(ack) => {
                put(2, &ack.next.to_be_bytes());
                put(10, &ack.window.to_be_bytes());
                let mut blocks = 0;
                for (place, (first, end)) in ack.sacked.iter().enumerate() {
                    // Ranges are relative to `next`; 32 bits are enough for the receive window of a host.
                    let at = HEADER + SACK_HEAD + SACK_BLOCK * place;
                    put(at, &(first.wrapping_sub(ack.next) as u32).to_be_bytes());
                    put(at + 4, &(end.wrapping_sub(ack.next) as u32).to_be_bytes());
                    blocks += 1;
                }
                put(1, &[blocks as u8]);
                let options = if blocks == 0 { 0 } else { SACK_HEAD + SACK_BLOCK * blocks };
                (ACK, HEADER + options, 0)
            }
        };
        put(0, &[kind]);
        Encoded { len, payload, ..encoded }
    }

    /// Whether a packet contains a TCP segment.
    pub(crate) fn is_segment(packet: &[u8]) -> bool {
        packet.first().is_some_and(|kind| *kind <= ACK)
    }

    /// The connection number in a packet with a TCP segment. This number distinguishes successive connections on one
    /// path.
    pub(crate) fn tag(packet: &[u8]) -> u16 {
        packet.get(TAG..TAG + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_be_bytes)
    }

    /// Decodes a segment from a packet; `None` if the packet contains no TCP segment.
    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| packet.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let u32_at = |at: usize| packet.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        match *packet.first()? {
            SYN => Some(Self::Syn),
            SYN_ACK => Some(Self::SynAck { window: u64_at(2)? }),
            DATA => {
                let payload = packet.len().checked_sub(HEADER)?;
                Some(Self::Data { number: u64_at(2)?, payload: Size::from_bytes(payload as u64) })
            }
            ACK => {
                let next = u64_at(2)?;
                let block = |place: usize| {
                    let at = HEADER + SACK_HEAD + SACK_BLOCK * place;
                    let number = |at| u32_at(at).map(|offset| next.wrapping_add(u64::from(offset)));
                    Some((number(at)?, number(at + 4)?))
                };
                let blocks = usize::from(*packet.get(1)?).min(SackBlocks::MOST);
                let sacked = SackBlocks::new((0..blocks).map_while(block));
                Some(Self::Ack(Ack { next, window: u64_at(10)?, sacked }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(segment: &Segment) -> Vec<u8> {
        let encoded = segment.encode();
        let transmit = encoded.transmit();
        let mut bytes = transmit.head.to_vec();
        bytes.resize(transmit.len(), 0);
        bytes
    }

    fn segment() -> impl Strategy<Value = Segment> {
        let blocks = prop::collection::vec((1..1000_u64, 1..1000_u64), 0..=SackBlocks::MOST);
        let ack = (0..1u64 << 60, any::<u64>(), blocks).prop_map(|(next, window, blocks)| {
            let sacked =
                SackBlocks::new(blocks.into_iter().map(|(first, length)| (next + first, next + first + length)));
            Segment::Ack(Ack { next, window, sacked })
        });
        prop_oneof![
            Just(Segment::Syn),
            any::<u64>().prop_map(|window| Segment::SynAck { window }),
            (any::<u64>(), 0..9000_u64)
                .prop_map(|(number, payload)| Segment::Data { number, payload: Size::from_bytes(payload) }),
            ack,
        ]
    }

    proptest! {
        /// If this test fails, TCP hosts of the simulator misread each other's segments.
        #[test]
        fn a_segment_comes_out_as_it_went_in_and_its_packet_has_its_size(segment in segment()) {
            prop_assert_eq!(Segment::decode(&packet(&segment)), Some(segment));
            let encoded = segment.encode();
            prop_assert_eq!(encoded.transmit().packet_size(), segment.size());
            prop_assert_eq!(Segment::tag(&packet(&segment)), 0);
        }

        #[test]
        fn any_bytes_are_a_segment_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Segment::decode(&bytes);
        }
    }
}
