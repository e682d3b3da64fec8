use super::stream::Gap;

/// The spacing at which the narrowest link lets segments go, from the intervals of acknowledgements within bursts.
///
/// Two segments that queue one behind the other leave the link one service time apart: `gap = L / K`. Others' packets
/// between them, or late acknowledgements, make a gap longer; acknowledgements that queued on their own way back make
/// it shorter. So the gaps crowd at `L / K` and at that plus whole packets of others: the crowd with the shortest gaps
/// is the link's.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    ns_per_segment: [u64; KEPT],
    count: usize,
    next: usize,
}

/// Gaps that are kept: five bursts' or so. More are steadier, fewer follow a new path sooner (ours).
const KEPT: usize = 32;
/// Fewer gaps tell no capacity (ours): two bursts whose acknowledgements cover two segments each.
const LEAST: usize = 5;
/// A crowd has one gap in so many. Ours: others at 70 % of the link come between two neighbours in no more than 70 %.
const CROWD_SHARE: usize = 5;
/// Least crowd, so that no two stray gaps make one (ours).
const LEAST_CROWD: usize = 3;
/// Gaps of one crowd differ by this part of the shortest at most (ours): more than a microsecond clock's rounding at
/// 1 Gbit/s and 1500 bytes, less than one small packet of others.
const CROWD_WIDTH: u64 = 10;

impl Gaps {
    /// Takes the interval of two acknowledgements.
    pub(super) fn push(&mut self, gap: Gap) {
        let Some(slot) = self.ns_per_segment.get_mut(self.next) else { return };
        *slot = gap.nanos / gap.segments.max(1);
        self.next = (self.next + 1) % KEPT;
        self.count = KEPT.min(self.count + 1);
    }

    /// The link's time for a segment, in nanoseconds; `None` while there are too few gaps.
    pub(super) fn service_time(&self) -> Option<f64> {
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
            // No crowd: the fifth part from below.
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
        // Others' packets come between two of three neighbours; one acknowledgement caught up with the one before it.
        let service = gaps(&[240, 121, 40, 240, 120, 241, 360, 119, 240, 120, 240, 360]).unwrap();
        assert!((service - 120.0).abs() < 1.0, "{service}");
    }

    #[test]
    fn few_gaps_tell_no_capacity_and_gaps_of_no_length_none_either() {
        assert_eq!(gaps(&[120, 120, 120, 120]), None);
        assert_eq!(gaps(&[0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_new_link_is_seen_when_its_gaps_have_replaced_the_old_ones() {
        let mut gaps = Gaps::default();
        for nanos in [100; KEPT].into_iter().chain([300; KEPT]) {
            gaps.push(Gap { nanos: 2 * nanos, segments: 2 });
        }
        assert_eq!(gaps.service_time().map(|service| service as u64), Some(300));
    }
}
