//! Analysis of captured RTP streams: loss, jitter, rate, one-way delay between two capture points, and round-trip
//! times.
//!
//! Sources: RFC 3550, App. A.3 (loss), App. A.8 (jitter) and Sec. 6.4.1 (round-trip time). The analysis needs no
//! signalling: a datagram counts as RTP if it has the version number of RTP, and if its packet type is not one of RTCP
//! (RFC 5761, Sec. 4). A stream counts only after two of its packets had consecutive sequence numbers (RFC 3550,
//! App. A.1). The file is read once. The memory grows with the number of streams and seconds, up to a limit.

mod clock;
mod dump;
mod round_trips;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

use equipoise_session::wire::{is_rtcp, rtcp, rtp};
use serde::Serialize;

use super::datagram::{self, Datagram};
use super::error::CaptureError;
use super::frames::{Frames, Opened};
pub(super) use dump::MAGIC as DUMP_MAGIC;
use round_trips::RoundTrips;
pub use round_trips::{RoundTrip, RoundTripSample};
pub use stream::{Delays, Jitter, RtpStream, Second};
use stream::{Room, Stream};

/// Options of the analysis of RTP streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpOptions {
    /// Clock rate, in ticks per second, of dynamic payload types. With `None`, the jitter of their streams is unknown.
    pub clock_rate: Option<u32>,
}

/// The results of an RTP capture.
#[derive(Clone, Debug, Serialize)]
pub struct RtpAnalysis {
    /// Version of Equipoise that made the analysis.
    pub version: String,
    /// Number of frames read.
    pub frames: u64,
    /// Number of packets that look like RTP. Packets that were skipped because there are too many streams are not
    /// counted.
    pub rtp_packets: u64,
    /// Number of RTCP datagrams.
    pub rtcp_packets: u64,
    /// Number of skipped frames, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended before the end of the file; `null` if reading reached the end of the file.
    pub ended: Option<String>,
    /// The streams, in the order of their first packets. A stream that several interfaces captured has one entry for
    /// each interface.
    pub streams: Vec<RtpStream>,
    /// Round-trip times that were computed from RTCP reports, by sender and reporter.
    pub round_trips: Vec<RoundTrip>,
}

/// Maximum number of streams, which limits the memory.
const MOST_STREAMS: usize = 1000;
/// Maximum distance of a capture time from the first capture time: more than 70 years. A larger distance means that the
/// file is damaged. The time is then clamped.
const MOST_NS: i64 = i64::MAX / 4;

/// The identity of a stream (RFC 3550, Sec. 3), together with the interface that captured the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    from: SocketAddr,
    to: SocketAddr,
    ssrc: u32,
    interface: u32,
}

/// Analyses the RTP streams in a file. The format of the file is pcap, pcapng or that of `rtpdump`. The file may be
/// compressed with gzip. The file is analysed up to its end or to its first damaged part.
///
/// # Errors
/// [`CaptureError`] if nothing can be read.
pub fn analyse_rtp(source: impl Read + Send, options: &RtpOptions) -> Result<RtpAnalysis, CaptureError> {
    let mut found = Found { options: *options, ..Found::default() };
    let (mut frames, mut skipped) = (0, BTreeMap::<String, u64>::new());
    let mut skip = |reason: &str| *skipped.entry(reason.to_owned()).or_default() += 1;
    let ended = match Frames::open_any(source)? {
        Opened::Capture(mut capture) => capture.each(|frame| {
            frames += 1;
            if let Err(reason) = datagram::parse(frame).and_then(|datagram| found.push(&datagram)) {
                skip(reason);
            }
        }),
        Opened::RtpDump(dump) => dump::each(dump, |datagram| {
            frames += 1;
            if let Err(reason) = found.push(datagram) {
                skip(reason);
            }
        })?,
    };
    Ok(found.finish(frames, skipped, ended))
}

/// The state of the analysis while the file is read.
#[derive(Default)]
struct Found {
    options: RtpOptions,
    streams: BTreeMap<Key, Stream>,
    round_trips: RoundTrips,
    room: Room,
    /// Capture time of the first datagram.
    origin: Option<i64>,
    rtp_packets: u64,
    rtcp_packets: u64,
}

impl Found {
    fn push(&mut self, datagram: &Datagram<'_>) -> Result<(), &'static str> {
        let origin = *self.origin.get_or_insert(datagram.at_ns);
        let at_ns = datagram.at_ns.saturating_sub(origin).clamp(-MOST_NS, MOST_NS);
        if datagram.payload.first().is_none_or(|first| first >> 6 != 2) {
            return Err("neither RTP nor RTCP");
        }
        if is_rtcp(datagram.payload) {
            let compound = rtcp::parse_compound(datagram.payload).map_err(|_| "RTCP that is damaged, or encrypted")?;
            self.rtcp_packets += 1;
            compound.for_each(|packet| self.round_trips.push(at_ns, datagram.interface, &packet));
            return Ok(());
        }
        let packet = rtp::RtpPacket::parse(datagram.payload).map_err(|_| "RTP that is damaged or cut short")?;
        let Datagram { from, to, interface, .. } = *datagram;
        let key = Key { from, to, ssrc: packet.header.ssrc, interface };
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&key) {
            return Err("of more streams than are kept");
        }
        self.rtp_packets += 1;
        let clock_rate = clock::rate(packet.header.payload_type).or(self.options.clock_rate);
        let stream = self.streams.entry(key).or_insert_with(|| Stream::new(at_ns, packet.header.sequence));
        stream.push(at_ns, datagram.size, &packet.header, clock_rate, &mut self.room);
        self.delay(key, at_ns, packet.header.sequence);
        Ok(())
    }

    /// Measures the delay of a packet from the interface that captured the stream first to the interface of `key`, if
    /// both captured the packet. Does nothing if both are the same interface.
    fn delay(&mut self, key: Key, at_ns: i64, sequence: u16) {
        let all = Key { interface: 0, ..key }..=Key { interface: u32::MAX, ..key };
        let first = self.streams.range(all).min_by_key(|(_, stream)| stream.begun_ns());
        let first = first.filter(|(other, _)| other.interface != key.interface);
        let Some((from, seen)) = first.map(|(other, first)| (other.interface, first.seen(sequence))) else { return };
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.push_delay(from, at_ns, seen, &mut self.room);
        }
    }

    fn finish(self, frames: u64, mut skipped: BTreeMap<String, u64>, ended: Option<String>) -> RtpAnalysis {
        let mut all: Vec<_> = self.streams.into_iter().collect();
        all.sort_by_key(|(key, stream)| (stream.begun_ns(), *key));
        let mut streams = Vec::new();
        for (key, stream) in all {
            if stream.is_one() {
                streams.push(stream.finish(&key));
            } else {
                *skipped.entry("looks like RTP, and no two packets follow each other".to_owned()).or_default() +=
                    stream.packets();
            }
        }
        RtpAnalysis {
            version: equipoise_lab::VERSION.to_owned(),
            frames,
            rtp_packets: self.rtp_packets,
            rtcp_packets: self.rtcp_packets,
            skipped,
            ended,
            streams,
            round_trips: self.round_trips.finish(),
        }
    }
}

impl RtpAnalysis {
    /// Returns the analysis as JSON, with a final line break.
    pub fn to_json(&self) -> String {
        // The conversion never fails, because the results contain only numbers and texts.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
