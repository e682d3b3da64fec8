//! Feedback of transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01): one report on
//! all streams of a transport.

use alloc::vec::Vec;

use equipoise::units::{Instant, ReceiverClock};

use super::marks::{Chunk, Marks, Symbol, Symbols, TICK_NS, tick};
use super::{
    ArrivalReport, ArrivalTime, FeedbackError, LONGEST, PacketArrival, PacketStatus, TRANSPORT_FORMAT,
    TRANSPORT_LAYER_FEEDBACK,
};
use crate::Ecn;
use crate::wire::WireError;
use crate::wire::reader::Reader;
use crate::wire::rtcp::packet;

/// A parsed transport-wide feedback packet.
///
/// Source: draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1.
///
/// | bits | content |
/// | --- | --- |
/// | 32 | SSRC of the reporter |
/// | 32 | SSRC of a media source |
/// | 16 | base sequence number, that of the first packet |
/// | 16 | packet status count |
/// | 24 | reference time, signed, in units of 64 ms |
/// | 8 | feedback packet count |
/// | | packet status chunks, 16 bits each |
/// | | receive deltas in units of 250 µs: 8 bits, or 16 bits and signed |
///
/// The first delta is the arrival time minus the reference time. Each further delta is the arrival time minus the
/// arrival time of the previous packet that has a delta. The format has no congestion marks and does not include the
/// time of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportFeedback<'a> {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    /// Synchronisation source of a stream of the transport.
    pub media_ssrc: u32,
    /// Transport-wide sequence number of the first packet.
    pub base: u16,
    /// Number of packets that the report covers.
    pub count: u16,
    /// Reference time in units of 64 ms, with 24 bits; it wraps every 12 days.
    pub reference: i32,
    /// Number of feedback packets that were sent before this one, modulo 256. A gap shows that feedback was lost.
    pub number: u8,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

/// Length in bytes of everything before the chunks, including the RTCP header.
const HEAD: usize = 20;
/// One unit of the reference time (64 ms), in units of 250 µs.
const TICKS_PER_REFERENCE: i64 = 256;

impl<'a> TransportFeedback<'a> {
    /// Parses the body of a feedback packet. The body is the data after the RTCP header.
    ///
    /// Chunks are read until all packets are covered. Further symbols in the last chunk, and data after the deltas, are
    /// ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if chunks or deltas are missing. Byte offsets count from the packet's first byte.
    pub fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body, 4);
        let (ssrc, media_ssrc) = (reader.u32("feedback SSRC")?, reader.u32("media SSRC")?);
        let (base, count) = (reader.u16("base sequence number")?, reader.u16("packet status count")?);
        let times = reader.u32("reference time")?;
        let behind = reader.rest();
        let (mut left, mut deltas_len, mut chunks_len) = (count, 0usize, 0usize);
        while left > 0 {
            let (symbols, deltas) = Symbols::of(reader.u16("packet status chunk")?).measure(left);
            left = left.saturating_sub(symbols);
            deltas_len = deltas_len.saturating_add(deltas);
            chunks_len = chunks_len.saturating_add(2);
        }
        Ok(Self {
            ssrc,
            media_ssrc,
            base,
            count,
            // Shifting right extends the sign of the 24-bit value.
            reference: times.cast_signed() >> 8,
            number: times as u8,
            chunks: behind.get(..chunks_len).unwrap_or_default(),
            deltas: reader.bytes(deltas_len, "receive deltas")?,
        })
    }

    /// Returns the report in the common form of all formats. The reference time wraps every 12 days. Of the times that
    /// the reference time can mean, the one nearest to `near` is taken.
    ///
    /// Our reading: in the draft, the reference time is on an arbitrary clock. If this is the receiver's clock, as in
    /// [`encode_transport_feedback`], the reported times are on the receiver's clock. Otherwise the reported times
    /// differ from the receiver's clock by a constant.
    pub fn report(&self, near: Instant<ReceiverClock>) -> ArrivalReport<TransportPackets<'a>> {
        let units = tick(near) / TICKS_PER_REFERENCE;
        // The difference of `reference` and `units` modulo 2²⁴, as a signed number from -2²³ to 2²³ - 1.
        let ahead = self.reference.wrapping_sub(units as i32).wrapping_shl(8) >> 8;
        let packets = TransportPackets {
            sequence: self.base,
            left: self.count,
            tick: units.saturating_add(i64::from(ahead)).saturating_mul(TICKS_PER_REFERENCE),
            symbols: Symbols::EMPTY,
            chunks: self.chunks,
            deltas: self.deltas,
        };
        ArrivalReport { ssrc: self.media_ssrc, made: None, packets }
    }
}

/// An iterator over the packets of a transport-wide report.
#[derive(Clone, Debug)]
pub struct TransportPackets<'a> {
    sequence: u16,
    left: u16,
    /// Arrival time of the previous packet that has a delta, in units of 250 µs; initially the reference time.
    tick: i64,
    symbols: Symbols,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

impl TransportPackets<'_> {
    /// Returns the next packet's symbol; `None` after the last packet.
    fn symbol(&mut self) -> Option<Symbol> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(symbol) = self.symbols.next() {
                return Some(symbol);
            }
            let (chunk, rest) = self.chunks.split_first_chunk()?;
            (self.symbols, self.chunks) = (Symbols::of(u16::from_be_bytes(*chunk)), rest);
        }
    }

    /// Returns the next delta, which has eight or 16 bits, depending on the symbol.
    fn delta(&mut self, symbol: Symbol) -> Option<i16> {
        let (delta, rest) = self.deltas.split_at_checked(symbol.delta_len())?;
        self.deltas = rest;
        match *delta {
            [small] => Some(i16::from(small)),
            [high, low] => Some(i16::from_be_bytes([high, low])),
            _ => None,
        }
    }
}

impl Iterator for TransportPackets<'_> {
    type Item = PacketStatus;

    fn next(&mut self) -> Option<PacketStatus> {
        let symbol = self.symbol()?;
        let arrived = |time| Some(PacketArrival { time, ecn: Ecn::NotCapable });
        let arrival = match symbol {
            Symbol::Missing => None,
            Symbol::Untimed => arrived(ArrivalTime::Unknown),
            Symbol::Small | Symbol::Large => {
                self.tick = self.tick.saturating_add(i64::from(self.delta(symbol)?));
                let nanos = u64::try_from(self.tick).unwrap_or(0).saturating_mul(TICK_NS);
                arrived(ArrivalTime::At(Instant::from_nanos(nanos)))
            }
        };
        let status = PacketStatus { sequence: self.sequence, arrival };
        self.sequence = self.sequence.wrapping_add(1);
        Some(status)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

/// The header fields with which a transport-wide feedback packet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportHead {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    /// Synchronisation source of a stream of the transport.
    pub media_ssrc: u32,
    /// Number of feedback packets that were sent before this one, modulo 256.
    pub number: u8,
    /// When the report is made. This time determines the reference time if no packet has a known arrival time.
    pub at: Instant<ReceiverClock>,
}

/// Appends a feedback packet of at most `limit` bytes, which reports as many of the next `packets` as fit, and removes
/// them from the iterator. Returns the number of reported packets.
///
/// The report ends before a packet that arrived more than 8.19 s before or after the previous packet with a known
/// arrival time, because a 16-bit delta cannot represent a longer time. If packets are left in the iterator, further
/// feedback packets must report them, each with the next `number`. Congestion marks are not included.
///
/// # Errors
/// [`FeedbackError`] if there is no room for a single packet's status, or if the sequence numbers are not consecutive.
/// After an error, nothing is appended.
pub fn encode_transport_feedback<I>(
    head: &TransportHead,
    packets: &mut I,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<usize, FeedbackError>
where
    I: Iterator<Item = PacketStatus> + Clone,
{
    let Some(first) = packets.clone().next() else { return Ok(0) };
    let arrived = packets.clone().take(usize::from(u16::MAX)).find_map(|status| status.arrival?.time.measured());
    let reference = tick(arrived.unwrap_or(head.at)) / TICKS_PER_REFERENCE;
    let marks = Marks::new(packets.clone(), reference.saturating_mul(TICKS_PER_REFERENCE));
    let start = out.len();
    let count = packet(TRANSPORT_LAYER_FEEDBACK, usize::from(TRANSPORT_FORMAT), out, |out| {
        let times = (reference as u32) << 8 | u32::from(head.number);
        for word in [head.ssrc, head.media_ssrc, u32::from(first.sequence) << 16, times] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        // The limit is rounded down to whole 32-bit words, because the packet is padded to a whole word.
        let count = write_chunks(&marks, limit.min(LONGEST) & !3, out)?;
        for mark in marks.flatten().take(count) {
            match mark.symbol {
                Symbol::Missing | Symbol::Untimed => {}
                Symbol::Small => out.push(mark.delta as u8),
                Symbol::Large => out.extend_from_slice(&mark.delta.to_be_bytes()),
            }
        }
        Ok(count)
    });
    match count {
        Ok(count) => {
            if let Some(field) = out.get_mut(start.saturating_add(14)..start.saturating_add(16)) {
                field.copy_from_slice(&(count as u16).to_be_bytes());
            }
            packets.take(count).for_each(drop);
        }
        Err(_) => out.truncate(start),
    }
    count
}

/// Appends the status chunks of as many packets as fit into a feedback packet of `limit` bytes, and leaves room for
/// their deltas. Returns the number of these packets.
fn write_chunks<I>(marks: &Marks<I>, limit: usize, out: &mut Vec<u8>) -> Result<usize, FeedbackError>
where
    I: Iterator<Item = PacketStatus> + Clone,
{
    let mut ahead = marks.clone();
    let (mut count, mut length) = (0usize, HEAD);
    loop {
        let most = usize::from(u16::MAX).saturating_sub(count);
        let room = limit.checked_sub(length.saturating_add(2));
        let chunk = match room {
            Some(room) => Chunk::of(ahead.clone(), room, most)?,
            None => None,
        };
        let Some(chunk) = chunk else { break };
        out.extend_from_slice(&chunk.word.to_be_bytes());
        length = length.saturating_add(chunk.deltas).saturating_add(2);
        count = count.saturating_add(chunk.symbols);
        if chunk.is_last {
            break;
        }
        ahead.by_ref().take(chunk.symbols).for_each(drop);
    }
    // The first delta is less than 64 ms and can be represented, so a count of zero means that there is no room.
    if count == 0 { Err(FeedbackError::NoRoom { need: HEAD + 4, have: limit }) } else { Ok(count) }
}
