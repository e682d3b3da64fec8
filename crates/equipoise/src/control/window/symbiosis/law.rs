/// The basic law: how a window develops over time on a path whose bandwidth is known.
///
/// Source: Kodama 2009, Eq. 9, 10, the Lotka-Volterra model of competing species solved for a window:
///
/// ```text
/// dw/dt = ε (1 - (w + γ (K - A) τ) / (K τ)) w                     Eq. 9
/// w(t)  = w₀ τ f M / (w₀ (f - 1) + τ M),   M = K - γ (K - A)      Eq. 10
/// f     = e^(ε t M / K)
/// w*    = τ M                                                     at dw/dt = 0
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `w₀` | window at the start | segments |
/// | `w` | window after the time `t` | segments |
/// | `w*` | window to which `w` converges | segments |
/// | `K`, `A` | capacity and available bandwidth | segments/s |
/// | `τ` | minimum round-trip time | s |
/// | `t` | time since the window was `w₀` | s |
/// | `γ` | weight of cross traffic | 1 |
/// | `ε` | speed of convergence | 1/s |
///
/// With numerator and denominator divided by `f w*`, Eq. 10 becomes `w = w₀ / (e + (1 - e) w₀ / w*)` with `e = 1 / f`.
/// The code computes this form, because f overflows for a large t, but e is between 0 and 1 for any t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// γ, the weight of cross traffic, from 0 to below 1. With the capacity K, the available bandwidth A and the
    /// minimum round-trip time τ, the converged window puts `(1 - γ) (K - A) τ` segments into the queue. With a larger
    /// γ, the queue is shorter, and the window depends more on the measurement of A.
    pub gamma: f64,
    /// ε, the speed of convergence, in 1/s. With a larger value, the window converges sooner, and bursts are larger.
    pub epsilon_per_s: f64,
}

/// The properties of a path, as input of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// K, the capacity, in segments/s.
    pub capacity: f64,
    /// A, the available bandwidth, in segments/s.
    pub available: f64,
    /// τ, the minimum round-trip time, in s.
    pub min_round_trip_s: f64,
}

impl Law {
    /// Returns the window that `window` becomes after `elapsed_s` seconds.
    ///
    /// The result is between `window` and [`converged`](Self::converged). A negative time counts as zero. After an
    /// infinite time, the window has converged, unless ε is zero. Returns `None` if `converged` returns `None`, if the
    /// window is not a finite number above zero, if ε is negative or not finite, or if the time is NaN.
    pub fn window(&self, window: f64, path: &Path, elapsed_s: f64) -> Option<f64> {
        let converged = self.converged(path)?;
        let growth_per_s = self.epsilon_per_s * (converged / (path.capacity * path.min_round_trip_s));
        let defined = window > 0.0 && window.is_finite() && self.epsilon_per_s >= 0.0 && growth_per_s.is_finite();
        if !defined || elapsed_s.is_nan() {
            return None;
        }
        let exponent = if elapsed_s > 0.0 { growth_per_s * elapsed_s } else { 0.0 };
        // For zero growth and an infinite time, the product 0 · ∞ is NaN, but means no growth.
        let exponent = if exponent.is_nan() { 0.0 } else { exponent };
        let (remains, gone) = (libm::exp(-exponent), -libm::expm1(-exponent));
        if gone <= 0.0 {
            return Some(window);
        }
        // Kodama 2009, Eq. 10. If `window / converged` overflows, `next` is 0, and the clamp raises `next` to
        // `converged`.
        let next = window / (remains + gone * (window / converged));
        // Rounding must not move the window beyond the converged window.
        Some(next.clamp(window.min(converged), window.max(converged)))
    }

    /// Returns w*, the equilibrium window of the law: `{γ A + (1 - γ) K} τ` (Kodama 2009, Sec. 3.1).
    ///
    /// A is clamped to the range 0 to K. Returns `None` if the capacity or the round-trip time is not finite or not
    /// above zero, if γ is below 0 or not below 1, if A is NaN, or if the window overflows or is rounded to zero. With
    /// γ = 1 and A = 0, the window would converge to zero.
    pub fn converged(&self, path: &Path) -> Option<f64> {
        let Path { capacity, available, min_round_trip_s } = *path;
        let positive = capacity > 0.0 && min_round_trip_s > 0.0 && (0.0..1.0).contains(&self.gamma);
        if !positive || available.is_nan() || !(capacity * min_round_trip_s).is_finite() {
            return None;
        }
        let others = capacity - available.clamp(0.0, capacity);
        let window = (capacity - self.gamma * others) * min_round_trip_s;
        (window > 0.0).then_some(window)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAW: Law = Law { gamma: 0.95, epsilon_per_s: 1.95 };
    /// A path of 150 Mbit/s with a round-trip time of 120 ms. Packets have 1500 bytes. Cross traffic takes a fifth of
    /// the capacity.
    const PATH: Path = Path { capacity: 12_500.0, available: 10_000.0, min_round_trip_s: 0.12 };

    #[test]
    fn golden_window_after_one_round_trip_and_golden_converged_window() {
        assert!((LAW.window(100.0, &PATH, 0.12).unwrap() - 118.8283).abs() < 5e-5);
        assert!((LAW.converged(&PATH).unwrap() - 1215.0).abs() < 1e-9);
    }

    /// Compares the closed form with an independent solution: Eq. 9 integrated by the classical Runge-Kutta method.
    #[test]
    fn the_closed_form_solves_the_differential_equation() {
        for (gamma, available, start) in [(0.95, 10_000.0, 10.0), (0.5, 0.0, 3000.0), (0.0, 12_500.0, 1.0)] {
            let law = Law { gamma, ..LAW };
            let path = Path { available, ..PATH };
            let slope = |w: f64| 1.95 * (1.0 - (w + gamma * (12_500.0 - available) * 0.12) / (12_500.0 * 0.12)) * w;
            let (mut window, h) = (start, 1e-3);
            for step in 1..=4000 {
                let k1 = slope(window);
                let k2 = slope(window + h / 2.0 * k1);
                let k3 = slope(window + h / 2.0 * k2);
                let k4 = slope(window + h * k3);
                window += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
                let closed = law.window(start, &path, f64::from(step) * h).unwrap();
                assert!((window / closed - 1.0).abs() < 1e-9, "{window} {closed} at step {step}");
            }
        }
    }

    #[test]
    fn an_endless_time_converges_and_none_changes_nothing() {
        for endless in [1e300, f64::INFINITY] {
            assert!((LAW.window(100.0, &PATH, endless).unwrap() - 1215.0).abs() < 1e-9);
        }
        for none in [0.0, -3.0, f64::NEG_INFINITY] {
            assert!((LAW.window(100.0, &PATH, none).unwrap() - 100.0).abs() < 1e-12);
        }
        let still = Law { epsilon_per_s: 0.0, ..LAW };
        assert!((still.window(100.0, &PATH, f64::INFINITY).unwrap() - 100.0).abs() < 1e-12);
    }

    #[test]
    fn more_available_than_there_is_counts_as_all_and_less_than_none_as_none() {
        let with = |available| LAW.converged(&Path { available, ..PATH });
        assert!((with(20_000.0).unwrap() - 1500.0).abs() < 1e-9);
        assert!((with(-1.0).unwrap() - 75.0).abs() < 1e-9, "a twentieth of the path is always left: γ < 1");
    }

    #[test]
    fn without_a_path_there_is_no_law() {
        let none = [
            (LAW, Path { capacity: 0.0, ..PATH }),
            (LAW, Path { capacity: f64::NAN, ..PATH }),
            (LAW, Path { capacity: f64::INFINITY, ..PATH }),
            (LAW, Path { available: f64::NAN, ..PATH }),
            (LAW, Path { min_round_trip_s: 0.0, ..PATH }),
            (LAW, Path { min_round_trip_s: -0.1, ..PATH }),
            (Law { gamma: 1.0, ..LAW }, PATH),
            (Law { gamma: -0.1, ..LAW }, PATH),
            (Law { gamma: f64::NAN, ..LAW }, PATH),
        ];
        for (law, path) in none {
            assert_eq!((law.converged(&path), law.window(10.0, &path, 0.1)), (None, None), "{law:?} {path:?}");
        }
        for window in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(LAW.window(window, &PATH, 0.1), None);
        }
        assert_eq!(Law { epsilon_per_s: f64::NAN, ..LAW }.window(10.0, &PATH, 0.1), None);
        assert_eq!(LAW.window(10.0, &PATH, f64::NAN), None);
    }

    prop_compose! {
        fn paths()(capacity in 1.0f64..1e6, share in 0.0f64..=1.0, min_round_trip_s in 1e-4f64..2.0) -> Path {
            Path { capacity, available: share * capacity, min_round_trip_s }
        }
    }

    proptest! {
        #[test]
        fn the_window_moves_towards_the_converged_one_and_never_past_it(path in paths(), window in 1.0f64..1e6, gamma in 0.0f64..0.999, t in 0.0f64..100.0, more in 0.0f64..100.0) {
            let law = Law { gamma, ..LAW };
            let (end, first, later) = (law.converged(&path).unwrap(), law.window(window, &path, t).unwrap(), law.window(window, &path, t + more).unwrap());
            prop_assert!((first - end).abs() <= (window - end).abs() * (1.0 + 1e-12));
            prop_assert!((later - end).abs() <= (first - end).abs() * (1.0 + 1e-9) + 1e-9 * end, "{first} {later} {end}");
            prop_assert!((first - end) * (window - end) >= 0.0);
        }

        /// The closed form is exact: many small steps result in the same window as one large step.
        #[test]
        fn a_thousand_small_steps_are_one_large_one(path in paths(), window in 1.0f64..1e4, t in 0.0f64..10.0) {
            let whole = LAW.window(window, &path, t).unwrap();
            let cut = (0..1000).fold(window, |w, _| LAW.window(w, &path, t / 1000.0).unwrap());
            prop_assert!((cut / whole - 1.0).abs() < 1e-9, "{cut} {whole}");
        }

        #[test]
        fn the_converged_window_is_a_fixed_point(path in paths(), t in 0.0f64..1e9) {
            let end = LAW.converged(&path).unwrap();
            prop_assert!((LAW.window(end, &path, t).unwrap() / end - 1.0).abs() < 1e-12);
        }

        /// Each of n equal flows measures the bandwidth that the other flows leave. At the equilibrium of n equal
        /// species (Kodama 2009, Eq. 7), no window changes.
        #[test]
        fn equal_flows_rest_at_the_equilibrium_of_equal_species(flows in 1u32..50, gamma in 0.01f64..0.99) {
            let (law, n) = (Law { gamma, ..LAW }, f64::from(flows));
            // The rate of each flow at the equilibrium of Kodama 2009, Eq. 7 is K / (1 + γ (n - 1)).
            let each = 12_500.0 / (1.0 + gamma * (n - 1.0));
            let path = Path { available: 12_500.0 - (n - 1.0) * each, ..PATH };
            // If the other flows alone take more than the capacity K, nothing is compared, because nothing is available
            // and the flows fill the buffer.
            if path.available >= 0.0 {
                prop_assert!((law.converged(&path).unwrap() / (each * 0.12) - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn any_input_gives_a_finite_positive_window_or_none(
            (gamma, epsilon_per_s) in (prop::num::f64::ANY, prop::num::f64::ANY),
            (capacity, available, min_round_trip_s) in (prop::num::f64::ANY, prop::num::f64::ANY, prop::num::f64::ANY),
            (window, t) in (prop::num::f64::ANY, prop::num::f64::ANY),
        ) {
            for (gamma, epsilon_per_s, window) in [(gamma, epsilon_per_s, window), (0.95, epsilon_per_s.abs(), window.abs())] {
                for (capacity, min_round_trip_s) in [(capacity, min_round_trip_s), (capacity.abs(), min_round_trip_s.abs())] {
                    let (law, path) = (Law { gamma, epsilon_per_s }, Path { capacity, available, min_round_trip_s });
                    if let Some(next) = law.window(window, &path, t) {
                        prop_assert!(next.is_finite() && next > 0.0, "{law:?} {path:?} {window} {t}: {next}");
                    }
                }
            }
        }
    }
}
