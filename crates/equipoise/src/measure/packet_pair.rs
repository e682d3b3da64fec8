use crate::units::{Instant, Rate, ReceiverClock, SenderClock, Size};

/// Estimates the bottleneck's rate from packets sent in pairs.
///
/// Source: Keshav 1991: a bottleneck that serves two packets back to back spaces them by the service time of the second
/// packet. Therefore the bottleneck's rate is the size of the second packet divided by the gap. The sending times show
/// which packets were sent as a pair.
///
/// Our addition: the estimate is the median of the last [`PacketPairs::KEPT`] pairs. A packet of cross traffic between
/// the two packets widens the gap, and a queue after the bottleneck narrows the gap. The median is robust against these
/// two effects if they change the gaps of fewer than half of the pairs.
#[derive(Clone, Debug)]
pub struct PacketPairs {
    last: Option<(u64, Instant<SenderClock>, Instant<ReceiverClock>)>,
    /// Rates in bit/s; only the first `known` are valid.
    rates: [f64; Self::KEPT],
    known: usize,
    next: usize,
}

impl PacketPairs {
    /// Number of recent pairs kept. Our choice: an odd number, so that the median is one of the rates. With more pairs,
    /// the estimate would follow a route change too slowly.
    pub const KEPT: usize = 15;
    /// Minimum number of pairs for an estimate. Our choice: the median of three tolerates one wrong pair.
    const LEAST: usize = 3;

    /// Creates an estimator without pairs.
    pub const fn new() -> Self {
        Self { last: None, rates: [0.0; Self::KEPT], known: 0, next: 0 }
    }

    /// Records a packet: its number in sending order, when it left and arrived, and its size.
    pub fn push(&mut self, sequence: u64, sent: Instant<SenderClock>, arrived: Instant<ReceiverClock>, size: Size) {
        let Some((before, its_sent, its_arrival)) = self.last.replace((sequence, sent, arrived)) else { return };
        let gap_s = (arrived - its_arrival).as_secs_f64();
        if before.checked_add(1) != Some(sequence) || sent != its_sent || gap_s <= 0.0 {
            return;
        }
        self.rates[self.next] = size.as_bits() as f64 / gap_s;
        self.next = (self.next + 1) % Self::KEPT;
        self.known = (self.known + 1).min(Self::KEPT);
    }

    /// Returns the bottleneck's rate; `None` if there are too few pairs.
    pub fn bottleneck(&self) -> Option<Rate> {
        if self.known < Self::LEAST {
            return None;
        }
        let mut rates = self.rates;
        let known = rates.get_mut(..self.known)?;
        known.sort_unstable_by(f64::total_cmp);
        Rate::from_bps_f64(*known.get(self.known / 2)?)
    }
}

impl Default for PacketPairs {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Pushes pairs of 1500-byte packets with these gaps in ms; pairs are 100 ms apart. Returns the bottleneck's rate
    /// in Mbit/s.
    fn after(gaps_ms: &[f64]) -> Option<f64> {
        let mut pairs = PacketPairs::new();
        for (number, gap_ms) in gaps_ms.iter().enumerate() {
            let sent = number as u64 * 100_000_000;
            for (second, late) in [(0, 0.0), (1, *gap_ms)] {
                let arrived = Instant::from_nanos(sent + 6_000_000 + (late * 1e6) as u64);
                let sequence = 2 * number as u64 + second;
                pairs.push(sequence, Instant::from_nanos(sent), arrived, Size::from_bytes(1500));
            }
        }
        pairs.bottleneck().map(Rate::as_mbps_f64)
    }

    /// 12 000 bits in 10 ms are 1.2 Mbit/s. If the test fails, the estimate is not the median of the pairs.
    #[test]
    fn the_gap_of_most_pairs_is_the_bottlenecks() {
        assert_eq!(after(&[10.0, 10.0]), None, "too few");
        assert_eq!(after(&[10.0, 20.0, 10.0]), Some(1.2));
        assert_eq!(after(&[10.0, 20.0, 10.0, 5.0, 10.0, 20.0, 10.0]), Some(1.2));
    }

    #[test]
    fn a_bottleneck_that_changed_shows_once_most_pairs_have_passed_the_new_one() {
        let gaps: Vec<_> = [10.0].into_iter().cycle().take(20).chain([20.0; 8]).collect();
        assert_eq!(after(&gaps), Some(0.6));
    }

    #[test]
    fn packets_that_are_no_pair_say_nothing() {
        let mut pairs = PacketPairs::new();
        let size = Size::from_bytes(1500);
        // No two packets form a pair, because of a gap in the numbers, different sending times, arrivals together or
        // out of order, or the end of the number range.
        for (sequence, sent, arrived) in
            [(1, 1, 10), (3, 1, 20), (4, 2, 30), (5, 2, 30), (6, 2, 25), (u64::MAX, 3, 40), (0, 3, 50)]
        {
            pairs.push(sequence, Instant::from_nanos(sent), Instant::from_nanos(arrived), size);
        }
        assert_eq!(pairs.known, 0);
    }
}
