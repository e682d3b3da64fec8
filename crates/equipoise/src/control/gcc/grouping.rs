use crate::units::{Instant, ReceiverClock, SenderClock, Span};

/// Groups packets that left together, and computes the differences between successive groups.
///
/// Packets arrive in bursts: a sender releases a frame or the packets of one pacer interval at once, and some links
/// aggregate packets. Gaps within a burst say nothing about the queue, so only the last packets of groups are compared:
/// `d = (t_i - t_{i-1}) - (T_i - T_{i-1})`, with the arrival times t and the departure times T of these packets.
///
/// Source: draft-ietf-rmcat-gcc-02, Sec. 5.2 for pre-filtering; libwebrtc, `inter_arrival_delta` for the resets.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouping {
    current: Option<Group>,
    previous: Option<Group>,
    /// Number of received packets that were ignored because the current group is reordered: its last packet arrived
    /// before the last packet of the previous group.
    overtaken: u32,
}

/// Packets that leave within this time after the first packet of a group belong to the group (draft-ietf-rmcat-gcc-02,
/// Sec. 5.2: `burst_time`). With a larger value, more delay changes are hidden within groups; with a smaller value,
/// bursts are mistaken for queues.
const GROUP: Span = Span::from_millis(5);
/// A packet also belongs to the current group if it arrives within this time after the group's last packet, and the two
/// packets left further apart than they arrived. Such packets were queued together (draft-ietf-rmcat-gcc-02, Sec. 5.2).
const BURST: Span = Span::from_millis(5);
/// The maximum length of a burst of arrivals (libwebrtc, `inter_arrival_delta`).
const LONGEST_BURST: Span = Span::from_millis(100);
/// After this number of dropped packets, the state is discarded (libwebrtc, `inter_arrival_delta`). Packets are dropped
/// while the current group is reordered: its last packet arrived before the last packet of the previous group.
const MOST_OVERTAKEN: u32 = 3;
/// If the receiver's clock gains this much on the sender's clock between two groups, the receiver's clock was set
/// (libwebrtc, `inter_arrival_delta`).
const CLOCK_SET: Span = Span::from_secs(3);

#[derive(Clone, Copy, Debug)]
struct Group {
    first_departed: Instant<SenderClock>,
    last_departed: Instant<SenderClock>,
    first_arrived: Instant<ReceiverClock>,
    last_arrived: Instant<ReceiverClock>,
    /// Time when the feedback on the group's last packet arrived.
    told: Instant<SenderClock>,
}

/// The time differences between the last packets of two successive groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupDelta {
    /// `T_i - T_{i-1}`, the difference of the departure times.
    pub departed: Span,
    /// `t_i - t_{i-1}`, the difference of the arrival times; not negative.
    pub arrived: Span,
}

impl GroupDelta {
    /// Returns `d` in ms: the delay of the later group's last packet minus that of the earlier group's last packet.
    pub(super) fn delay_ms(self) -> f64 {
        (self.arrived - self.departed).as_millis_f64()
    }
}

impl Group {
    const fn new(departed: Instant<SenderClock>, arrived: Instant<ReceiverClock>, told: Instant<SenderClock>) -> Self {
        Self { first_departed: departed, last_departed: departed, first_arrived: arrived, last_arrived: arrived, told }
    }

    /// Whether a packet belongs to the group. The caller must not pass a packet that left before the group's first
    /// packet.
    fn takes(&self, departed: Instant<SenderClock>, arrived: Instant<ReceiverClock>) -> bool {
        departed - self.first_departed <= GROUP || self.is_burst(departed, arrived)
    }

    fn is_burst(&self, departed: Instant<SenderClock>, arrived: Instant<ReceiverClock>) -> bool {
        let (sent, came) = (departed - self.last_departed, arrived - self.last_arrived);
        sent == Span::ZERO || (came < sent && came <= BURST && arrived - self.first_arrived < LONGEST_BURST)
    }
}

impl Grouping {
    /// Processes a packet that, according to feedback received at `now`, has arrived. If the packet starts a new group
    /// and there are two complete groups, returns the difference between these two groups.
    ///
    /// A packet that left before the first packet of the current group is ignored. If the last packet of the current
    /// group arrived before the last packet of the previous group, a packet that would start the next group is dropped.
    /// After three such packets, or if the receiver's clock was set, the state is discarded.
    pub(super) fn push(
        &mut self,
        departed: Instant<SenderClock>,
        arrived: Instant<ReceiverClock>,
        now: Instant<SenderClock>,
    ) -> Option<GroupDelta> {
        let Some(group) = &mut self.current else {
            self.current = Some(Group::new(departed, arrived, now));
            return None;
        };
        if departed < group.first_departed {
            return None;
        }
        if group.takes(departed, arrived) {
            group.last_departed = group.last_departed.max(departed);
            (group.last_arrived, group.told) = (arrived, now);
            return None;
        }
        let complete = *group;
        let mut found = None;
        if let Some(previous) = self.previous {
            let delta = GroupDelta {
                departed: complete.last_departed - previous.last_departed,
                arrived: complete.last_arrived - previous.last_arrived,
            };
            if delta.arrived - (complete.told - previous.told) >= CLOCK_SET {
                *self = Self::default();
                return None;
            }
            if delta.arrived < Span::ZERO {
                self.overtaken += 1;
                if self.overtaken >= MOST_OVERTAKEN {
                    *self = Self::default();
                }
                return None;
            }
            self.overtaken = 0;
            found = Some(delta);
        }
        self.previous = Some(complete);
        self.current = Some(Group::new(departed, arrived, now));
        found
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn deltas(packets: &[(u64, u64)]) -> Vec<(i64, i64)> {
        let mut grouping = Grouping::default();
        let micros = |delta: GroupDelta| (delta.departed.as_nanos() / 1000, delta.arrived.as_nanos() / 1000);
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        packets
            .iter()
            .filter_map(|(departed, arrived)| {
                grouping.push(at(*departed), Instant::from_nanos(arrived * 1000), at(*arrived)).map(micros)
            })
            .collect()
    }

    #[test]
    fn groups_are_compared_by_their_last_packets() {
        let packets =
            [(0, 10_000), (4000, 15_000), (20_000, 30_000), (25_000, 36_000), (40_000, 50_000), (60_000, 70_000)];
        assert_eq!(deltas(&packets), [(21_000, 21_000), (15_000, 14_000)]);
    }

    /// A packet that leaves 5 ms after the first packet is in the same group. A packet that leaves another microsecond
    /// later is not.
    #[test]
    fn a_group_is_as_long_as_the_draft_says() {
        let ends = |end| deltas(&[(0, 10_000), (end, 20_000), (30_000, 40_000), (60_000, 70_000)]);
        assert_eq!(ends(5000), [(25_000, 20_000)]);
        assert_eq!(ends(5001), [(5001, 10_000), (24_999, 20_000)]);
    }

    /// A Wi-Fi link delays three packets and delivers them in one burst. These packets leave 20 ms apart and arrive
    /// 1 ms apart.
    #[test]
    fn what_is_delivered_in_one_burst_is_one_group() {
        let burst = [(0, 100_000), (20_000, 101_000), (40_000, 102_000), (60_000, 120_000), (80_000, 140_000)];
        assert_eq!(deltas(&burst), [(20_000, 18_000)]);
    }

    #[test]
    fn a_packet_from_before_its_group_is_left_out() {
        let packets = [(20_000, 30_000), (0, 31_000), (40_000, 50_000), (60_000, 70_000)];
        assert_eq!(deltas(&packets), [(20_000, 20_000)]);
    }

    /// If this test fails, a step of the receiver's clock looks like a queue of several seconds.
    #[test]
    fn a_receivers_clock_that_is_set_begins_anew() {
        let mut grouping = Grouping::default();
        let mut push = |millis: u64, ahead: u64| {
            let departed = Instant::from_nanos(millis * 1_000_000);
            let arrived = Instant::from_nanos((millis + ahead) * 1_000_000);
            grouping.push(departed, arrived, departed)
        };
        assert_eq!([0, 20].map(|millis| push(millis, 10)), [None; 2]);
        assert!(push(40, 10).is_some());
        assert_eq!([60, 80, 100].map(|millis| push(millis, 4000)).map(|delta| delta.is_some()), [true, false, false]);
        assert_eq!(push(120, 4000), None);
        assert_eq!(push(140, 4000).map(GroupDelta::delay_ms), Some(0.0));
    }

    #[test]
    fn three_groups_that_are_overtaken_begin_anew() {
        let mut grouping = Grouping::default();
        let mut push = |departed: u64, arrived: u64| {
            grouping.push(
                Instant::from_nanos(departed * 1_000_000),
                Instant::from_nanos(arrived * 1_000_000),
                Instant::from_nanos(2_000_000_000),
            )
        };
        // The second group ends with a packet that seems to have arrived before the first group.
        assert_eq!([(0, 1000), (20, 1020), (22, 500)].map(|(d, a)| push(d, a)), [None; 3]);
        assert_eq!([(40, 1040), (60, 1060), (80, 1080)].map(|(d, a)| push(d, a)), [None; 3]);
        assert_eq!([(100, 1100), (120, 1120)].map(|(d, a)| push(d, a)), [None; 2], "a new beginning");
        assert_eq!(push(140, 1140).map(GroupDelta::delay_ms), Some(0.0));
    }
}
