//! The law in integers: what a kernel can compute.
//!
//! An operating system's kernel has no floating point, its loadable programs neither 128-bit integers nor a signed
//! division. What is here uses 64 bits, sign beside magnitude, and divides by nothing that can be zero. The congestion
//! control program of `equipoise-kernel` has the same functions in C, equal bit by bit; [`FixedSymbiosis`] runs them in
//! the simulator.
//!
//! Source: Kodama 2009, Eq. 10, 15, 18, as [`Law`](super::Law), [`NoiseAwareness`](crate::control::window::NoiseAwareness) and
//! [`Oscillating`](crate::control::window::Oscillating) have them.
//!
//! | quantity | form | largest |
//! | --- | --- | --- |
//! | windows `w`, `w*` | Q20 segments | 2^20 segments |
//! | rates `K`, `A`, their mean and deviation | Q10 segments/s | 2^25 segments/s |
//! | `τ`, `t` | microseconds | 2^24 and 2^32 |
//! | `γ`, `ε`, `l`, `m` | Q20 | 1, 100, 100, 1 |
//! | `e^-x`, `x` | Q30 | 1, 2^37 |
//!
//! How the integer form differs from the float form:
//! 1. A window above 2^20 segments does not exist (TCP's is below 2^30 bytes, RFC 7323, Sec. 2.3), nor does a rate above
//!    2^25 segments/s, 400 Gbit/s in packets of 1500 bytes. A longer τ than 16 s counts as 16 s.
//! 2. Quotients are rounded down, so a window creeps by up to 2^-20 segments a step. With steps of 500 µs or more a
//!    converged window lies less than 0.1 segments lower.
//! 3. Steps shorter than [`LEAST_STEP_US`] are gathered into one. Eq. 10 is exact for any step while the measurement stays,
//!    so only Eq. 18 sees it: fewer, larger increments of the same variance, of the window behind the step of Eq. 10 and not before it.
//! 4. `e^-x` is a polynomial of degree 11 below x = ln 2 and halved above: 2^-28 off at most. ε M / K is up to 2^-19 too large:
//!    after a minute without an acknowledgement a growing window is off by a part in 10^4.
//! 5. Normal numbers are sums of twelve uniform ones: none lies beyond six deviations, where the float form has one in 10^9.
//! 6. The smallest capacity is 2^-10 segments/s; less is none. γ is at most 1 - 2^-20, w* and w are at least 2^-20 segments.
//! 7. A kernel sends whole segments: the window in use is the next lower whole number, two at least.

/// One segment, in Q20.
pub const WINDOW_ONE: u64 = 1 << 20;
/// Largest window, in Q20 segments.
pub const LARGEST_WINDOW: u64 = 1 << 40;
/// One segment a second, in Q10.
pub const RATE_ONE: u64 = 1 << 10;
/// Largest rate, in Q10 segments/s.
pub const LARGEST_RATE: u64 = 1 << 35;
/// Longest least round-trip time, in µs.
pub const LONGEST_ROUND_TRIP_US: u64 = 1 << 24;
/// A parameter of one, in Q20.
pub const PARAMETER_ONE: u64 = 1 << 20;
/// Largest ε and l, in Q20.
pub const LARGEST_PARAMETER: u64 = 100 << 20;
/// Steps are gathered until they last so long, in µs. Ours: long enough that a window of two segments grows by many
/// units of 2^-20, short beside a round trip.
pub const LEAST_STEP_US: u64 = 500;

/// One, in Q30.
const ONE: u64 = 1 << 30;
/// The lower one of two digits of 20 bits.
const LOW: u64 = (1 << 20) - 1;
/// ln 2 in Q30, rounded.
const LN_2: u64 = 744_261_118;
/// Beyond this exponent, in Q30, nothing of Q30 is left.
const LARGEST_EXPONENT: u64 = 31 << 30;
/// 1/11, 1/10 and so on to 1/2, in Q30, rounded.
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

/// Eq. 10 in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLaw {
    /// γ, in Q20; one and above count as the next lower number.
    pub gamma: u64,
    /// ε, in Q20 a second.
    pub epsilon_per_s: u64,
}

/// A path in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPath {
    /// K, in Q10 segments/s.
    pub capacity: u64,
    /// A, in Q10 segments/s; at most K counts.
    pub available: u64,
    /// τ, in µs.
    pub min_round_trip_us: u64,
}

impl FixedPath {
    /// Within bounds; `None` without capacity or round-trip time.
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
    /// γ, below one.
    fn gamma(&self) -> u64 {
        self.gamma.min(PARAMETER_ONE - 1)
    }

    /// `w* = τ {K - γ (K - A)}`, in Q20 segments; `None` without capacity or round-trip time.
    pub fn converged(&self, path: &FixedPath) -> Option<u64> {
        let FixedPath { capacity, available, min_round_trip_us } = path.checked()?;
        let others = (capacity - available) * min_round_trip_us;
        // γ in two products of at most 2^60.
        let heeded = (others >> 20) * self.gamma() + (((others & LOW) * self.gamma()) >> 20);
        // Q10 · µs to Q20 · s: 2^10 / 10^6 = 16 / 15625.
        Some(((capacity * min_round_trip_us - heeded) * 16 / 15_625).clamp(1, LARGEST_WINDOW))
    }

    /// `ε M / K`, in Q20 a second: what the window grows by at first.
    fn growth(&self, path: &FixedPath) -> u64 {
        let epsilon = self.epsilon_per_s.min(LARGEST_PARAMETER);
        epsilon - ((epsilon * self.gamma()) >> 20) * (path.capacity - path.available) / path.capacity
    }

    /// The window, in Q20 segments, so many microseconds after it was `window`; `None` without a path or a window.
    ///
    /// It lies between `window` and [`converged`](Self::converged).
    pub fn window(&self, window: u64, path: &FixedPath, elapsed_us: u32) -> Option<u64> {
        let (path, converged) = (path.checked()?, self.converged(path)?);
        if window == 0 {
            return None;
        }
        let window = window.min(LARGEST_WINDOW);
        // x = t ε M / K, from Q20 · µs to Q30 · s.
        let (remains, halvings) = decay(self.growth(&path) * u64::from(elapsed_us) * 16 / 15_625);
        // Eq. 10 as w + a (w* - w) / (e w* + a), with e = e^-x and a = (1 - e) w.
        let moved = scaled(window, ONE - (remains >> halvings));
        let whole = (scaled(converged, remains) >> halvings) + moved;
        Some(if converged >= window {
            window + part(converged - window, moved, whole)
        } else {
            window - part(window - converged, moved, whole)
        })
    }
}

/// `e^-x` of x in Q30: a number in Q30, to be halved so many times.
fn decay(exponent: u64) -> (u64, u64) {
    if exponent >= LARGEST_EXPONENT {
        return (0, 0);
    }
    let (halvings, rest) = (exponent / LN_2, exponent % LN_2);
    // 1 - x (1 - x/2 (1 - x/3 (1 - ...))).
    let series = INVERSES.iter().fold(ONE, |sum, inverse| ONE - ((((rest * sum) >> 30) * inverse) >> 30));
    (ONE - ((rest * series) >> 30), halvings)
}

/// `value · share`, rounded to nearest: a value up to 2^40, a share in Q30 up to one.
fn scaled(value: u64, share: u64) -> u64 {
    // Two products of at most 2^50: the whole would have 70 bits.
    let (high, low) = ((value >> 20) * share, (value & LOW) * share);
    (high + (low >> 20) + (1 << 9)) >> 10
}

/// `value · moved / whole`, rounded down: each up to 2^41, `moved` no more than `whole`. Nothing of nothing is nothing.
fn part(value: u64, moved: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    // A long division in two digits of 20 bits: the product would have 80.
    let high = moved * (value >> 20);
    let (quotient, rest) = (high / whole, high % whole);
    (quotient << 20) + ((rest << 20) + moved * (value & LOW)) / whole
}

/// Eq. 15 in integers: mean and mean deviation of `K - A`, in Q10 segments/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedNoise {
    moments: Option<(u64, u64)>,
}

impl FixedNoise {
    /// Takes a sample, in Q10 segments/s.
    pub fn push(&mut self, sample: u64) {
        let sample = sample.min(LARGEST_RATE);
        let (mean, deviation) = self.moments.unwrap_or((sample, 0));
        let error = mean.abs_diff(sample);
        // g = 1/8, h = 1/4, rounded to nearest (Kodama 2009, Sec. 3.3).
        self.moments = Some((toward(mean, sample, 3), toward(deviation, error, 2)));
    }

    /// γ(t) in Q20, of γ and l in Q20: `γ / (1 + l σ / μ)`, written `γ μ / (μ + l σ)`. With a mean of zero, γ.
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

/// `value` moved by `1 / 2^shift` of the way to `to`, rounded to nearest.
const fn toward(value: u64, to: u64, shift: u32) -> u64 {
    let way = (value.abs_diff(to) + (1 << (shift - 1))) >> shift;
    if to >= value { value + way } else { value - way }
}

/// Longest dt of Eq. 18, in µs, as in the float form.
const LONGEST_STEP_US: u64 = 1_000_000;

/// The window, in Q20 segments, after a step of Eq. 18: `w + m w dB`, of m in Q20.
///
/// dB has the variance of the time that passed. It is made from 192 random bits: a sum of twelve uniform numbers has
/// variance one. The step is half of the window at most, as in the float form.
pub fn oscillated(window: u64, strength: u64, elapsed_us: u64, random: [u32; 6]) -> u64 {
    let window = window.min(LARGEST_WINDOW);
    let sum: u64 = random.iter().map(|bits| u64::from(bits & 0xFFFF) + u64::from(bits >> 16)).sum();
    // Twelve times the mean of 0 to 2^16 - 1.
    let normal = sum.abs_diff(MEAN_SUM);
    // Q20 · √s: √µs in Q10, and 2^10 / 1000 = 128 / 125.
    let deviation = square_root(elapsed_us.min(LONGEST_STEP_US) << 20) * 128 / 125;
    let share = ((((strength.min(PARAMETER_ONE) * deviation) >> 20) * normal) >> 16).min(PARAMETER_ONE / 2);
    let step = (window * share) >> 20;
    if sum >= MEAN_SUM { (window + step).min(LARGEST_WINDOW) } else { window - step }
}

/// Mean of the sum of twelve numbers from 0 to 2^16 - 1.
const MEAN_SUM: u64 = 6 * 0xFFFF;

/// The square root of a number up to 2^40, rounded down: a digit at a time.
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
mod tests {
    use proptest::prelude::*;

    use super::super::{Law, Path};
    use super::*;
    use crate::control::window::NoiseAwareness;

    const LAW: FixedLaw = FixedLaw { gamma: 996_147, epsilon_per_s: 2_044_723 };
    const PATH: FixedPath = FixedPath { capacity: 12_500 << 10, available: 10_000 << 10, min_round_trip_us: 120_000 };

    fn segments(window: u64) -> f64 {
        window as f64 / WINDOW_ONE as f64
    }

    /// The float form of the same numbers: only the arithmetic differs.
    fn float(law: FixedLaw, path: FixedPath) -> (Law, Path) {
        let one = PARAMETER_ONE as f64;
        let law = Law { gamma: law.gamma as f64 / one, epsilon_per_s: law.epsilon_per_s as f64 / one };
        let rate = |rate: u64| rate as f64 / RATE_ONE as f64;
        let min_round_trip_s = path.min_round_trip_us as f64 / 1e6;
        (law, Path { capacity: rate(path.capacity), available: rate(path.available), min_round_trip_s })
    }

    #[test]
    fn golden_window_in_one_step_and_in_many_and_golden_converged_window() {
        let once = LAW.window(100 << 20, &PATH, 120_000).unwrap();
        assert!((segments(once) - 118.8283).abs() < 2e-4, "{}", segments(once));
        let many = (0..240).fold(100 << 20, |window, _| LAW.window(window, &PATH, 500).unwrap());
        assert!((segments(many) - 118.8283).abs() < 2e-3, "{}", segments(many));
        assert!((segments(LAW.converged(&PATH).unwrap()) - 1215.0).abs() < 1e-3);
        let rested = (0..100_000).fold(100 << 20, |window, _| LAW.window(window, &PATH, 500).unwrap());
        assert!((segments(rested) - 1215.0).abs() < 0.1, "{}", segments(rested));
    }

    #[test]
    fn the_exponential_is_right_to_the_last_bits() {
        for step in 0..32_000_u64 {
            let exponent = step << 20;
            let exact = libm::exp(-(exponent as f64) / ONE as f64) * ONE as f64;
            let (remains, halvings) = decay(exponent);
            assert!(((remains >> halvings) as f64 - exact).abs() <= 4.0, "{step}: {remains} {halvings} {exact}");
        }
    }

    #[test]
    fn without_capacity_round_trip_time_or_window_there_is_no_law() {
        assert_eq!(LAW.window(WINDOW_ONE, &FixedPath { capacity: 0, ..PATH }, 1), None);
        assert_eq!(LAW.converged(&FixedPath { min_round_trip_us: 0, ..PATH }), None);
        assert_eq!(LAW.window(0, &PATH, 1), None);
    }

    #[test]
    fn steady_samples_leave_gamma_and_golden_noise_lowers_it() {
        let mut noise = FixedNoise::default();
        assert_eq!(noise.gamma(996_147, 4 << 20), 996_147);
        noise.push(100 << 10);
        assert_eq!(noise.gamma(996_147, 4 << 20), 996_147);
        // By hand: μ = 110, σ = 20, so γ = 0.95 · 110 / 190.
        noise.push(180 << 10);
        let gamma = noise.gamma(996_147, 4 << 20) as f64 / PARAMETER_ONE as f64;
        assert!((gamma - 0.95 * 110.0 / 190.0).abs() < 1e-5, "{gamma}");
        noise.reset();
        assert_eq!(noise, FixedNoise::default());
        noise.push(0);
        assert_eq!(noise.gamma(996_147, 4 << 20), 996_147);
    }

    /// Mean and variance of the sum of Irwin and Hall, with bits from a generator that shares nothing with the code.
    #[test]
    fn the_oscillation_has_the_deviation_of_the_time_that_passed() {
        let (mut state, mut sum, mut squares) = (1_u64, 0.0, 0.0);
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let window = 1000 << 20;
        for _ in 0..40_000 {
            let random = [draw(), draw(), draw(), draw(), draw(), draw()];
            let step = segments(oscillated(window, PARAMETER_ONE * 3 / 10, 10_000, random)) - 1000.0;
            sum += step;
            squares += step * step;
        }
        // m √dt w = 0.3 · 0.1 · 1000.
        let (mean, deviation) = (sum / 40_000.0, libm::sqrt(squares / 40_000.0));
        assert!(mean.abs() < 0.6 && (deviation / 30.0 - 1.0).abs() < 0.02, "{mean} {deviation}");
    }

    prop_compose! {
        /// Rates and times by their size, so that small ones occur as well as large ones.
        fn paths()(capacity in 10u32..=35, low in any::<u64>(), share in 0u64..=1024, tau in 0u32..=24, rest in any::<u64>()) -> FixedPath {
            let capacity = (1 << capacity | low & ((1 << capacity) - 1)).min(LARGEST_RATE);
            let min_round_trip_us = (1 << tau | rest & ((1 << tau) - 1)).min(LONGEST_ROUND_TRIP_US);
            FixedPath { capacity, available: capacity / 1024 * share, min_round_trip_us }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 40_000, ..ProptestConfig::default() })]

        /// Over the whole range of K, A, τ, w, γ and ε, and of t from a step to two minutes: within a thousandth of the float form and
        /// 10^-4 of a segment.
        #[test]
        fn it_stays_close_to_the_float_form(path in paths(), window in 20u32..40, low in any::<u64>(), time in 9u32..27, rest in any::<u32>(), gamma in 0u64..PARAMETER_ONE, epsilon in 10_486..=LARGEST_PARAMETER) {
            let fixed = FixedLaw { gamma, epsilon_per_s: epsilon };
            let (law, exact_path) = float(fixed, path);
            let converged = law.converged(&exact_path).unwrap();
            prop_assume!(converged < segments(LARGEST_WINDOW));
            let found = segments(fixed.converged(&path).unwrap());
            prop_assert!((found - converged).abs() <= 2e-6, "{found} {converged}");
            // A path that holds less than a sixty-fourth of a segment is none.
            prop_assume!(converged > 1.0 / 64.0);
            let window = 1 << window | low & ((1 << window) - 1);
            let elapsed_us = 1 << time | rest & ((1 << time) - 1);
            let exact = law.window(segments(window), &exact_path, f64::from(elapsed_us) / 1e6).unwrap();
            let next = segments(fixed.window(window, &path, elapsed_us).unwrap());
            prop_assert!((next - exact).abs() <= 1e-3 * exact + 1e-4, "{next} {exact}");
        }

        /// No overflow (tests check for it), and never past the fixed point.
        #[test]
        fn any_input_gives_a_window_between_the_old_one_and_the_converged_one(
            (gamma, epsilon_per_s, window) in any::<(u64, u64, u64)>(),
            (capacity, available, min_round_trip_us) in any::<(u64, u64, u64)>(),
            (shifts, elapsed_us, weight) in (any::<[u8; 4]>(), any::<u32>(), any::<u64>()),
            (samples, random) in (prop::collection::vec(any::<u64>(), 0..10), any::<[u32; 6]>()),
        ) {
            let [a, b, c, d] = shifts.map(|shift| shift % 64);
            let path = FixedPath { capacity: capacity >> a, available: available >> b, min_round_trip_us: min_round_trip_us >> c };
            let law = FixedLaw { gamma, epsilon_per_s };
            let window = window >> d;
            if let (Some(end), Some(next)) = (law.converged(&path), law.window(window, &path, elapsed_us)) {
                let window = window.min(LARGEST_WINDOW);
                prop_assert!((window.min(end)..=window.max(end)).contains(&next) && next > 0);
            }
            let mut noise = FixedNoise::default();
            for sample in samples {
                noise.push(sample);
            }
            prop_assert!(noise.gamma(gamma, weight) <= gamma);
            let moved = oscillated(window, gamma, u64::from(elapsed_us), random);
            prop_assert!(moved >= window.min(LARGEST_WINDOW) / 2 && moved <= LARGEST_WINDOW);
        }

        #[test]
        fn gamma_under_noise_stays_close_to_the_float_form(samples in prop::collection::vec(RATE_ONE..LARGEST_RATE, 1..60), spread in 0u32..20) {
            let (mut fixed, mut float) = (FixedNoise::default(), NoiseAwareness::new(4.0));
            for sample in samples {
                let sample = (sample >> spread).max(RATE_ONE * 10);
                fixed.push(sample);
                float.push(sample as f64);
            }
            let found = fixed.gamma(PARAMETER_ONE - 1, 4 << 20) as f64 / PARAMETER_ONE as f64;
            prop_assert!((found - float.factor()).abs() < 0.01, "{found} {}", float.factor());
        }

        #[test]
        fn the_square_root_is_the_integer_part(value in 0u64..1 << 40) {
            let root = square_root(value);
            prop_assert!(root * root <= value && (root + 1) * (root + 1) > value);
        }
    }
}
