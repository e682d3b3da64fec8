use equipoise::measure::{BandwidthEstimate, Measured};
use equipoise::units::{Rate, Schedule, Span};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

/// A configurable measurement error, which is added to an exactly known available bandwidth.
///
/// Source: Kodama 2009, Eq. 12: `K - A' = (1 + n) (K - A)`, with the capacity K, the available bandwidth A and the
/// measured value A'. The noise n is normal and white. A' is limited to the range from 0 to K.
#[derive(Clone, Debug)]
pub struct WhiteNoise {
    deviation: Schedule<f64>,
    random: Pcg64Mcg,
}

impl WhiteNoise {
    /// Creates the noise n. The standard deviation of n over time is `deviation`. The random numbers are drawn from
    /// `seed`.
    pub fn new(deviation: Schedule<f64>, seed: u64) -> Self {
        Self { deviation, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The result of a noisy measurement at `elapsed` after the start of the simulation, if the true value is `truth`.
    pub fn blur(&mut self, elapsed: Span, truth: BandwidthEstimate) -> BandwidthEstimate {
        let deviation = self.deviation.at(elapsed);
        let normal: f64 = StandardNormal.sample(&mut self.random);
        let capacity = truth.capacity.rate.as_bps_f64();
        let used = (1.0 + deviation * normal) * (capacity - truth.available.rate.as_bps_f64());
        let rate = Rate::from_bps_f64((capacity - used).clamp(0.0, capacity)).unwrap_or(truth.available.rate);
        BandwidthEstimate { available: Measured { rate, ..truth.available }, ..truth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::measure::Moments;

    #[test]
    fn the_noise_is_of_what_others_use_and_as_large_as_asked_for() {
        let rate = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
        let truth = BandwidthEstimate { capacity: Measured::exact(rate(100)), available: Measured::exact(rate(70)) };
        let schedule = Schedule::new(0.0, vec![(Span::from_secs(1), 0.1)]);
        let mut noise = WhiteNoise::new(schedule, 1);
        assert_eq!(noise.blur(Span::ZERO, truth), truth);
        let mut used = Moments::EMPTY;
        for _ in 0..10_000 {
            let found = noise.blur(Span::from_secs(1), truth);
            used.push(100.0 - found.available.rate.as_mbps_f64());
        }
        let (mean, variance) = (used.mean().expect("some"), used.variance().expect("some"));
        assert!((mean - 30.0).abs() < 0.15 && (variance - 9.0).abs() < 0.6, "{mean} {variance}");
    }
}
