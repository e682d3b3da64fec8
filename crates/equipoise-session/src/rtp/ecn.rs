//! Detects from reports whether ECN marks survive a path. A sender has one such detector for each path.

use super::proof::Proof;
use crate::Ecn;
use crate::wire::MarkReport;

/// The ECN field with which a path's media packets are sent, and whether the field survives the path.
///
/// Source: RFC 6679, Sec. 7.2.3 (all packets may be ECN-capable from the first on, provided that the sender uses
/// failure detection), 7.4.2 (a path clears the field if all packets arrive as Not-ECT) and 7.4.1 (after a failure,
/// packets are sent as Not-ECT).
///
/// Our readings: ECN fails on a path if, according to the reports, none of [`PathEcn::ENOUGH`] consecutive packets
/// arrived with ECT or CE. Until a first packet arrives with ECT or CE, lost packets count as well, because some hosts
/// drop all ECT packets. After that, lost packets do not count, because an outage is then the likely cause of the loss.
/// A receiver whose reports contain no mark counters is treated like a path that clears the field. After a failure, ECN
/// is not tried again.
#[derive(Debug)]
pub(crate) struct PathEcn {
    says: Ecn,
    /// The mark counters in the last report that contained such counters.
    marks: MarkReport,
    /// Whether any packet has arrived with ECT or CE.
    has_passed: bool,
    /// Number of packets that count towards a failure. It returns to 0 when a report shows new arrivals with ECT or
    /// CE.
    without: u64,
}

impl PathEcn {
    /// Number of packets without ECT or CE after which ECN has failed. Our choice: more packets than congestion or a
    /// single unusual report would affect, and about half a second of packets at 1 Mbit/s.
    const ENOUGH: u64 = 50;

    /// Creates the state of a path whose media packets are sent with the ECN field `says`.
    pub(crate) const fn new(says: Ecn) -> Self {
        Self { says, marks: MarkReport { capable: 0, marked: 0 }, has_passed: false, without: 0 }
    }

    /// Returns the ECN field with which media packets are sent.
    pub(crate) const fn says(&self) -> Ecn {
        self.says
    }

    /// Applies a report. `marks` is the report's count of marks. `proof` states how many packets were sent and how many
    /// arrived since the previous report.
    ///
    /// Returns the share of marked packets among the packets that arrived with ECT or CE since the previous report.
    /// Returns `None` if there is no such packet, if more packets are reported as marked than as arrived, or if packets
    /// are sent as Not-ECT.
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

    /// If ECN failed with the last report, changes the ECN field of further packets to Not-ECT, and returns the number
    /// of packets without ECT or CE.
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

    /// One report interval: number of packets sent, number of packets that arrived, and whether those arrived with
    /// their ECN field intact.
    type Interval = (u64, u64, bool);

    fn interval() -> impl Strategy<Value = Interval> {
        (0u64..40, any::<bool>()).prop_flat_map(|(sent, passes)| (Just(sent), 0..=sent, Just(passes)))
    }

    /// Applies the reports on these intervals until ECN fails. Returns the index of the interval in which ECN failed.
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
            // From the failure on, packets are Not-ECT, so reported marks are ignored.
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
