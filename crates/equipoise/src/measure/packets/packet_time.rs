use super::{Sample, SizeClass};

/// The time that the bottleneck takes to transmit a packet of 1200 bytes, measured with packets of different sizes.
///
/// There are two estimates. The result is the larger one, because each estimate is far too small in some states of the
/// bottleneck (our choice).
///
/// - **By the smallest delays**, for a queue that empties now and then. The delay of an empty path grows with the size
///   of the packet (as in Jacobson's pathchar). The time per bit follows from the smallest delays of small and of large
///   packets. If there are no small packets, medium packets take their place. A smallest delay expires after
///   [`WINDOW_S`](Self::WINDOW_S). The estimate is too small if all small packets met a longer queue than the fastest
///   large packet. It is also too small after the bottleneck became slower, until the earlier delays expire. It is too
///   large if all large packets met a longer queue. If several links of the path are slow, their times add up.
/// - **By successive packets**, for a queue that rarely empties. Two successive packets of the flow leave a busy
///   bottleneck one after the other. Packets of other flows may leave between them. The interval of the two arrivals
///   grows with the packet sizes. A linear regression over such pairs gives the time per bit:
///
/// ```text
/// d = b0 + b1 l1 + b2 l2 + b3 g       d: interval of the arrivals minus g; g: interval of the departures
/// t = (b1 + b2) · 1200 bytes          l1, l2: sizes of the first and of the second packet
/// ```
///
/// If the bottleneck is busy, `b2` is the time per bit, and `b1` is zero. If the bottleneck is idle, `b1` is `-b2`, and
/// the estimate is zero. If jitter delays a packet until the next packet has caught up with it (RFC 8868, Sec. 4.5),
/// `b1` is the time per bit, and `b2` is zero. The noise of this estimate is large while there are few pairs.
#[derive(Clone, Copy, Debug)]
pub struct PacketTime {
    /// For each size class, the sample with the smallest delay in each slot of `SLOT_S`, the current slot first.
    least: [[Delay; SLOTS]; 3],
    /// `elapsed_s` is how long the current slot has lasted, and `now_s` is the time of the last update, in s.
    elapsed_s: f64,
    now_s: Option<f64>,
    pairs: Pairs,
}

/// The delay of a packet in s, and its size in bits.
#[derive(Clone, Copy, Debug)]
struct Delay {
    delay_s: f64,
    bits: f64,
}

const SLOTS: usize = 12;
const SLOT_S: f64 = 5.0;
/// The size to which the results apply, in bits.
const PACKET_BITS: f64 = SizeClass::Large.usual_bits();
/// Lower limit, in bits, of the size difference by which the delay difference of two packets is divided. With this
/// limit, the noise of the delays is multiplied by at most 12.
const LEAST_APART_BITS: f64 = 800.0;

impl PacketTime {
    /// A smallest delay expires after this time, in s. While `held` is set in [`Self::come_to`], smallest delays do not
    /// age. The value is five times the window of the base delay, because the queue of a slow link rarely empties.
    pub const WINDOW_S: f64 = SLOTS as f64 * SLOT_S;

    /// Creates a meter without packets.
    pub const fn new() -> Self {
        Self { least: [[Delay::NONE; SLOTS]; 3], elapsed_s: 0.0, now_s: None, pairs: Pairs::new() }
    }

    /// Advances the time to `now_s`, in s. While `held`, smallest delays do not age.
    pub fn come_to(&mut self, now_s: f64, held: bool) {
        let passed_s = (now_s - self.now_s.replace(now_s).unwrap_or(now_s)).max(0.0);
        if held {
            return;
        }
        self.elapsed_s += passed_s;
        let slots = ((self.elapsed_s / SLOT_S) as usize).min(SLOTS);
        if slots == 0 {
            return;
        }
        self.elapsed_s %= SLOT_S;
        for class in &mut self.least {
            class.rotate_right(slots);
            class[..slots].fill(Delay::NONE);
        }
    }

    /// Records the next packet that arrived.
    pub fn push(&mut self, sample: &Sample) {
        let least = &mut self.least[SizeClass::of(sample.bits) as usize][0];
        let delay_s = sample.arrived_s - sample.departed_s;
        if delay_s < least.delay_s {
            *least = Delay { delay_s, bits: sample.bits };
        }
        self.pairs.push(sample);
    }

    /// Returns the time that the bottleneck takes to transmit 1200 bytes, in s. Returns `None` if there is no estimate.
    /// The estimate by the smallest delays needs a large and a smaller packet within [`WINDOW_S`](Self::WINDOW_S). The
    /// estimate by successive packets needs 50 pairs with sufficiently different packet sizes.
    pub fn packet_s(&self) -> Option<f64> {
        match (self.by_least_delays(), self.pairs.packet_s()) {
            (Some(least), Some(pairs)) => Some(least.max(pairs)),
            (least, pairs) => least.or(pairs),
        }
    }

    fn by_least_delays(&self) -> Option<f64> {
        let [small, middling, large] = self.least.each_ref().map(|class| Delay::least(class));
        let smaller = if small.is_known() { small } else { middling };
        let apart_bits = (large.bits - smaller.bits).max(LEAST_APART_BITS);
        (smaller.is_known() && large.is_known())
            .then(|| (large.delay_s - smaller.delay_s).max(0.0) * PACKET_BITS / apart_bits)
    }
}

impl Default for PacketTime {
    fn default() -> Self {
        Self::new()
    }
}

impl Delay {
    const NONE: Self = Self { delay_s: f64::INFINITY, bits: 0.0 };

    fn is_known(self) -> bool {
        self.delay_s.is_finite()
    }

    fn least(all: &[Self]) -> Self {
        all.iter().copied().fold(Self::NONE, |least, it| if it.delay_s < least.delay_s { it } else { least })
    }
}

/// The linear regression over pairs of successive packets.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    last: Option<Sample>,
    /// The normal equations of the regression in [`PacketTime`], where x is 1, `l1`, `l2` and `g`. Row i has the sums
    /// of `x_i x_j`, then the sum of `x_i d`. All sums decay with the time that the pairs cover.
    sums: [[f64; 5]; 4],
}

/// Time constant, in s, with which earlier pairs lose weight. Only the time between the two packets of a new pair
/// counts as elapsed time. With values from 10 to 30 s, the share of bad runs on random paths hardly differs. With
/// 30 s, the law's share of the capacity beside TCP CUBIC is too small in case 5.6 of RFC 8867 with a queue of 100 ms.
const PAIRS_S: f64 = 15.0;
/// A pair counts only if its packets left less than `PAIR_S` seconds apart, and if the intervals of their departures
/// and arrivals differ by at most `MOST_S` seconds. Larger differences come mostly from pauses, not from the
/// transmission of packets.
const PAIR_S: f64 = 0.2;
const MOST_S: f64 = 0.3;
/// An estimate needs at least this number of pairs, and at least this variance of the second packet's size, in squared
/// units of `PACKET_BITS`. The variance corresponds to a standard deviation of 120 bytes.
const LEAST_PAIRS: f64 = 50.0;
const LEAST_VARIANCE: f64 = 0.01;
/// The unit of `g` in the regression, in s. It makes all regressors similar in size, for accuracy.
const GAP_S: f64 = 0.05;
/// Added to the diagonal of the normal equations, so that they have a solution if two regressors are proportional.
const RIDGE: f64 = 0.01;

impl Pairs {
    const fn new() -> Self {
        Self { last: None, sums: [[0.0; 5]; 4] }
    }

    fn push(&mut self, sample: &Sample) {
        let Some(first) = self.last.replace(*sample) else { return };
        let gap_s = sample.departed_s - first.departed_s;
        let longer_s = sample.arrived_s - first.arrived_s - gap_s;
        let is_next = sample.number == first.number.wrapping_add(1);
        let is_pair = is_next && (0.0..PAIR_S).contains(&gap_s) && (-MOST_S..=MOST_S).contains(&longer_s);
        if !is_pair {
            return;
        }
        let kept = 1.0 - gap_s / PAIRS_S;
        let values = [1.0, first.bits / PACKET_BITS, sample.bits / PACKET_BITS, gap_s / GAP_S, longer_s];
        for (row, value) in self.sums.iter_mut().zip(values) {
            for (sum, other) in row.iter_mut().zip(values) {
                *sum = *sum * kept + value * other;
            }
        }
    }

    fn packet_s(&self) -> Option<f64> {
        let [[pairs, _, sizes, ..], _, [.., squares, _, _], _] = self.sums;
        let mean = sizes / pairs;
        if pairs < LEAST_PAIRS || squares / pairs - mean * mean < LEAST_VARIANCE {
            return None;
        }
        let [_, first, second, _] = self.solved();
        Some((first + second).max(0.0))
    }

    /// The coefficients `b0` to `b3`, by Gauss-Jordan elimination. The matrix is positive definite because of `RIDGE`,
    /// so no pivot is zero.
    fn solved(&self) -> [f64; 4] {
        let mut rows = self.sums;
        for (index, row) in rows.iter_mut().enumerate() {
            row[index] += RIDGE;
        }
        for index in 0..rows.len() {
            let scale = 1.0 / rows[index][index];
            let pivot = rows[index].map(|it| it * scale);
            for row in &mut rows {
                let factor = row[index];
                for (value, of_pivot) in row.iter_mut().zip(pivot) {
                    *value -= factor * of_pivot;
                }
            }
            rows[index] = pivot;
        }
        rows.map(|row| row[4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream_seed;

    /// A number from 0 to 1, the `index`-th of the stream `seed`.
    fn random(seed: u64, index: u64) -> f64 {
        stream_seed(seed, index) as f64 / u64::MAX as f64
    }

    /// A FIFO bottleneck of `bps` with a propagation delay of 20 ms. It also serves another flow, with packets of 400
    /// bytes at `others_bps`. Behind the bottleneck, jitter delays packets, but packets do not overtake each other.
    /// After a packet of the flow, the next one arrives no sooner than the bottleneck's transmission time of the first
    /// packet (RFC 8868, Sec. 4.5).
    struct Bottleneck {
        bps: f64,
        others_bps: f64,
        jitter_s: f64,
        /// In s: `free_s` is when the bottleneck becomes idle, and `other_s` when the next packet of the other flow
        /// arrives there. `last_s` is when the last packet of this flow arrived at the receiver, and `last_took_s` how
        /// long the bottleneck took for this packet.
        free_s: f64,
        other_s: f64,
        last_s: f64,
        last_took_s: f64,
        number: u64,
    }

    impl Bottleneck {
        fn new(bps: f64, others_bps: f64, jitter_s: f64) -> Self {
            Self { bps, others_bps, jitter_s, free_s: 0.0, other_s: 0.0, last_s: 0.0, last_took_s: 0.0, number: 0 }
        }

        /// Sends a packet of `bits` at `at_s`, in s.
        fn send(&mut self, at_s: f64, bits: f64) -> Sample {
            while self.others_bps > 0.0 && self.other_s < at_s {
                self.free_s = self.free_s.max(self.other_s) + 3200.0 / self.bps;
                self.other_s += 3200.0 / self.others_bps;
            }
            self.free_s = self.free_s.max(at_s) + bits / self.bps;
            let jitter_s = self.jitter_s * random(3, self.number);
            self.last_s = (self.last_s + self.last_took_s).max(self.free_s + 0.020 + jitter_s);
            self.last_took_s = bits / self.bps;
            self.number += 1;
            Sample { number: self.number, departed_s: at_s, arrived_s: self.last_s, bits, over_s: 0.0 }
        }
    }

    /// Sends packets from the time `from` on, for the duration `seconds`, both in s. The intervals are random, from 10
    /// to 30 ms. The size of each packet, in bytes, is chosen at random from `sizes`.
    fn run(meter: &mut PacketTime, link: &mut Bottleneck, (from, seconds): (u32, u32), sizes: &[f64]) {
        for step in u64::from(from) * 50..u64::from(from + seconds) * 50 {
            let at_s = 0.02 * step as f64 + 0.01 * random(7, step);
            meter.come_to(at_s, false);
            meter.push(&link.send(at_s, 8.0 * sizes[stream_seed(5, step) as usize % sizes.len()]));
        }
    }

    /// The mean rate of these sizes is 217 kbit/s.
    const SIZES: [f64; 4] = [70.0, 300.0, 600.0, 1200.0];

    /// If this test fails, a flow on a link that is mostly idle does not know how long a packet takes.
    #[test]
    fn on_an_idle_path_the_smallest_delays_tell_the_time() {
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(1e6, 0.0, 0.0));
        assert_eq!(meter.packet_s(), None);
        run(&mut meter, &mut link, (0, 2), &SIZES);
        let packet_s = meter.packet_s().expect("packets of four sizes");
        assert!((packet_s - 0.0096).abs() < 1e-6, "{packet_s}");
        assert!(meter.pairs.packet_s().expect("100 pairs") < 0.004, "successive packets meet an idle link");
    }

    /// If this test fails, a flow mistakes a slow link for a fast one if the queue of the link never empties. Here, the
    /// first packet is large and meets an empty queue. All later packets meet a queue of more than 0.1 s.
    #[test]
    fn behind_a_queue_successive_packets_tell_the_time() {
        for jitter_s in [0.0, 0.010, 0.060] {
            let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(0.4e6, 0.19e6, jitter_s));
            meter.push(&link.send(0.0, 9600.0));
            link.free_s = 0.4;
            run(&mut meter, &mut link, (0, 20), &SIZES);
            let by_least_s = meter.by_least_delays().expect("all sizes");
            let packet_s = meter.packet_s().expect("packets of four sizes");
            assert!(by_least_s < 0.005, "jitter {jitter_s}: {by_least_s}");
            assert!((packet_s - 0.024).abs() < 0.009, "jitter {jitter_s}: {packet_s}");
        }
    }

    /// If this test fails, a flow keeps the time of a rate that its busy bottleneck no longer has.
    #[test]
    fn old_pairs_lose_their_weight() {
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(0.4e6, 0.19e6, 0.0));
        link.free_s = 0.4;
        run(&mut meter, &mut link, (0, 30), &SIZES);
        (link.bps, link.others_bps) = (0.8e6, 0.59e6);
        run(&mut meter, &mut link, (30, 60), &SIZES);
        let packet_s = meter.pairs.packet_s().expect("pairs");
        assert!((packet_s - 0.012).abs() < 0.004, "{packet_s}");
    }

    /// If this test fails, a fast link whose queue is filled by another flow counts as a slow link.
    #[test]
    fn the_queue_of_another_flow_does_not_make_a_fast_link_slow() {
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(4e6, 3.8e6, 0.005));
        link.free_s = 0.1;
        run(&mut meter, &mut link, (0, 20), &SIZES);
        assert!(meter.packet_s().expect("packets of four sizes") < 0.006, "{:?}", meter.packet_s());
    }

    /// A flow's own rate does not tell the time, because TCP may take the rest of the capacity.
    #[test]
    fn packets_of_one_size_tell_nothing() {
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(0.4e6, 0.0, 0.010));
        run(&mut meter, &mut link, (0, 20), &[1200.0]);
        assert_eq!(meter.packet_s(), None);
    }

    /// If this test fails, the smallest delays from before a change of the rate or the route never expire, or the
    /// smallest delays expire although they are held.
    #[test]
    fn smallest_delays_expire_unless_they_are_held() {
        let expired = |held: bool| {
            let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(1e6, 0.0, 0.0));
            run(&mut meter, &mut link, (0, 2), &SIZES);
            link.bps = 0.5e6;
            for step in 0..70 {
                meter.come_to(2.0 + f64::from(step), held);
                for bits in [560.0, 9600.0] {
                    meter.push(&link.send(2.0 + f64::from(step) + bits * 1e-5, bits));
                }
            }
            meter.by_least_delays().expect("both classes")
        };
        assert!((expired(true) - 0.0096).abs() < 1e-6 && (expired(false) - 0.0192).abs() < 1e-6);
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(1e6, 0.0, 0.0));
        run(&mut meter, &mut link, (0, 2), &SIZES);
        run(&mut meter, &mut link, (2, 70), &[1200.0]);
        assert_eq!(meter.by_least_delays(), None, "small packets of a minute ago may be from another route");
    }

    /// If this test fails, hostile or broken timestamps make the time infinite, negative or not a number, forever.
    #[test]
    fn odd_samples_give_no_odd_times() {
        let (mut meter, mut link) = (PacketTime::new(), Bottleneck::new(0.4e6, 0.19e6, 0.0));
        run(&mut meter, &mut link, (0, 20), &SIZES);
        let odd = [f64::NAN, f64::INFINITY, 1e300, -1e300, MOST_S, -MOST_S, 0.0, f64::MIN_POSITIVE];
        for (index, by_s) in (0u64..400).zip(odd.into_iter().cycle()) {
            let sample = link.send(20.0 + 0.01 * index as f64, 8.0 * SIZES[index as usize % 4]);
            let departed_s = if index % 7 == 0 { sample.departed_s - by_s } else { sample.departed_s };
            let number = if index % 11 == 0 { u64::MAX } else { sample.number };
            meter.push(&Sample { number, departed_s, arrived_s: sample.arrived_s + by_s, ..sample });
            assert!(meter.pairs.packet_s().is_some_and(|it| (0.0..1e3).contains(&it)), "{meter:?}");
            assert!(meter.packet_s().is_some_and(|it| it >= 0.0), "{meter:?}");
        }
    }
}
