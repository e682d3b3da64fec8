use equipoise::units::{Size, Span};
use equipoise_session::Ecn;

use crate::result::ReceivedSample;
use crate::scenario::MOST_INTERVALS;

/// A packet that has arrived at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// When it arrived, since the run's start.
    pub at: Span,
    /// When it was sent, since the run's start, by the sender's clock.
    pub sent: Span,
    /// Its one-way delay.
    pub delay: Span,
    /// Size of the IP packet.
    pub size: Size,
    /// ECN field of its IP header.
    pub ecn: Ecn,
}

/// Packets that are recorded together, in order of time. They may be iterated several times.
pub trait Lot<T>: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone {}

impl<T, I: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone> Lot<T> for I {}

/// Bytes of IP packets at a flow's receiver by sample interval.
#[derive(Debug)]
pub(super) struct ReceivedRecord {
    interval: Span,
    /// Bytes in each interval; a packet that arrives at the end of an interval belongs to this interval.
    bytes: Vec<Size>,
}

impl ReceivedRecord {
    pub(super) const fn new(interval: Span) -> Self {
        Self { interval, bytes: Vec::new() }
    }

    /// IP packets of this size arrived at `at`, or since the last such call.
    pub(super) fn push(&mut self, at: Span, size: Size) {
        let index =
            ((at - Span::from_nanos(1)).max(Span::ZERO) / self.interval).and_then(|at| usize::try_from(at).ok());
        // No run has this many intervals, so a host's clock must be wrong.
        let Some(index) = index.filter(|index| (*index as u64) < MOST_INTERVALS) else { return };
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, Size::ZERO);
        }
        if let Some(bytes) = self.bytes.get_mut(index) {
            *bytes = *bytes + size;
        }
    }

    /// Returns the samples of a run of length `lasted`; the end of the run may have cut the last sample short.
    pub(super) fn finish(self, lasted: Span) -> Vec<ReceivedSample> {
        let mut samples = Vec::new();
        let mut since = Span::ZERO;
        while since < lasted {
            let at = (since + self.interval).min(lasted);
            let bytes = self.bytes.get(samples.len()).map_or(0, |size| size.as_bytes());
            let rate_bps = bytes as f64 * 8.0 / (at - since).as_secs_f64();
            samples.push(ReceivedSample { at_s: at.as_secs_f64(), rate_bps });
            since = at;
        }
        samples
    }
}
