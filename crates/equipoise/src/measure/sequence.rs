use alloc::vec;
use alloc::vec::Vec;

/// Follows the sequence numbers of one RTP source: wraps, reordering, duplicates, restarts and loss.
///
/// Source: RFC 3550, App. A.1 (validation, cycles, restart) and A.3 (loss), with a window of the last
/// [`SequenceTracker::WINDOW`] numbers beside them, or [`SequenceTracker::PATHS_WINDOW`], so that a duplicate is told from a late packet. Probation is left to
/// the session, which knows whether its peer's SSRC was agreed on beforehand.
#[derive(Clone, Debug)]
pub struct SequenceTracker {
    /// Extended number of the first packet, and of the highest.
    base: u64,
    highest: u64,
    /// A jump ahead of so much or more is not loss, and a packet so far behind or further not late.
    too_far: (u16, u16),
    /// The 16-bit number that, if it comes next, shows that the source restarted.
    restart_at: Option<u16>,
    /// Bit `n mod` its length stands for the extended number n, of those up to `highest`.
    seen: Vec<u64>,
    /// Packets that RFC 3550 counts as received: all but invalid ones, duplicates included.
    received: u64,
    /// Expected and received at the last report.
    reported: (u64, u64),
}

/// What an arriving sequence number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// First seen; its extended number, which never wraps.
    New(u64),
    /// Seen before, or so old that it cannot be told.
    Duplicate,
    /// A jump that is neither loss nor reordering; not counted unless the next packet confirms a restart.
    Invalid,
    /// The source restarted with this packet; its extended number follows on the old ones.
    Restarted(u64),
}

/// Losses since the previous report and over the whole stream (RFC 3550, Sec. 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossInterval {
    /// Share of the packets expected since the last report that did not come, in 1/256; never negative.
    pub fraction_lost: u8,
    /// Packets expected less packets received since the start; negative where duplicates outnumber losses.
    pub cumulative_lost: i32,
    /// Cycles in the upper, highest sequence number in the lower 16 bits.
    pub extended_highest: u32,
}

impl SequenceTracker {
    /// Numbers behind the highest for which a duplicate is told from a late packet.
    pub const WINDOW: u64 = 1024;
    /// The same where packets come on several paths, of which one may be seconds slower: 16384 packets of 500 bytes are 6 s of
    /// 10 Mbit/s.
    pub const PATHS_WINDOW: u64 = 1 << 14;
    /// A jump ahead of more than this is not loss (RFC 3550, App. A.1).
    const MAX_DROPOUT: u16 = 3000;
    /// A packet up to this far behind is late, not a restart (RFC 3550, App. A.1; here as far as the window reaches).
    const MAX_MISORDER: u16 = Self::WINDOW as u16;

    /// A stream whose first packet carries `first`.
    pub fn new(first: u16) -> Self {
        Self::with((Self::MAX_DROPOUT, Self::MAX_MISORDER), Self::WINDOW, first)
    }

    fn with(too_far: (u16, u16), window: u64, first: u16) -> Self {
        // Starting in cycle 1 keeps a packet from before the first representable.
        let base = u64::from(first) + (1 << 16);
        let seen = vec![0; window as usize / 64];
        let mut tracker = Self { base, highest: base, too_far, restart_at: None, seen, received: 1, reported: (0, 0) };
        tracker.mark(base);
        tracker
    }

    /// The same for packets that come on several paths, of which each is tracked by itself.
    ///
    /// What another tracker has let pass is lost or late, however far: a slow path's packets are no restart.
    pub fn of_paths(first: u16) -> Self {
        Self::with((1 << 15, 1 << 15), Self::PATHS_WINDOW, first)
    }

    /// The highest number so far.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// A further packet carries `sequence`.
    pub fn push(&mut self, sequence: u16) -> Arrival {
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if ahead != 0 && ahead < self.too_far.0 {
            let extended = self.advance(u64::from(ahead));
            return Arrival::New(extended);
        }
        let behind = 0u16.wrapping_sub(ahead);
        if behind < self.too_far.1 {
            self.restart_at = None;
            self.received += 1;
            let extended = self.highest.saturating_sub(u64::from(behind));
            if u64::from(behind) >= self.window() || !self.mark(extended) {
                return Arrival::Duplicate;
            }
            self.base = self.base.min(extended);
            return Arrival::New(extended);
        }
        if self.restart_at == Some(sequence) {
            // Two in a row: the source started anew.
            self.restart(sequence);
            return Arrival::Restarted(self.base);
        }
        self.restart_at = Some(sequence.wrapping_add(1));
        Arrival::Invalid
    }

    /// The source started anew with `sequence`. Its numbers go on behind the old ones, as if nothing were lost.
    pub fn restart(&mut self, sequence: u16) {
        self.restart_at = None;
        let cycles = (self.highest >> 16) + 1;
        self.base = (cycles << 16) + u64::from(sequence);
        self.highest = self.base;
        self.seen.fill(0);
        self.mark(self.highest);
        self.received = 1;
        self.reported = (0, 0);
    }

    /// The losses since the previous call, which begins the next interval.
    pub fn report(&mut self) -> LossInterval {
        let expected = self.highest - self.base + 1;
        let (expected_before, received_before) = self.reported;
        self.reported = (expected, self.received);
        let expected_now = expected.saturating_sub(expected_before);
        let lost_now = expected_now.saturating_sub(self.received.saturating_sub(received_before));
        let lost = i64::try_from(expected).unwrap_or(i64::MAX) - i64::try_from(self.received).unwrap_or(i64::MAX);
        LossInterval {
            fraction_lost: (lost_now * 256).checked_div(expected_now).unwrap_or(0).min(255) as u8,
            // The field is a signed 24-bit number and sticks at its ends (RFC 3550, Sec. 6.4.1).
            cumulative_lost: lost.clamp(-0x80_0000, 0x7F_FFFF) as i32,
            // Counting starts in cycle 1 here and in cycle 0 on the wire.
            extended_highest: (self.highest - (1 << 16)) as u32,
        }
    }

    fn advance(&mut self, by: u64) -> u64 {
        self.restart_at = None;
        self.received += 1;
        if by >= self.window() {
            self.seen.fill(0);
        } else {
            (1..=by).for_each(|ahead| self.forget(self.highest + ahead));
        }
        self.highest += by;
        self.mark(self.highest);
        self.highest
    }

    /// Marks a number as seen; whether it was not before.
    fn mark(&mut self, extended: u64) -> bool {
        let (word, bit) = self.place(extended);
        self.seen.get_mut(word).is_some_and(|word| {
            let new = *word & bit == 0;
            *word |= bit;
            new
        })
    }

    fn forget(&mut self, extended: u64) {
        let (word, bit) = self.place(extended);
        if let Some(word) = self.seen.get_mut(word) {
            *word &= !bit;
        }
    }

    const fn window(&self) -> u64 {
        self.seen.len() as u64 * 64
    }

    const fn place(&self, extended: u64) -> (usize, u64) {
        ((extended % self.window() / 64) as usize, 1 << (extended % 64))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn feed(tracker: &mut SequenceTracker, sequences: impl IntoIterator<Item = u16>) {
        sequences.into_iter().for_each(|sequence| {
            tracker.push(sequence);
        });
    }

    /// A path that is two seconds slower than the other delivers packets far behind, in rows.
    #[test]
    fn on_several_paths_what_is_far_behind_is_late_and_never_a_restart() {
        let mut tracker = SequenceTracker::of_paths(5000);
        assert_eq!(tracker.push(9000), Arrival::New(9000 + (1 << 16)));
        for late in 5001..5010 {
            assert_eq!(tracker.push(late), Arrival::New(u64::from(late) + (1 << 16)));
            assert_eq!(tracker.push(late), Arrival::Duplicate);
        }
        assert_eq!(tracker.push(8500), Arrival::New(8500 + (1 << 16)));
        assert_eq!(tracker.push(8500), Arrival::Duplicate);
        assert_eq!(tracker.push(25_000), Arrival::New(25_000 + (1 << 16)));
        assert_eq!(tracker.push(25_000 - (1 << 14)), Arrival::Duplicate, "it cannot be told");
        tracker.restart(100);
        assert_eq!(tracker.push(101), Arrival::New(101 + (2 << 16)));
    }

    #[test]
    fn numbers_go_on_over_the_wrap() {
        let mut tracker = SequenceTracker::new(65_534);
        let Arrival::New(before) = tracker.push(65_535) else { panic!("in order") };
        assert_eq!(tracker.push(0), Arrival::New(before + 1));
        assert_eq!(tracker.report().extended_highest, 0x0001_0000);
    }

    #[test]
    fn a_gap_is_loss_until_the_late_packet_fills_it() {
        let mut tracker = SequenceTracker::new(1);
        feed(&mut tracker, [2, 3, 5]);
        assert_eq!(tracker.report(), LossInterval { fraction_lost: 51, cumulative_lost: 1, extended_highest: 5 });
        assert!(matches!(tracker.push(4), Arrival::New(_)));
        assert_eq!(tracker.report().cumulative_lost, 0);
    }

    #[test]
    fn a_duplicate_is_received_but_not_new_and_can_make_the_loss_negative() {
        let mut tracker = SequenceTracker::new(7);
        assert_eq!(tracker.push(7), Arrival::Duplicate);
        feed(&mut tracker, [8]);
        assert_eq!(tracker.push(7), Arrival::Duplicate);
        assert_eq!(tracker.report().cumulative_lost, -2);
    }

    #[test]
    fn one_wild_number_is_ignored_and_two_in_a_row_are_a_restart() {
        let mut tracker = SequenceTracker::new(100);
        assert_eq!(tracker.push(40_000), Arrival::Invalid);
        assert!(matches!(tracker.push(101), Arrival::New(_)));
        assert_eq!(tracker.push(40_000), Arrival::Invalid);
        assert!(matches!(tracker.push(40_001), Arrival::Restarted(_)));
        assert_eq!(tracker.report().cumulative_lost, 0, "a restart is not forty thousand losses");
    }

    #[test]
    fn a_packet_from_before_the_first_is_late_and_not_lost() {
        let mut tracker = SequenceTracker::new(10);
        assert!(matches!(tracker.push(9), Arrival::New(_)));
        assert_eq!(tracker.report().cumulative_lost, 0);
    }

    proptest! {
        #[test]
        fn shuffled_and_doubled_within_the_window_every_number_is_new_once(start: u16, order in proptest::collection::vec(0u16..200, 1..400)) {
            let mut tracker = SequenceTracker::new(start);
            let mut seen = BTreeSet::from([0u16]);
            for offset in order {
                let arrival = tracker.push(start.wrapping_add(offset));
                prop_assert_eq!(matches!(arrival, Arrival::New(_)), seen.insert(offset));
            }
            let highest = seen.last().copied().unwrap_or(0);
            let missing = i32::from(highest) + 1 - seen.len() as i32;
            prop_assert!(tracker.report().cumulative_lost <= missing);
        }
    }
}
