use crate::Time;

/// A priority queue of numbered events. Each event has at most one time. Of several events with the same time, the one
/// with the lowest number comes first.
///
/// The queue is a tournament tree: the leaves are the events, and each inner node has the earlier of its two children.
/// A change takes one comparison per level, without a branch. If the time of an event changes, the old time is
/// overwritten, so the tree has no outdated entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventQueue {
    /// The earliest event is at index 1. The children of node `i` are at `2i` and `2i + 1`. The leaves are in the upper
    /// half.
    nodes: Vec<Entry>,
}

/// An event: its time in nanoseconds in the upper bits, its number in the lower bits. One comparison therefore orders
/// events by time, and events of the same time by number.
type Entry = u128;

/// The time of an event that is not scheduled, in nanoseconds; later than every other time.
const NEVER: u64 = u64::MAX;

impl EventQueue {
    /// Makes room for events with numbers below `count`. Scheduled events stay scheduled.
    pub(crate) fn reserve(&mut self, count: usize) {
        let (old, leaves) = (self.leaves().to_vec(), count.next_power_of_two());
        if leaves <= old.len() {
            return;
        }
        self.nodes = vec![0; 2 * leaves];
        for number in 0..leaves {
            self.nodes[leaves + number] = old.get(number).copied().unwrap_or(entry(NEVER, number));
        }
        for node in (1..leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// Sets the time of event `number`, for which `reserve` must have made room; `None` removes the event.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, at: Option<Time>) {
        let mut node = self.nodes.len() / 2 + number;
        let mut winner = entry(at.map_or(NEVER, Time::as_nanos), number);
        self.nodes[node] = winner;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = winner;
        }
    }

    /// The time and number of the next event; `None` if no event is scheduled.
    pub(crate) fn next(&self) -> Option<(Time, usize)> {
        let first = *self.nodes.get(1)?;
        let at = (first >> u32::BITS) as u64;
        (at != NEVER).then(|| (Time::from_nanos(at), first as u32 as usize))
    }

    fn leaves(&self) -> &[Entry] {
        &self.nodes[self.nodes.len() / 2..]
    }
}

const fn entry(at: u64, number: usize) -> Entry {
    (at as Entry) << u32::BITS | number as u32 as Entry
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// After any sequence of changes, the next event is the event that a linear search finds.
        #[test]
        fn the_next_is_the_earliest_and_of_equals_the_lowest(
            count in 1usize..40,
            more in 0usize..40,
            steps in proptest::collection::vec((any::<prop::sample::Index>(), proptest::option::of(0u64..20)), 1..200),
        ) {
            let mut events = EventQueue::default();
            events.reserve(count);
            let mut reference = vec![None; count];
            for (step, (number, at)) in steps.iter().enumerate() {
                if step == 20 {
                    events.reserve(count + more);
                    reference.resize(count + more, None);
                }
                let number = number.index(reference.len());
                events.set(number, at.map(Time::from_nanos));
                reference[number] = *at;
                let expected = reference.iter().enumerate().filter_map(|(n, at)| at.map(|at| (at, n))).min();
                prop_assert_eq!(events.next().map(|(at, n)| (at.as_nanos(), n)), expected);
            }
        }
    }
}
