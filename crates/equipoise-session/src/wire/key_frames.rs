//! Key frame requests: picture loss indication (PLI) and full intra request (FIR). Both are RTCP payload-specific
//! feedback.

use alloc::vec::Vec;

use super::WireError;
use super::reader::Reader;
use super::rtcp::{RtcpPacket, packet};

/// A decoder's request for a key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyFrameRequest {
    /// The decoder has lost pictures and must restart (PLI; RFC 4585, Sec. 6.3.1).
    PictureLoss,
    /// The decoder needs a starting point, because a participant has joined (FIR; RFC 5104, Sec. 4.3.1).
    FullIntra,
}

impl KeyFrameRequest {
    /// Returns the request's name: lower-case words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PictureLoss => "picture-loss",
            Self::FullIntra => "full-intra",
        }
    }
}

/// The key frame requests in one packet of a compound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFrameFeedback<'a> {
    /// Synchronisation source of the requester.
    pub ssrc: u32,
    asked: Asked<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked<'a> {
    /// The synchronisation source from which a key frame is requested.
    PictureLoss(u32),
    /// The encoded entries, one per source from which a key frame is requested.
    FullIntra(&'a [u8]),
}

/// A request to one media source for a key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedOf {
    /// Synchronisation source of the media.
    pub media_ssrc: u32,
    /// The kind of request.
    pub request: KeyFrameRequest,
    /// Number of the request; a repetition of the request has the same number. `None` for a picture loss indication.
    pub number: Option<u8>,
}

/// RTCP packet type of payload-specific feedback, PSFB (RFC 4585, Sec. 6.1).
const PAYLOAD_FEEDBACK: u8 = 206;
/// Format number (FMT) of a picture loss indication (RFC 4585, Sec. 6.3.1).
const PICTURE_LOSS_FORMAT: u8 = 1;
/// Format number (FMT) of a full intra request (RFC 5104, Sec. 4.3.1.1).
const FULL_INTRA_FORMAT: u8 = 4;
/// Length in bytes of an entry of a full intra request: SSRC, command number, 24 reserved bits.
const ENTRY: usize = 8;

impl<'a> KeyFrameFeedback<'a> {
    /// Parses a packet of an RTCP compound; `None` if the packet is not a key frame request.
    ///
    /// # Errors
    /// [`WireError`] if the packet is too short, if a picture loss indication is too long, or if a full intra request
    /// ends within an entry. Byte offsets count from the packet's first byte.
    pub fn of(packet: &RtcpPacket<'a>) -> Option<Result<Self, WireError>> {
        match *packet {
            RtcpPacket::Other { packet_type: PAYLOAD_FEEDBACK, count: PICTURE_LOSS_FORMAT, body } => {
                Some(Self::parse(body, |media, rest| {
                    let (field, found) = ("bytes behind a picture loss indication", rest.rest().len());
                    let error = WireError::Count { field, offset: rest.offset(), found, most: 0 };
                    if found == 0 { Ok(Asked::PictureLoss(media)) } else { Err(error) }
                }))
            }
            RtcpPacket::Other { packet_type: PAYLOAD_FEEDBACK, count: FULL_INTRA_FORMAT, body } => {
                // The media source in the packet's header is unused (RFC 5104, Sec. 4.3.1.2).
                Some(Self::parse(body, |_, mut rest| {
                    let entries = rest.rest();
                    loop {
                        rest.bytes(ENTRY, "entry of a full intra request")?;
                        if rest.rest().is_empty() {
                            return Ok(Asked::FullIntra(entries));
                        }
                    }
                }))
            }
            _ => None,
        }
    }

    fn parse(
        body: &'a [u8],
        asked: impl FnOnce(u32, Reader<'a>) -> Result<Asked<'a>, WireError>,
    ) -> Result<Self, WireError> {
        let mut reader = Reader::new(body, 4);
        let (ssrc, media_ssrc) = (reader.u32("SSRC of the feedback")?, reader.u32("media SSRC of the feedback")?);
        Ok(Self { ssrc, asked: asked(media_ssrc, reader)? })
    }

    /// Returns the requests, one per source.
    pub fn asked(&self) -> impl Iterator<Item = AskedOf> + use<'a> {
        let (loss, entries) = match self.asked {
            Asked::PictureLoss(media_ssrc) => (Some(media_ssrc), &[][..]),
            Asked::FullIntra(entries) => (None, entries),
        };
        let loss = loss.map(|media_ssrc| AskedOf { media_ssrc, request: KeyFrameRequest::PictureLoss, number: None });
        let full = entries.chunks_exact(ENTRY).filter_map(|entry| {
            let mut reader = Reader::new(entry, 0);
            let media_ssrc = reader.u32("source").ok()?;
            let number = Some(reader.u8("command number").ok()?);
            Some(AskedOf { media_ssrc, request: KeyFrameRequest::FullIntra, number })
        });
        loss.into_iter().chain(full)
    }
}

/// Appends a packet in which `ssrc` requests a key frame from the source `media_ssrc`: 12 bytes for a picture loss
/// indication, or 20 bytes for a full intra request, whose number is `number`.
pub fn encode_key_frame_request(
    ssrc: u32,
    media_ssrc: u32,
    (request, number): (KeyFrameRequest, u8),
    out: &mut Vec<u8>,
) {
    match request {
        KeyFrameRequest::PictureLoss => packet(PAYLOAD_FEEDBACK, PICTURE_LOSS_FORMAT.into(), out, |out| {
            out.extend_from_slice(&ssrc.to_be_bytes());
            out.extend_from_slice(&media_ssrc.to_be_bytes());
        }),
        KeyFrameRequest::FullIntra => packet(PAYLOAD_FEEDBACK, FULL_INTRA_FORMAT.into(), out, |out| {
            out.extend_from_slice(&ssrc.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&media_ssrc.to_be_bytes());
            out.extend_from_slice(&[number, 0, 0, 0]);
        }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::wire::rtcp::parse_compound;

    fn read(datagram: &[u8]) -> Option<Result<(u32, Vec<AskedOf>), WireError>> {
        let packet = parse_compound(datagram).expect("a compound").next().expect("a packet");
        KeyFrameFeedback::of(&packet).map(|read| read.map(|it| (it.ssrc, it.asked().collect())))
    }

    #[test]
    fn what_is_asked_comes_back_as_the_standards_have_it() {
        let mut out = Vec::new();
        encode_key_frame_request(2, 0x0E5F_0001, (KeyFrameRequest::PictureLoss, 9), &mut out);
        assert_eq!(out, [0x81, 206, 0, 2, 0, 0, 0, 2, 0x0E, 0x5F, 0, 1]);
        let request = KeyFrameRequest::PictureLoss;
        assert_eq!(read(&out), Some(Ok((2, vec![AskedOf { media_ssrc: 0x0E5F_0001, request, number: None }]))));
        out.clear();
        encode_key_frame_request(2, 0x0E5F_0001, (KeyFrameRequest::FullIntra, 9), &mut out);
        assert_eq!(out, [0x84, 206, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0x0E, 0x5F, 0, 1, 9, 0, 0, 0]);
        let request = KeyFrameRequest::FullIntra;
        assert_eq!(read(&out), Some(Ok((2, vec![AskedOf { media_ssrc: 0x0E5F_0001, request, number: Some(9) }]))));
    }

    #[test]
    fn a_full_intra_request_may_be_to_several_sources() {
        let entries = [[0, 0, 0, 1, 7, 0, 0, 0], [0, 0, 0, 5, 8, 0, 0, 0]].concat();
        let datagram = [&[0x84, 206, 0, 6, 0, 0, 0, 2, 0, 0, 0, 0][..], &entries].concat();
        let (ssrc, asked) = read(&datagram).expect("a request").expect("well formed");
        let asked: Vec<_> = asked.iter().map(|of| (of.media_ssrc, of.number)).collect();
        assert_eq!((ssrc, asked), (2, vec![(1, Some(7)), (5, Some(8))]));
    }

    #[test]
    fn what_is_too_short_too_long_or_cut_is_refused_and_other_feedback_is_none_of_ours() {
        let short = [0x81, 206, 0, 1, 0, 0, 0, 2];
        assert!(matches!(read(&short), Some(Err(WireError::Truncated { offset: 8, need: 4, have: 0, .. }))));
        let long = [0x81, 206, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0];
        assert!(matches!(read(&long), Some(Err(WireError::Count { offset: 12, found: 4, most: 0, .. }))));
        let no_entry = [0x84, 206, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0];
        assert!(matches!(read(&no_entry), Some(Err(WireError::Truncated { offset: 12, need: 8, have: 0, .. }))));
        let cut = [0x84, 206, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(matches!(read(&cut), Some(Err(WireError::Truncated { offset: 12, need: 8, have: 4, .. }))));
        // Neither packet requests a key frame. The first packet is a slice loss indication. The second packet is
        // transport layer feedback with the format number of a picture loss indication.
        assert_eq!(read(&[0x82, 206, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1]), None);
        assert_eq!(read(&[0x81, 205, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1]), None);
    }
}
