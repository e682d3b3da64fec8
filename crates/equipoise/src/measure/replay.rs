/// Remembers which 16-bit sequence numbers were received, among the last [`ReplayWindow::LENGTH`] (RFC 3711, Sec.
/// 3.3.2).
///
/// A query does not change the window, so a caller can [mark](Self::mark) a number after the packet was authenticated.
/// Then a forged packet does not move the window.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    highest: Option<u16>,
    /// The received numbers: bit n is set if the number `highest - n` was received.
    seen: [u64; Self::LENGTH as usize / 64],
}

/// The state of a sequence number in a [`ReplayWindow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// The number was not received before.
    New,
    /// The number was received before.
    Repeated,
    /// The number is below the window, so its state is not known.
    Old,
}

impl ReplayWindow {
    /// Size of the window in numbers.
    pub const LENGTH: u16 = 1024;

    /// Returns the state of a sequence number. A number counts as newer if it is less than 2^15 above the highest
    /// number, modulo 2^16. A number exactly 2^15 above it could be newer or older, and counts as
    /// [`Old`](Novelty::Old).
    pub fn novelty(&self, sequence: u16) -> Novelty {
        match self.highest.map(|highest| highest.wrapping_sub(sequence)) {
            Some(behind) if self.is_seen(behind) => Novelty::Repeated,
            Some(behind) if (Self::LENGTH..=1 << 15).contains(&behind) => Novelty::Old,
            _ => Novelty::New,
        }
    }

    /// Marks a number as received.
    pub fn mark(&mut self, sequence: u16) {
        let behind = self.highest.map_or(u16::MAX, |highest| highest.wrapping_sub(sequence));
        if behind <= u16::MAX / 2 {
            return self.see(behind);
        }
        self.shift(if self.highest.is_some() { behind.wrapping_neg() } else { Self::LENGTH });
        self.highest = Some(sequence);
        self.see(0);
    }

    /// Shifts the bits by `by`, because the highest number rises by `by`.
    fn shift(&mut self, by: u16) {
        let (words, bits) = (usize::from(by / 64), u32::from(by % 64));
        // Each new word is computed from the old values of words with lower or equal indices. Therefore the loop goes
        // from the highest index to the lowest.
        for at in (0..self.seen.len()).rev() {
            let word =
                |back: usize| at.checked_sub(words + back).and_then(|at| self.seen.get(at)).copied().unwrap_or(0);
            let shifted = word(0) << bits | word(1).checked_shr(64 - bits).unwrap_or(0);
            if let Some(word) = self.seen.get_mut(at) {
                *word = shifted;
            }
        }
    }

    fn is_seen(&self, behind: u16) -> bool {
        self.seen.get(usize::from(behind / 64)).is_some_and(|word| word & 1 << (behind % 64) != 0)
    }

    fn see(&mut self, behind: u16) {
        if let Some(word) = self.seen.get_mut(usize::from(behind / 64)) {
            *word |= 1 << (behind % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares the window with a set of all numbers received.
        #[test]
        fn each_number_of_the_window_is_new_once_and_nobody_can_tell_behind_it(
            steps in proptest::collection::vec(-1500i32..3000, 1..200), start: u16,
        ) {
            let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
            let mut highest = i64::from(start) + 100_000;
            for step in core::iter::once(0).chain(steps) {
                let number = highest + i64::from(step);
                let expected = match highest - number {
                    _ if seen.contains(&number) && highest - number < 1024 => Novelty::Repeated,
                    1024.. => Novelty::Old,
                    _ => Novelty::New,
                };
                prop_assert_eq!(window.novelty(number as u16), expected, "{}", number);
                if expected == Novelty::New {
                    window.mark(number as u16);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
