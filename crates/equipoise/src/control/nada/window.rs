use crate::units::Span;

/// The events within the observation window LOGWIN, which ends at the newest event. The events are counted in bins, so
/// that memory is bounded at any packet rate.
///
/// Source: RFC 8698, Sec. 5.1.2, 5.1.3. Our choice: the oldest bin is dropped as a whole, so the window is up to one
/// bin shorter than LOGWIN.
#[derive(Clone, Debug)]
pub(super) struct Window<T> {
    /// The bins. Bin n covers the times from n to n + 1 bin lengths, and has the index n modulo the number of bins.
    bins: [T; BINS],
    /// The time of the newest event, in ns; `None` before the first event.
    newest: Option<u64>,
}

/// Number of bins: LOGWIN is 500 ms (RFC 8698, Table 2), and a bin covers 20 ms (our choice: 4 % of LOGWIN).
const BINS: usize = 25;
const BIN_NS: u64 = Span::from_millis(20).as_nanos().unsigned_abs();

impl<T: Copy + Default> Window<T> {
    pub(super) fn new() -> Self {
        Self { bins: [T::default(); BINS], newest: None }
    }

    /// Whether the time `nanos`, in ns, is before the window.
    pub(super) fn is_before(&self, nanos: u64) -> bool {
        self.newest.is_some_and(|newest| (newest / BIN_NS).saturating_sub(nanos / BIN_NS) >= BINS as u64)
    }

    /// Returns the bin for the time `nanos`, in ns, and advances the window up to this time; `None` for a time before
    /// the window.
    pub(super) fn bin(&mut self, nanos: u64) -> Option<&mut T> {
        if self.is_before(nanos) {
            return None;
        }
        let index = nanos / BIN_NS;
        let newest = self.newest.unwrap_or(nanos);
        for passed in 0..index.saturating_sub(newest / BIN_NS).min(BINS as u64) {
            self.bins[((index - passed) % BINS as u64) as usize] = T::default();
        }
        self.newest = Some(newest.max(nanos));
        self.bins.get_mut((index % BINS as u64) as usize)
    }

    pub(super) fn bins(&self) -> impl Iterator<Item = &T> {
        self.bins.iter()
    }

    pub(super) fn bins_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.bins.iter_mut()
    }

    /// Returns the time from the start of the oldest bin to the newest event, in s. This time is always above zero.
    pub(super) fn span_s(&self) -> f64 {
        let within = self.newest.unwrap_or(0) % BIN_NS;
        ((BINS as u64 - 1) * BIN_NS + within) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sum(window: &Window<u64>) -> u64 {
        window.bins().sum()
    }

    #[test]
    fn half_a_second_is_remembered() {
        let mut window = Window::<u64>::new();
        for ms in 0..2000 {
            *window.bin(ms * MS).expect("in order") += 1;
        }
        assert_eq!(sum(&window), 500, "the last of the bins is full");
        assert!((window.span_s() - 0.499).abs() < 1e-9);
        assert!(window.is_before(1499 * MS) && !window.is_before(1500 * MS));
        assert!(window.bin(1499 * MS).is_none());
        *window.bin(1600 * MS).expect("late, and within the window") += 1;
        assert_eq!(sum(&window), 501);
    }

    #[test]
    fn a_gap_empties_what_it_passes() {
        let mut window = Window::<u64>::new();
        *window.bin(5 * MS).expect("the first") = 7;
        *window.bin(405 * MS).expect("later") = 1;
        assert_eq!(sum(&window), 8);
        *window.bin(520 * MS).expect("later") = 1;
        assert_eq!(sum(&window), 2);
        *window.bin(u64::MAX).expect("long after") = 1;
        assert_eq!(sum(&window), 1);
    }
}
