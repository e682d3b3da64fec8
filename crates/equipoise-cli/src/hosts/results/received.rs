use std::collections::BTreeMap;

use equipoise::measure::InterarrivalJitter;
use equipoise::units::{Size, Span};
use equipoise_lab::record::Delays;
use equipoise_session::{Ecn, Event, PathId};
use serde::Serialize;

use super::{End, Sum, rate};

/// What the receiver measured in one interval, for a session or for one of its paths.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReceiveInterval {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    pub(crate) rate_bps: f64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Mean delay of the packets, minus the delay of the session's first packet. The subtraction cancels the offset
    /// between the two hosts' clocks.
    pub(crate) shown_delay_mean_s: Option<f64>,
    /// Delay above the smallest delay that the session has had so far: the mean, and the 50th, 95th and 99th
    /// percentiles.
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) delay_p50_s: Option<f64>,
    pub(crate) delay_p95_s: Option<f64>,
    pub(crate) delay_p99_s: Option<f64>,
    /// Interarrival jitter at the end of the interval, in s (RFC 3550, Sec. 6.4.1).
    pub(crate) jitter_s: Option<f64>,
    /// Number of packets newly counted as lost: missing sequence numbers, minus packets that were counted as lost
    /// before and have now arrived. Omitted for the values of a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets_lost: Option<u64>,
    /// The values of each path of a multipath session. The key is the number that the sender gave to the path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) paths: BTreeMap<u16, ReceiveInterval>,
    #[serde(skip)]
    delays_s: f64,
    #[serde(skip)]
    above_least: Delays,
}

impl ReceiveInterval {
    /// Returns the totals of the interval.
    pub(crate) const fn sum(&self) -> Sum {
        Sum { rate_bps: self.rate_bps, packets: self.packets, bytes: self.bytes, packets_lost: None }
    }

    fn count(&mut self, (delay, least): (Span, Span), size: Size) {
        self.packets += 1;
        self.bytes += size.as_bytes();
        self.delays_s += delay.as_secs_f64();
        self.above_least.push(delay - least);
    }

    fn close(&mut self, start_s: f64, end_s: f64) {
        (self.start_s, self.end_s) = (start_s, end_s);
        self.rate_bps = rate(self.bytes, end_s - start_s);
        self.shown_delay_mean_s = (self.packets > 0).then(|| self.delays_s / self.packets as f64);
        let above = std::mem::take(&mut self.above_least).result();
        self.delay_mean_s = above.mean_s;
        self.delay_p50_s = above.p50_s;
        self.delay_p95_s = above.p95_s;
        self.delay_p99_s = above.p99_s;
        self.paths.values_mut().for_each(|path| path.close(start_s, end_s));
    }
}

/// What the receiver measured in a whole session.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReceiveEnd {
    pub(crate) duration_s: f64,
    pub(crate) rate_bps: f64,
    pub(crate) packets_received: u64,
    /// Number of received packets with the ECN mark that a queue sets on congestion.
    pub(crate) packets_marked: u64,
    pub(crate) bytes_received: u64,
    /// Number of lost packets. These are the sequence numbers between the lowest and the highest received sequence
    /// number that were never received.
    pub(crate) packets_lost: u64,
    /// Number of packets whose payload could not be delivered.
    pub(crate) payload_missing: u64,
    pub(crate) payload_bytes: u64,
    /// Number of packets for which a retransmission was requested.
    pub(crate) repetitions_asked: u64,
    /// Number of packets that a retransmission delivered in time. These packets count as lost, but their payload is not
    /// missing.
    pub(crate) packets_repaired: u64,
    /// Number of key frames that were requested from the sender.
    pub(crate) key_frames_asked: u64,
    /// Number of audio packets and their bytes. The other counts include audio.
    pub(crate) audio_packets: u64,
    pub(crate) audio_bytes: u64,
    /// Number of packets whose payload was not written because the output file, or the program that reads it, stalled.
    pub(crate) payload_dropped: u64,
    pub(crate) ignored: BTreeMap<&'static str, u64>,
    /// Number of packets that arrived on each path of a multipath session, by the sender's number of the path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) packets_by_path: BTreeMap<u16, u64>,
}

impl ReceiveEnd {
    /// Returns the totals of the session.
    pub(crate) const fn sum(&self) -> Sum {
        let Self { rate_bps, packets_received: packets, bytes_received: bytes, packets_lost, .. } = *self;
        Sum { rate_bps, packets, bytes, packets_lost: Some(packets_lost) }
    }
}

/// The totals over several sessions.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Together {
    pub(crate) sessions: u64,
    pub(crate) packets_received: u64,
    pub(crate) bytes_received: u64,
    pub(crate) packets_lost: u64,
    pub(crate) payload_missing: u64,
    /// Totals of the sessions in which this end sends.
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
}

impl Together {
    pub(crate) fn add(&mut self, end: &End) {
        self.sessions += 1;
        match end {
            End::Received(end) => {
                self.packets_received += end.packets_received;
                self.bytes_received += end.bytes_received;
                self.packets_lost += end.packets_lost;
                self.payload_missing += end.payload_missing;
            }
            End::Sent(end) => {
                self.packets_sent += end.packets_sent;
                self.bytes_sent += end.bytes_sent;
            }
        }
    }
}

/// Maximum number of paths of a session for which separate statistics are kept. Our choice: four times the maximum
/// number of paths that a session has at one time. Packets of further paths count only in the session's statistics.
const PATHS: usize = 64;

/// Sums up the events of a session at the end that receives the media.
#[derive(Debug, Default)]
pub(crate) struct ReceiveTally {
    pub(crate) now: ReceiveInterval,
    pub(crate) end: ReceiveEnd,
    numbers: Option<(u64, u64)>,
    /// Smallest delay of the session so far.
    least: Option<Span>,
    /// Number of lost packets of the session at the end of the previous interval.
    lost_before: u64,
    jitter: InterarrivalJitter,
}

impl ReceiveTally {
    /// Handles an event of one of the session's paths. Every event counts for the session. The arrival of a media
    /// packet also counts for the path, unless statistics of [`PATHS`] other paths are kept already.
    pub(crate) fn on_path_event(&mut self, path: PathId, event: &Event) {
        let has_room = self.end.packets_by_path.len() < PATHS || self.end.packets_by_path.contains_key(&path.0);
        if let (Event::MediaReceived { delay, size, .. }, true) = (event, has_room) {
            let least = self.least(*delay);
            self.now.paths.entry(path.0).or_default().count((*delay, least), *size);
            *self.end.packets_by_path.entry(path.0).or_default() += 1;
        }
        self.on_event(event);
    }

    pub(crate) fn on_event(&mut self, event: &Event) {
        match event {
            Event::MediaReceived { sequence, delay, size, ecn, .. } => {
                let least = self.least(*delay);
                self.now.count((*delay, least), *size);
                self.jitter.push(*delay);
                self.end.packets_received += 1;
                self.end.packets_marked += u64::from(*ecn == Ecn::Marked);
                self.end.bytes_received += size.as_bytes();
                let (first, last) = self.numbers.unwrap_or((*sequence, *sequence));
                self.numbers = Some((first.min(*sequence), last.max(*sequence)));
            }
            Event::RepetitionAsked { packets } => self.end.repetitions_asked += packets,
            Event::MediaRepaired { .. } => self.end.packets_repaired += 1,
            Event::KeyFrameAsked(_) => self.end.key_frames_asked += 1,
            Event::Ignored(reason) => *self.end.ignored.entry(reason.name()).or_default() += 1,
            _ => {}
        }
    }

    /// Counts a payload that the session delivered after `missing` payloads that cannot be delivered. If `is_dropped`
    /// is set, the payload was not written, because the output's queue was full.
    pub(crate) fn on_payload(&mut self, missing: u64, (bytes, is_audio): (u64, bool), is_dropped: bool) {
        if is_audio {
            self.end.audio_packets += 1;
            self.end.audio_bytes += bytes;
        }
        self.end.payload_missing += missing;
        self.end.payload_dropped += u64::from(is_dropped);
        self.end.payload_bytes += if is_dropped { 0 } else { bytes };
    }

    /// Ends the current interval at the time `at`, counted from the session's start. Returns the values of the
    /// interval.
    pub(crate) fn close(&mut self, at: Span) -> ReceiveInterval {
        let fresh = ReceiveInterval { start_s: at.as_secs_f64(), ..ReceiveInterval::default() };
        let lost = self.lost();
        let mut closed = std::mem::replace(&mut self.now, fresh);
        closed.packets_lost = Some(lost.saturating_sub(self.lost_before));
        self.lost_before = lost;
        closed.jitter_s = (closed.packets > 0).then(|| self.jitter.as_secs_f64());
        closed.close(closed.start_s, at.as_secs_f64());
        closed
    }

    pub(crate) fn finish(&mut self, at: Span) -> ReceiveEnd {
        self.end.duration_s = at.as_secs_f64();
        self.end.rate_bps = rate(self.end.bytes_received, self.end.duration_s);
        self.end.packets_lost = self.lost();
        self.end.clone()
    }

    /// Returns the number of sequence numbers that have not arrived so far, between the lowest and the highest one that
    /// arrived.
    const fn lost(&self) -> u64 {
        let expected = match self.numbers {
            Some((first, last)) => last - first + 1,
            None => 0,
        };
        expected.saturating_sub(self.end.packets_received)
    }

    /// Updates and returns the smallest delay of the session so far.
    fn least(&mut self, delay: Span) -> Span {
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        least
    }
}
