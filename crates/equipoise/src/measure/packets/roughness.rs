use super::Sample;

/// The roughness of the delays in a packet train: the variation that is not caused by queueing.
///
/// The roughness of three successive delays is half of the absolute value of their second difference. The roughness of
/// a train is the mean of these values. This measure is our choice.
///
/// If a queue grows or empties evenly, the roughness is zero. Typical values are 0.05 ms for a queue without other
/// traffic, 0.6 ms for a queue shared by three video streams, 2.6 ms for half-normal jitter with a standard deviation
/// of 5 ms, and 1 to 3.5 ms for LTE.
#[derive(Clone, Debug, Default)]
pub struct Roughness {
    mean_s: f64,
    /// `before` contains the delays of the last two packets of a train, in s above the base delay. `bits` is the size
    /// of each of these packets in bits.
    before: [Option<f64>; 2],
    bits: f64,
    /// The departure time of the last packet that was not skipped, in s.
    departed_s: f64,
}

impl Roughness {
    /// `GAIN` is the weight of a packet in the mean, and `MOST_S` the maximum roughness of one packet, in s.
    const GAIN: f64 = 0.01;
    const MOST_S: f64 = 0.030;
    /// Minimum time between the departures of two packets that are compared, in s (our choice). Packets between them
    /// are skipped. In a fast flow, a late packet delays the packets behind it, so the delays of neighbours are similar
    /// even with jitter. At 1.6 Mbit/s, packets of 1200 bytes leave this far apart.
    const APART_S: f64 = 0.006;

    /// Creates a meter without packets.
    pub const fn new() -> Self {
        Self { mean_s: 0.0, before: [None; 2], bits: 0.0, departed_s: 0.0 }
    }

    /// Records the next packet. `follows` says whether this packet continues the train of the previous packet.
    pub fn push(&mut self, sample: &Sample, follows: bool) {
        // Packets of different sizes are not compared: the difference of their base delays may be wrong by more than
        // 1 ms.
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

    /// Returns the mean roughness, in s.
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
            let departed_s = 0.007 * f64::from(number);
            let sample = Sample { number: number.into(), departed_s, arrived_s: 0.0, bits: 9600.0, over_s };
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
