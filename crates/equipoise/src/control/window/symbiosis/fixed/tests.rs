use proptest::prelude::*;

use super::super::{Law, Path};
use super::*;
use crate::control::window::NoiseAwareness;

const LAW: FixedLaw = FixedLaw { gamma: 996_147, epsilon_per_s: 2_044_723 };
const PATH: FixedPath = FixedPath { capacity: 12_500 << 10, available: 10_000 << 10, min_round_trip_us: 120_000 };

fn segments(window: u64) -> f64 {
    window as f64 / WINDOW_ONE as f64
}

/// Converts a law and a path to their float forms. The numbers stay the same, so that only the arithmetic differs.
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
    // Computed by hand: the mean is 110 and the deviation 20, so γ is 0.95 · 110 / (110 + 4 · 20).
    noise.push(180 << 10);
    let gamma = noise.gamma(996_147, 4 << 20) as f64 / PARAMETER_ONE as f64;
    assert!((gamma - 0.95 * 110.0 / 190.0).abs() < 1e-5, "{gamma}");
    noise.reset();
    assert_eq!(noise, FixedNoise::default());
    noise.push(0);
    assert_eq!(noise.gamma(996_147, 4 << 20), 996_147);
}

/// The steps of the window must have a mean of zero, and a standard deviation of `m w √t`, where m is the strength, w
/// the window, and t the elapsed time in s. The random bits come from a generator that is not part of the tested code.
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
    // The expected deviation is 0.3 · 0.1 · 1000.
    let (mean, deviation) = (sum / 40_000.0, libm::sqrt(squares / 40_000.0));
    assert!(mean.abs() < 0.6 && (deviation / 30.0 - 1.0).abs() < 0.02, "{mean} {deviation}");
}

prop_compose! {
    /// Generates paths whose rates and times are chosen by their order of magnitude, so that small values occur as
    /// often as large values.
    fn paths()(capacity in 10u32..=35, low in any::<u64>(), share in 0u64..=1024, tau in 0u32..=24, rest in any::<u64>()) -> FixedPath {
        let capacity = (1 << capacity | low & ((1 << capacity) - 1)).min(LARGEST_RATE);
        let min_round_trip_us = (1 << tau | rest & ((1 << tau) - 1)).min(LONGEST_ROUND_TRIP_US);
        FixedPath { capacity, available: capacity / 1024 * share, min_round_trip_us }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 40_000, ..ProptestConfig::default() })]

    /// The windows of the integer form and the float form differ by at most 0.1 % plus 10^-4 segments. This holds for
    /// any available bandwidth, round-trip time and γ, if the capacity is at least 1 segment/s, the window at least 1
    /// segment, the converged window from 1/64 to 2^20 segments, ε at least 0.01/s, and the elapsed time from 512 µs to
    /// 134 s.
    #[test]
    fn it_stays_close_to_the_float_form(path in paths(), window in 20u32..40, low in any::<u64>(), time in 9u32..27, rest in any::<u32>(), gamma in 0u64..PARAMETER_ONE, epsilon in 10_486..=LARGEST_PARAMETER) {
        let fixed = FixedLaw { gamma, epsilon_per_s: epsilon };
        let (law, exact_path) = float(fixed, path);
        let converged = law.converged(&exact_path).unwrap();
        prop_assume!(converged < segments(LARGEST_WINDOW));
        let found = segments(fixed.converged(&path).unwrap());
        prop_assert!((found - converged).abs() <= 2e-6, "{found} {converged}");
        // A path whose converged window is less than 1/64 of a segment is skipped.
        prop_assume!(converged > 1.0 / 64.0);
        let window = 1 << window | low & ((1 << window) - 1);
        let elapsed_us = 1 << time | rest & ((1 << time) - 1);
        let exact = law.window(segments(window), &exact_path, f64::from(elapsed_us) / 1e6).unwrap();
        let next = segments(fixed.window(window, &path, elapsed_us).unwrap());
        prop_assert!((next - exact).abs() <= 1e-3 * exact + 1e-4, "{next} {exact}");
    }

    /// No input causes an overflow (tests run with overflow checks), or moves the window beyond the converged window.
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
