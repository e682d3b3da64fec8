/// Weights a measurement by its fluctuation: the noisier a measured quantity is, the less it counts.
///
/// Source: Kodama 2009, Sec. 3.2. The moving mean and the moving mean deviation of the samples are computed as for the
/// round-trip time in RFC 6298, Sec. 2. Deviation divided by mean is the coefficient of variation `C_v`. The factor of
/// Eq. 15 follows from `C_v`:
///
/// ```text
/// e = x - μ,  μ ← μ + g e,  σ ← σ + h (|e| - σ)
/// C_v = σ / μ
/// factor = 1 / (1 + l C_v)
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `x`, `μ`, `σ` | sample, mean and mean deviation | any, the same for all |
/// | `g`, `h` | gains of mean and deviation | 1 |
/// | `l` | weight of the noise | 1 |
///
/// The weighting works for any control law: [`Symbiosis`](super::Symbiosis) scales γ, the factor of the measured cross
/// traffic, and [`Vegas`](super::Vegas) scales its measured backlog.
///
/// Our interpretation: the first sample is the mean, as in RFC 6298. The first deviation is zero and not half the mean,
/// because one sample shows no noise. The factor is one before any sample. It is also one if the mean or the deviation
/// is zero: on a path without cross traffic, all samples are zero and reliable. Non-finite samples are ignored. A
/// negative sample counts as zero, because rates and delays are not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseAwareness {
    weight: f64,
    moments: Option<Moments>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    mean: f64,
    deviation: f64,
}

/// g, the weight of a new sample in the mean. With a larger value, old samples are forgotten sooner (Kodama 2009,
/// Sec. 3.3).
const MEAN_GAIN: f64 = 0.125;
/// h, the weight of a new error in the mean deviation. With a larger value, old errors are forgotten sooner (Kodama
/// 2009, Sec. 3.3).
const DEVIATION_GAIN: f64 = 0.25;
/// Samples are clamped to this value, so that sums stay finite. The value is our choice: no rate or delay is nearly as
/// large.
const LARGEST_SAMPLE: f64 = 1e300;

impl NoiseAwareness {
    /// Creates an instance with `weight` as l, the weight of the noise in `1 / (1 + l C_v)` (Kodama 2009, Eq. 15). If
    /// `weight` is zero, negative, infinite or NaN, noise is ignored.
    pub const fn new(weight: f64) -> Self {
        let weight = if weight.is_finite() && weight > 0.0 { weight } else { 0.0 };
        Self { weight, moments: None }
    }

    /// Records a sample.
    pub fn push(&mut self, sample: f64) {
        if !sample.is_finite() {
            return;
        }
        let sample = sample.clamp(0.0, LARGEST_SAMPLE);
        let Moments { mean, deviation } = self.moments.unwrap_or(Moments { mean: sample, deviation: 0.0 });
        let error = sample - mean;
        self.moments = Some(Moments {
            mean: mean + MEAN_GAIN * error,
            deviation: deviation + DEVIATION_GAIN * (error.abs() - deviation),
        });
    }

    /// Returns `C_v`, the deviation as a share of the mean; `None` before any sample and for a mean of zero.
    pub fn variation(&self) -> Option<f64> {
        let Moments { mean, deviation } = self.moments?;
        Some(deviation / mean).filter(|variation| variation.is_finite())
    }

    /// Returns the factor of Eq. 15, by which a control law multiplies the noisy quantity: above zero and at most one.
    pub fn factor(&self) -> f64 {
        // Kodama 2009, Eq. 15.
        let factor = 1.0 / (1.0 + self.weight * self.variation().unwrap_or(0.0));
        // For a huge variation the quotient is zero, but the factor must be above zero.
        if factor > 0.0 { factor } else { f64::MIN_POSITIVE }
    }

    /// Forgets all samples.
    pub const fn reset(&mut self) {
        self.moments = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value of l in Kodama 2009, Sec. 3.3.
    const WEIGHT: f64 = 4.0;

    fn after(samples: &[f64]) -> NoiseAwareness {
        let mut noise = NoiseAwareness::new(WEIGHT);
        for sample in samples {
            noise.push(*sample);
        }
        noise
    }

    #[test]
    fn golden_values_of_two_and_three_samples() {
        // Computed by hand: e = 80, μ = 100 + 10, σ = 20; then e = -30, μ = 110 - 3.75, σ = 20 + 0.25 · 10.
        let two = after(&[100.0, 180.0]);
        assert!((two.variation().unwrap() - 20.0 / 110.0).abs() < 1e-12);
        assert!((two.factor() - 110.0 / 190.0).abs() < 1e-12);
        assert!((after(&[100.0, 180.0, 80.0]).variation().unwrap() - 22.5 / 106.25).abs() < 1e-12);
    }

    #[test]
    fn no_samples_one_sample_and_a_mean_of_zero_leave_the_factor_at_one() {
        assert!((after(&[]).factor() - 1.0).abs() < 1e-15);
        assert!((after(&[5e6]).factor() - 1.0).abs() < 1e-15);
        assert!((after(&[0.0, 0.0, 0.0]).factor() - 1.0).abs() < 1e-15);
        let mut noise = after(&[100.0, 180.0]);
        noise.reset();
        assert_eq!(noise, after(&[]));
    }

    /// Two values at equal distance from their mean have that distance as their mean deviation.
    #[test]
    fn a_coin_of_relative_size_r_gives_a_variation_of_about_r() {
        let mut noise = NoiseAwareness::new(WEIGHT);
        let (mut sum, mut state) = (0.0, 1u32);
        for step in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.push(if state >> 31 == 0 { 80.0 } else { 120.0 });
            if step >= 1000 {
                sum += noise.variation().unwrap();
            }
        }
        let mean = sum / 19_000.0;
        assert!((mean / 0.2 - 1.0).abs() < 0.05, "samples 20 per cent to either side: {mean}");
    }

    proptest! {
        #[test]
        fn the_factor_is_above_zero_and_one_at_most_for_any_samples(samples in prop::collection::vec(prop::num::f64::ANY, 0..40), weight in prop::num::f64::ANY) {
            let mut noise = NoiseAwareness::new(weight);
            for sample in samples {
                noise.push(sample);
                prop_assert!(noise.factor() > 0.0 && noise.factor() <= 1.0, "{noise:?}");
            }
        }

        /// The factor has no unit: it is the same for bit/s and packets/s, and for seconds and milliseconds.
        #[test]
        fn the_unit_of_the_samples_does_not_matter(samples in prop::collection::vec(1.0f64..1e9, 1..40), unit in 1e-6f64..1e6) {
            let scaled: alloc::vec::Vec<_> = samples.iter().map(|sample| sample * unit).collect();
            prop_assert!((after(&samples).factor() - after(&scaled).factor()).abs() < 1e-9);
        }

        #[test]
        fn a_larger_weight_trusts_no_more(samples in prop::collection::vec(0.0f64..1e9, 1..40), weight in 0.0f64..100.0, more in 0.0f64..100.0) {
            let factor = |weight| {
                let mut noise = NoiseAwareness::new(weight);
                for sample in &samples {
                    noise.push(*sample);
                }
                noise.factor()
            };
            prop_assert!(factor(weight + more) <= factor(weight));
        }
    }
}
