use equipoise::units::{Size, Span};

use crate::phases::Phase;
use crate::phases::steady::{BIN, BIN_S};
use crate::scenario::MOST_INTERVALS;

/// Bytes of packets sent or received over time, counted in bins of 200 ms that start again with each phase. The bin of
/// the last packet is stored, because the next packet usually falls into the same bin.
#[derive(Debug, Default)]
pub(super) struct Bins {
    /// The number of bytes in each bin of each phase so far, up to the last non-empty bin of the phase.
    phases: Vec<Vec<u32>>,
    /// The bin that contains the last packet, and the end time of that bin.
    bin: usize,
    until: Span,
    total: u64,
}

impl Bins {
    /// Adds a packet of size `size` at the time `at`, which must not be earlier than the time of the previous packet. A
    /// packet after the last phase is not counted.
    #[inline]
    pub(super) fn push(&mut self, at: Span, size: Size, phases: &[Phase]) {
        if at >= self.until && !self.turn(at, phases) {
            return;
        }
        if let Some(bytes) = self.phases.last_mut().and_then(|bins| bins.get_mut(self.bin)) {
            *bytes = bytes.saturating_add(u32::try_from(size.as_bytes()).unwrap_or(u32::MAX));
        }
    }

    /// Switches to the bin that contains the time `at`. Returns false if `at` is after the last phase, or if the number
    /// of bins exceeds the limit.
    fn turn(&mut self, at: Span, phases: &[Phase]) -> bool {
        let mut number = self.phases.len().saturating_sub(1);
        while phases.get(number).is_some_and(|phase| phase.end <= at) {
            number += 1;
        }
        let Some(phase) = phases.get(number) else { return false };
        self.phases.resize_with(number + 1, Vec::new);
        let place =
            ((at - phase.start).max(Span::ZERO) / BIN).and_then(|place| usize::try_from(place).ok()).unwrap_or(0);
        let Some(bins) = self.phases.last_mut() else { return false };
        let more = (place + 1).saturating_sub(bins.len());
        self.total += more as u64;
        // Packets beyond `MOST_INTERVALS` bins are not counted, which limits the memory. That many bins of 200 ms cover
        // nine days.
        if self.total > MOST_INTERVALS {
            return false;
        }
        bins.resize(place + 1, 0);
        self.bin = place;
        self.until = (phase.start + BIN * (place as i64 + 1)).min(phase.end);
        true
    }

    /// Returns the rate in each whole bin of a phase of length `length`, in bit/s.
    pub(super) fn rates(&self, phase: usize, length: Span) -> Vec<f64> {
        let whole = (length / BIN).and_then(|whole| usize::try_from(whole).ok()).unwrap_or(0);
        let bytes = |place: usize| self.phases.get(phase).and_then(|bins| bins.get(place)).copied().unwrap_or(0);
        (0..whole).map(|place| f64::from(bytes(place)) * 8.0 / BIN_S).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_with_their_phase_and_only_whole_ones_count() {
        let ms = Span::from_millis;
        let phase = |start, end| Phase {
            start: ms(start),
            end: ms(end),
            media: vec![0],
            tcp: Vec::new(),
            bottlenecks: Vec::new(),
        };
        let phases = [phase(0, 500), phase(500, 1300)];
        let mut bins = Bins::default();
        // Bins of the first phase, in ms: 0 to 200, 200 to 400, and 400 to 500, which is not whole. The bins of the
        // second phase start at 500, 700 and so on.
        for at in [0, 199, 200, 450, 699, 700, 1299, 1300] {
            bins.push(ms(at), Size::from_bytes(1000), &phases);
        }
        let rates = |number, length| {
            let rates: Vec<f64> = bins.rates(number, ms(length));
            rates.into_iter().map(|rate| (rate / 40_000.0).round() as u64).collect::<Vec<_>>()
        };
        assert_eq!(rates(0, 500), [2, 1]);
        assert_eq!(rates(1, 800), [1, 1, 0, 1]);
        assert_eq!(rates(1, 799), [1, 1, 0]);
        assert_eq!(rates(2, 400), [0, 0], "nothing came");
    }
}
