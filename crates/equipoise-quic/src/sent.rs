//! A list of sent packets, in which packets are found by sending time or by packet number.

use std::collections::VecDeque;

use equipoise::control::{Fate, PacketReport};
use equipoise::units::{Instant, SenderClock, Size};

/// Packets that were sent at the same time, and that have consecutive numbers in this module.
#[derive(Clone, Copy, Debug)]
struct Batch {
    at: Instant<SenderClock>,
    /// The stack's packet number, if the stack passes a number for each packet.
    number_of_stack: Option<u64>,
    /// `first` is the number that this module gave the first packet. `count` is the number of packets, and `told` is
    /// the number of packets that were already reported.
    first: u64,
    count: u64,
    told: u64,
}

/// Packets in flight, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    batches: VecDeque<Batch>,
    next: u64,
}

impl SentPackets {
    /// Maximum number of batches (packets that were sent at the same time). If each batch is one packet, this maximum
    /// is reached in about two seconds at 100 Mbit/s. Older packets are forgotten without a report.
    const MOST: usize = 1 << 14;

    /// Records that `count` packets, at least one, were sent at `now`. Returns the number that this module
    /// gives the first of these packets.
    pub(crate) fn push(&mut self, now: Instant<SenderClock>, count: u64, number_of_stack: Option<u64>) -> u64 {
        if self.batches.len() >= Self::MOST {
            self.batches.pop_front();
        }
        let (first, count) = (self.next, count.max(1));
        self.batches.push_back(Batch { at: now, number_of_stack, first, count, told: 0 });
        self.next += count;
        first
    }

    /// Returns the report on the packet with the stack's `number`. If the stack passes no numbers, returns the report
    /// on a packet that was sent at `at` and was not reported yet.
    pub(crate) fn take(
        &mut self,
        at: Option<Instant<SenderClock>>,
        number: Option<u64>,
        size: Size,
        fate: Fate,
    ) -> Option<PacketReport> {
        let is_it = |batch: &Batch| {
            at.is_none_or(|at| batch.at == at)
                && number.is_none_or(|number| batch.number_of_stack == Some(number))
                && batch.told < batch.count
        };
        let place = self.batches.iter().position(is_it)?;
        let batch = self.batches.get_mut(place)?;
        let report = PacketReport::new(batch.first + batch.told, size, batch.at, fate);
        batch.told += 1;
        while self.batches.front().is_some_and(|first| first.told >= first.count) {
            self.batches.pop_front();
        }
        Some(report)
    }

    /// Reports the oldest packet that was not reported yet, if the packet was sent at or before `until`. Returns the
    /// report.
    #[cfg(feature = "quinn")]
    pub(crate) fn take_oldest_until(
        &mut self,
        until: Instant<SenderClock>,
        size: Size,
        fate: Fate,
    ) -> Option<PacketReport> {
        let oldest = self.batches.iter().find(|batch| batch.told < batch.count).filter(|batch| batch.at <= until)?;
        self.take(Some(oldest.at), oldest.number_of_stack, size, fate)
    }

    /// Removes packets that were sent before `at`, because they will not be reported any more. For example, packets
    /// that contain only acknowledgements are never acknowledged.
    pub(crate) fn forget_before(&mut self, at: Instant<SenderClock>) {
        while self.batches.front().is_some_and(|first| first.at < at) {
            self.batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size::from_bytes(1200);

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// If this test fails, a controller that uses packet numbers gets a report on the wrong packet.
    #[test]
    fn packets_have_our_numbers_by_the_stacks_or_by_when_they_left() {
        let mut sent = SentPackets::default();
        assert_eq!([sent.push(at(1), 1, Some(7)), sent.push(at(1), 1, Some(8)), sent.push(at(5), 3, None)], [0, 1, 2]);
        let mut number = |at, number| sent.take(at, number, SIZE, Fate::Lost).map(|report| report.number);
        assert_eq!(number(Some(at(1)), Some(8)), Some(1));
        assert_eq!(number(None, Some(8)), None, "it was already reported");
        assert_eq!([(); 4].map(|()| number(Some(at(5)), None)), [Some(2), Some(3), Some(4), None]);
        assert_eq!(number(None, Some(7)), Some(0));
    }

    #[test]
    fn what_is_never_told_of_does_not_pile_up() {
        let mut sent = SentPackets::default();
        for number in 0..100_000 {
            sent.push(at(number), 1, Some(number));
        }
        assert_eq!(sent.batches.len(), SentPackets::MOST);
        sent.forget_before(at(99_990));
        assert_eq!(sent.batches.len(), 10);
    }
}
