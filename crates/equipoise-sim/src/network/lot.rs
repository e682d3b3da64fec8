use std::hint::select_unpredictable;

use super::Packet;

/// A batch of packets for a link. At first the batch consists of runs, each a sequence in time order from one source:
/// the sessions, a stream, or another link. Then the runs are merged.
#[derive(Debug, Default)]
pub(super) struct Lot {
    pub(super) packets: Vec<Packet>,
    /// Start index of each run in `packets`.
    runs: Vec<usize>,
    /// Buffer for the merged packets; reused to avoid allocations.
    merged: Vec<Packet>,
}

impl Lot {
    /// Starts a new run, which contains the packets that are added after this call. Returns the start index of the run.
    pub(super) fn begin_run(&mut self) -> usize {
        let begin = self.packets.len();
        // If the previous run is empty, the new run replaces it.
        if self.runs.last() != Some(&begin) {
            self.runs.push(begin);
        }
        begin
    }

    /// Merges the runs, so that the packets are in time order. Packets with the same time are in the order of their
    /// runs.
    ///
    /// Neighbouring runs are merged in pairs until one run is left. A general sort takes four times as long, because it
    /// must first find the runs.
    pub(super) fn merge_runs(&mut self) {
        while self.runs.len() > 1 {
            self.merged.clear();
            let end_of = |run: usize| self.runs.get(run).copied().unwrap_or(self.packets.len());
            for run in (0..self.runs.len()).step_by(2) {
                let (begin, middle, end) = (self.runs[run], end_of(run + 1), end_of(run + 2));
                merge(&self.packets[begin..middle], &self.packets[middle..end], &mut self.merged);
            }
            let mut is_first = false;
            self.runs.retain(|_| {
                is_first = !is_first;
                is_first
            });
            std::mem::swap(&mut self.packets, &mut self.merged);
        }
    }

    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.runs.clear();
    }
}

/// Merges two runs of packets, each sorted by arrival time, and appends the result to `merged`.
///
/// Which run has the next packet is unpredictable. With a branch for this choice, wrong predictions of the processor
/// would take most of the computing time.
fn merge(mut left: &[Packet], mut right: &[Packet], merged: &mut Vec<Packet>) {
    while let ([first, ..], [second, ..]) = (left, right) {
        let is_right = second.at < first.at;
        merged.push(*select_unpredictable(is_right, second, first));
        left = &left[usize::from(!is_right)..];
        right = &right[usize::from(is_right)..];
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
}

#[cfg(test)]
mod tests {
    use equipoise::units::{Size, Span};
    use equipoise_path::link::Ecn;
    use proptest::prelude::*;

    use super::*;
    use crate::observer::Time;

    fn packet(nanos: u64, run: usize) -> Packet {
        let (at, size) = (Time::from_nanos(nanos), Size::from_bytes(1000));
        Packet { at, sent: at, number: 0, size, ecn: Ecn::NotCapable, waited: Span::ZERO, route: run as u32, hop: 0 }
    }

    proptest! {
        /// If this test fails, packets overtake each other between two links.
        #[test]
        fn runs_are_merged_as_a_stable_sort_would(
            runs in proptest::collection::vec(proptest::collection::vec(0u64..20, 0..12), 0..9),
        ) {
            let mut lot = Lot::default();
            let mut expected = Vec::new();
            for (number, mut run) in runs.into_iter().enumerate() {
                run.sort_unstable();
                let begin = lot.begin_run();
                prop_assert_eq!(begin, expected.len());
                for nanos in run {
                    lot.packets.push(packet(nanos, number));
                    expected.push((nanos, number as u32));
                }
            }
            lot.merge_runs();
            expected.sort_by_key(|(nanos, _)| *nanos);
            let found: Vec<_> = lot.packets.iter().map(|packet| (packet.at.as_nanos(), packet.route)).collect();
            prop_assert_eq!(found, expected);
            lot.clear();
            prop_assert_eq!(lot.begin_run(), 0);
        }
    }
}
