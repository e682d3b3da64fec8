use std::ops::Range;

/// Histogram of durations with three significant digits.
///
/// The cells are as wide as those of `hdrhistogram`, so both histograms return the same quantiles. But here only the
/// cells between the shortest and the longest recorded duration are allocated. One second of media needs some hundreds
/// of the more than 20 000 possible cells. A histogram must be cheap to create, sum and free, because every interval of
/// every flow has a histogram.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Number of the first allocated cell.
    first: usize,
    cells: Vec<u64>,
    count: u64,
}

/// The histogram distinguishes durations from `LEAST` to `MOST` (both in nanoseconds). Shorter durations share two
/// cells of 512 ns. A longer duration counts as `MOST`.
const LEAST: u64 = 1_000;
const MOST: u64 = 1_000_000_000_000;
/// log2 of the number of cells that have the same width: 1024 cells give three significant digits. Only the smallest
/// width has twice as many cells.
const HALF_BITS: u32 = 10;
/// log2 of the smallest cell width, in nanoseconds.
const UNIT_BITS: u32 = LEAST.ilog2();
/// Number of cells that are allocated at a time.
const LOT: usize = 64;

/// Returns the number of the cell that contains a duration, and log2 of the cell's width in nanoseconds.
#[inline]
const fn cell(nanos: u64) -> (usize, u32) {
    let leading = (nanos | (1 << (UNIT_BITS + HALF_BITS))).leading_zeros() ^ 63;
    let width = leading - HALF_BITS;
    let number = (((width - UNIT_BITS) << HALF_BITS) as u64) + (nanos >> width);
    (number as usize, width)
}

/// Returns the longest duration that belongs to a cell, in nanoseconds.
const fn longest(number: usize) -> u64 {
    let half = 1 << HALF_BITS;
    let doublings = (number / half).saturating_sub(1);
    let width = UNIT_BITS + doublings as u32;
    ((number - doublings * half + 1) as u64) * (1 << width) - 1
}

impl Histogram {
    #[inline]
    pub(super) fn push(&mut self, nanos: u64) {
        let (number, _) = cell(nanos.min(MOST));
        self.count += 1;
        match self.cells.get_mut(number.wrapping_sub(self.first)) {
            Some(cell) => *cell += 1,
            None => self.at(number..number + 1)[0] += 1,
        }
    }

    /// Adds durations. Nearly all durations belong to allocated cells. [`Histogram::push_known`] adds these durations
    /// without an allocation.
    #[inline]
    pub(super) fn push_all(&mut self, mut times: impl Iterator<Item = u64>) {
        while let Some(other) = self.push_known(&mut times) {
            self.push(other);
        }
    }

    /// Adds durations until one belongs to a cell that is not allocated. Returns that duration without adding it.
    #[inline]
    fn push_known(&mut self, times: &mut impl Iterator<Item = u64>) -> Option<u64> {
        let (first, cells) = (self.first, self.cells.as_mut_slice());
        let mut known = 0;
        let other = times.find(|nanos| match cells.get_mut(cell((*nanos).min(MOST)).0.wrapping_sub(first)) {
            Some(cell) => {
                *cell += 1;
                known += 1;
                false
            }
            None => true,
        });
        self.count += known;
        other
    }

    /// Allocates the cells with these numbers if necessary, and returns them.
    #[cold]
    fn at(&mut self, numbers: Range<usize>) -> &mut [u64] {
        let (from, until) = (numbers.start / LOT * LOT, numbers.end.next_multiple_of(LOT));
        if self.cells.is_empty() {
            self.first = from;
        }
        if from < self.first {
            self.cells.splice(..0, std::iter::repeat_n(0, self.first - from));
            self.first = from;
        }
        if until > self.first + self.cells.len() {
            self.cells.resize(until - self.first, 0);
        }
        &mut self.cells[numbers.start - self.first..numbers.end - self.first]
    }

    /// Adds all durations of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        let own = self.at(other.first..other.first + other.cells.len());
        own.iter_mut().zip(&other.cells).for_each(|(own, more)| *own += more);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// For each number n in `counts`, returns the n-th shortest duration, in nanoseconds. The result has a precision of
    /// three significant digits. `counts` must be in ascending order.
    pub(super) fn longest_of<const N: usize>(&self, counts: [u64; N]) -> [u64; N] {
        let mut lots = self.cells.chunks(LOT);
        let (mut lot, mut first, mut below) = (lots.next().unwrap_or_default(), self.first, 0);
        let mut here: u64 = lot.iter().sum();
        counts.map(|wanted| {
            while below + here < wanted {
                let Some(next) = lots.next() else { break };
                (below, first) = (below + here, first + LOT);
                (lot, here) = (next, next.iter().sum());
            }
            let mut so_far = below;
            let place = lot.iter().position(|cell| {
                so_far += cell;
                so_far >= wanted
            });
            place.map_or(0, |place| longest(first + place))
        })
    }

    /// Returns all non-empty cells. Each item contains the longest duration of the cell, in nanoseconds, and the number
    /// of durations in the cell.
    pub(super) fn found(&self) -> impl Iterator<Item = (u64, u64)> {
        let cells = self.cells.iter().enumerate().filter(|(_, count)| **count > 0);
        cells.map(|(place, count)| (longest(self.first + place), *count))
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram as Reference;
    use proptest::prelude::*;

    use super::*;

    fn reference() -> Reference<u64> {
        Reference::new_with_bounds(LEAST, MOST, 3).expect("bounds in order")
    }

    #[test]
    fn a_cell_holds_the_times_up_to_its_longest_and_the_next_begins_there() {
        let cells = cell(MOST).0;
        for number in 0..cells {
            assert_eq!((cell(longest(number)).0, cell(longest(number) + 1).0), (number, number + 1));
        }
    }

    /// Durations in nanoseconds. Each number of bits is equally likely.
    fn any_time() -> impl Strategy<Value = u64> {
        (1u32..40).prop_flat_map(|bits| (1u64 << (bits - 1))..(1 << bits)).prop_map(|nanos| nanos.min(MOST))
    }

    proptest! {
        /// If this test fails, quantiles or cells differ from those of `hdrhistogram`, possibly only after two
        /// histograms are merged.
        #[test]
        fn it_tells_the_same_as_a_library(
            times in proptest::collection::vec(any_time(), 1..300),
            more in proptest::collection::vec(any_time(), 0..300),
        ) {
            let (mut whole, mut part, mut expected) = (Histogram::default(), Histogram::default(), reference());
            for nanos in &times {
                whole.push(*nanos);
            }
            part.push_all(more.iter().copied());
            whole.merge(&part);
            for nanos in times.iter().chain(&more) {
                expected.saturating_record(*nanos);
            }
            prop_assert_eq!(whole.count(), expected.len());
            let shares = [0.5, 0.95, 0.99, 1.0];
            let counts = shares.map(|share: f64| (share * expected.len() as f64).ceil() as u64);
            prop_assert_eq!(whole.longest_of(counts), shares.map(|share| expected.value_at_quantile(share)));
            let cells = expected.iter_recorded();
            let cells: Vec<_> = cells.map(|cell| (expected.highest_equivalent(cell.value_iterated_to()), cell.count_at_value())).collect();
            prop_assert_eq!(whole.found().collect::<Vec<_>>(), cells);
        }
    }

    #[test]
    fn of_nothing_there_is_nothing_to_say() {
        let mut empty = Histogram::default();
        empty.merge(&Histogram::default());
        assert_eq!((empty.count(), empty.longest_of([1, 2]), empty.found().next()), (0, [0, 0], None));
    }
}
