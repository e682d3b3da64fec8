//! RTCP packets and compounds (RFC 3550, Sec. 6), alone or reduced in size (RFC 5506).

use alloc::vec::Vec;

use super::reader::Reader;
use super::{NtpTime, WireError};

/// One packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtcpPacket<'a> {
    /// SR (RFC 3550, Sec. 6.4.1).
    SenderReport(SenderReport<'a>),
    /// RR (RFC 3550, Sec. 6.4.2).
    ReceiverReport(ReceiverReport<'a>),
    /// SDES (RFC 3550, Sec. 6.5).
    SourceDescription(SourceDescription<'a>),
    /// BYE (RFC 3550, Sec. 6.6).
    Goodbye(Goodbye<'a>),
    /// Any other packet; whole, so that it can be counted or passed on.
    Other {
        /// Packet type.
        packet_type: u8,
        /// The five bits that are a count or a format.
        count: u8,
        /// What follows the common header.
        body: &'a [u8],
    },
}

/// What a sender tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Its synchronisation source.
    pub ssrc: u32,
    /// When the report left.
    pub ntp: NtpTime,
    /// The same moment on the media clock.
    pub rtp_timestamp: u32,
    /// Media packets sent since the start; wraps.
    pub packet_count: u32,
    /// Payload octets sent since the start; wraps.
    pub octet_count: u32,
}

/// A sender report as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport<'a> {
    /// Its synchronisation source.
    pub ssrc: u32,
    /// When the report left.
    pub ntp: NtpTime,
    /// The same moment on the media clock.
    pub rtp_timestamp: u32,
    /// Media packets sent since the start; wraps.
    pub packet_count: u32,
    /// Payload octets sent since the start; wraps.
    pub octet_count: u32,
    blocks: &'a [u8],
    /// What follows the report blocks, whatever its size.
    pub extension: &'a [u8],
}

/// A receiver report as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport<'a> {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    blocks: &'a [u8],
    /// What follows the report blocks, whatever its size.
    pub extension: &'a [u8],
}

/// Reception statistics of one source (RFC 3550, Sec. 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: u32,
    /// Share lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Lost since the start; signed, 24 bits on the wire.
    pub cumulative_lost: i32,
    /// Cycles in the upper, highest sequence number in the lower 16 bits.
    pub extended_highest: u32,
    /// Interarrival jitter in ticks of the media clock.
    pub jitter: u32,
    /// Middle 32 bits of the last sender report's NTP time; 0 for none.
    pub last_sr: u32,
    /// From the last sender report's arrival to this report, in 1/65 536 s.
    pub delay_since_last_sr: u32,
}

/// Descriptions of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceDescription<'a> {
    count: u8,
    chunks: &'a [u8],
}

/// Sources that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goodbye<'a> {
    sources: &'a [u8],
    /// Why, in the leaver's words; empty for no reason given.
    pub reason: &'a [u8],
}

/// The packets of a datagram, each of them known to be well formed.
#[derive(Clone, Debug)]
pub struct Compound<'a> {
    reader: Reader<'a>,
}

const VERSION: u8 = 0x80;
const PADDING: u8 = 0x20;
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const SOURCE_DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;
const BLOCK_LEN: usize = 24;
/// SDES item of the canonical name (RFC 3550, Sec. 6.5.1).
const CNAME: u8 = 1;

/// Reads a whole datagram.
///
/// The framing and every packet that this module knows are checked before any is given out, so that a datagram counts
/// whole or not at all.
///
/// # Errors
/// [`WireError`] for an empty datagram, another version, a length or count that does not fit, and padding elsewhere than
/// on the last packet.
pub fn parse_compound(datagram: &[u8]) -> Result<Compound<'_>, WireError> {
    let whole = Compound { reader: Reader::new(datagram, 0) };
    let mut reader = whole.reader;
    loop {
        next_packet(&mut reader)?;
        if reader.rest().is_empty() {
            return Ok(whole);
        }
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = RtcpPacket<'a>;

    fn next(&mut self) -> Option<RtcpPacket<'a>> {
        // The whole has been checked: an error is the end of the datagram.
        next_packet(&mut self.reader).ok()
    }
}

/// Takes one packet off the front.
fn next_packet<'a>(reader: &mut Reader<'a>) -> Result<RtcpPacket<'a>, WireError> {
    let start = reader.offset();
    let first = reader.u8("RTCP version")?;
    if first & 0xC0 != VERSION {
        return Err(WireError::Version { found: first >> 6, offset: start });
    }
    let packet_type = reader.u8("RTCP packet type")?;
    let words = usize::from(reader.u16("RTCP length")?);
    let at = reader.offset();
    let mut body = reader.bytes(words.saturating_mul(4), "RTCP packet")?;
    if first & PADDING != 0 {
        let found = usize::from(body.last().copied().unwrap_or(0));
        let wrong = WireError::Padding { found, have: body.len() };
        let is_last = reader.rest().is_empty();
        let kept =
            body.len().checked_sub(found).filter(|_| is_last && found > 0 && found.is_multiple_of(4)).ok_or(wrong)?;
        body = body.get(..kept).ok_or(wrong)?;
    }
    parse_body(packet_type, first & 0x1F, Reader::new(body, at))
}

fn parse_body(packet_type: u8, count: u8, mut reader: Reader<'_>) -> Result<RtcpPacket<'_>, WireError> {
    let blocks_len = usize::from(count).saturating_mul(BLOCK_LEN);
    Ok(match packet_type {
        SENDER_REPORT => RtcpPacket::SenderReport(SenderReport {
            ssrc: reader.u32("SR SSRC")?,
            ntp: NtpTime::from_bits(reader.u64("SR NTP time")?),
            rtp_timestamp: reader.u32("SR RTP timestamp")?,
            packet_count: reader.u32("SR packet count")?,
            octet_count: reader.u32("SR octet count")?,
            blocks: reader.bytes(blocks_len, "SR report blocks")?,
            extension: reader.rest(),
        }),
        RECEIVER_REPORT => RtcpPacket::ReceiverReport(ReceiverReport {
            ssrc: reader.u32("RR SSRC")?,
            blocks: reader.bytes(blocks_len, "RR report blocks")?,
            extension: reader.rest(),
        }),
        SOURCE_DESCRIPTION => {
            let description = SourceDescription { count, chunks: reader.rest() };
            check_chunks(count, reader)?;
            RtcpPacket::SourceDescription(description)
        }
        GOODBYE => {
            let sources = reader.bytes(usize::from(count).saturating_mul(4), "BYE sources")?;
            let reason = if reader.rest().is_empty() {
                &[]
            } else {
                let length = usize::from(reader.u8("BYE reason length")?);
                reader.bytes(length, "BYE reason")?
            };
            RtcpPacket::Goodbye(Goodbye { sources, reason })
        }
        _ => RtcpPacket::Other { packet_type, count, body: reader.rest() },
    })
}

/// Reads one item of a chunk; `None` for the null that ends it.
fn next_item<'a>(reader: &mut Reader<'a>) -> Result<Option<(u8, &'a [u8])>, WireError> {
    let kind = reader.u8("SDES item type")?;
    if kind == 0 {
        return Ok(None);
    }
    let length = usize::from(reader.u8("SDES item length")?);
    Ok(Some((kind, reader.bytes(length, "SDES item")?)))
}

/// Passes over the nulls up to the next word boundary; packets begin on one, so offsets tell.
fn align(reader: &mut Reader<'_>) -> Result<(), WireError> {
    let nulls = reader.offset().wrapping_neg() % 4;
    reader.bytes(nulls, "SDES padding").map(|_| ())
}

fn check_chunks(count: u8, mut reader: Reader<'_>) -> Result<(), WireError> {
    for _ in 0..count {
        reader.u32("SDES source")?;
        while next_item(&mut reader)?.is_some() {}
        align(&mut reader)?;
    }
    Ok(())
}

impl<'a> SenderReport<'a> {
    /// The report blocks.
    pub fn blocks(&self) -> impl Iterator<Item = ReportBlock> + 'a {
        self.blocks.chunks_exact(BLOCK_LEN).filter_map(ReportBlock::parse)
    }
}

impl<'a> ReceiverReport<'a> {
    /// The report blocks.
    pub fn blocks(&self) -> impl Iterator<Item = ReportBlock> + 'a {
        self.blocks.chunks_exact(BLOCK_LEN).filter_map(ReportBlock::parse)
    }
}

impl<'a> SourceDescription<'a> {
    /// Every source's canonical name, as bytes: UTF-8 where the peer keeps to RFC 3550.
    pub fn cnames(&self) -> impl Iterator<Item = (u32, &'a [u8])> + 'a {
        let mut reader = Reader::new(self.chunks, 0);
        (0..self.count).filter_map(move |_| {
            let ssrc = reader.u32("SDES source").ok()?;
            let mut cname = None;
            while let Ok(Some((kind, text))) = next_item(&mut reader) {
                cname = cname.or((kind == CNAME).then_some(text));
            }
            align(&mut reader).ok()?;
            Some((ssrc, cname?))
        })
    }
}

impl<'a> Goodbye<'a> {
    /// The sources that leave.
    pub fn ssrcs(&self) -> impl Iterator<Item = u32> + 'a {
        self.sources.chunks_exact(4).filter_map(|word| word.try_into().ok().map(u32::from_be_bytes))
    }
}

impl ReportBlock {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes, 0);
        let ssrc = reader.u32("source").ok()?;
        let losses = reader.u32("losses").ok()?;
        Some(Self {
            ssrc,
            fraction_lost: (losses >> 24) as u8,
            // Shifting up and down again carries the sign of the 24 bits.
            cumulative_lost: (losses << 8).cast_signed() >> 8,
            extended_highest: reader.u32("extended highest sequence number").ok()?,
            jitter: reader.u32("interarrival jitter").ok()?,
            last_sr: reader.u32("last SR").ok()?,
            delay_since_last_sr: reader.u32("delay since last SR").ok()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let lost = self.cumulative_lost.clamp(-0x80_0000, 0x7F_FFFF).cast_unsigned() & 0x00FF_FFFF;
        let losses = u32::from(self.fraction_lost) << 24 | lost;
        let words = [self.ssrc, losses, self.extended_highest, self.jitter, self.last_sr, self.delay_since_last_sr];
        for word in words {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }
}

impl SenderInfo {
    /// Appends an SR with these report blocks (the first 31) and this extension, which is padded to whole words.
    pub fn encode(&self, blocks: &[ReportBlock], extension: &[u8], out: &mut Vec<u8>) {
        packet(SENDER_REPORT, blocks.len(), out, |out| {
            out.extend_from_slice(&self.ssrc.to_be_bytes());
            out.extend_from_slice(&self.ntp.as_bits().to_be_bytes());
            for word in [self.rtp_timestamp, self.packet_count, self.octet_count] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            blocks.iter().take(MAX_COUNT).for_each(|block| block.encode(out));
            out.extend_from_slice(extension);
        });
    }
}

/// Appends an RR of `ssrc` with these report blocks (the first 31) and this extension, which is padded to whole words.
pub fn encode_receiver_report(ssrc: u32, blocks: &[ReportBlock], extension: &[u8], out: &mut Vec<u8>) {
    packet(RECEIVER_REPORT, blocks.len(), out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        blocks.iter().take(MAX_COUNT).for_each(|block| block.encode(out));
        out.extend_from_slice(extension);
    });
}

/// Appends an SDES with the canonical name of `ssrc`, cut after 255 bytes.
pub fn encode_cname(ssrc: u32, cname: &str, out: &mut Vec<u8>) {
    let name = cname.as_bytes();
    let name = name.get(..usize::from(u8::MAX)).unwrap_or(name);
    packet(SOURCE_DESCRIPTION, 1, out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        out.extend_from_slice(&[CNAME, name.len() as u8]);
        out.extend_from_slice(name);
        // At least one null ends the chunk; padding to the word supplies the others.
        out.push(0);
    });
}

/// Appends a BYE of `ssrc`.
pub fn encode_goodbye(ssrc: u32, out: &mut Vec<u8>) {
    packet(GOODBYE, 1, out, |out| out.extend_from_slice(&ssrc.to_be_bytes()));
}

/// The most that the five bits of the count can say.
const MAX_COUNT: usize = 31;

/// Appends a packet whose body `write` appends; pads it to whole words and fills in its length.
fn packet(packet_type: u8, count: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[VERSION | count.min(MAX_COUNT) as u8, packet_type, 0, 0]);
    write(out);
    let length = out.len().saturating_sub(start);
    out.resize(start.saturating_add(length.next_multiple_of(4)), 0);
    // The length counts words from zero, so that the common header alone has length 0.
    let words = length.div_ceil(4).saturating_sub(1) as u16;
    if let Some(field) = out.get_mut(start.saturating_add(2)..start.saturating_add(4)) {
        field.copy_from_slice(&words.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::units::Size;
    use crate::wire::{DelayReport, ReportRequest};

    fn info() -> SenderInfo {
        SenderInfo {
            ssrc: 0x0E5F_0001,
            ntp: NtpTime::from_bits(0xEE9A_3C01_4000_0000),
            rtp_timestamp: 0x0003_0D40,
            packet_count: 125,
            octet_count: 118_000,
        }
    }

    fn block() -> ReportBlock {
        ReportBlock {
            ssrc: 0x0E5F_0001,
            fraction_lost: 3,
            cumulative_lost: -2,
            extended_highest: 0x0001_0203,
            jitter: 45,
            last_sr: 0x3C01_4000,
            delay_since_last_sr: 0,
        }
    }

    #[test]
    fn a_request_has_64_and_its_answer_72_bytes_of_ip_packet() {
        let mut request = Vec::new();
        let extension = ReportRequest { interval_start: NtpTime::from_bits(0xEE9A_3C00_4000_0000).middle() }.to_bytes();
        info().encode(&[], &extension, &mut request);
        assert_eq!(Size::from_bytes(request.len() as u64) + Size::IPV4_UDP, Size::from_bytes(64));
        assert_eq!(
            request,
            [
                0x80, 200, 0, 8, 0x0E, 0x5F, 0x00, 0x01, 0xEE, 0x9A, 0x3C, 0x01, 0x40, 0, 0, 0, 0x00, 0x03, 0x0D, 0x40,
                0, 0, 0, 125, 0x00, 0x01, 0xCC, 0xF0, 0x80, 0x01, 0x00, 0x08, 0x3C, 0x00, 0x40, 0
            ]
        );
        let mut answer = Vec::new();
        let extension = DelayReport::agreed(None).to_bytes();
        encode_receiver_report(0x0E5F_0002, &[block()], &extension, &mut answer);
        assert_eq!(Size::from_bytes(answer.len() as u64) + Size::IPV4_UDP, Size::from_bytes(72));
        assert_eq!(answer.get(..4), Some(&[0x81, 201, 0, 10][..]));
        let Some(RtcpPacket::ReceiverReport(report)) = parse_compound(&answer).expect("well formed").next() else {
            panic!("a receiver report")
        };
        assert_eq!((report.blocks().collect::<Vec<_>>(), report.extension), (vec![block()], &extension[..]));
    }

    #[test]
    fn a_compound_with_name_and_goodbye_comes_back() {
        let mut out = Vec::new();
        info().encode(&[block()], &[], &mut out);
        encode_cname(1, "équipe@host", &mut out);
        encode_goodbye(1, &mut out);
        let packets: Vec<_> = parse_compound(&out).expect("well formed").collect();
        let [RtcpPacket::SenderReport(sr), RtcpPacket::SourceDescription(sdes), RtcpPacket::Goodbye(bye)] =
            packets.as_slice()
        else {
            panic!("{packets:?}")
        };
        assert_eq!((sr.ntp, sr.octet_count, sr.extension), (info().ntp, 118_000, &[][..]));
        assert_eq!(sdes.cnames().collect::<Vec<_>>(), [(1, "équipe@host".as_bytes())]);
        assert_eq!((bye.ssrcs().collect::<Vec<_>>(), bye.reason), (vec![1], &[][..]));
    }

    #[test]
    fn blocks_are_counted_by_the_count_and_not_by_the_length() {
        // An extension just as long as a block stays an extension.
        let mut out = Vec::new();
        encode_receiver_report(5, &[block()], &[0xEE; BLOCK_LEN], &mut out);
        let Some(RtcpPacket::ReceiverReport(report)) = parse_compound(&out).expect("well formed").next() else {
            panic!("a receiver report")
        };
        assert_eq!((report.blocks().count(), report.extension.len()), (1, BLOCK_LEN));
        // More blocks than there are bytes.
        if let Some(first) = out.first_mut() {
            *first = VERSION | 4;
        }
        assert!(matches!(parse_compound(&out), Err(WireError::Truncated { field: "RR report blocks", .. })));
    }

    #[test]
    fn padding_is_for_the_last_packet_and_in_whole_words() {
        let padded = [0xA0, 203, 0, 1, 0, 0, 0, 4];
        assert!(parse_compound(&padded).is_ok());
        let twice = [padded, padded].concat();
        assert!(matches!(parse_compound(&twice), Err(WireError::Padding { .. })));
        assert!(matches!(parse_compound(&[0xA0, 203, 0, 1, 0, 0, 0, 3]), Err(WireError::Padding { .. })));
        assert!(matches!(parse_compound(&[0xA0, 203, 0, 0]), Err(WireError::Padding { .. })));
    }

    #[test]
    fn half_a_datagram_is_none() {
        let mut out = Vec::new();
        info().encode(&[block()], &[1; 8], &mut out);
        encode_cname(1, "name", &mut out);
        for end in 0..out.len() {
            // Only the boundary between the two packets is an end.
            assert_eq!(parse_compound(&out[..end]).is_ok(), end == 60, "{end}");
        }
    }

    proptest! {
        #[test]
        fn blocks_come_back_with_losses_kept_to_24_bits(fraction_lost: u8, cumulative_lost: i32, words: [u32; 5]) {
            let [ssrc, extended_highest, jitter, last_sr, delay_since_last_sr] = words;
            let sent = ReportBlock { ssrc, fraction_lost, cumulative_lost, extended_highest, jitter, last_sr, delay_since_last_sr };
            let mut out = Vec::new();
            info().encode(&[sent], &[], &mut out);
            let Some(RtcpPacket::SenderReport(report)) = parse_compound(&out).unwrap().next() else { panic!("an SR") };
            let kept = ReportBlock { cumulative_lost: cumulative_lost.clamp(-0x80_0000, 0x7F_FFFF), ..sent };
            prop_assert_eq!(report.blocks().collect::<Vec<_>>(), vec![kept]);
        }

        #[test]
        fn any_bytes_parse_or_do_not_and_every_packet_can_be_walked(mut bytes: Vec<u8>, words in 0u8..8, kind in 199u8..205, count in 0u8..32) {
            // A plausible header lets the rest get further than the version.
            bytes.splice(0..0, [VERSION | count, kind, 0, words]);
            if let Ok(compound) = parse_compound(&bytes) {
                for packet in compound {
                    match packet {
                        RtcpPacket::SenderReport(report) => prop_assert!(report.blocks().count() <= MAX_COUNT),
                        RtcpPacket::ReceiverReport(report) => prop_assert!(report.blocks().count() <= MAX_COUNT),
                        RtcpPacket::SourceDescription(sdes) => prop_assert!(sdes.cnames().count() <= MAX_COUNT),
                        RtcpPacket::Goodbye(bye) => prop_assert!(bye.ssrcs().count() <= MAX_COUNT),
                        RtcpPacket::Other { body, .. } => prop_assert!(body.len() < bytes.len()),
                    }
                }
            }
        }
    }
}
