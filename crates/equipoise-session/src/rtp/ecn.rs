//! Whether a path lets queues mark, as its sending end finds out from reports.

use super::proof::Proof;
use crate::Ecn;
use crate::wire::MarkReport;

/// What media packets of a path say of congestion, and whether that is still said when they arrive.
///
/// Source: RFC 6679, Sec. 7.2.3 (all packets may be marked from the first on, if failures are detected), 7.4.2 (a path clears the
/// field if what arrives has become all not-ECT) and 7.4.1 (then packets say that they are not capable).
///
/// Readings: a path fails by [`PathEcn::ENOUGH`] packets in a row, by the reports, none of which came with ECT or CE. Until the first
/// came so, lost ones count as well, as some hosts drop whatever says ECT; from then on they do not, as an outage is no such host. A
/// receiver that reports no marks is the same as a path that clears them. What failed is not tried again.
#[derive(Debug)]
pub(crate) struct PathEcn {
    says: Ecn,
    /// What the last report with marks said.
    marks: MarkReport,
    /// Some packet has come with ECT or CE.
    has_passed: bool,
    /// Packets since the last report by which some came with ECT or CE.
    without: u64,
}

impl PathEcn {
    /// Ours: what congestion or an odd report may take away is less, and at 1 Mbit/s it is half a second.
    const ENOUGH: u64 = 50;

    /// A path whose media packets say this.
    pub(crate) const fn new(says: Ecn) -> Self {
        Self { says, marks: MarkReport { capable: 0, marked: 0 }, has_passed: false, without: 0 }
    }

    /// What media packets say.
    pub(crate) const fn says(&self) -> Ecn {
        self.says
    }

    /// A report says these `marks`, and `proof` what it proves of the packets since the last one. Returns the share of them that was
    /// marked; `None` where none may be.
    pub(crate) fn on_report(&mut self, marks: Option<MarkReport>, proof: &Proof) -> Option<f64> {
        if self.says == Ecn::NotCapable {
            return None;
        }
        let marks = marks.unwrap_or(self.marks);
        let before = core::mem::replace(&mut self.marks, marks);
        if marks.capable == before.capable {
            self.without += if self.has_passed { proof.arrived } else { proof.sent };
        } else {
            (self.has_passed, self.without) = (true, 0);
        }
        marks.share_since(before)
    }

    /// Whether the path has failed by the last report: then by how many packets, and nothing may be marked from now on.
    pub(crate) const fn take_failure(&mut self) -> Option<u64> {
        if self.without < Self::ENOUGH {
            return None;
        }
        self.says = Ecn::NotCapable;
        Some(core::mem::replace(&mut self.without, 0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// So many packets were sent before a report, of which so many arrived, which still said that they may be marked or did not.
    type Interval = (u64, u64, bool);

    fn interval() -> impl Strategy<Value = Interval> {
        (0u64..40, any::<bool>()).prop_flat_map(|(sent, passes)| (Just(sent), 0..=sent, Just(passes)))
    }

    /// What the reports of these intervals say of a path, up to its failure: then in which interval.
    fn failure(path: &mut PathEcn, intervals: &[Interval]) -> Option<usize> {
        let mut marks = None;
        for (number, (sent, arrived, passes)) in intervals.iter().enumerate() {
            if *passes && *arrived > 0 {
                let report = marks.get_or_insert(MarkReport::default());
                report.capable = report.capable.wrapping_add(*arrived as u32);
            }
            let proof = Proof { sent: *sent, arrived: *arrived, ..Proof::default() };
            path.on_report(marks, &proof);
            if path.take_failure().is_some() {
                return Some(number);
            }
        }
        None
    }

    proptest! {
        #[test]
        fn only_a_path_on_which_nothing_has_passed_for_a_while_fails(
            intervals in proptest::collection::vec(interval(), 0..30),
        ) {
            let mut path = PathEcn::new(Ecn::Ect1);
            let Some(at) = failure(&mut path, &intervals) else {
                prop_assert_eq!(path.says(), Ecn::Ect1);
                return Ok(());
            };
            prop_assert_eq!(path.says(), Ecn::NotCapable);
            let before = intervals[..=at].iter().rev();
            let without = before.take_while(|(_, arrived, passes)| !passes || *arrived == 0);
            let sent: u64 = without.map(|(sent, ..)| sent).sum();
            prop_assert!(sent >= PathEcn::ENOUGH, "{} packets", sent);
            // What comes now is of packets that must not be marked.
            prop_assert_eq!(path.on_report(Some(MarkReport { capable: 9, marked: 9 }), &Proof::default()), None);
            prop_assert_eq!(path.take_failure(), None);
        }

        #[test]
        fn a_path_on_which_something_passes_in_every_report_never_fails(
            intervals in proptest::collection::vec((1u64..1000).prop_map(|sent| (sent, 1, true)), 0..30),
        ) {
            prop_assert_eq!(failure(&mut PathEcn::new(Ecn::Ect0), &intervals), None);
        }

        #[test]
        fn a_path_on_which_nothing_passes_fails_once_enough_was_sent(
            intervals in proptest::collection::vec(interval().prop_map(|(sent, arrived, _)| (sent, arrived, false)), 0..30),
        ) {
            let sent: u64 = intervals.iter().map(|(sent, ..)| sent).sum();
            let failed = failure(&mut PathEcn::new(Ecn::Ect0), &intervals).is_some();
            prop_assert_eq!(failed, sent >= PathEcn::ENOUGH);
        }
    }
}
