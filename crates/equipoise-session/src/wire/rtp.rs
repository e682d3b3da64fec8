//! RTP packets (RFC 3550, Sec. 5.1) that carry their sending time in a header extension (RFC 6051, Sec. 3.3; RFC 8285)
//! and, if a session has several paths, their sub-flow (draft-ietf-avtcore-mprtp-03, Sec. 9).

use alloc::vec::Vec;

use super::reader::Reader;
use super::{NtpTime, WireError};

/// The header of a media packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpHeader {
    /// The marker bit, whose meaning depends on the payload type.
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Sequence number, modulo 2¹⁶.
    pub sequence: u16,
    /// Sampling time in ticks of the media clock, modulo 2³².
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
    /// Sending time, if the 64-bit NTP extension is present.
    pub send_time: Option<NtpTime>,
    /// The packet's sub-flow and its number in that sub-flow, if the multipath extension is present.
    pub subflow: Option<Subflow>,
    /// The packet's number among all packets of its transport, modulo 2¹⁶, if the extension of
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 2 is present.
    pub transport_sequence: Option<u16>,
}

/// A packet's sub-flow, which is the part of a stream that one path carries, and the packet's number in that sub-flow
/// (draft-ietf-avtcore-mprtp-03, Sec. 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subflow {
    /// The sub-flow's number.
    pub id: u16,
    /// Sequence number within the sub-flow, modulo 2¹⁶.
    pub sequence: u16,
}

/// A media packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// The packet's header.
    pub header: RtpHeader,
    /// The media, without padding.
    pub payload: &'a [u8],
}

/// RTP version 2, in the two upper bits of the first byte (RFC 3550, Sec. 5.1).
const VERSION: u8 = 0x80;
const PADDING: u8 = 0x20;
const EXTENSION: u8 = 0x10;
const CSRC_COUNT: u8 = 0x0F;
pub(crate) const MARKER: u8 = 0x80;
/// Profile of a header extension whose elements have one-byte heads (RFC 8285, Sec. 4.2).
const ONE_BYTE_ELEMENTS: u16 = 0xBEDE;
/// Profile of a header extension whose elements have two-byte heads. The profile's lowest four bits, which may have any
/// value, are zero here (RFC 8285, Sec. 4.3).
const TWO_BYTE_ELEMENTS: u16 = 0x1000;
/// First data byte of the header extension element that contains a packet's sub-flow: type 0, length 4 bytes.
const SUBFLOW_HEAD: u8 = 0x04;
/// The element identifier that ends the list of elements in the one-byte form (RFC 8285, Sec. 4.2).
const STOP: u8 = 15;

impl RtpHeader {
    /// Identifier of the extension element that contains the sending time. It is the highest identifier of an element
    /// with a one-byte header (RFC 8285, Sec. 4.2). Other programs, whose packets a session may carry, number their
    /// elements from 1, so a collision is unlikely.
    pub const NTP_EXTENSION_ID: u8 = 14;

    /// Identifier of the extension element that contains the packet's sub-flow and the packet's number in the sub-flow.
    pub const SUBFLOW_EXTENSION_ID: u8 = 13;

    /// Identifier of the extension element for a packet from another program. A session that carries such a packet
    /// replaces the packet's sequence number by a number of the session. The element begins with the
    /// original sequence number. If the packet is a retransmission, a byte of value 1 follows. If the original source
    /// differs from the session's source, the original source comes last.
    pub const RELAYED_EXTENSION_ID: u8 = 12;

    /// Extension element identifier of the transport-wide sequence number. In packets of other programs, the identifier
    /// may differ, because these programs negotiate it by SDP.
    pub const TRANSPORT_SEQUENCE_EXTENSION_ID: u8 = 11;

    /// Returns the length of the header in bytes. Examples: 12 without any of our elements, 28 with a sending time, 32
    /// with a sending time and either a sub-flow or a transport-wide sequence number, and 36 with all three.
    pub fn encoded_len(&self) -> usize {
        let own = self.own_elements();
        if own.is_empty() { 12 } else { own.padded_len().saturating_add(16) }
    }

    fn own_elements(&self) -> OwnElements {
        let mut own = OwnElements::new(Form::OneByte, self.send_time, self.subflow, None);
        if let Some(number) = self.transport_sequence {
            own.push_head(Form::OneByte, Self::TRANSPORT_SEQUENCE_EXTENSION_ID, 2);
            own.push(&number.to_be_bytes());
        }
        own
    }

    /// Appends the encoded header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let own = self.own_elements();
        let extension = if own.is_empty() { 0 } else { EXTENSION };
        let marker = if self.marker { MARKER } else { 0 };
        out.extend_from_slice(&[VERSION | extension, marker | (self.payload_type & !MARKER)]);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        if !own.is_empty() {
            out.extend_from_slice(&ONE_BYTE_ELEMENTS.to_be_bytes());
            out.extend_from_slice(&((own.padded_len() / 4) as u16).to_be_bytes());
            out.extend_from_slice(own.bytes());
            out.extend_from_slice(own.padding());
        }
    }
}

impl<'a> RtpPacket<'a> {
    /// Parses a datagram.
    ///
    /// Contributing sources, and extension elements of other programs, are skipped.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 2, if data is missing, or if the padding is invalid.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(datagram, 0);
        let first = reader.u8("RTP version")?;
        if first & 0xC0 != VERSION {
            return Err(WireError::Version { found: first >> 6, offset: 0 });
        }
        let second = reader.u8("RTP payload type")?;
        let mut header = RtpHeader {
            marker: second & MARKER != 0,
            payload_type: second & !MARKER,
            sequence: reader.u16("RTP sequence number")?,
            timestamp: reader.u32("RTP timestamp")?,
            ssrc: reader.u32("RTP SSRC")?,
            send_time: None,
            subflow: None,
            transport_sequence: None,
        };
        reader.bytes(usize::from(first & CSRC_COUNT).saturating_mul(4), "CSRC list")?;
        if first & EXTENSION != 0 {
            let profile = reader.u16("header extension profile")?;
            let words = usize::from(reader.u16("header extension length")?);
            let data = reader.bytes(words.saturating_mul(4), "header extension")?;
            if let Some(elements) = Elements::of(profile, data) {
                header.send_time = elements.clone().send_time();
                header.subflow = elements.clone().subflow();
                header.transport_sequence = elements.number(RtpHeader::TRANSPORT_SEQUENCE_EXTENSION_ID);
            }
        }
        let payload = if first & PADDING == 0 { reader.rest() } else { without_padding(reader.rest())? };
        Ok(Self { header, payload })
    }
}

/// Returns the data before the padding. The last byte of the padding is its length.
fn without_padding(padded: &[u8]) -> Result<&[u8], WireError> {
    let found = usize::from(padded.last().copied().unwrap_or(0));
    let wrong = WireError::Padding { found, have: padded.len() };
    let payload = padded.len().checked_sub(found).filter(|_| found > 0).ok_or(wrong)?;
    padded.get(..payload).ok_or(wrong)
}

/// An iterator over the elements of a header extension (RFC 8285, Sec. 4). It ends at a truncated element.
#[derive(Clone, Debug)]
pub(super) struct Elements<'a> {
    form: Form,
    data: &'a [u8],
}

/// The original number and source of another program's packet. The session that carries the packet replaces them by the
/// session's number and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relayed {
    pub(super) number: u16,
    /// Whether the packet is a retransmission.
    pub(super) is_repetition: bool,
    /// The packet's original source, if it differs from the session's source.
    pub(super) source: Option<u32>,
}

/// The format of an extension element's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Identifier and length share one byte (RFC 8285, Sec. 4.2).
    OneByte,
    /// Identifier and length have one byte each (RFC 8285, Sec. 4.3).
    TwoByte,
}

impl<'a> Elements<'a> {
    /// Returns the elements of a header extension; `None` if the profile is not one of RFC 8285. Then `data` is not
    /// a list of elements.
    pub(super) fn of(profile: u16, data: &'a [u8]) -> Option<Self> {
        let form = match profile {
            ONE_BYTE_ELEMENTS => Form::OneByte,
            _ if profile & 0xFFF0 == TWO_BYTE_ELEMENTS => Form::TwoByte,
            _ => return None,
        };
        Some(Self { form, data })
    }

    pub(super) const fn form(&self) -> Form {
        self.form
    }

    /// Whether the elements fill the extension up to its end. Otherwise, a parser would not find an element that is
    /// appended.
    pub(super) fn are_whole(&self) -> bool {
        let mut rest = self.clone();
        while rest.next().is_some() {}
        rest.data.is_empty()
    }

    /// Returns the sending time, if present.
    pub(super) fn send_time(mut self) -> Option<NtpTime> {
        let (_, element) = self.find(|(id, _)| *id == RtpHeader::NTP_EXTENSION_ID)?;
        element.try_into().ok().map(|bytes| NtpTime::from_bits(u64::from_be_bytes(bytes)))
    }

    /// Returns the packet's sub-flow and its number in that sub-flow, if present.
    pub(super) fn subflow(mut self) -> Option<Subflow> {
        let (_, element) = self.find(|(id, _)| *id == RtpHeader::SUBFLOW_EXTENSION_ID)?;
        let [SUBFLOW_HEAD, id @ .., high, low] = *<&[u8; 5]>::try_from(element).ok()? else { return None };
        Some(Subflow { id: u16::from_be_bytes(id), sequence: u16::from_be_bytes([high, low]) })
    }

    /// Returns the packet's original number and source, if present.
    pub(super) fn relayed(mut self) -> Option<Relayed> {
        let (_, element) = self.find(|(id, _)| *id == RtpHeader::RELAYED_EXTENSION_ID)?;
        let (is_repetition, source) = match *element {
            [_, _] => (false, None),
            [_, _, 1] => (true, None),
            [_, _, a, b, c, d] => (false, Some([a, b, c, d])),
            [_, _, 1, a, b, c, d] => (true, Some([a, b, c, d])),
            _ => return None,
        };
        let number = element.first_chunk().map(|number| u16::from_be_bytes(*number))?;
        Some(Relayed { number, is_repetition, source: source.map(u32::from_be_bytes) })
    }

    /// Returns the 16-bit number in the element with this identifier.
    fn number(mut self, wanted: u8) -> Option<u16> {
        let (_, element) = self.find(|(id, _)| *id == wanted)?;
        element.try_into().ok().map(u16::from_be_bytes)
    }

    /// Returns the identifier and the length of the first element of the header extension, and the data after the
    /// element's head.
    fn head(&self) -> Option<(u8, usize, &'a [u8])> {
        let (&first, rest) = self.data.split_first()?;
        match self.form {
            Form::OneByte => Some((first >> 4, usize::from(first & 0x0F).saturating_add(1), rest)),
            Form::TwoByte if first == 0 => Some((0, 0, rest)),
            Form::TwoByte => rest.split_first().map(|(&length, rest)| (first, usize::from(length), rest)),
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (id, length, rest) = self.head()?;
            match (self.form, id) {
                // In the one-byte form, identifier 0 with length field 0 is a padding byte. Identifier 0 with any other
                // length ends the list, and so does `STOP`. In the two-byte form, identifier 0 is always a padding
                // byte.
                (Form::OneByte, 0) if length == 1 => self.data = rest,
                (Form::OneByte, 0 | STOP) => return None,
                (Form::TwoByte, 0) => self.data = rest,
                _ => {
                    let (element, after) = rest.split_at_checked(length)?;
                    self.data = after;
                    return Some((id, element));
                }
            }
        }
    }
}

/// The elements that we add to an RTP header extension, in their encoded form.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnElements {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl OwnElements {
    /// Maximum length in bytes: 7 for the sub-flow, 10 for the sending time, and 9 for the original number and source
    /// of a retransmission. Each length includes a head of two bytes. The transport-wide number is not included,
    /// because it never occurs together with an original number.
    const MOST: usize = 26;

    pub(super) fn new(form: Form, time: Option<NtpTime>, subflow: Option<Subflow>, relayed: Option<Relayed>) -> Self {
        let mut own = Self { bytes: [0; Self::MOST], length: 0 };
        if let Some(Subflow { id, sequence }) = subflow {
            own.push_head(form, RtpHeader::SUBFLOW_EXTENSION_ID, 5);
            own.push(&[SUBFLOW_HEAD]);
            own.push(&id.to_be_bytes());
            own.push(&sequence.to_be_bytes());
        }
        if let Some(time) = time {
            own.push_head(form, RtpHeader::NTP_EXTENSION_ID, 8);
            own.push(&time.as_bits().to_be_bytes());
        }
        if let Some(Relayed { number, is_repetition, source }) = relayed {
            let source = source.map(u32::to_be_bytes);
            let (mark, source) = (if is_repetition { &[1][..] } else { &[] }, source.as_ref().map_or(&[][..], |it| it));
            own.push_head(
                form,
                RtpHeader::RELAYED_EXTENSION_ID,
                mark.len().saturating_add(source.len()).saturating_add(2) as u8,
            );
            own.push(&number.to_be_bytes());
            own.push(mark);
            own.push(source);
        }
        own
    }

    fn push_head(&mut self, form: Form, id: u8, length: u8) {
        match form {
            Form::OneByte => self.push(&[id << 4 | length.saturating_sub(1)]),
            Form::TwoByte => self.push(&[id, length]),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns the padding up to a whole number of 32-bit words.
    pub(super) fn padding(&self) -> &'static [u8] {
        let padding: &'static [u8] = &[0; 4];
        padding.get(..self.padded_len().saturating_sub(self.length)).unwrap_or_default()
    }

    /// Returns the length of our extension elements in bytes, including the padding; 0 if there are no elements.
    /// Elements always have at least one byte of padding. The padding stands before the elements if the original packet
    /// had an empty extension, and otherwise after them.
    pub(super) const fn padded_len(&self) -> usize {
        if self.length == 0 { 0 } else { self.length.saturating_add(1).next_multiple_of(4) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn encoded(header: &RtpHeader, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out.len(), header.encoded_len());
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn the_example_of_the_book() {
        let header = RtpHeader {
            marker: true,
            payload_type: 96,
            sequence: 0x1234,
            timestamp: 0x0001_5F90,
            ssrc: 0x0E5F_0001,
            send_time: Some(NtpTime::from_bits(0xEE9A_3C00_8000_0000)),
            subflow: None,
            transport_sequence: None,
        };
        let bytes = [
            0x90, 0xE0, 0x12, 0x34, 0x00, 0x01, 0x5F, 0x90, 0x0E, 0x5F, 0x00, 0x01, 0xBE, 0xDE, 0x00, 0x03, 0xE7, 0xEE,
            0x9A, 0x3C, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        ];
        assert_eq!(encoded(&header, &[]), bytes);
        // The next expected packet is the packet above, but with the number 0x0102 in sub-flow 3.
        let header = RtpHeader { subflow: Some(Subflow { id: 3, sequence: 0x0102 }), ..header };
        let (fixed, time) = (&bytes[..12], &bytes[16..25]);
        let expected = [fixed, &[0xBE, 0xDE, 0, 4, 0xD4, 0x04, 0, 3, 1, 2], time, &[0]].concat();
        assert_eq!(encoded(&header, &[]), expected);
    }

    /// draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 2: the element has an identifier, the length field 1,
    /// and 16 bits. A zero byte of padding follows.
    #[test]
    fn a_transport_wide_number_alone_is_one_word() {
        let header = RtpHeader { payload_type: 96, transport_sequence: Some(0x0102), ..RtpHeader::default() };
        let bytes = encoded(&header, &[]);
        assert_eq!(bytes[12..], [0xBE, 0xDE, 0, 1, 0xB1, 1, 2, 0]);
        assert_eq!(RtpPacket::parse(&bytes).map(|packet| packet.header), Ok(header));
    }

    #[test]
    fn foreign_elements_contributors_and_padding_are_passed_over() {
        // The packet has one contributing source, and an extension with a foreign element of two bytes, a padding byte,
        // and our element with the sending time.
        let mut bytes = vec![0xB1, 0x60, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0xBE, 0xDE, 0, 4];
        bytes.extend_from_slice(&[0x21, 0xAA, 0xBB, 0x00, 0xE7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0]);
        bytes.extend_from_slice(&[7, 7, 0, 2]);
        let packet = RtpPacket::parse(&bytes).expect("well formed");
        assert_eq!(packet.header.send_time, Some(NtpTime::from_bits(0x0102_0304_0506_0708)));
        assert_eq!(packet.payload, [7, 7]);
    }

    #[test]
    fn elements_behind_an_end_of_the_list_and_of_another_form_are_not_read() {
        let send_time = |profile: [u8; 2], before: u8| {
            let mut bytes = vec![0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, profile[0], profile[1], 0, 3];
            bytes.extend_from_slice(&[before, 0, 0xE7, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
            RtpPacket::parse(&bytes).expect("a well formed packet, whatever its extension says").header.send_time
        };
        let time = Some(NtpTime::from_bits(0x0102_0304_0506_0708));
        assert_eq!(send_time([0xBE, 0xDE], 0x00), time, "padding is passed over");
        assert_eq!(send_time([0xBE, 0xDE], 0x03), None, "padding with a length ends the list");
        assert_eq!(send_time([0xBE, 0xDE], 0xF0), None, "identifier 15 ends the list");
        assert_eq!(send_time([0xBE, 0xDE], 0x20), time, "a foreign element of one byte");
        assert_eq!(send_time([0xAB, 0xCD], 0x00), None, "another profile has no elements");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(matches!(RtpPacket::parse(&[]), Err(WireError::Truncated { field: "RTP version", .. })));
        assert_eq!(RtpPacket::parse(&[0x40; 12]), Err(WireError::Version { found: 1, offset: 0 }));
        let mut padded = vec![0xA0, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(RtpPacket::parse(&padded), Err(WireError::Padding { found: 0, have: 0 }));
        padded.push(9);
        assert_eq!(RtpPacket::parse(&padded), Err(WireError::Padding { found: 9, have: 1 }));
    }

    proptest! {
        #[test]
        fn a_header_comes_back(marker: bool, payload_type in 0u8..128, sequence: u16, timestamp: u32, ssrc: u32, time: Option<u64>, place: Option<(u16, u16)>, transport_sequence: Option<u16>, payload: Vec<u8>) {
            let subflow = place.map(|(id, sequence)| Subflow { id, sequence });
            let header = RtpHeader { marker, payload_type, sequence, timestamp, ssrc, send_time: time.map(NtpTime::from_bits), subflow, transport_sequence };
            let bytes = encoded(&header, &payload);
            prop_assert_eq!(RtpPacket::parse(&bytes), Ok(RtpPacket { header, payload: &payload }));
            // A header that is truncated at any byte is rejected, and nothing panics.
            for end in 0..header.encoded_len() {
                prop_assert!(RtpPacket::parse(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_parse_or_do_not(bytes: Vec<u8>) {
            if let Ok(packet) = RtpPacket::parse(&bytes) {
                prop_assert!(packet.payload.len() <= bytes.len() - 12);
            }
        }
    }
}
