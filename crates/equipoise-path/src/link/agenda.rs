use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use equipoise::units::Instant;

/// A queue of future events, ordered by time. Events at the same time are returned in the order of their insertion.
#[derive(Clone, Debug)]
pub struct Agenda<C, T> {
    entries: BinaryHeap<Reverse<Entry<C, T>>>,
    entered: u64,
}

#[derive(Clone, Debug)]
struct Entry<C, T> {
    at: Instant<C>,
    number: u64,
    what: T,
}

impl<C, T> Default for Agenda<C, T> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), entered: 0 }
    }
}

impl<C, T> Agenda<C, T> {
    /// Adds an event at time `at`.
    pub fn enter(&mut self, at: Instant<C>, what: T) {
        self.entered += 1;
        self.entries.push(Reverse(Entry { at, number: self.entered, what }));
    }

    /// The time of the next event; `None` if the queue is empty.
    pub fn next(&self) -> Option<Instant<C>> {
        self.entries.peek().map(|entry| entry.0.at)
    }

    /// Removes the next event if its time is no later than `until`. Returns the event and its time.
    pub fn take(&mut self, until: Instant<C>) -> Option<(Instant<C>, T)> {
        self.next().filter(|at| *at <= until)?;
        self.entries.pop().map(|Reverse(Entry { at, what, .. })| (at, what))
    }

    /// Number of events in the queue.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<C, T> Entry<C, T> {
    fn key(&self) -> (Instant<C>, u64) {
        (self.at, self.number)
    }
}

impl<C, T> PartialEq for Entry<C, T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<C, T> Eq for Entry<C, T> {}
impl<C, T> PartialOrd for Entry<C, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<C, T> Ord for Entry<C, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use equipoise::units::SenderClock;

    #[test]
    fn things_come_in_the_order_of_their_moments_and_then_of_their_entries() {
        let mut agenda = Agenda::<SenderClock, char>::default();
        for (at, what) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            agenda.enter(Instant::from_nanos(at), what);
        }
        let until = |agenda: &mut Agenda<_, _>, nanos| -> Vec<_> {
            core::iter::from_fn(|| agenda.take(Instant::from_nanos(nanos))).map(|(_, what)| what).collect()
        };
        assert_eq!(until(&mut agenda, 5), ['a', 'b', 'c', 'd']);
        assert_eq!((agenda.len(), agenda.next()), (1, Some(Instant::from_nanos(9))));
        assert_eq!(until(&mut agenda, 9), ['e']);
        assert!(agenda.is_empty() && agenda.next().is_none());
    }
}
