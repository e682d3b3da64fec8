use super::stream::Gap;

/// Determines the spacing of segments after the narrowest link, from the intervals between acknowledgements of a burst.
///
/// Two segments of size `L` queued back to back leave a link of capacity `K` one service time apart: `gap = L / K`.
/// Cross traffic between the segments makes a gap longer. A late acknowledgement also makes a gap longer. A queue of
/// acknowledgements on the reverse path makes gaps shorter. Therefore gaps cluster at `L / K`, and at `L / K` plus the
/// service times of whole packets of cross traffic. The cluster of the shortest gaps shows the service time of the
/// link.
///
/// Evenly spaced cross traffic can lengthen all gaps of many successive bursts. Therefore a cluster of longer gaps
/// replaces the service time only if none of the recent gaps was about as short as the service time. A cluster of
/// shorter gaps replaces the service time at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    ns_per_segment: [u64; KEPT],
    count: usize,
    next: usize,
    /// The link's service time per segment, in ns; `None` while too few gaps between acknowledgements are known.
    service_ns: Option<f64>,
    /// Number of gaps since the last gap that was about as short as `service_ns`.
    longer: u32,
}

/// Number of stored gaps between acknowledgements (our choice). The acknowledgements of a burst of eight segments have
/// seven gaps, or three if every second segment is acknowledged. So the gaps of about five or eleven bursts are stored.
/// With more gaps, the measured capacity is steadier. With fewer gaps, it follows a new path sooner.
const KEPT: usize = 32;
/// Minimum number of gaps from which a capacity is computed. Our choice: two bursts of eight segments have enough gaps,
/// even if each acknowledgement covers two segments.
const LEAST: usize = 5;
/// A cluster contains at least 1/`CROWD_SHARE` of the gaps between acknowledgements, rounded down. Our choice: if cross
/// traffic takes 70 % of the link's rate, at least 30 % of the gaps contain no cross traffic, which is more than a
/// fifth. This holds if segments reach the link back to back, all packets are equally large, and each segment is
/// acknowledged.
const CROWD_SHARE: usize = 5;
/// A cluster contains at least this number of gaps between acknowledgements. Our choice: two gaps may be nearly equal
/// by chance.
const LEAST_CROWD: usize = 3;
/// Gaps in a cluster exceed the cluster's shortest gap by at most 1/`CROWD_WIDTH` of that gap (our choice). At 1 Gbit/s
/// and segments of 1500 bytes, this is 1.2 µs: more than the rounding of a microsecond clock, and less than the service
/// time of a packet of 200 bytes.
const CROWD_WIDTH: u64 = 10;
/// If more consecutive gaps than this are longer than the link's service time, the link is assumed to have changed. Our
/// choice: twice `KEPT`. With a larger value, evenly spaced cross traffic is tolerated for longer; with a smaller
/// value, a slower link is found sooner.
const PATIENCE: u32 = 64;

impl Gaps {
    /// Records the interval between two acknowledgements.
    pub(super) fn push(&mut self, gap: Gap) {
        let Some(slot) = self.ns_per_segment.get_mut(self.next) else { return };
        let ns_per_segment = gap.nanos / gap.segments.max(1);
        *slot = ns_per_segment;
        self.next = (self.next + 1) % KEPT;
        self.count = KEPT.min(self.count + 1);
        let longest = |service: f64| service + service / CROWD_WIDTH as f64;
        let as_short = self.service_ns.is_some_and(|service| ns_per_segment as f64 <= longest(service));
        self.longer = if as_short { 0 } else { self.longer.saturating_add(1) };
        let Some(crowd) = self.shortest_crowd() else { return };
        if self.longer > PATIENCE {
            self.longer = 0;
            self.service_ns = Some(crowd);
        } else if self.service_ns.is_none_or(|service| crowd <= longest(service)) {
            self.service_ns = Some(crowd);
        }
    }

    /// Returns the link's service time per segment, in nanoseconds; `None` while there are too few gaps.
    pub(super) const fn service_time(&self) -> Option<f64> {
        self.service_ns
    }

    /// Returns the mean of the cluster of the shortest gaps, in nanoseconds.
    fn shortest_crowd(&self) -> Option<f64> {
        let mut sorted = self.ns_per_segment;
        let sorted = sorted.get_mut(..self.count).filter(|gaps| gaps.len() >= LEAST)?;
        sorted.sort_unstable();
        let least = (sorted.len() / CROWD_SHARE).max(LEAST_CROWD);
        let crowd = sorted.windows(least).enumerate().find_map(|(start, window)| {
            let (first, last) = (*window.first()?, *window.last()?);
            let limit = first + first / CROWD_WIDTH;
            (last <= limit).then_some((start, limit))
        });
        match crowd {
            Some((start, limit)) => {
                let members = sorted.iter().skip(start).take_while(|gap| **gap <= limit);
                let (sum, count) = members.fold((0.0, 0.0), |(sum, count), gap| (sum + *gap as f64, count + 1.0));
                Some(sum / count)
            }
            // Without a cluster, the gap at index `least` is used: about a fifth of the gaps, and at least
            // `LEAST_CROWD` gaps, precede it.
            None => sorted.get(least).map(|gap| *gap as f64),
        }
        .filter(|gap| *gap > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(nanos: &[u64]) -> Option<f64> {
        let mut gaps = Gaps::default();
        for &nanos in nanos {
            gaps.push(Gap { nanos, segments: 1 });
        }
        gaps.service_time()
    }

    #[test]
    fn the_shortest_crowd_is_the_links_and_not_the_largest() {
        // Cross traffic lengthens 7 of the 12 gaps. The gap of 40 ns is shorter than the service time, 120 ns, because
        // an acknowledgement caught up with the previous one.
        let service = gaps(&[240, 121, 40, 240, 120, 241, 360, 119, 240, 120, 240, 360]).unwrap();
        assert!((service - 120.0).abs() < 1.0, "{service}");
    }

    #[test]
    fn few_gaps_tell_no_capacity_and_gaps_of_no_length_none_either() {
        assert_eq!(gaps(&[120, 120, 120, 120]), None);
        assert_eq!(gaps(&[0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_slower_link_is_seen_when_patience_ends_and_a_faster_one_with_its_first_crowd() {
        let mut gaps = Gaps::default();
        let mut push = |nanos: u64, count: u32| {
            (0..count).for_each(|_| gaps.push(Gap { nanos: 2 * nanos, segments: 2 }));
            gaps.service_time().map(|service| service as u64)
        };
        assert_eq!(push(100, 32), Some(100));
        assert_eq!(push(300, PATIENCE), Some(100), "one such sample in that many may be a coincidence");
        assert_eq!(push(300, 1), Some(300));
        assert_eq!(push(100, KEPT as u32 / 4), Some(100));
    }

    #[test]
    fn others_between_every_two_segments_for_a_while_do_not_make_the_link_slower() {
        let mut gaps = Gaps::default();
        (0..10).for_each(|_| gaps.push(Gap { nanos: 240, segments: 2 }));
        for _ in 0..20 {
            (0..30).for_each(|_| gaps.push(Gap { nanos: 360, segments: 2 }));
            gaps.push(Gap { nanos: 241, segments: 2 });
        }
        assert_eq!(gaps.service_time(), Some(120.0));
    }
}
