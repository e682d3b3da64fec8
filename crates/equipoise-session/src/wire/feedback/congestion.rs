//! Congestion control feedback (RFC 8888): a feedback packet contains reports on several RTP streams. A report has
//! 16 bits for each RTP packet.

use alloc::vec::Vec;

use equipoise::units::{Instant, ReceiverClock, SenderClock, Span};

use super::{
    ArrivalReport, ArrivalTime, CONGESTION_FORMAT, Consecutive, FeedbackError, LONGEST, PacketArrival, PacketStatus,
    TRANSPORT_LAYER_FEEDBACK,
};
use crate::Ecn;
use crate::wire::reader::Reader;
use crate::wire::rtcp::packet;
use crate::wire::{NtpTime, WireError};

/// A parsed congestion control feedback packet.
///
/// Source: RFC 8888, Sec. 3.1.
///
/// | bits | content |
/// | --- | --- |
/// | 32 | SSRC of the reporter |
/// | | for each stream: SSRC (32), `begin_seq` (16), `num_reports` (16), the metric blocks, padding to 32 bits |
/// | 32 | report timestamp: the middle 32 bits of the NTP time |
///
/// A metric block has 16 bits: R (1) is set if the packet arrived, then ECN (2), then the arrival time offset (13). The
/// offset is the time from the arrival to the report timestamp, in 1/1024 s.
///
/// Our reading: `num_reports` is the number of metric blocks, as in other implementations. The RFC's text contradicts
/// itself: it has blocks for `begin_seq` to `begin_seq + num_reports` inclusive, but none if `num_reports` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback<'a> {
    /// Synchronisation source of the reporter.
    pub ssrc: u32,
    /// When the report was made: the middle 32 bits of the NTP time.
    pub timestamp: u32,
    blocks: Reader<'a>,
}

/// The report on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFeedback<'a> {
    /// Synchronisation source of the stream.
    pub ssrc: u32,
    /// Sequence number of the first packet that the report covers, or the highest sequence number so far if the report
    /// covers no packet.
    pub begin: u16,
    timestamp: u32,
    metrics: &'a [u8],
}

pub(super) const RECEIVED: u16 = 0x8000;
/// The largest arrival time offset that is exact, in 1/1024 s.
pub(super) const LONGEST_OFFSET: u16 = 0x1FFD;
/// An arrival time offset of this value means that the offset is larger than `LONGEST_OFFSET`.
pub(super) const OVER_RANGE: u16 = 0x1FFE;
/// An arrival time offset of this value means that the arrival time was not measured, or is after the report timestamp.
pub(super) const UNAVAILABLE: u16 = 0x1FFF;
/// Units of the arrival time offset per second.
const OFFSETS_PER_S: u64 = 1024;
/// Units of the report timestamp per second.
const TIMESTAMPS_PER_S: u128 = 1 << 16;
const NANOS_PER_S: u64 = 1_000_000_000;
const BLOCK_HEAD: usize = 8;
const TIMESTAMP_LEN: usize = 4;

impl<'a> CongestionFeedback<'a> {
    /// Maximum number of packets that one report covers for one stream: a quarter of the sequence number space (RFC
    /// 8888, Sec. 3.1).
    pub const MAX_REPORTS: u16 = 16_384;

    /// Parses the body of the packet, which follows its RTCP header.
    ///
    /// The padding after an odd number of metric blocks is ignored, and so are the ECN and offset bits of a packet that
    /// did not arrive.
    ///
    /// # Errors
    /// [`WireError`] if the blocks do not end at the report timestamp, or if a stream has more than
    /// [`MAX_REPORTS`](Self::MAX_REPORTS) metric blocks. Byte offsets count from the packet's first byte.
    pub fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body, 4);
        let ssrc = reader.u32("feedback SSRC")?;
        let length = reader.rest().len().saturating_sub(TIMESTAMP_LEN);
        let mut end = reader;
        let blocks = Reader::new(end.bytes(length, "report blocks")?, reader.offset());
        let timestamp = end.u32("report timestamp")?;
        let mut rest = blocks;
        while next_stream(&mut rest, timestamp)?.is_some() {}
        Ok(Self { ssrc, timestamp, blocks })
    }

    /// Returns the reports, one per stream.
    pub fn streams(&self) -> impl Iterator<Item = StreamFeedback<'a>> + Clone + use<'a> {
        let (mut rest, timestamp) = (self.blocks, self.timestamp);
        // All blocks were validated when the packet was parsed, so there is no error here.
        core::iter::from_fn(move || next_stream(&mut rest, timestamp).ok().flatten())
    }
}

/// Reads the report on one stream; `None` if there is no further report.
fn next_stream<'a>(reader: &mut Reader<'a>, timestamp: u32) -> Result<Option<StreamFeedback<'a>>, WireError> {
    if reader.rest().is_empty() {
        return Ok(None);
    }
    let ssrc = reader.u32("stream SSRC")?;
    let begin = reader.u16("begin_seq")?;
    let offset = reader.offset();
    let count = reader.u16("num_reports")?;
    if count > CongestionFeedback::MAX_REPORTS {
        let most = usize::from(CongestionFeedback::MAX_REPORTS);
        return Err(WireError::Count { field: "num_reports", offset, found: usize::from(count), most });
    }
    let length = usize::from(count).saturating_mul(2);
    let metrics = reader.bytes(length, "metric blocks")?;
    reader.bytes(length % 4, "padding of the metric blocks")?;
    Ok(Some(StreamFeedback { ssrc, begin, timestamp, metrics }))
}

impl<'a> StreamFeedback<'a> {
    /// Returns the number of packets that the report covers.
    pub const fn len(&self) -> usize {
        self.metrics.len() / 2
    }

    /// Whether the report covers no packets.
    pub const fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// Returns the report in the common form of all formats. The timestamp wraps every 18 hours. Of the times that have
    /// this timestamp, the one nearest to `near` is the time of the report.
    pub fn report(&self, near: Instant<ReceiverClock>) -> ArrivalReport<StreamPackets<'a>> {
        let made = moment(self.timestamp, near);
        let packets = StreamPackets { sequence: self.begin, made, metrics: self.metrics };
        ArrivalReport { ssrc: self.ssrc, made: Some(made), packets }
    }
}

/// An iterator over the packets of a report on one stream.
#[derive(Clone, Debug)]
pub struct StreamPackets<'a> {
    sequence: u16,
    made: Instant<ReceiverClock>,
    metrics: &'a [u8],
}

impl Iterator for StreamPackets<'_> {
    type Item = PacketStatus;

    fn next(&mut self) -> Option<PacketStatus> {
        let (metric, rest) = self.metrics.split_first_chunk()?;
        let status = PacketStatus { sequence: self.sequence, arrival: arrival(u16::from_be_bytes(*metric), self.made) };
        self.metrics = rest;
        self.sequence = self.sequence.wrapping_add(1);
        Some(status)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.metrics.len() / 2;
        (left, Some(left))
    }
}

/// Returns the arrival that a metric block states; `None` if the packet did not arrive.
#[expect(clippy::arithmetic_side_effects, reason = "instants and spans saturate")]
pub(super) fn arrival(metric: u16, made: Instant<ReceiverClock>) -> Option<PacketArrival> {
    if metric & RECEIVED == 0 {
        return None;
    }
    let time = match metric & UNAVAILABLE {
        UNAVAILABLE => ArrivalTime::Unknown,
        OVER_RANGE => ArrivalTime::Before(made - offset_span(LONGEST_OFFSET)),
        offset => ArrivalTime::At(made - offset_span(offset)),
    };
    Some(PacketArrival { time, ecn: Ecn::from_bits((metric >> 13) as u8) })
}

/// Returns the metric block of a packet in a report made at `made`.
#[expect(clippy::arithmetic_side_effects, reason = "instants and spans saturate")]
fn metric(arrival: Option<PacketArrival>, made: Instant<ReceiverClock>) -> u16 {
    let Some(PacketArrival { time, ecn }) = arrival else { return 0 };
    let offset = match time {
        ArrivalTime::Unknown => UNAVAILABLE,
        ArrivalTime::Before(_) => OVER_RANGE,
        ArrivalTime::At(at) if at > made => UNAVAILABLE,
        ArrivalTime::At(at) => offset(made - at),
    };
    RECEIVED | u16::from(ecn.bits()) << 13 | offset
}

/// Converts `before`, the time from a packet's arrival to the report timestamp, to an arrival time offset, rounded to
/// the nearest 1/1024 s.
fn offset(before: Span) -> u16 {
    let units = before.as_nanos().unsigned_abs().saturating_mul(OFFSETS_PER_S);
    if units > u64::from(LONGEST_OFFSET).saturating_mul(NANOS_PER_S) {
        return OVER_RANGE;
    }
    (units.saturating_add(NANOS_PER_S / 2) / NANOS_PER_S) as u16
}

/// Returns an arrival time offset as a time. The time is rounded down: if it were rounded up, the time of
/// `LONGEST_OFFSET` would be encoded as `OVER_RANGE`.
fn offset_span(offset: u16) -> Span {
    let nanos = u64::from(offset).saturating_mul(NANOS_PER_S) / OFFSETS_PER_S;
    Span::from_nanos(nanos.cast_signed())
}

/// Returns the time nearest to `near` that has this report timestamp.
fn moment(timestamp: u32, near: Instant<ReceiverClock>) -> Instant<ReceiverClock> {
    // The timestamp is on the receiver's clock. The NTP functions take times on the sender's clock, but their
    // arithmetic does not depend on the clock.
    let near: Instant<SenderClock> = near.assume_clock();
    NtpTime::from_middle_near(timestamp, NtpTime::from_instant(near)).to_instant_near(near).assume_clock()
}

/// Returns the first report timestamp that is not before `at`. Also returns the time of this timestamp, rounded to
/// nanoseconds.
///
/// The timestamp is rounded up, because no reported packet may have arrived after it.
fn timestamp(at: Instant<ReceiverClock>) -> (u32, Instant<ReceiverClock>) {
    let second = u128::from(NANOS_PER_S);
    // A time that was computed from a timestamp is rounded to nanoseconds, so it may be up to half a nanosecond too
    // late. Half a nanosecond is subtracted first, so that such a time gives the same timestamp again.
    let halves = u128::from(at.as_nanos()).saturating_mul(2).saturating_sub(1);
    let ticks = halves.saturating_mul(TIMESTAMPS_PER_S).div_ceil(second.saturating_mul(2));
    let nanos = ticks.saturating_mul(second).saturating_add(TIMESTAMPS_PER_S / 2) / TIMESTAMPS_PER_S;
    let made = Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    let since_1970 = NtpTime::from_instant(Instant::ZERO).middle();
    (since_1970.wrapping_add(ticks as u32), made)
}

/// Writes the reports on streams into one feedback packet.
#[derive(Debug)]
pub struct StreamWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The position in `out` at which the reports must end, so that the report timestamp fits after them.
    end: usize,
    made: Instant<ReceiverClock>,
}

impl StreamWriter<'_> {
    /// Appends a report on as many of the next `packets` as fit, and removes them from the iterator. Returns their
    /// number.
    ///
    /// If packets are left in the iterator, another feedback packet must report them.
    ///
    /// # Errors
    /// [`FeedbackError`] if there is no room for a single packet's status, or if the sequence numbers are not
    /// consecutive. After an error, nothing is appended.
    pub fn stream(
        &mut self,
        ssrc: u32,
        packets: &mut impl Iterator<Item = PacketStatus>,
    ) -> Result<usize, FeedbackError> {
        let start = self.out.len();
        let have = self.end.saturating_sub(start);
        // A metric block has 16 bits, and the metric blocks together are padded to 32-bit words. Therefore `room` is an
        // even number of metric blocks.
        let room = (have.saturating_sub(BLOCK_HEAD) / 4).saturating_mul(2);
        if room == 0 {
            return Err(FeedbackError::NoRoom { need: BLOCK_HEAD + 4, have });
        }
        let most = room.min(usize::from(CongestionFeedback::MAX_REPORTS));
        let (mut consecutive, mut count) = (Consecutive::default(), 0u16);
        for status in packets.take(most) {
            if let Err(error) = consecutive.follow(status.sequence) {
                self.out.truncate(start);
                return Err(error);
            }
            if count == 0 {
                self.head(ssrc, status.sequence);
            }
            count = count.saturating_add(1);
            self.out.extend_from_slice(&metric(status.arrival, self.made).to_be_bytes());
        }
        if count % 2 == 1 {
            self.out.extend_from_slice(&[0, 0]);
        }
        if let Some(field) = self.out.get_mut(start.saturating_add(6)..start.saturating_add(BLOCK_HEAD)) {
            field.copy_from_slice(&count.to_be_bytes());
        }
        Ok(usize::from(count))
    }

    /// Appends a report on no packets, for a stream whose highest sequence number so far is `highest`.
    ///
    /// # Errors
    /// [`FeedbackError::NoRoom`] if the report does not fit.
    pub fn nothing_new(&mut self, ssrc: u32, highest: u16) -> Result<(), FeedbackError> {
        let have = self.end.saturating_sub(self.out.len());
        if have < BLOCK_HEAD {
            return Err(FeedbackError::NoRoom { need: BLOCK_HEAD, have });
        }
        self.head(ssrc, highest);
        Ok(())
    }

    /// Appends the head of a stream's report, with a count of zero.
    fn head(&mut self, ssrc: u32, begin: u16) {
        self.out.extend_from_slice(&ssrc.to_be_bytes());
        self.out.extend_from_slice(&(u32::from(begin) << 16).to_be_bytes());
    }
}

/// Appends a feedback packet that the reporter `ssrc` makes at `at`. `write` appends the reports on streams. The packet
/// has at most `limit` bytes, or 12 bytes if `limit` is less than 12.
///
/// So that the packet fits within the path MTU (RFC 8888, Sec. 3.1), `limit` should be the MTU minus the bytes that IP,
/// UDP and SRTCP add.
pub fn encode_congestion_feedback<R>(
    ssrc: u32,
    at: Instant<ReceiverClock>,
    limit: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut StreamWriter<'_>) -> R,
) -> R {
    let end = out.len().saturating_add(limit.min(LONGEST)).saturating_sub(TIMESTAMP_LEN);
    let (timestamp, made) = timestamp(at);
    packet(TRANSPORT_LAYER_FEEDBACK, usize::from(CONGESTION_FORMAT), out, |out| {
        out.extend_from_slice(&ssrc.to_be_bytes());
        let result = write(&mut StreamWriter { out, end, made });
        out.extend_from_slice(&timestamp.to_be_bytes());
        result
    })
}
