use std::collections::BTreeMap;
use std::iter::once;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_session::Event;

use super::media::MediaRecord;
use super::received::Received;
use crate::result::{PathResult, Stall};

/// The data recorded so far about one path of a flow.
#[derive(Debug)]
pub(super) struct PathRecord {
    name: String,
    media: MediaRecord,
    decisions: BTreeMap<&'static str, u64>,
    response: Option<f64>,
    reports_missing: u64,
    circuit_broken: BTreeMap<&'static str, u64>,
}

impl PathRecord {
    pub(super) const fn new(name: String, media: MediaRecord) -> Self {
        Self {
            name,
            media,
            decisions: BTreeMap::new(),
            response: None,
            reports_missing: 0,
            circuit_broken: BTreeMap::new(),
        }
    }

    pub(super) fn on_event(&mut self, at: Span, origin: Instant<SenderClock>, event: &Event) {
        match event {
            Event::MediaSent { size, .. } => self.media.on_sent(once((at, *size))),
            &Event::MediaReceived { sent, delay, size, ecn, .. } => {
                self.media.on_received(once(Received { at, sent: sent - origin, delay, size, ecn }));
            }
            Event::ReportsMissing => self.reports_missing += 1,
            Event::CircuitBroken(breaker) => *self.circuit_broken.entry(breaker.name()).or_default() += 1,
            Event::RateDecided { snapshot, .. } => {
                if let Some(reason) = snapshot.reason {
                    *self.decisions.entry(reason.name()).or_default() += 1;
                }
                self.response = snapshot.response.or(self.response);
            }
            _ => {}
        }
    }

    pub(super) fn finish(self, lasted: Span, stalls: &[Stall]) -> PathResult {
        let media = self.media;
        PathResult {
            name: self.name,
            packets_sent: media.sent,
            packets_received: media.received,
            packets_lost: media.sent.saturating_sub(media.received),
            mean_rate_bps: media.mean_rate_bps(lasted),
            delay: media.settled().result(),
            reports_missing: self.reports_missing,
            circuit_broken: owned(&self.circuit_broken),
            decisions: owned(&self.decisions),
            response: self.response,
            intervals: media.interval_results(lasted, stalls),
        }
    }
}

/// Converts counts by name into the form in which the results store them.
pub(super) fn owned(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(&name, &count)| (name.to_owned(), count)).collect()
}
