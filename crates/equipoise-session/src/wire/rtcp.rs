//! RTCP packets and compounds (RFC 3550, Sec. 6), including reduced-size RTCP (RFC 5506).

use alloc::vec::Vec;

use super::feedback::is_padded_to_the_word;
use super::reader::Reader;
use super::{NtpTime, WireError};

/// One RTCP packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtcpPacket<'a> {
    /// Sender report, SR (RFC 3550, Sec. 6.4.1).
    SenderReport(SenderReport<'a>),
    /// Receiver report, RR (RFC 3550, Sec. 6.4.2).
    ReceiverReport(ReceiverReport<'a>),
    /// Source description, SDES (RFC 3550, Sec. 6.5).
    SourceDescription(SourceDescription<'a>),
    /// BYE (RFC 3550, Sec. 6.6).
    Goodbye(Goodbye<'a>),
    /// Reports on sub-flows (draft-ietf-avtcore-mprtp-03, Sec. 9).
    Subflows(SubflowReports<'a>),
    /// Any other packet, unparsed, so that it can be counted or passed on.
    Other {
        /// RTCP packet type.
        packet_type: u8,
        /// The five bits of the first byte that contain a count or a format number.
        count: u8,
        /// The packet after the common header.
        body: &'a [u8],
    },
}

/// The sender information of a sender report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Synchronisation source of the sender.
    pub ssrc: u32,
    /// When the report was sent.
    pub ntp: NtpTime,
    /// The time at which the report was sent, on the media clock.
    pub rtp_timestamp: u32,
    /// Number of media packets sent since the start, modulo 2³².
    pub packet_count: u32,
    /// Number of payload octets sent since the start, modulo 2³².
    pub octet_count: u32,
}

/// A parsed sender report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReport<'a> {
    /// Synchronisation source of the sender.
    pub ssrc: u32,
    /// When the report was sent.
    pub ntp: NtpTime,
    /// The time at which the report was sent, on the media clock.
    pub rtp_timestamp: u32,
    /// Number of media packets sent since the start, modulo 2³².
    pub packet_count: u32,
    /// Number of payload octets sent since the start, modulo 2³².
    pub octet_count: u32,
    blocks: &'a [u8],
    /// The data after the report blocks, of any size.
    pub extension: &'a [u8],
}

/// A parsed receiver report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport<'a> {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    blocks: &'a [u8],
    /// The data after the report blocks, of any size.
    pub extension: &'a [u8],
}

/// Reception statistics of one source (RFC 3550, Sec. 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// Synchronisation source of the media.
    pub ssrc: u32,
    /// Share of packets lost since the last report, in units of 1/256.
    pub fraction_lost: u8,
    /// Number of packets lost since the start: signed, 24 bits in the packet.
    pub cumulative_lost: i32,
    /// Sequence number cycles in the upper 16 bits, highest sequence number in the lower 16 bits.
    pub extended_highest: u32,
    /// Interarrival jitter in ticks of the media clock.
    pub jitter: u32,
    /// Middle 32 bits of the NTP time in the last sender report; 0 if none arrived.
    pub last_sr: u32,
    /// Time from the arrival of the last sender report to this report, in 1/65 536 s.
    pub delay_since_last_sr: u32,
}

/// A parsed source description: items such as the canonical name for each source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceDescription<'a> {
    count: u8,
    chunks: &'a [u8],
}

/// A parsed BYE: sources that leave the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goodbye<'a> {
    sources: &'a [u8],
    /// The reason for leaving, as text; empty if no reason is stated.
    pub reason: &'a [u8],
}

/// A parsed MPRTCP packet: RTCP packets that each refer to one sub-flow of a session with several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowReports<'a> {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    /// Synchronisation source of the media.
    pub media_ssrc: u32,
    blocks: Reader<'a>,
}

/// An iterator over the RTCP packets of a datagram, all of which are already validated.
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
/// RTCP packet type of MPRTCP (draft-ietf-avtcore-mprtp-03, Sec. 9).
const SUBFLOWS: u8 = 211;
/// Type of an MPRTCP block that contains an RTCP packet about the block's sub-flow.
const SUBFLOW_REPORT: u8 = 0;
const BLOCK_LEN: usize = 24;
/// Type of the SDES item with the canonical name (RFC 3550, Sec. 6.5.1).
const CNAME: u8 = 1;

/// Parses a datagram.
///
/// The lengths of all packets, and the content of packets of known types, are validated first, so that a datagram is
/// accepted as a whole or not at all.
///
/// # Errors
/// [`WireError`] if the datagram is empty, if a version is not 2, or if a length, a count, or padding is wrong. Only
/// the last packet may have padding, and padding has whole 32-bit words. Transport-wide feedback is exempt from these
/// two rules on padding.
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
        // All packets were validated when the datagram was parsed, so an error can only mean that there is no further
        // packet.
        next_packet(&mut self.reader).ok()
    }
}

/// Reads the next packet.
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
        let is_in_words = reader.rest().is_empty() && found.is_multiple_of(4);
        let is_allowed = found > 0 && (is_in_words || is_padded_to_the_word(packet_type, first & 0x1F));
        let kept = body.len().checked_sub(found).filter(|_| is_allowed).ok_or(wrong)?;
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
        SUBFLOWS => {
            let (ssrc, media_ssrc) = (reader.u32("MPRTCP SSRC")?, reader.u32("MPRTCP media SSRC")?);
            let blocks = reader;
            while next_subflow(&mut reader)?.is_some() {}
            RtcpPacket::Subflows(SubflowReports { ssrc, media_ssrc, blocks })
        }
        _ => RtcpPacket::Other { packet_type, count, body: reader.rest() },
    })
}

/// The content of a block in an MPRTCP packet: the number of the sub-flow, and the contained packet; `None` if the
/// block has an unknown type or contains an MPRTCP packet.
type SubflowBlock<'a> = (u16, Option<RtcpPacket<'a>>);

/// Reads one block of an MPRTCP packet; `None` after the last block.
fn next_subflow<'a>(reader: &mut Reader<'a>) -> Result<Option<SubflowBlock<'a>>, WireError> {
    if reader.rest().is_empty() {
        return Ok(None);
    }
    let (kind, words) = (reader.u8("MPRTCP block type")?, reader.u8("MPRTCP block length")?);
    let id = reader.u16("MPRTCP sub-flow")?;
    let at = reader.offset();
    let body = reader.bytes(usize::from(words).saturating_mul(4), "MPRTCP block")?;
    // An MPRTCP packet within another MPRTCP packet is not parsed, so that a datagram cannot cause deep recursion.
    let is_report = kind == SUBFLOW_REPORT && body.get(1) != Some(&SUBFLOWS);
    let packet = if is_report { Some(next_packet(&mut Reader::new(body, at))?) } else { None };
    Ok(Some((id, packet)))
}

/// Reads one item of an SDES chunk; `None` for the null byte that ends the chunk.
fn next_item<'a>(reader: &mut Reader<'a>) -> Result<Option<(u8, &'a [u8])>, WireError> {
    let kind = reader.u8("SDES item type")?;
    if kind == 0 {
        return Ok(None);
    }
    let length = usize::from(reader.u8("SDES item length")?);
    Ok(Some((kind, reader.bytes(length, "SDES item")?)))
}

/// Skips the null bytes up to the next 32-bit word. Packets start at a word boundary of the datagram, so the number of
/// null bytes follows from the offset.
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
    /// Returns the report blocks.
    pub fn blocks(&self) -> impl Iterator<Item = ReportBlock> + 'a {
        self.blocks.chunks_exact(BLOCK_LEN).filter_map(ReportBlock::parse)
    }

    /// Returns a receiver report with this report's blocks, and with `extension` in place of this report's extension.
    pub const fn reception(&self, extension: &'a [u8]) -> ReceiverReport<'a> {
        ReceiverReport { ssrc: self.ssrc, blocks: self.blocks, extension }
    }
}

impl<'a> ReceiverReport<'a> {
    /// Returns the report blocks.
    pub fn blocks(&self) -> impl Iterator<Item = ReportBlock> + 'a {
        self.blocks.chunks_exact(BLOCK_LEN).filter_map(ReportBlock::parse)
    }
}

impl<'a> SourceDescription<'a> {
    /// Returns each source that has a canonical name, and this name as bytes: UTF-8 if the peer conforms to RFC 3550.
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

impl<'a> SubflowReports<'a> {
    /// Returns the packets, each with the number of its sub-flow.
    pub fn packets(&self) -> impl Iterator<Item = (u16, RtcpPacket<'a>)> + 'a {
        let mut reader = self.blocks;
        // All blocks were validated when the datagram was parsed, so no error can occur here.
        core::iter::from_fn(move || next_subflow(&mut reader).ok().flatten())
            .filter_map(|(id, packet)| packet.map(|packet| (id, packet)))
    }
}

impl<'a> Goodbye<'a> {
    /// Returns the synchronisation sources that leave the session.
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
            // Shifting left and then right extends the sign of the 24-bit value.
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
    /// Appends an SR with these report blocks and this extension. Only the first 31 blocks are written. The extension
    /// is padded to whole 32-bit words.
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

/// Appends an RR of `ssrc` with these report blocks and this extension. Only the first 31 blocks are written. The
/// extension is padded to whole 32-bit words.
pub fn encode_receiver_report(ssrc: u32, blocks: &[ReportBlock], extension: &[u8], out: &mut Vec<u8>) {
    packet(RECEIVER_REPORT, blocks.len(), out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        blocks.iter().take(MAX_COUNT).for_each(|block| block.encode(out));
        out.extend_from_slice(extension);
    });
}

/// Appends an SDES with the canonical name of `ssrc`, truncated to 255 bytes.
pub fn encode_cname(ssrc: u32, cname: &str, out: &mut Vec<u8>) {
    let name = cname.as_bytes();
    let name = name.get(..usize::from(u8::MAX)).unwrap_or(name);
    packet(SOURCE_DESCRIPTION, 1, out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        out.extend_from_slice(&[CNAME, name.len() as u8]);
        out.extend_from_slice(name);
        // A null byte ends the chunk. `packet` adds further null bytes to complete the 32-bit word.
        out.push(0);
    });
}

/// Appends a BYE of `ssrc`.
pub fn encode_goodbye(ssrc: u32, out: &mut Vec<u8>) {
    packet(GOODBYE, 1, out, |out| out.extend_from_slice(&ssrc.to_be_bytes()));
}

/// Number of bytes in an MPRTCP packet before the contained packet.
pub(crate) const SUBFLOW_HEAD: usize = 16;

/// Appends an MPRTCP packet of the reporter `ssrc` about sub-flow `id` of the media of `media_ssrc`. `write` must
/// append one RTCP packet of at most 1020 bytes.
pub fn encode_subflow(ssrc: u32, media_ssrc: u32, id: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    packet(SUBFLOWS, 0, out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        out.extend_from_slice(&media_ssrc.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(&[SUBFLOW_REPORT, 0]);
        out.extend_from_slice(&id.to_be_bytes());
        let before = out.len();
        write(out);
        let words = out.len().saturating_sub(before) / 4;
        if let Some(field) = out.get_mut(start.saturating_add(1)) {
            *field = words as u8;
        }
    });
}

/// Maximum value of the five-bit count in an RTCP header.
const MAX_COUNT: usize = 31;

/// Appends the header of a packet, and calls `write` to append the body. Then pads the packet to whole 32-bit words and
/// sets the length field.
pub(super) fn packet<R>(packet_type: u8, count: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let start = out.len();
    out.extend_from_slice(&[VERSION | count.min(MAX_COUNT) as u8, packet_type, 0, 0]);
    let result = write(out);
    let length = out.len().saturating_sub(start);
    out.resize(start.saturating_add(length.next_multiple_of(4)), 0);
    // The length field contains the number of 32-bit words minus one, so the header alone has length 0.
    let words = length.div_ceil(4).saturating_sub(1) as u16;
    if let Some(field) = out.get_mut(start.saturating_add(2)..start.saturating_add(4)) {
        field.copy_from_slice(&words.to_be_bytes());
    }
    result
}

#[cfg(test)]
mod tests;
