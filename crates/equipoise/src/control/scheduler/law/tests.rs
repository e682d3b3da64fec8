//! Compares the scheduler's law with its closed form and with an independent solver, and checks it for arbitrary input.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// Returns a path far from its limits.
fn term(mean_ms: f64, growth_ms: f64, rate: f64) -> Term {
    Term { mean_s: mean_ms / 1e3, growth: growth_ms / 1e3, rate, min: 0.0, max: 1e3, cap: 1e3 }
}

/// Returns the objective of Asvarujanon 2014, Eq. 2.
fn cost(terms: &[Term], rates: &[f64]) -> f64 {
    terms.iter().zip(rates).map(|(t, rate)| (t.mean_s + t.growth * (rate - t.rate)) * rate).sum()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    let near = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-9);
    assert!(near, "{found:?} is not {expected:?}");
}

/// The solution of Asvarujanon 2014, Eq. 2, by Lagrange multipliers, as in that paper. Each path has a mean delay x, a
/// rate a, and a coefficient c: the increase of the delay per increase of the rate. If the total rate is constant, the
/// solution is λ = Σ(x/c + a)/Σ(1/c) and Δa = (λ - x - c a)/(2c).
#[test]
fn two_paths_away_from_their_limits_follow_the_closed_form() {
    let paths = [term(40.0, 10.0, 3.0), term(60.0, 30.0, 3.0)];
    // λ = (4 + 3 + 2 + 3)/(100 + 100/3) = 0.09; Δa = (0.09 - 0.04 - 0.03)/0.02 = 1, and -1 for the other path.
    close(&rates(&paths, 6.0), &[4.0, 2.0]);
    // If the total grows by D = 2, the Lagrange multiplier λ grows by 2 D/Σ(1/c) = 2·2/133.33 = 0.03, where c is the
    // growth of a path's delay. Each rate grows by 0.03/(2c): by 1.5 and by 0.5.
    close(&rates(&paths, 8.0), &[5.5, 2.5]);
}

#[test]
fn the_step_is_cut_at_the_cap_and_at_the_least_rate_and_the_sum_stays() {
    let capped = |cap, min| {
        let paths = [(40.0, 10.0), (60.0, 30.0)].map(|(mean, growth)| Term { min, cap, ..term(mean, growth, 3.0) });
        rates(&paths, 6.0)
    };
    close(&capped(0.6, 0.0), &[3.6, 2.4]);
    close(&capped(9.0, 2.7), &[3.3, 2.7]);
}

#[test]
fn without_variance_the_cheapest_paths_are_filled_first_and_equally_cheap_ones_alike() {
    let flat = |mean, rate, max| Term { max, ..term(mean, 0.0, rate) };
    close(&rates(&[flat(30.0, 1.0, 2.0), flat(10.0, 1.0, 1.5), flat(20.0, 1.0, 9.0)], 3.0), &[0.0, 1.5, 1.5]);
    close(&rates(&[flat(10.0, 1.0, 4.0), flat(10.0, 2.0, 2.0), flat(50.0, 0.0, 9.0)], 3.0), &[2.0, 1.0, 0.0]);
    // The optimal rates make the derivative of delay · rate with respect to the rate equal on both paths. On the path
    // with variance, this derivative is 10 ms at 1 Mbit/s. On the path without variance, it is 10 ms at any rate. So
    // the path with variance carries 1 Mbit/s, and the other path carries the rest of the total.
    close(&rates(&[term(5.0, 5.0, 1.0), flat(10.0, 1.0, 9.0)], 2.0), &[1.0, 1.0]);
}

#[test]
fn a_cap_that_cannot_hold_gives_way_by_the_least_that_will_do() {
    let path = |rate, cap, max| Term { max, cap, ..term(10.0, 1.0, rate) };
    // The third path, which had 3 Mbit/s, is dead. Each of the other two paths gets 1.5 Mbit/s of this rate, whatever
    // its delay.
    close(&rates(&[path(1.0, 0.5, 9.0), path(2.0, 0.5, 9.0), path(3.0, 0.5, 0.0)], 6.0), &[2.5, 3.5, 0.0]);
    // The first of the two remaining paths is limited to 2 Mbit/s, so the second takes over the rest.
    close(&rates(&[path(1.0, 0.5, 2.0), path(2.0, 0.5, 9.0), path(3.0, 0.5, 0.0)], 6.0), &[2.0, 4.0, 0.0]);
    // The total falls by more than the step limits allow.
    close(&rates(&[path(3.0, 0.1, 9.0), path(2.0, 0.1, 9.0)], 2.0), &[1.5, 0.5]);
    // The three paths are equal and have carried nothing so far. They get equal rates.
    close(&rates(&[path(0.0, 0.0, 9.0); 3], 3.0), &[1.0; 3]);
}

#[test]
fn limits_that_leave_no_sum_give_way_from_below_and_the_sum_gives_way_to_the_rest() {
    let path = |min, max| Term { min, max, ..term(10.0, 1.0, 1.0) };
    close(&rates(&[path(1.0, 9.0), path(3.0, 9.0)], 2.0), &[0.5, 1.5]);
    close(&rates(&[path(0.0, 1.0), path(0.0, 2.0)], 5.0), &[1.0, 2.0]);
}

#[test]
fn one_path_carries_all_and_no_path_nothing_and_nonsense_is_a_path_without_a_report() {
    close(&rates(&[term(10.0, 1.0, 5.0)], 2.0), &[2.0]);
    close(&rates(&[], 2.0), &[]);
    let nonsense = Term { mean_s: f64::NAN, ..term(10.0, 1.0, 1.0) };
    close(&rates(&[nonsense, term(500.0, 10.0, 1.0)], 2.0), &[1.0, 1.0]);
    close(&rates(&[Term { max: f64::NAN, ..nonsense }, term(10.0, 1.0, 1.0)], f64::NAN), &[0.0, 0.0]);
}

/// Finds the optimum by trial, independently of the tested code. In each trial, each path has its lower limit as rate,
/// or its upper limit, or is free. The rates of the free paths are computed with a Lagrange multiplier. All
/// combinations are tried. Returns the lowest cost of the combinations whose rates are within the limits.
fn by_enumeration(terms: &[Term], total: f64) -> f64 {
    let limits: Vec<(f64, f64)> =
        terms.iter().map(|t| ((t.rate - t.cap).max(t.min), (t.rate + t.cap).min(t.max))).collect();
    let mut best = f64::INFINITY;
    for mut code in 0..3usize.pow(terms.len() as u32) {
        let mut rates = vec![f64::NAN; terms.len()];
        for (rate, limit) in rates.iter_mut().zip(&limits) {
            *rate = [limit.0, limit.1, f64::NAN][code % 3];
            code /= 3;
        }
        let free: Vec<usize> = (0..terms.len()).filter(|at| rates[*at].is_nan()).collect();
        let left = total - rates.iter().filter(|rate| !rate.is_nan()).sum::<f64>();
        if !free.is_empty() {
            // With λ = `lambda`, x = `mean_s`, c = `growth` and a = `rate`, the new rate of a free path is
            // (λ - x + c a)/(2c). The new rates of all free paths sum to `left`.
            let per = |of: &dyn Fn(&Term) -> f64| free.iter().map(|at| of(&terms[*at])).sum::<f64>();
            let lambda =
                (left + per(&|t| (t.mean_s - t.growth * t.rate) / (2.0 * t.growth))) / per(&|t| 0.5 / t.growth);
            for &at in &free {
                let t = &terms[at];
                rates[at] = (lambda - t.mean_s + t.growth * t.rate) / (2.0 * t.growth);
            }
        }
        let kept = rates.iter().zip(&limits).all(|(rate, (low, high))| (*low - 1e-9..=*high + 1e-9).contains(rate));
        if kept && (rates.iter().sum::<f64>() - total).abs() < 1e-9 {
            best = best.min(cost(terms, &rates));
        }
    }
    best
}

fn paths(most: usize) -> impl Strategy<Value = Vec<Term>> {
    let path = (1e-3f64..0.5, 1e-5f64..0.1, 0.0f64..10.0, 0.0f64..1.0, 0.0f64..12.0, 0.0f64..3.0);
    let path = path.prop_map(|(mean_s, growth, rate, min, room, cap)| Term {
        mean_s,
        growth,
        rate,
        min,
        max: min + room,
        cap,
    });
    proptest::collection::vec(path, 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn no_assignment_of_paths_to_their_limits_is_cheaper(terms in paths(8), share in 0.0f64..1.0) {
        let terms: Vec<Term> = terms.into_iter().map(|t| Term { rate: t.rate.clamp(t.min, t.max), ..t }).collect();
        let ends = |of: fn(&Term) -> f64| terms.iter().map(of).sum::<f64>();
        let (low, high) = (ends(|t| (t.rate - t.cap).max(t.min)), ends(|t| (t.rate + t.cap).min(t.max)));
        let total = low + share * (high - low);
        let (found, best) = (cost(&terms, &rates(&terms, total)), by_enumeration(&terms, total));
        prop_assert!((found - best).abs() <= 1e-9 * (1.0 + best.abs()), "{} but {} is possible", found, best);
    }
}

proptest! {
    /// For any numbers, the rates sum to the total as far as the upper limits allow. The lower limits and the step
    /// limits hold if the total allows them.
    #[test]
    fn sum_bounds_and_cap_hold(mut terms in paths(8), flat in 0usize..9, total in 0.0f64..40.0) {
        if let Some(term) = terms.get_mut(flat) {
            term.growth = 0.0;
        }
        let found = rates(&terms, total);
        let most: f64 = terms.iter().map(|t| t.max).sum();
        let least: f64 = terms.iter().map(|t| t.min).sum();
        prop_assert!((found.iter().sum::<f64>() - total.min(most)).abs() < 1e-9);
        for (rate, term) in found.iter().zip(&terms) {
            prop_assert!(*rate <= term.max + 1e-12 && (total < least || *rate >= term.min - 1e-12));
        }
        let within = |t: &Term, step: f64| (t.rate + step).clamp(t.min, t.max);
        let reach = |sign: f64| terms.iter().map(|t| within(t, sign * t.cap)).sum::<f64>();
        if (reach(-1.0)..=reach(1.0)).contains(&total) {
            for (rate, term) in found.iter().zip(&terms) {
                prop_assert!((within(term, -term.cap) - 1e-9..=within(term, term.cap) + 1e-9).contains(rate));
            }
        }
    }

    /// The order of the paths does not change the paths' rates.
    #[test]
    fn a_permutation_of_the_paths_permutes_the_rates(terms in paths(6), total in 0.0f64..20.0) {
        let forward = rates(&terms, total);
        let mut backward = rates(&terms.iter().rev().copied().collect::<Vec<_>>(), total);
        backward.reverse();
        for (one, other) in forward.iter().zip(&backward) {
            prop_assert!((one - other).abs() < 1e-9);
        }
    }

    #[test]
    fn any_numbers_at_all_give_rates_that_are_rates(
        numbers in proptest::collection::vec(proptest::array::uniform6(proptest::num::f64::ANY), 0..8), total in proptest::num::f64::ANY,
    ) {
        let terms: Vec<Term> =
            numbers.iter().map(|&[mean_s, growth, rate, min, max, cap]| Term { mean_s, growth, rate, min, max, cap }).collect();
        prop_assert!(rates(&terms, total).iter().all(|rate| rate.is_finite() && *rate >= 0.0));
    }
}
