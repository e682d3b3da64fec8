use alloc::boxed::Box;
use alloc::vec;

use equipoise::units::{Instant, ReceiverClock};

use crate::Ecn;
use crate::wire::feedback::{ArrivalTime, PacketArrival, PacketStatus};

/// A receiver's record of arrivals, for per-packet reports.
///
/// Source: RFC 8888, Sec. 3.1. If a packet arrives several times, the time of its first arrival is reported, with the
/// mark CE (congestion experienced) if any copy has that mark. Consecutive reports cover consecutive ranges of numbers.
/// A report may state that a packet is missing or has no mark CE. If the packet, or a copy of it with the mark CE, then
/// arrives, the next report starts at that packet or before it.
///
/// Packets are identified by unwrapped numbers, as from [`SequenceTracker`](equipoise::measure::SequenceTracker).
/// Numbers that are a window or more below the highest are forgotten: they are not reported any more, and if packets
/// with such numbers arrive, they are only counted.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Packet n, if present, is in slot n modulo the number of slots.
    slots: Box<[Option<Slot>]>,
    span: Option<Numbers>,
    too_old: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    at: Instant<ReceiverClock>,
    ecn: Ecn,
}

/// The packet numbers that determine which range the next report covers.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The lowest number that has arrived; numbers below it may never have been sent.
    first: u64,
    highest: u64,
    /// The highest number that was reported, plus 1.
    reported: u64,
    /// The lowest number below `reported` whose state changed since the last report; `None` if no state changed.
    late: Option<u64>,
}

/// How the recorder classified an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The first copy of this packet.
    New,
    /// A further copy of a packet that had arrived before. The arrival time of this copy is not reported.
    Duplicate,
    /// The packet's number is too far below the highest number, so the packet was only counted.
    TooOld,
}

impl Recorder {
    /// The maximum window: the number of packets that a report of RFC 8888 can cover.
    pub const MAX_WINDOW: u16 = 16_384;

    /// Creates a recorder that remembers `window` numbers, clamped to the range 1 to [`MAX_WINDOW`](Self::MAX_WINDOW).
    ///
    /// The recorder takes 24 bytes per number. A wider window tolerates longer intervals between reports and more
    /// reordering.
    pub fn new(window: u16) -> Self {
        let window = usize::from(window.clamp(1, Self::MAX_WINDOW));
        Self { slots: vec![None; window].into_boxed_slice(), span: None, too_old: 0 }
    }

    /// Records that packet `number` arrived at `at`, with the ECN field `ecn` in its IP header.
    pub fn on_arrival(&mut self, number: u64, at: Instant<ReceiverClock>, ecn: Ecn) -> Recorded {
        let window = self.window();
        let span = self.span.get_or_insert(Numbers { first: number, highest: number, reported: number, late: None });
        if span.highest.saturating_sub(number) >= window {
            self.too_old = self.too_old.saturating_add(1);
            return Recorded::TooOld;
        }
        span.first = span.first.min(number);
        span.highest = span.highest.max(number);
        let Some(place) = self.slots.get_mut((number % window) as usize) else { return Recorded::TooOld };
        let recorded = match place {
            Some(slot) if slot.number == number => {
                let is_news = ecn == Ecn::Marked && slot.ecn != Ecn::Marked;
                if !is_news {
                    return Recorded::Duplicate;
                }
                slot.ecn = Ecn::Marked;
                Recorded::Duplicate
            }
            _ => {
                *place = Some(Slot { number, at, ecn });
                Recorded::New
            }
        };
        if number < span.reported {
            span.late = Some(span.late.map_or(number, |late| late.min(number)));
        }
        recorded
    }

    /// Whether there is an arrival or an ECN mark that no report has contained yet.
    pub fn has_news(&self) -> bool {
        self.span.is_some_and(|span| span.late.is_some() || span.highest >= span.reported)
    }

    /// The highest number that has arrived; `None` before the first packet.
    pub fn highest(&self) -> Option<u64> {
        self.span.map(|span| span.highest)
    }

    /// Returns the number of arrivals whose packet number was too far below the highest number.
    pub const fn too_old(&self) -> u64 {
        self.too_old
    }

    /// Returns the packets that the next report must cover, up to the highest number.
    ///
    /// The report repeats the last `overlap` packets of the previous report, so that the loss of one report of at most
    /// `overlap` packets does no harm. If the state of an even earlier packet has changed since the previous report,
    /// the report starts at that packet. The report does not start before the lowest number that arrived, and is at
    /// most one window long. The caller must send the statuses of all these packets, in several feedback packets if
    /// they do not fit into one.
    pub fn report(&mut self, overlap: u64) -> Stretch<'_> {
        let window = self.window();
        let Some(span) = &mut self.span else { return Stretch { slots: &self.slots, next: 0, end: 0 } };
        let end = span.highest.saturating_add(1);
        let due = span.reported.saturating_sub(overlap);
        let begin = span.late.map_or(due, |late| late.min(due));
        let begin = begin.max(span.first).max(end.saturating_sub(window));
        span.late = None;
        span.reported = end;
        Stretch { slots: &self.slots, next: begin, end }
    }

    const fn window(&self) -> u64 {
        self.slots.len() as u64
    }
}

/// The packets that a report must cover, by consecutive numbers.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    slots: &'a [Option<Slot>],
    next: u64,
    end: u64,
}

impl Stretch<'_> {
    /// The unwrapped number of the first packet.
    pub const fn begin(&self) -> u64 {
        self.next
    }
}

impl Iterator for Stretch<'_> {
    type Item = PacketStatus;

    fn next(&mut self) -> Option<PacketStatus> {
        if self.next >= self.end {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let slot = self.slots.get((number % self.slots.len() as u64) as usize).copied().flatten();
        let arrival = slot.filter(|slot| slot.number == number);
        let arrival = arrival.map(|slot| PacketArrival { time: ArrivalTime::At(slot.at), ecn: slot.ecn });
        Some(PacketStatus { sequence: number as u16, arrival })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Stretch<'_> {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Instant<ReceiverClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Lets packets `numbers` arrive, packet n at n ms.
    fn arrive(recorder: &mut Recorder, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            recorder.on_arrival(number, at(number), Ecn::NotCapable);
        }
    }

    /// Makes the next report. Returns its first number and, for each number, whether the packet arrived.
    fn told(recorder: &mut Recorder, overlap: u64) -> (u64, Vec<bool>) {
        let stretch = recorder.report(overlap);
        (stretch.begin(), stretch.map(|status| status.arrival.is_some()).collect())
    }

    #[test]
    fn reports_follow_each_other_and_a_late_packet_is_reached_back_for() {
        let mut recorder = Recorder::new(1024);
        assert_eq!(told(&mut recorder, 0).1, [], "nothing has come");
        arrive(&mut recorder, [100, 101, 103]);
        assert_eq!(told(&mut recorder, 0), (100, [true, true, false, true].to_vec()));
        assert!(!recorder.has_news());
        assert_eq!(told(&mut recorder, 0), (104, [].to_vec()));
        arrive(&mut recorder, [105, 102]);
        assert_eq!(told(&mut recorder, 0), (102, [true, true, false, true].to_vec()));
        arrive(&mut recorder, [106]);
        assert_eq!(told(&mut recorder, 0), (106, [true].to_vec()));
        assert_eq!(told(&mut recorder, 3), (104, [false, true, true].to_vec()), "overlap alone");
    }

    #[test]
    fn numbers_before_the_first_packet_are_reported_only_once_one_of_them_comes() {
        let mut recorder = Recorder::new(1024);
        arrive(&mut recorder, [10]);
        assert_eq!(told(&mut recorder, 50), (10, [true].to_vec()));
        arrive(&mut recorder, [8]);
        assert_eq!(told(&mut recorder, 0), (8, [true, false, true].to_vec()));
    }

    /// RFC 8888, Sec. 3.1. If the test fails, a mark on the second copy is lost, or a retransmission makes the path
    /// look slow.
    #[test]
    fn of_copies_the_first_arrival_and_any_mark_are_reported() {
        let mut recorder = Recorder::new(1024);
        assert_eq!(recorder.on_arrival(7, at(1), Ecn::Ect1), Recorded::New);
        assert_eq!(recorder.on_arrival(7, at(9), Ecn::Ect0), Recorded::Duplicate);
        let first = PacketArrival { time: ArrivalTime::At(at(1)), ecn: Ecn::Ect1 };
        assert_eq!(recorder.report(0).map(|status| status.arrival).collect::<Vec<_>>(), [Some(first)]);
        assert!(!recorder.has_news(), "an unmarked copy is no news");
        assert_eq!(recorder.on_arrival(7, at(12), Ecn::Marked), Recorded::Duplicate);
        assert!(recorder.has_news());
        let marked = PacketArrival { ecn: Ecn::Marked, ..first };
        assert_eq!(recorder.report(0).map(|status| status.arrival).collect::<Vec<_>>(), [Some(marked)]);
        recorder.on_arrival(7, at(13), Ecn::Ect0);
        assert!(recorder.report(1).all(|status| status.arrival == Some(marked)), "the mark stays");
    }

    #[test]
    fn what_is_a_window_behind_is_forgotten_and_what_comes_then_is_counted() {
        let mut recorder = Recorder::new(16);
        arrive(&mut recorder, [0, 1, 1000]);
        let (begin, arrived) = told(&mut recorder, u64::MAX);
        assert_eq!((begin, arrived.len(), arrived.last()), (985, 16, Some(&true)));
        assert_eq!(arrived.iter().filter(|arrived| **arrived).count(), 1, "no old packet in a new place");
        assert_eq!(recorder.on_arrival(984, at(0), Ecn::Marked), Recorded::TooOld);
        assert_eq!((recorder.too_old(), recorder.has_news()), (1, false));
        assert_eq!(recorder.on_arrival(985, at(0), Ecn::NotCapable), Recorded::New);
    }

    proptest! {
        /// Compares the recorder's reports with a map of all arrivals.
        #[test]
        fn all_arrivals_are_reported_with_their_first_time_and_worst_mark(
            start in prop_oneof![Just(0u64), Just(65_500), any::<u32>().prop_map(u64::from)],
            steps in proptest::collection::vec((0u64..300, 0u8..4, 0u64..8), 1..300),
            overlap in 0u64..40,
        ) {
            let mut recorder = Recorder::new(512);
            let (mut arrivals, mut reported) = (BTreeMap::new(), BTreeMap::new());
            for (millis, (offset, ecn, report)) in (0..).zip(steps) {
                let (number, ecn) = (start + offset, Ecn::from_bits(ecn));
                recorder.on_arrival(number, at(millis), ecn);
                let (_, worst) = arrivals.entry(number).or_insert((at(millis), ecn));
                if ecn == Ecn::Marked {
                    *worst = ecn;
                }
                if report == 0 {
                    let stretch = recorder.report(overlap);
                    let begin = stretch.begin();
                    reported.extend((begin..).zip(stretch));
                }
            }
            let stretch = recorder.report(overlap);
            let begin = stretch.begin();
            reported.extend((begin..).zip(stretch));
            // For each number from the lowest to the highest that arrived, the last report about this number agrees
            // with `arrivals`.
            let (first, last) = (*arrivals.keys().next().unwrap(), *arrivals.keys().next_back().unwrap());
            for number in first..=last {
                let arrival = arrivals.get(&number);
                let arrival = arrival.map(|(at, ecn)| PacketArrival { time: ArrivalTime::At(*at), ecn: *ecn });
                prop_assert_eq!(reported.get(&number), Some(&PacketStatus { sequence: number as u16, arrival }));
            }
            prop_assert_eq!(reported.len() as u64, last - first + 1);
        }
    }
}
