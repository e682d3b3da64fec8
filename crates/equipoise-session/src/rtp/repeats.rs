/// Tells which of another program's packets came before, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    highest: Option<u16>,
    /// Bit n stands for the number that is n below the highest.
    seen: [u64; Self::WINDOW as usize / 64],
}

impl Repeats {
    /// Numbers below the highest of which it is known whether they came. Further below, the program has begun anew: a program that
    /// was started again draws another number (RFC 3550, Sec. 5.1).
    const WINDOW: u16 = 1024;

    /// A packet of this number comes. Whether it is the first.
    pub(crate) fn is_first(&mut self, sequence: u16) -> bool {
        let behind = self.highest.map_or(0, |highest| highest.wrapping_sub(sequence).cast_signed());
        if self.highest.is_none() || behind >= Self::WINDOW.cast_signed() {
            *self = Self { highest: Some(sequence), seen: [0; _] };
        } else if behind < 0 {
            self.shift(usize::from(behind.unsigned_abs()));
            self.highest = Some(sequence);
        }
        let bit = usize::from(behind.max(0).unsigned_abs() % Self::WINDOW);
        let bit = if self.highest == Some(sequence) { 0 } else { bit };
        let Some(word) = self.seen.get_mut(bit / 64) else { return true };
        let is_first = *word & 1 << (bit % 64) == 0;
        *word |= 1 << (bit % 64);
        is_first
    }

    /// Makes all numbers `by` further below the highest.
    fn shift(&mut self, by: usize) {
        let (words, bits) = (by / 64, by % 64);
        for at in (0..self.seen.len()).rev() {
            let from = |back: usize| at.checked_sub(back).and_then(|at| self.seen.get(at)).copied().unwrap_or(0);
            let carried = if bits == 0 { 0 } else { from(words + 1) >> (64 - bits) };
            let word = from(words) << bits | carried;
            if let Some(place) = self.seen.get_mut(at) {
                *place = word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_that_begins_anew_is_heard_and_one_that_repeats_is_not() {
        let mut repeats = Repeats::default();
        let first = |repeats: &mut Repeats, numbers: core::ops::Range<u16>| {
            numbers.filter(|number| repeats.is_first(*number)).collect::<Vec<_>>()
        };
        assert_eq!(first(&mut repeats, 1000..1050).len(), 50);
        assert_eq!(first(&mut repeats, 1040..1060), (1050..1060).collect::<Vec<_>>());
        assert_eq!(first(&mut repeats, 65_000..65_010).len(), 10, "it begins anew");
        assert_eq!(first(&mut repeats, 1055..1065).len(), 10, "and once more");
    }

    proptest! {
        /// Against a set of all numbers of the last cycle.
        #[test]
        fn within_the_window_each_number_is_first_once(steps in proptest::collection::vec(-1000i32..1400, 1..300), start: u16) {
            let (mut repeats, mut seen) = (Repeats::default(), BTreeSet::new());
            let mut highest = i64::from(start) + 65_536;
            let base = highest;
            for step in steps {
                let number = (highest + i64::from(step)).max(base);
                let is_known = highest - number < 1024;
                highest = highest.max(number);
                prop_assert!(is_known);
                prop_assert_eq!(repeats.is_first(number as u16), seen.insert(number), "{}", number);
            }
        }
    }
}
