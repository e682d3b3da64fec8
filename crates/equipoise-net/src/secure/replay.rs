/// Which numbers have come, of the last [`Replays::WINDOW`] (RFC 3711, Sec. 3.3.2). What is not authentic changes nothing of it: it
/// is asked before a packet is decrypted, and told behind that.
#[derive(Clone, Debug, Default)]
pub(super) struct Replays {
    highest: Option<u16>,
    /// Bit n stands for the number that is n below the highest.
    seen: [u64; Self::WINDOW as usize / 64],
}

impl Replays {
    /// Packets that may overtake each other and still be told from replays. Ours: what [`SequenceTracker`] tells apart.
    ///
    /// [`SequenceTracker`]: equipoise::measure::SequenceTracker
    const WINDOW: u16 = 1024;

    /// Whether a packet of this number may be new.
    pub(super) fn is_new(&self, number: u16) -> bool {
        let Some(highest) = self.highest else { return true };
        let behind = highest.wrapping_sub(number);
        if behind > u16::MAX / 2 {
            return true;
        }
        behind < Self::WINDOW && self.seen[usize::from(behind / 64)] & 1 << (behind % 64) == 0
    }

    /// An authentic packet of a new number has come.
    pub(super) fn mark(&mut self, number: u16) {
        let behind = self.highest.map_or(u16::MAX, |highest| highest.wrapping_sub(number));
        if behind <= u16::MAX / 2 {
            if behind < Self::WINDOW {
                self.seen[usize::from(behind / 64)] |= 1 << (behind % 64);
            }
            return;
        }
        let ahead = if self.highest.is_some() { behind.wrapping_neg() } else { Self::WINDOW };
        let before = std::mem::take(&mut self.seen);
        for at in 0..Self::WINDOW.saturating_sub(ahead) {
            if before[usize::from(at / 64)] & 1 << (at % 64) != 0 {
                let at = at + ahead;
                self.seen[usize::from(at / 64)] |= 1 << (at % 64);
            }
        }
        self.seen[0] |= 1;
        self.highest = Some(number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_of_the_window_is_new_once_and_none_behind_it(steps in proptest::collection::vec(-1500i32..3000, 1..200), start: u16) {
            let (mut replays, mut seen) = (Replays::default(), BTreeSet::new());
            let mut highest = i64::from(start) + 100_000;
            let first = highest;
            for (count, step) in steps.into_iter().enumerate() {
                let number = if count == 0 { first } else { highest + i64::from(step) };
                let is_new = number > highest || count == 0 || (highest - number < 1024 && !seen.contains(&number));
                prop_assert_eq!(replays.is_new(number as u16), is_new, "{}", number);
                if is_new {
                    replays.mark(number as u16);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
