use equipoise::units::{Size, Span};
use equipoise_session::Ecn;

use crate::result::ReceivedSample;
use crate::scenario::MOST_INTERVALS;

/// A packet that has come to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// When it came, since the run's start.
    pub at: Span,
    /// When it left, since the run's start by the sender's clock.
    pub sent: Span,
    /// Its one-way delay.
    pub delay: Span,
    /// Of the IP packet.
    pub size: Size,
    /// What its IP header said of congestion.
    pub ecn: Ecn,
}

/// Packets that are recorded together, in the order of time: each as often as it is needed.
pub trait Lot<T>: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone {}

impl<T, I: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone> Lot<T> for I {}

/// IP packets at a flow's receiver by sample interval.
#[derive(Debug)]
pub(super) struct ReceivedRecord {
    interval: Span,
    /// A packet that comes at the end of an interval belongs to it.
    bytes: Vec<Size>,
}

impl ReceivedRecord {
    pub(super) const fn new(interval: Span) -> Self {
        Self { interval, bytes: Vec::new() }
    }

    /// IP packets of this size came at `at`, or since the last such call.
    pub(super) fn push(&mut self, at: Span, size: Size) {
        let index =
            ((at - Span::from_nanos(1)).max(Span::ZERO) / self.interval).and_then(|at| usize::try_from(at).ok());
        // More than any run may have: the clock of a host has gone wild.
        let Some(index) = index.filter(|index| (*index as u64) < MOST_INTERVALS) else { return };
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, Size::ZERO);
        }
        if let Some(bytes) = self.bytes.get_mut(index) {
            *bytes = *bytes + size;
        }
    }

    /// The samples of a run that lasted so long, the last of which its end may have cut short.
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
