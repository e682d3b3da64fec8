use super::Sample;

/// How rough the delays of packets are that leave one behind the other.
///
/// Half of the second difference of three delays: of packets that one queue holds it is nothing, as the queue grows or empties evenly, and of
/// jitter it is about its size. A clean queue shows 0.05 ms, three video streams in one some 0.6 ms, jitter with a half-normal deviation of 5 ms
/// some 2.6 ms, LTE 1 to 3.5 ms. Ours.
#[derive(Clone, Debug, Default)]
pub struct Roughness {
    mean_s: f64,
    /// The delays above the base of the last two packets of a train, and their bits.
    before: [Option<f64>; 2],
    bits: f64,
    /// When the last of them left, in s.
    departed_s: f64,
}

impl Roughness {
    /// Weight of a packet, and the most that one counts for, in s.
    const GAIN: f64 = 0.01;
    const MOST_S: f64 = 0.030;
    /// Packets that follow sooner are passed over, in s: behind a jitter that does not reorder they come in clumps, and the delays of neighbours in a
    /// fast flow are alike. 6 ms are between packets of 1200 bytes at 1.6 Mbit/s. Ours.
    const APART_S: f64 = 0.006;

    /// Nothing has arrived yet.
    pub const fn new() -> Self {
        Self { mean_s: 0.0, before: [None; 2], bits: 0.0, departed_s: 0.0 }
    }

    /// Takes the next packet, which `follows` the last one in a train, or not.
    pub fn push(&mut self, sample: &Sample, follows: bool) {
        // The bases of sizes are not known to a millisecond.
        if !follows || (sample.bits - self.bits).abs() >= 1.0 {
            self.before = [None; 2];
            self.bits = sample.bits;
        } else if sample.departed_s - self.departed_s < Self::APART_S {
            return;
        }
        self.departed_s = sample.departed_s;
        if let [Some(first), Some(second)] = self.before {
            let rough = (sample.over_s - 2.0 * second + first).abs() / 2.0;
            self.mean_s += Self::GAIN * (rough.min(Self::MOST_S) - self.mean_s);
        }
        self.before = [self.before[1], Some(sample.over_s)];
    }

    /// The mean, in s.
    pub const fn mean_s(&self) -> f64 {
        self.mean_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(over: impl Fn(u32) -> f64, train: u32) -> f64 {
        let mut roughness = Roughness::default();
        for number in 0..2000 {
            let over_s = over(number);
            let sample = Sample {
                number: number.into(),
                departed_s: 0.007 * f64::from(number),
                arrived_s: 0.0,
                bits: 9600.0,
                over_s,
            };
            roughness.push(&sample, number % train != 0);
        }
        roughness.mean_s()
    }

    #[test]
    fn a_queue_that_grows_evenly_is_smooth_and_what_goes_up_and_down_is_not() {
        assert!(mean(|number| 0.001 * f64::from(number), 6) < 1e-12);
        let jitter = mean(|number| if number % 2 == 0 { 0.0 } else { 0.004 }, 6);
        assert!((jitter - 0.004).abs() < 1e-6, "{jitter}");
        assert!(mean(|number| f64::from(number % 2), 2) < 1e-12, "two packets have no second difference");
    }
}
