use std::collections::BTreeMap;

use equipoise::units::{Size, Span};
use equipoise_session::{Ecn, Event, PathId};
use serde::Serialize;

use super::{End, Sum, rate};

/// What a receiver saw of one session in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::hosts) struct ReceiveInterval {
    pub(in crate::hosts) start_s: f64,
    pub(in crate::hosts) end_s: f64,
    pub(in crate::hosts) rate_bps: f64,
    pub(in crate::hosts) packets: u64,
    pub(in crate::hosts) bytes: u64,
    /// Delay as the two clocks show it, less that of the session's first packet.
    pub(in crate::hosts) shown_delay_mean_s: Option<f64>,
    /// What came on each path, by the sender's number, if the session has several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::hosts) paths: BTreeMap<u16, ReceiveInterval>,
    #[serde(skip)]
    delays_s: f64,
}

impl ReceiveInterval {
    /// What was received.
    pub(in crate::hosts) const fn sum(&self) -> Sum {
        Sum { rate_bps: self.rate_bps, packets: self.packets, bytes: self.bytes, packets_lost: None }
    }

    fn count(&mut self, delay: Span, size: Size) {
        self.packets += 1;
        self.bytes += size.as_bytes();
        self.delays_s += delay.as_secs_f64();
    }

    fn close(&mut self, start_s: f64, end_s: f64) {
        (self.start_s, self.end_s) = (start_s, end_s);
        self.rate_bps = rate(self.bytes, end_s - start_s);
        self.shown_delay_mean_s = (self.packets > 0).then(|| self.delays_s / self.packets as f64);
        self.paths.values_mut().for_each(|path| path.close(start_s, end_s));
    }
}

/// What a receiver saw of one session in all.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::hosts) struct ReceiveEnd {
    pub(in crate::hosts) duration_s: f64,
    pub(in crate::hosts) rate_bps: f64,
    pub(in crate::hosts) packets_received: u64,
    /// Of these, packets that queues had marked (ECN).
    pub(in crate::hosts) packets_marked: u64,
    pub(in crate::hosts) bytes_received: u64,
    /// Numbers between the first and the last that never came.
    pub(in crate::hosts) packets_lost: u64,
    /// Packets whose payload is missing in what was given out.
    pub(in crate::hosts) payload_missing: u64,
    pub(in crate::hosts) payload_bytes: u64,
    /// Packets that were asked for again, each as often as it was, and those that then came in time: lost ones, whose payload is not missing.
    pub(in crate::hosts) repetitions_asked: u64,
    pub(in crate::hosts) packets_repaired: u64,
    /// How often the sender was asked for a key frame.
    pub(in crate::hosts) key_frames_asked: u64,
    /// Packets and bytes of audio in that.
    pub(in crate::hosts) audio_packets: u64,
    pub(in crate::hosts) audio_bytes: u64,
    /// Packets whose payload was not written, as the file or its reader stood still.
    pub(in crate::hosts) payload_dropped: u64,
    pub(in crate::hosts) ignored: BTreeMap<&'static str, u64>,
    /// Packets that came on each path, by the sender's number, if the session has several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::hosts) packets_by_path: BTreeMap<u16, u64>,
}

impl ReceiveEnd {
    /// What was received.
    pub(in crate::hosts) const fn sum(&self) -> Sum {
        let Self { rate_bps, packets_received: packets, bytes_received: bytes, packets_lost, .. } = *self;
        Sum { rate_bps, packets, bytes, packets_lost: Some(packets_lost) }
    }
}

/// What sessions came to that are counted together.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::hosts) struct Together {
    pub(in crate::hosts) sessions: u64,
    pub(in crate::hosts) packets_received: u64,
    pub(in crate::hosts) bytes_received: u64,
    pub(in crate::hosts) packets_lost: u64,
    pub(in crate::hosts) payload_missing: u64,
    /// In sessions in which this end sent.
    pub(in crate::hosts) packets_sent: u64,
    pub(in crate::hosts) bytes_sent: u64,
}

impl Together {
    pub(in crate::hosts) fn add(&mut self, end: &End) {
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

/// Paths of a session that are told apart. Ours: four times what it may have at once; a path that was added late, after so
/// many others, counts in the whole alone.
const PATHS: usize = 64;

/// Adds up what a server tells of a session.
#[derive(Debug, Default)]
pub(in crate::hosts) struct ReceiveTally {
    pub(in crate::hosts) now: ReceiveInterval,
    pub(in crate::hosts) end: ReceiveEnd,
    numbers: Option<(u64, u64)>,
}

impl ReceiveTally {
    /// What happened on one path is part of what happened to the session.
    pub(in crate::hosts) fn on_path_event(&mut self, path: PathId, event: &Event) {
        let has_room = self.end.packets_by_path.len() < PATHS || self.end.packets_by_path.contains_key(&path.0);
        if let (Event::MediaReceived { delay, size, .. }, true) = (event, has_room) {
            self.now.paths.entry(path.0).or_default().count(*delay, *size);
            *self.end.packets_by_path.entry(path.0).or_default() += 1;
        }
        self.on_event(event);
    }

    pub(in crate::hosts) fn on_event(&mut self, event: &Event) {
        match event {
            Event::MediaReceived { sequence, delay, size, ecn, .. } => {
                self.now.count(*delay, *size);
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

    /// Payload was given out, behind so many packets that are missing, or dropped.
    pub(in crate::hosts) fn on_payload(&mut self, missing: u64, (bytes, is_audio): (u64, bool), is_dropped: bool) {
        if is_audio {
            self.end.audio_packets += 1;
            self.end.audio_bytes += bytes;
        }
        self.end.payload_missing += missing;
        self.end.payload_dropped += u64::from(is_dropped);
        self.end.payload_bytes += if is_dropped { 0 } else { bytes };
    }

    /// Closes the interval that lasted until `at` on the session's own time.
    pub(in crate::hosts) fn close(&mut self, at: Span) -> ReceiveInterval {
        let fresh = ReceiveInterval { start_s: at.as_secs_f64(), ..ReceiveInterval::default() };
        let mut closed = std::mem::replace(&mut self.now, fresh);
        closed.close(closed.start_s, at.as_secs_f64());
        closed
    }

    pub(in crate::hosts) fn finish(&mut self, at: Span) -> ReceiveEnd {
        self.end.duration_s = at.as_secs_f64();
        self.end.rate_bps = rate(self.end.bytes_received, self.end.duration_s);
        let expected = self.numbers.map_or(0, |(first, last)| last - first + 1);
        self.end.packets_lost = expected.saturating_sub(self.end.packets_received);
        self.end.clone()
    }
}
