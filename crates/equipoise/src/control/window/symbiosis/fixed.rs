//! The law of Symbiosis in integer arithmetic, as a kernel can compute it.
//!
//! A kernel has no floating point. Its BPF programs (instruction set version 3) have neither 128-bit integers nor
//! signed division. This code uses 64 bits, sign and magnitude, and no divisor that can be zero. The BPF program of
//! `equipoise-kernel` has the same functions in C, with identical results. In the simulator,
//! [`FixedSymbiosis`](super::FixedSymbiosis) runs the functions of this module.
//!
//! Source: Kodama 2009, Eq. 10, 15, 18, as in [`Law`](super::Law),
//! [`NoiseAwareness`](crate::control::window::NoiseAwareness) and [`Oscillating`](crate::control::window::Oscillating),
//! which explain the symbols. x is the exponent `ε t M / K` of Eq. 10.
//!
//! | quantity | form | largest |
//! | --- | --- | --- |
//! | windows `w`, `w*` | Q20 segments | 2^20 segments |
//! | rates `K`, `A`, their mean and deviation | Q10 segments/s | 2^25 segments/s |
//! | `τ` | microseconds | 2^24 |
//! | `t` | microseconds | 2^32 |
//! | `γ`, `m` | Q20 | 1 |
//! | `ε`, `l` | Q20 | 100 |
//! | `e^-x` | Q30 | 1 |
//! | `x` | Q30 | 2^19 |
//!
//! How the integer form differs from the float form:
//! 1. Windows are limited to 2^20 segments, which with segments of 1024 bytes is the limit of TCP's window (2^30 bytes,
//!    RFC 7323, Sec. 2.3). Rates are limited to 2^25 segments/s, which is 400 Gbit/s with packets of 1500 bytes. τ is
//!    limited to 2^24 µs = 16.8 s.
//! 2. Quotients are rounded down, so each step towards w* is up to 2^-20 segments too short, and the window stops short
//!    of w*. With steps of 500 µs or more, it stops at most 0.1 segments from w* if ε M / K is at least 0.02/s.
//! 3. Steps shorter than [`LEAST_STEP_US`] are combined. Eq. 10 is exact for any step while the measurement does not
//!    change, so this only affects Eq. 18: its increments are fewer and larger, with the same total variance.
//!    In `m w dB`, w is the window after the step of Eq. 10. In the float form, it is the window before that step.
//! 4. For x below ln 2, `e^-x` is computed by a polynomial of degree 11. A larger x is `n ln 2 + r` with r below ln 2.
//!    Then the polynomial gives `e^-r`, which is halved n times. The error of `e^-x` is at most 2^-28. ε M / K is up to
//!    2^-19/s too large. Therefore, after a minute without an acknowledgement, a growing window is wrong by one part in
//!    10^4.
//! 5. Normally distributed numbers are approximated by sums of twelve uniform numbers. A sum is never more than six
//!    standard deviations from the mean. In the float form, two of 10^9 numbers are farther from the mean.
//! 6. The smallest capacity is 2^-10 segments/s; a lower capacity counts as zero. γ is at most 1 - 2^-20, and w* and w
//!    are at least 2^-20 segments.
//! 7. A kernel sends whole segments: the window in use is w, rounded down to a whole number of at least two.

/// One segment, as a fixed-point number with 20 fractional bits (Q20).
pub const WINDOW_ONE: u64 = 1 << 20;
/// Largest window in segments, as a fixed-point number with 20 fractional bits (Q20).
pub const LARGEST_WINDOW: u64 = 1 << 40;
/// One segment per second, as a fixed-point number with 10 fractional bits (Q10).
pub const RATE_ONE: u64 = 1 << 10;
/// Largest rate in segments/s, as a fixed-point number with 10 fractional bits (Q10).
pub const LARGEST_RATE: u64 = 1 << 35;
/// Upper limit of the path's minimum round-trip time, in µs.
pub const LONGEST_ROUND_TRIP_US: u64 = 1 << 24;
/// The number one as a parameter (γ, ε, l or m), as a fixed-point number with 20 fractional bits (Q20).
pub const PARAMETER_ONE: u64 = 1 << 20;
/// Largest value of the parameters ε and l, as a fixed-point number with 20 fractional bits (Q20).
pub const LARGEST_PARAMETER: u64 = 100 << 20;
/// Minimum duration of a step of the window, in µs. Shorter steps are combined into one step. Our choice: much shorter
/// than a round trip, but long enough that rounding to 2^-20 segments hardly affects a window of two segments.
pub const LEAST_STEP_US: u64 = 500;

/// The number one, as a fixed-point number with 30 fractional bits (Q30).
const ONE: u64 = 1 << 30;
/// Bit mask of the lower 20 bits of a number.
const LOW: u64 = (1 << 20) - 1;
/// ln 2, rounded to a fixed-point number with 30 fractional bits (Q30).
const LN_2: u64 = 744_261_118;
/// If x is at least this, `e^-x` is rounded to zero. x and `e^-x` are fixed-point numbers with 30 fractional bits
/// (Q30).
const LARGEST_EXPONENT: u64 = 31 << 30;
/// 1/11, 1/10 and so on to 1/2, rounded to fixed-point numbers with 30 fractional bits (Q30).
const INVERSES: [u64; 10] = [
    97_612_893,
    107_374_182,
    119_304_647,
    134_217_728,
    153_391_689,
    178_956_971,
    214_748_365,
    268_435_456,
    357_913_941,
    536_870_912,
];

/// Kodama 2009, Eq. 10 in integer arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLaw {
    /// γ, the weight of cross traffic, as a Q20 fixed-point number. Values of one and above are reduced to just below
    /// one.
    pub gamma: u64,
    /// ε, the speed of convergence, per second, as a Q20 fixed-point number.
    pub epsilon_per_s: u64,
}

/// The bandwidth and the round-trip time of a path, in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPath {
    /// K, the capacity, in segments/s, as a Q10 fixed-point number.
    pub capacity: u64,
    /// A, the available bandwidth, in segments/s, as a Q10 fixed-point number; limited to the capacity K.
    pub available: u64,
    /// τ, the minimum round-trip time, in µs.
    pub min_round_trip_us: u64,
}

impl FixedPath {
    /// Returns the path with each value limited to its maximum; `None` if capacity or round-trip time is zero.
    fn checked(self) -> Option<Self> {
        let capacity = self.capacity.min(LARGEST_RATE);
        let min_round_trip_us = self.min_round_trip_us.min(LONGEST_ROUND_TRIP_US);
        (capacity > 0 && min_round_trip_us > 0).then(|| Self {
            capacity,
            available: self.available.min(capacity),
            min_round_trip_us,
        })
    }
}

impl FixedLaw {
    /// Returns γ, limited to just below one.
    fn gamma(&self) -> u64 {
        self.gamma.min(PARAMETER_ONE - 1)
    }

    /// Returns `w* = τ {K - γ (K - A)}`, the converged window, in segments, as a Q20 fixed-point number; `None` without
    /// capacity or round-trip time.
    pub fn converged(&self, path: &FixedPath) -> Option<u64> {
        let FixedPath { capacity, available, min_round_trip_us } = path.checked()?;
        let others = (capacity - available) * min_round_trip_us;
        // The product with γ is computed in two parts, so that no part exceeds 64 bits.
        let heeded = (others >> 20) * self.gamma() + (((others & LOW) * self.gamma()) >> 20);
        // The conversion from Q10 · µs to Q20 · s is a factor of 2^10 / 10^6 = 16 / 15625.
        Some(((capacity * min_round_trip_us - heeded) * 16 / 15_625).clamp(1, LARGEST_WINDOW))
    }

    /// Returns `ε M / K` with `M = K - γ (K - A)`: the growth rate of a window far below the converged window, per
    /// second, as a Q20 fixed-point number.
    fn growth(&self, path: &FixedPath) -> u64 {
        let epsilon = self.epsilon_per_s.min(LARGEST_PARAMETER);
        epsilon - ((epsilon * self.gamma()) >> 20) * (path.capacity - path.available) / path.capacity
    }

    /// Returns the window that `window` becomes after `elapsed_us` µs. Both windows are in segments, as Q20 fixed-point
    /// numbers. Returns `None` if the path is not valid or `window` is zero.
    ///
    /// The result lies between `window` and [`converged`](Self::converged).
    pub fn window(&self, window: u64, path: &FixedPath, elapsed_us: u32) -> Option<u64> {
        let (path, converged) = (path.checked()?, self.converged(path)?);
        if window == 0 {
            return None;
        }
        let window = window.min(LARGEST_WINDOW);
        // The exponent x = t ε M / K, converted from Q20 · µs/s to Q30.
        let (remains, halvings) = decay(self.growth(&path) * u64::from(elapsed_us) * 16 / 15_625);
        // Kodama 2009, Eq. 10 in the form w + a (w* - w) / (e w* + a), with e = e^-x and a = (1 - e) w.
        let moved = scaled(window, ONE - (remains >> halvings));
        let whole = (scaled(converged, remains) >> halvings) + moved;
        Some(if converged >= window {
            window + part(converged - window, moved, whole)
        } else {
            window - part(window - converged, moved, whole)
        })
    }
}

/// Returns `e^-x` for x in Q30: a number in Q30, and how many times this number must be halved.
fn decay(exponent: u64) -> (u64, u64) {
    if exponent >= LARGEST_EXPONENT {
        return (0, 0);
    }
    let (halvings, rest) = (exponent / LN_2, exponent % LN_2);
    // For the rest r, e^-r = 1 - r (1 - r/2 (1 - r/3 (1 - ...))).
    let series = INVERSES.iter().fold(ONE, |sum, inverse| ONE - ((((rest * sum) >> 30) * inverse) >> 30));
    (ONE - ((rest * series) >> 30), halvings)
}

/// Returns `value · share`, rounded to nearest, for a value up to 2^40 and a share in Q30 up to one.
fn scaled(value: u64, share: u64) -> u64 {
    // The full product may exceed 64 bits. So it is computed in two parts, and each part is at most 2^50.
    let (high, low) = ((value >> 20) * share, (value & LOW) * share);
    (high + (low >> 20) + (1 << 9)) >> 10
}

/// Returns `value · moved / whole`, rounded down; zero if `whole` is zero. Each argument must be at most 2^41, and
/// `moved` must be at most `whole`.
fn part(value: u64, moved: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    // `value · moved` may have more than 64 bits. Therefore this is a long division in two steps: first the upper bits
    // of `value`, then its lower 20 bits.
    let high = moved * (value >> 20);
    let (quotient, rest) = (high / whole, high % whole);
    (quotient << 20) + ((rest << 20) + moved * (value & LOW)) / whole
}

/// Kodama 2009, Eq. 15 in integer arithmetic: mean and mean deviation of the cross traffic `K - A` (capacity minus
/// available bandwidth), in segments/s, as Q10 fixed-point numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedNoise {
    moments: Option<(u64, u64)>,
}

impl FixedNoise {
    /// Records a sample of the cross traffic, in segments/s, as a Q10 fixed-point number.
    pub fn push(&mut self, sample: u64) {
        let sample = sample.min(LARGEST_RATE);
        let (mean, deviation) = self.moments.unwrap_or((sample, 0));
        let error = mean.abs_diff(sample);
        // The gains are g = 1/8 for the mean and h = 1/4 for the deviation (Kodama 2009, Sec. 3.3).
        self.moments = Some((toward(mean, sample, 3), toward(deviation, error, 2)));
    }

    /// Returns γ(t), the weight of cross traffic under noise: `γ / (1 + l σ / μ)`, computed as `γ μ / (μ + l σ)`. μ and
    /// σ are the mean and the mean deviation of the samples. `gamma` is γ, and `weight` is l, the weight of noise.
    /// `gamma`, `weight` and the result are Q20 fixed-point numbers. Returns γ before the first sample, and if the mean
    /// is zero.
    pub fn gamma(&self, gamma: u64, weight: u64) -> u64 {
        let gamma = gamma.min(PARAMETER_ONE - 1);
        let Some((mean, deviation)) = self.moments.filter(|(mean, _)| *mean > 0) else { return gamma };
        gamma * mean / (mean + ((weight.min(LARGEST_PARAMETER) * deviation) >> 20))
    }

    /// Forgets all samples.
    pub const fn reset(&mut self) {
        self.moments = None;
    }
}

/// Moves `value` towards `to` by `1 / 2^shift` of their difference, rounded to the nearest integer.
const fn toward(value: u64, to: u64, shift: u32) -> u64 {
    let way = (value.abs_diff(to) + (1 << (shift - 1))) >> shift;
    if to >= value { value + way } else { value - way }
}

/// Maximum time step dt of Kodama 2009, Eq. 18, in µs, as in the float form.
const LONGEST_STEP_US: u64 = 1_000_000;

/// Returns the window after a step of Kodama 2009, Eq. 18: `w + m w dB`, where m is `strength`. The windows, in
/// segments, and m are Q20 fixed-point numbers.
///
/// dB is the square root of the elapsed time, times an approximately normal random number with mean 0 and variance 1.
/// This number is computed from the sum of twelve uniform numbers of 16 bits: `(sum - mean) / 2^16`. The step is at
/// most half of the window, as in the float form.
pub fn oscillated(window: u64, strength: u64, elapsed_us: u64, random: [u32; 6]) -> u64 {
    let window = window.min(LARGEST_WINDOW);
    let sum: u64 = random.iter().map(|bits| u64::from(bits & 0xFFFF) + u64::from(bits >> 16)).sum();
    // The distance of the sum from its mean. The standard deviation of the sum is 2^16.
    let normal = sum.abs_diff(MEAN_SUM);
    // The conversion from √µs in Q10 to √s in Q20 is a factor of 2^10 / 1000 = 128 / 125.
    let deviation = square_root(elapsed_us.min(LONGEST_STEP_US) << 20) * 128 / 125;
    let share = ((((strength.min(PARAMETER_ONE) * deviation) >> 20) * normal) >> 16).min(PARAMETER_ONE / 2);
    let step = (window * share) >> 20;
    if sum >= MEAN_SUM { (window + step).min(LARGEST_WINDOW) } else { window - step }
}

/// Mean of the sum of twelve uniform numbers from 0 to 2^16 - 1.
const MEAN_SUM: u64 = 6 * 0xFFFF;

/// Returns the square root of a number up to 2^40, rounded down, computed bit by bit.
fn square_root(value: u64) -> u64 {
    let (mut rest, mut root, mut bit) = (value, 0, 1 << 40);
    for _ in 0..21 {
        if rest >= root + bit {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
        bit >>= 2;
    }
    root
}

#[cfg(test)]
mod tests;
