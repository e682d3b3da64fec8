//! The scheduler's law: the rate steps of the paths that minimise the mean delay of all packets.
//!
//! Source: Asvarujanon 2014, Eq. 2 and Alg. 1, for any number of paths and with limits:
//!
//! ```text
//! minimise    Σ (x_i + c_i Δa_i)(a_i + Δa_i)                        Eq. 2
//! subject to  Σ Δa_i = D
//!             min_i <= a_i + Δa_i <= max_i,  |Δa_i| <= α_i          Alg. 1
//! ```
//!
//! For path i, `x_i` is the mean delay, `c_i` its growth with the rate, `a_i` the rate, `Δa_i` the step of the rate,
//! and `α_i` the step limit. D is the step of the total rate.
//!
//! The objective is a sum of parabolas, one per path. At the optimum all paths that are not at a limit have the same
//! slope λ: `x_i + c_i a_i + 2 c_i Δa_i = λ`. As a function of λ, the rate of each path is a ramp from its lower to its
//! upper limit. The sum of all ramps increases with λ, and is linear between the corners of the ramps. The corners are
//! sorted, a binary search finds the two corners between which the sum reaches the total, and the rates are
//! interpolated between them. The result is exact, and takes O(n log n) time without an iteration to a tolerance. For
//! two paths that are not at a limit, the result is the closed form that follows from Eq. 2.
//!
//! # Special cases
//! - **`c_i = 0`** (zero variance): the ramp is a vertical step at `λ = x_i`. Such paths are filled in the order of
//!   their delays, the path with the shortest delay first. Paths with equal delays are filled in proportion to the rate
//!   that each can still take.
//! - **Non-finite statistics or a negative `c_i`**: the path is treated as one without a report: its step limit is
//!   zero.
//! - **No step within all limits**: first the step limits are relaxed, by the same minimum amount for all paths. If
//!   this is not enough, the lower limits are reduced in proportion. Upper limits always apply, even if the sum stays
//!   below the total.
//! - **One path** carries the total. For **no path** the result is empty.

use alloc::vec::Vec;

/// The data of one path, as input of the scheduler's law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Mean one-way delay x, in seconds.
    pub mean_s: f64,
    /// Growth c of the mean delay with the rate, in s/(Mbit/s); 0 or more.
    pub growth: f64,
    /// Current rate a, in Mbit/s.
    pub rate: f64,
    /// Lowest allowed rate, in Mbit/s.
    pub min: f64,
    /// Highest allowed rate, in Mbit/s.
    pub max: f64,
    /// Longest step, up or down, in Mbit/s.
    pub cap: f64,
}

/// Delays, growths and rates are clamped to this value, so that their sums stay finite. The value is our choice.
const LARGEST: f64 = 1e15;

/// Distributes the rate `total` among the paths. Returns the new rate of each path in Mbit/s, in the order of `terms`.
///
/// The rates sum to `total`, or to the sum of the upper limits if that is lower.
pub fn rates(terms: &[Term], total: f64) -> Vec<f64> {
    let total = if total.is_finite() { total.clamp(0.0, LARGEST) } else { 0.0 };
    let terms: Vec<Term> = terms.iter().map(Term::checked).collect();
    let sum = |of: fn(&Term) -> f64| terms.iter().map(of).sum::<f64>();
    let (least, most) = (sum(|t| t.min), sum(|t| t.max));
    if total >= most {
        return terms.iter().map(|term| term.max).collect();
    }
    if total <= least {
        // If all lower limits are zero, there is nothing to divide, and any share is correct.
        let share = if least > 0.0 { total / least } else { 1.0 };
        return terms.iter().map(|term| term.min * share).collect();
    }
    if sum(Term::high) < total {
        return fill(&terms.iter().map(Term::relaxed_up).collect::<Vec<_>>(), total);
    }
    if sum(Term::low) > total {
        // The rates must fall by more than the step limits allow. `fill` needs functions that rise, so it gets the
        // negated rates and the negated total.
        let down = fill(&terms.iter().map(Term::relaxed_down).collect::<Vec<_>>(), -total);
        return down.into_iter().map(|rate| -rate).collect();
    }
    fill(&terms.iter().map(Term::ramp).collect::<Vec<_>>(), total)
}

impl Term {
    fn checked(&self) -> Self {
        let known = self.mean_s.is_finite() && self.growth.is_finite() && self.growth >= 0.0;
        let positive = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, LARGEST) };
        let max = positive(self.max);
        Self {
            mean_s: if known { self.mean_s.clamp(-LARGEST, LARGEST) } else { 0.0 },
            growth: if known { self.growth.min(LARGEST) } else { 0.0 },
            rate: positive(self.rate),
            min: positive(self.min).min(max),
            max,
            cap: if known { positive(self.cap) } else { 0.0 },
        }
    }

    /// Returns the lowest rate that one step may reach.
    fn low(&self) -> f64 {
        (self.rate - self.cap).clamp(self.min, self.max)
    }

    /// Returns the highest rate that one step may reach.
    fn high(&self) -> f64 {
        (self.rate + self.cap).clamp(self.min, self.max)
    }

    /// Returns the path's rate as a function of λ. Here λ is the derivative of `delay · rate` with respect to the rate
    /// of the path.
    fn ramp(&self) -> Ramp {
        let (low, high) = (self.low(), self.high());
        // At `rate`, the path's delay is x + c (rate - a), where x is `mean_s`, c is `growth` and a is `self.rate`. So
        // the derivative of delay · rate is x + c (2 rate - a).
        let slope = |rate: f64| self.mean_s + self.growth * (2.0 * rate - self.rate);
        Ramp { from: slope(low), to: slope(high), low, high }
    }

    /// Returns the highest rate as a function of the amount by which the step limit is relaxed.
    fn relaxed_up(&self) -> Ramp {
        let reach = self.rate + self.cap;
        Ramp { from: (self.min - reach).max(0.0), to: (self.max - reach).max(0.0), low: self.high(), high: self.max }
    }

    /// Returns the negated lowest rate as a function of the amount by which the step limit is relaxed. The negation
    /// makes the function rise.
    fn relaxed_down(&self) -> Ramp {
        let reach = self.rate - self.cap;
        Ramp { from: (reach - self.max).max(0.0), to: (reach - self.min).max(0.0), low: -self.low(), high: -self.min }
    }
}

/// A function with the value `low` up to `from`, the value `high` after `to`, and linear in between.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
}

impl Ramp {
    /// Returns the function's value at the point `at`, as the limit from below or from above. The two limits differ at
    /// a vertical step.
    fn value(&self, at: f64, from_above: bool) -> f64 {
        let (before, behind) =
            if from_above { (at < self.from, at >= self.to) } else { (at <= self.from, at > self.to) };
        if before {
            self.low
        } else if behind {
            self.high
        } else {
            let share = (at - self.from) / (self.to - self.from);
            (self.low + (self.high - self.low) * share).clamp(self.low, self.high)
        }
    }
}

/// Returns the values of the ramps at the point at which they sum to `target`. The target must be between the sum of
/// the lowest and the sum of the highest values.
fn fill(ramps: &[Ramp], target: f64) -> Vec<f64> {
    let mut corners: Vec<f64> = ramps.iter().flat_map(|ramp| [ramp.from, ramp.to]).collect();
    corners.sort_unstable_by(f64::total_cmp);
    let values = |at: f64, from_above: bool| ramps.iter().map(move |ramp| ramp.value(at, from_above));
    let sum = |at: f64, from_above: bool| values(at, from_above).sum::<f64>();
    // Find the first corner (start or end of a ramp's slope) at which the sum of the ramps' values is at least the
    // target. At a vertical step, the value is the upper end of the step.
    let index = corners.partition_point(|&at| sum(at, true) < target);
    let Some(&at) = corners.get(index).or(corners.last()) else { return Vec::new() };
    // The sum reaches the target on the vertical step at this corner, or on the slope before this corner.
    let (start, start_above) = match index.checked_sub(1).and_then(|before| corners.get(before)) {
        Some(&before) if sum(at, false) >= target => (before, true),
        _ => (at, false),
    };
    let end_above = !start_above;
    let (first, last) = (sum(start, start_above), sum(at, end_above));
    let share = if last > first { ((target - first) / (last - first)).clamp(0.0, 1.0) } else { 0.0 };
    let between = |(low, high): (f64, f64)| (low + (high - low) * share).clamp(low.min(high), high.max(low));
    values(start, start_above).zip(values(at, end_above)).map(between).collect()
}

#[cfg(test)]
mod tests;
