use alloc::vec;
use alloc::vec::Vec;

use crate::units::{Instant, SenderClock, Span};

/// Tracks the sequence numbers of one RTP source: wraps, reordering, duplicates, outages and loss.
///
/// Source: RFC 3550, App. A.1 (cycles) and A.3 (loss). In addition, a window of the last [`SequenceTracker::WINDOW`] or
/// [`SequenceTracker::PATHS_WINDOW`] numbers distinguishes a duplicate from a late packet.
///
/// RFC 3550 treats a jump of 3000 or more numbers, confirmed by the next packet, as a restart. Here packets carry their
/// departure time, and on one path a packet that left later has a higher number. Therefore an outage of up to 65 534
/// packets is counted as loss. A longer outage is found from the sender's 32-bit numbers
/// ([`SequenceTracker::align`]). A jump is a restart only if no source could have sent that many packets in the time
/// between the two departures. A new source is accepted with its first packet, without the probation of RFC 3550.
#[derive(Clone, Debug)]
pub struct SequenceTracker {
    /// `base` and `highest` are the lowest and the highest extended number since the start or the last restart.
    base: u64,
    highest: u64,
    /// The latest departure time among the packets whose number was the highest so far when they arrived.
    newest: Instant<SenderClock>,
    /// A packet whose number is at most `copies` below the highest number counts as an older packet, whatever its
    /// departure time: on several paths, a copy of a packet may leave after packets with higher numbers. With one path,
    /// `copies` is zero.
    copies: u64,
    /// The sender's 32-bit number of a packet minus the number that this tracker extended from 16 bits, modulo 2³².
    /// `None` before the first call of [`align`](Self::align).
    ahead: Option<u64>,
    /// One bit for each recent number up to `highest`, set if the number was seen. The bit of the extended number n has
    /// the index n modulo the number of bits.
    seen: Vec<u64>,
    /// Number of packets that RFC 3550 counts as received, duplicates included.
    received: u64,
    /// Numbers of packets expected and received at the last report.
    reported: (u64, u64),
}

/// What an arriving sequence number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The number is seen for the first time. The value is its extended number, which never wraps.
    New(u64),
    /// The number was seen before, or is too old to decide.
    Duplicate,
    /// The source restarted with this packet. The value is the packet's extended number, in the next cycle of numbers.
    Restarted(u64),
}

/// Losses since the previous report and over the whole stream (RFC 3550, Sec. 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossInterval {
    /// Of the packets expected since the last report, the share that did not arrive, in 1/256; never negative.
    pub fraction_lost: u8,
    /// Packets expected less packets received since the start; negative if duplicates outnumber losses.
    pub cumulative_lost: i32,
    /// Number of cycles in the upper 16 bits, and highest sequence number in the lower 16 bits.
    pub extended_highest: u32,
}

impl SequenceTracker {
    /// How many recent numbers are remembered, to distinguish a duplicate from a late packet.
    pub const WINDOW: u64 = 1024;
    /// How many recent numbers are remembered if packets arrive on several paths. One path may be seconds slower than
    /// the others: 16384 packets of 500 bytes are 6.5 s at 10 Mbit/s.
    pub const PATHS_WINDOW: u64 = 1 << 14;
    /// If the sequence number increases by less than this, the missing numbers always count as loss (RFC 3550, App.
    /// A.1).
    const MAX_DROPOUT: u64 = 3000;
    /// Minimum time between two packets. Our choice: no source is assumed to send faster than 10 Gbit/s with packets of
    /// 1250 bytes.
    const LEAST_GAP: Span = Span::from_micros(1);

    /// Creates a tracker for a stream whose first packet carries `first` and left at `sent`.
    pub fn new(first: u16, sent: Instant<SenderClock>) -> Self {
        Self::with((Self::WINDOW, 0), first, sent)
    }

    /// Creates a tracker for a stream whose packets arrive on several paths. Each path also has its own tracker.
    pub fn of_paths(first: u16, sent: Instant<SenderClock>) -> Self {
        Self::with((Self::PATHS_WINDOW, Self::PATHS_WINDOW), first, sent)
    }

    fn with((window, copies): (u64, u64), first: u16, sent: Instant<SenderClock>) -> Self {
        // The first packet is in cycle 1, so that older packets that arrive later have extended numbers of at least 0.
        let base = u64::from(first) + (1 << 16);
        let seen = vec![0; window as usize / 64];
        let mut tracker =
            Self { base, highest: base, newest: sent, copies, ahead: None, seen, received: 1, reported: (0, 0) };
        tracker.mark(base);
        tracker
    }

    /// Returns the highest extended number so far.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Records a further packet with number `sequence` that left at `sent`. Returns whether the packet is new, a
    /// duplicate, or the first packet after a restart of the source.
    pub fn push(&mut self, sequence: u16, sent: Instant<SenderClock>) -> Arrival {
        let ahead = u64::from(sequence.wrapping_sub(self.highest as u16));
        let passed = sent - self.newest;
        let behind = (1 << 16) - ahead;
        // A number that is less than `MAX_DROPOUT` ahead belongs to a newer packet. A number that is at most `copies`
        // behind belongs to an older packet, for example to a late copy from another path. For all other numbers, the
        // departure times decide.
        let is_ahead = if ahead < 1 << 15 {
            ahead < Self::MAX_DROPOUT || passed > Span::ZERO
        } else {
            behind > self.copies && passed > Span::ZERO
        };
        if ahead != 0 && is_ahead {
            self.newest = self.newest.max(sent);
            if ahead >= Self::MAX_DROPOUT && passed / Self::LEAST_GAP < i64::try_from(ahead).ok() {
                return Arrival::Restarted(self.restart(sequence));
            }
            return Arrival::New(self.advance(ahead));
        }
        let behind = behind % (1 << 16);
        self.received += 1;
        let extended = self.highest.saturating_sub(behind);
        if behind >= self.window() || !self.mark(extended) {
            return Arrival::Duplicate;
        }
        self.base = self.base.min(extended);
        Arrival::New(extended)
    }

    /// Applies `count`, the sender's 32-bit number of a recent packet. The lower 16 bits of `count` are the packet's
    /// sequence number. After an outage of 65 535 packets or more, the upper 16 bits of `count` show how many cycles of
    /// the sequence number were missed.
    pub fn align(&mut self, count: u32) {
        let near = (count as u16).wrapping_sub(self.highest as u16).cast_signed();
        let here = self.highest.saturating_add_signed(i64::from(near));
        let ahead = u64::from(count).wrapping_sub(here) & 0xFFFF_FFFF;
        let Some(before) = self.ahead.replace(ahead) else { return };
        // If the difference is half of the 32-bit range or more, the count went back.
        let more = ahead.wrapping_sub(before) & 0xFFFF_FFFF;
        if more < 1 << 31 {
            self.highest += more & !0xFFFF;
            self.ahead = Some(before);
            if more >= 1 << 16 {
                self.seen.fill(0);
            }
        }
    }

    /// Records that the source restarted with `sequence`. The extended numbers continue in the next cycle, and packets
    /// and losses are counted from zero again. Returns the extended number of `sequence`.
    pub fn restart(&mut self, sequence: u16) -> u64 {
        let cycles = (self.highest >> 16) + 1;
        self.base = (cycles << 16) + u64::from(sequence);
        self.highest = self.base;
        self.ahead = None;
        self.seen.fill(0);
        self.mark(self.highest);
        self.received = 1;
        self.reported = (0, 0);
        self.base
    }

    /// Returns the losses since the previous call. The next interval begins with this call.
    pub fn report(&mut self) -> LossInterval {
        let expected = self.highest - self.base + 1;
        let (expected_before, received_before) = self.reported;
        self.reported = (expected, self.received);
        let expected_now = expected.saturating_sub(expected_before);
        let lost_now = expected_now.saturating_sub(self.received.saturating_sub(received_before));
        let lost = i64::try_from(expected).unwrap_or(i64::MAX) - i64::try_from(self.received).unwrap_or(i64::MAX);
        LossInterval {
            fraction_lost: (lost_now * 256).checked_div(expected_now).unwrap_or(0).min(255) as u8,
            // The field is a signed 24-bit number and saturates (RFC 3550, App. A.3).
            cumulative_lost: lost.clamp(-0x80_0000, 0x7F_FFFF) as i32,
            // Cycles are counted from 1 in this code, but from 0 in the report.
            extended_highest: (self.highest - (1 << 16)) as u32,
        }
    }

    fn advance(&mut self, by: u64) -> u64 {
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

    /// Marks the extended number as seen. Returns whether it was not seen before.
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

    const MILLI: Span = Span::from_millis(1);

    /// Pushes packet `number` of a source that sends one packet per millisecond.
    fn push(tracker: &mut SequenceTracker, number: u64) -> Arrival {
        tracker.push(number as u16, Instant::ZERO + MILLI * number as i64)
    }

    fn tracker(first: u64) -> SequenceTracker {
        SequenceTracker::new(first as u16, Instant::ZERO + MILLI * first as i64)
    }

    fn feed(tracker: &mut SequenceTracker, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| {
            push(tracker, number);
        });
    }

    /// One path is four seconds slower than the other path. When a packet of the slower path arrives, its number is far
    /// below the highest number.
    #[test]
    fn on_several_paths_what_is_far_behind_is_late() {
        let mut tracker = SequenceTracker::of_paths(5000, Instant::ZERO + MILLI * 5000);
        assert_eq!(push(&mut tracker, 9000), Arrival::New(9000 + (1 << 16)));
        for late in 5001..5010 {
            assert_eq!(push(&mut tracker, late), Arrival::New(late + (1 << 16)));
            assert_eq!(push(&mut tracker, late), Arrival::Duplicate);
        }
        assert_eq!(push(&mut tracker, 8500), Arrival::New(8500 + (1 << 16)));
        assert_eq!(push(&mut tracker, 25_000), Arrival::New(25_000 + (1 << 16)));
        assert_eq!(push(&mut tracker, 25_000 - (1 << 14)), Arrival::Duplicate, "it cannot be told");
    }

    #[test]
    fn numbers_go_on_over_the_wrap() {
        let mut tracker = tracker(65_534);
        let Arrival::New(before) = push(&mut tracker, 65_535) else { panic!("in order") };
        assert_eq!(push(&mut tracker, 65_536), Arrival::New(before + 1));
        assert_eq!(tracker.report().extended_highest, 0x0001_0000);
    }

    #[test]
    fn a_gap_is_loss_until_the_late_packet_fills_it() {
        let mut tracker = tracker(1);
        feed(&mut tracker, [2, 3, 5]);
        assert_eq!(tracker.report(), LossInterval { fraction_lost: 51, cumulative_lost: 1, extended_highest: 5 });
        assert!(matches!(push(&mut tracker, 4), Arrival::New(_)));
        assert_eq!(tracker.report().cumulative_lost, 0);
    }

    #[test]
    fn a_duplicate_is_received_but_not_new_and_can_make_the_loss_negative() {
        let mut tracker = tracker(7);
        assert_eq!(push(&mut tracker, 7), Arrival::Duplicate);
        feed(&mut tracker, [8]);
        assert_eq!(push(&mut tracker, 7), Arrival::Duplicate);
        assert_eq!(tracker.report().cumulative_lost, -2);
    }

    /// If this test fails, an outage of more than 3000 packets is not reported as loss.
    #[test]
    fn an_outage_of_any_length_is_loss() {
        for outage in [100, 2999, 3000, 5000, 32_767, 32_768, 43_000, 64_600, 65_000, 65_535, 68_000, 150_000, 400_000]
        {
            let mut tracker = tracker(100);
            feed(&mut tracker, 101..300);
            tracker.align(299);
            let first = 300 + outage;
            feed(&mut tracker, first..first + 100);
            tracker.align(first as u32 + 50);
            feed(&mut tracker, first + 100..first + 200);
            let lost = tracker.report().cumulative_lost;
            assert_eq!(u64::try_from(lost), Ok(outage), "an outage of {outage}");
        }
    }

    #[test]
    fn numbers_that_no_source_could_have_used_up_are_a_restart() {
        let mut tracker = tracker(100);
        let at = |micros: i64| Instant::ZERO + MILLI * 100 + Span::from_micros(micros);
        assert!(matches!(tracker.push(20_101, at(500)), Arrival::Restarted(_)));
        assert!(matches!(tracker.push(20_102, at(1500)), Arrival::New(_)));
        assert_eq!(tracker.report().cumulative_lost, 0, "a restart is not twenty thousand losses");
    }

    #[test]
    fn a_packet_from_before_the_first_is_late_and_not_lost() {
        let mut tracker = tracker(10);
        assert!(matches!(push(&mut tracker, 9), Arrival::New(_)));
        assert_eq!(tracker.report().cumulative_lost, 0);
    }

    proptest! {
        #[test]
        fn shuffled_and_doubled_within_the_window_every_number_is_new_once(start: u16, order in proptest::collection::vec(0u64..200, 1..400)) {
            let start = u64::from(start);
            let mut tracker = tracker(start);
            let mut seen = BTreeSet::from([0u64]);
            for offset in order {
                let arrival = push(&mut tracker, start + offset);
                prop_assert_eq!(matches!(arrival, Arrival::New(_)), seen.insert(offset));
            }
            let highest = seen.last().copied().unwrap_or(0);
            let missing = highest as i32 + 1 - seen.len() as i32;
            prop_assert!(tracker.report().cumulative_lost <= missing);
        }
    }
}
