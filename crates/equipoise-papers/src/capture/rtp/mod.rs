//! Captures of RTP: loss, jitter, rate, one-way delays between two places of capture, and round-trip times, by stream.
//!
//! Sources: RFC 3550, App. A.3 (loss), App. A.8 (jitter) and Sec. 6.4.1 (round-trip time). No signalling is needed: a datagram is taken for
//! RTP if it has its version and no packet type of RTCP (RFC 5761, Sec. 4), and a stream for one if two of its packets follow each other
//! (RFC 3550, App. A.1). The file is read once; memory grows with the streams and the seconds, up to a bound.

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

/// How to read a capture of RTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpOptions {
    /// Ticks a second of the media clock of payload types without a fixed one; jitter of them is not known without.
    pub clock_rate: Option<u32>,
}

/// What was found in a capture of RTP.
#[derive(Clone, Debug, Serialize)]
pub struct RtpAnalysis {
    /// Version of Equipoise that made it.
    pub version: String,
    /// Frames read.
    pub frames: u64,
    /// Packets of RTP in streams, and not in any.
    pub rtp_packets: u64,
    /// Datagrams of RTCP.
    pub rtcp_packets: u64,
    /// What was passed over, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Why the file ended before its end.
    pub ended: Option<String>,
    /// The streams, in the order of their first packets; one for each interface that saw it.
    pub streams: Vec<RtpStream>,
    /// Round-trip times that reports give, by who is asked and who answers.
    pub round_trips: Vec<RoundTrip>,
}

/// Streams that are kept, at the most: a bound on memory.
const MOST_STREAMS: usize = 1000;
/// Times are within a century of the first one: what is further off is damage, and the same as that.
const MOST_NS: i64 = i64::MAX / 4;

/// What a stream is known by (RFC 3550, Sec. 3), and the interface that saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    from: SocketAddr,
    to: SocketAddr,
    ssrc: u32,
    interface: u32,
}

/// Reads a capture (pcap, pcapng, or a dump of `rtpdump`), compressed by gzip or not, to its end or as far as it is whole.
///
/// # Errors
/// [`CaptureError`] where nothing can be had; a capture that is cut off or damaged further on gives what comes before.
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

/// What a capture has had so far.
#[derive(Default)]
struct Found {
    options: RtpOptions,
    streams: BTreeMap<Key, Stream>,
    round_trips: RoundTrips,
    room: Room,
    /// When the first datagram was seen.
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

    /// The packet may have been seen before by another interface.
    fn delay(&mut self, key: Key, at_ns: i64, sequence: u16) {
        let others = Key { interface: 0, ..key }..=Key { interface: u32::MAX, ..key };
        let earliest = self.streams.range(others).filter(|(other, _)| other.interface != key.interface);
        let first = earliest.min_by_key(|(_, stream)| stream.begun_ns());
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
    /// The analysis as JSON, with a line break at its end.
    pub fn to_json(&self) -> String {
        // Numbers and texts always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
