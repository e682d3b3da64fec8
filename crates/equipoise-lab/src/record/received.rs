use equipoise::units::{Size, Span};
use equipoise_session::Ecn;

use crate::result::ReceivedSample;
use crate::scenario::MOST_INTERVALS;

/// A packet that has arrived at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// When the packet arrived, since the run's start.
    pub at: Span,
    /// When the packet was sent, since the run's start, measured by the sender's clock.
    pub sent: Span,
    /// One-way delay of the packet.
    pub delay: Span,
    /// Size of the IP packet.
    pub size: Size,
    /// ECN field of the packet's IP header.
    pub ecn: Ecn,
}

/// Packets that are recorded together, in order of time. The iterator can be cloned in order to iterate several times.
pub trait Lot<T>: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone {}

impl<T, I: DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone> Lot<T> for I {}

/// Counts the bytes of the IP packets that arrive at a flow's receiver, by sample interval.
#[derive(Debug)]
pub(super) struct ReceivedRecord {
    interval: Span,
    /// Bytes in each interval; a packet that arrives exactly at the end of an interval belongs to this interval.
    bytes: Vec<Size>,
}

impl ReceivedRecord {
    pub(super) const fn new(interval: Span) -> Self {
        Self { interval, bytes: Vec::new() }
    }

    /// Records IP packets with the total size `size`. The packets arrived at the time `at`, or between the time of the
    /// previous call and `at`.
    pub(super) fn push(&mut self, at: Span, size: Size) {
        let index =
            ((at - Span::from_nanos(1)).max(Span::ZERO) / self.interval).and_then(|at| usize::try_from(at).ok());
        // The number of intervals in a run is limited. A larger index means that the clock of one of the hosts is
        // wrong.
        let Some(index) = index.filter(|index| (*index as u64) < MOST_INTERVALS) else { return };
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, Size::ZERO);
        }
        if let Some(bytes) = self.bytes.get_mut(index) {
            *bytes = *bytes + size;
        }
    }

    /// Returns the samples of a run of length `lasted`. If the run ended within an interval, the last sample covers
    /// only the part of the interval before the end.
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
