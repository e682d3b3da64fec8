use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// What is going to happen, in the order of its time; of two events at one time the one that was put in first.
///
/// A binary heap of compact entries. The order of insertion is part of the key, so that the order of events depends on
/// nothing but the calls that were made.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    inserted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: u64,
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (u64, u64) {
        (self.at, self.order)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> EventQueue<E> {
    /// Nothing is going to happen.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), inserted: 0 }
    }

    /// `event` is going to happen at `at`.
    pub fn push(&mut self, at: Time, event: E) {
        self.heap.push(Reverse(Entry { at: at.as_nanos(), order: self.inserted, event }));
        self.inserted += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| Time::from_nanos(entry.at))
    }

    /// Takes the next event out.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Reverse(entry)| (Time::from_nanos(entry.at), entry.event))
    }

    /// How many events are waiting.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Pushed and taken in any order, events come out as a stable sort by time would have them.
        #[test]
        fn events_come_in_the_order_of_time_and_then_of_insertion(steps in proptest::collection::vec((0u64..20, any::<bool>()), 1..200)) {
            let mut queue = EventQueue::new();
            let mut reference: Vec<(u64, usize)> = Vec::new();
            for (number, (at, pop)) in steps.into_iter().enumerate() {
                queue.push(Time::from_nanos(at), number);
                reference.push((at, number));
                if pop {
                    let first = reference.iter().copied().enumerate().min_by_key(|(_, key)| *key).map(|(index, _)| index);
                    let expected = first.map(|index| reference.remove(index));
                    prop_assert_eq!(queue.next_at().map(Time::as_nanos), expected.map(|(at, _)| at));
                    prop_assert_eq!(queue.pop().map(|(at, number)| (at.as_nanos(), number)), expected);
                }
            }
            prop_assert_eq!(queue.len(), reference.len());
        }
    }
}
