/// How the coefficient of response b is determined. b is the change of the mean delay per change of the rate, divided
/// by the variance of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// The configured b is used without change.
    Fixed,
    /// A short probing phase at the start of the session determines the coefficient of response b. After that, b stays
    /// fixed.
    Probed,
    /// A probing phase determines b, the coefficient of response, as with `Probed`. After that, until the session ends,
    /// small random changes of the rate keep the estimate of b up to date. Old responses are forgotten.
    Adapted,
}

/// Estimates the coefficient of response b from small random changes of the rate, called pushes, and decides the size
/// of the next push.
///
/// A push of p Mbit/s at a delay variance of σ² moves the mean delay by b·p·σ² (Waki 2013, Eq. 3). Therefore b is the
/// regression coefficient of d on p·σ², where d is a report's mean delay minus the mean expected without the push.
/// Pushes are up or down at random, so they do not depend on the noise of the reports. The steps of the law do depend
/// on this noise, so an estimate from the steps would be biased.
///
/// The configured b is the mean of the prior. The standard deviation of the prior is half of this mean, or more if the
/// reports indicate a larger b.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Learner {
    learning: Learning,
    given: f64,
    /// Sum over the reports of p·σ²·d/s², in the unit of 1/b, the inverse coefficient of response. p is a small random
    /// change of the rate, and σ² the variance of the delay. d is a report's mean delay minus the mean expected without
    /// this change. s² is the variance of the noise in d.
    answers: f64,
    /// Sum over the reports of (p·σ²)²/s², in the unit of 1/b². p is the push (a random change of the rate), σ² the
    /// variance of the delay, and s² the variance of the noise in a report's mean delay.
    information: f64,
    reports: u32,
    probed: bool,
    /// The current push, a small random change of the rate, in Mbit/s.
    push_mbps: f64,
}

/// Standard deviation of the prior for b, as a share of the configured b or of the b that the reports indicate,
/// whichever is larger.
const GIVEN_WITHIN: f64 = 0.5;
/// Lower and upper bound of the learned coefficient of response b, as multiples of the configured b. The lower bound is
/// stricter, because a b that is too small makes steps too long, while a b that is too large only makes steps short.
const BOUNDS: (f64, f64) = (0.25, 8.0);
/// Size of a push (a small random rate change) in the probing phase, as a share of the headroom (the free capacity).
const PROBE: f64 = 0.25;
/// The probing phase ends when the standard deviation of the estimate of b is below this share of b.
const KNOWN_WITHIN: f64 = 0.25;
/// Minimum number of reports in the probing phase.
const LEAST_REPORTS: u32 = 8;
/// Maximum number of reports in the probing phase.
const MOST_REPORTS: u32 = 64;
/// Time constant, in reports, with which old responses are forgotten after the probing phase.
const MEMORY: f64 = 64.0;

impl Learner {
    pub(in crate::control) const fn new(learning: Learning, given: f64) -> Self {
        let probed = matches!(learning, Learning::Fixed);
        Self { learning, given, answers: 0.0, information: 0.0, reports: 0, probed, push_mbps: 0.0 }
    }

    /// Returns the current estimate of b, in 1/(s·Mbit/s): the growth of the mean delay with the rate, divided by the
    /// variance of the delay.
    pub(in crate::control) fn response(&self) -> f64 {
        let known = self.known_before();
        let learned = (known * self.given + self.answers) / (known + self.information);
        if learned.is_finite() { learned.clamp(self.given * BOUNDS.0, self.given * BOUNDS.1) } else { self.given }
    }

    /// Returns the current push, a small random change of the rate, in Mbit/s.
    pub(in crate::control) const fn push_mbps(&self) -> f64 {
        self.push_mbps
    }

    /// Records a report. `surprise_s` is the report's mean delay minus the expected mean. The expected mean includes
    /// the effect of the last push (a small random change of the rate), as predicted with [`Self::response`].
    /// `variance_s2` is the variance of the delay, and `noise_s2` the variance of `surprise_s`.
    pub(in crate::control) fn observe(&mut self, surprise_s: f64, variance_s2: f64, noise_s2: f64) {
        let pushed = self.push_mbps * variance_s2;
        let (answer, information) =
            (pushed * (surprise_s + pushed * self.response()) / noise_s2, pushed * pushed / noise_s2);
        if pushed == 0.0 || !(answer.is_finite() && information.is_finite()) {
            return;
        }
        let kept = if self.probed { 1.0 - 1.0 / MEMORY } else { 1.0 };
        self.answers = kept * self.answers + answer;
        self.information = kept * self.information + information;
        self.reports = self.reports.saturating_add(1);
        let deviation = 1.0 / libm::sqrt(self.known_before() + self.information);
        let known = self.reports >= LEAST_REPORTS && deviation < KNOWN_WITHIN * self.response();
        self.probed |= known || self.reports >= MOST_REPORTS;
    }

    /// Chooses the next push (a small change of the rate, from which b is learned) at random. Its sign follows from
    /// `coin`, which is any number that is independent of the pushes. Its size is a share of `headroom_mbps`: `PROBE`
    /// in the probing phase, and at most `unrest` after it.
    pub(in crate::control) fn toss(&mut self, headroom_mbps: f64, unrest: f64, coin: f64) {
        let push = self.length_mbps(headroom_mbps, unrest);
        self.push(if heads(coin) { push } else { -push });
    }

    /// Returns the allowed size of the next push (small random change of the rate), in Mbit/s.
    pub(in crate::control) fn length_mbps(&self, headroom_mbps: f64, unrest: f64) -> f64 {
        let share = match (self.probed, self.learning) {
            (false, _) => PROBE,
            (true, Learning::Adapted) => unrest.min(PROBE),
            (true, _) => 0.0,
        };
        if headroom_mbps.is_finite() { share * headroom_mbps } else { 0.0 }
    }

    /// Sets the current push, a small random change of the rate, in Mbit/s. The caller chose its sign at random.
    pub(in crate::control) const fn push(&mut self, mbps: f64) {
        self.push_mbps = mbps;
    }

    /// Sets the push (a small random change of the rate) to zero, for a time when nothing can be learned from a push.
    pub(in crate::control) const fn rest(&mut self) {
        self.push_mbps = 0.0;
    }

    /// Returns the inverse of the variance of the prior for b, the coefficient of response. If the reports indicate
    /// that b is above the configured b, the variance grows, so that the configured b counts less.
    fn known_before(&self) -> f64 {
        let heard = (self.answers / self.information).min(self.given * BOUNDS.1);
        let deviation = GIVEN_WITHIN * heard.max(self.given);
        1.0 / (deviation * deviation)
    }
}

/// Whether a toss of a coin, derived from the bits of `coin`, shows heads.
pub(in crate::control) fn heads(coin: f64) -> bool {
    // Fibonacci hashing: the highest bit of the product depends on all bits of the number, including its lowest bits,
    // which are random.
    coin.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const VARIANCE: f64 = 1.5e-6;
    const NOISE: f64 = 2.5e-4;

    /// Returns noise that is approximately normal, with a mean of 0 and a standard deviation of 1.
    fn chance(state: &mut u64) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (*state >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum
    }

    /// Returns a learner after `reports` reports from a path whose coefficient of response b is `truth`. The sign of
    /// each push (a random change of the rate) depends on the noise of the previous report. This dependence must not
    /// bias the estimate.
    fn taught(learning: Learning, given: f64, truth: f64, reports: u32, seed: u64) -> Learner {
        let (mut learner, mut state) = (Learner::new(learning, given), seed);
        for _ in 0..reports {
            let expected = learner.response() * learner.push_mbps() * VARIANCE;
            let noise = NOISE * chance(&mut state);
            let heard = truth * learner.push_mbps() * VARIANCE + noise;
            learner.observe(heard - expected, VARIANCE, NOISE * NOISE);
            learner.toss(3.0, 0.08, 8.2e-3 + noise);
        }
        learner
    }

    #[test]
    fn a_wrong_b_is_put_right_from_above_and_from_below() {
        for (given, truth) in [(1200.0, 300.0), (75.0, 300.0), (300.0, 300.0), (300.0, 1500.0)] {
            let mut found: Vec<f64> =
                (1..=41).map(|seed| taught(Learning::Adapted, given, truth, 400, seed).response()).collect();
            found.sort_by(f64::total_cmp);
            let bounded = truth.max(given * BOUNDS.0);
            assert!((found[20] / bounded - 1.0).abs() < 0.25, "{given} to {truth}: {}", found[20]);
        }
    }

    #[test]
    fn the_probing_phase_ends_and_its_b_stays() {
        let early = taught(Learning::Probed, 1200.0, 300.0, 65, 7);
        let late = taught(Learning::Probed, 1200.0, 300.0, 600, 7);
        assert!(late.push_mbps().abs() < f64::EPSILON);
        assert!((early.response() - late.response()).abs() < f64::EPSILON);
        assert!(early.response() < 900.0, "{}", early.response());
    }

    #[test]
    fn a_b_that_changes_is_followed_and_one_that_is_fixed_is_not_pushed_for() {
        let mut learner = taught(Learning::Adapted, 300.0, 300.0, 400, 3);
        let mut state = 11;
        for _ in 0..600 {
            let (expected, noise) = (learner.response() * learner.push_mbps() * VARIANCE, NOISE * chance(&mut state));
            learner.observe(1200.0 * learner.push_mbps() * VARIANCE + noise - expected, VARIANCE, NOISE * NOISE);
            learner.toss(3.0, 0.08, 8.2e-3 + noise);
        }
        assert!(learner.response() > 700.0, "{}", learner.response());
        let fixed = taught(Learning::Fixed, 300.0, 1500.0, 100, 3);
        assert_eq!((fixed.response(), fixed.push_mbps()), (300.0, 0.0));
    }

    #[test]
    fn the_coin_is_fair() {
        let mut learner = Learner::new(Learning::Adapted, 300.0);
        let heads = (0..10_000)
            .filter(|toss| {
                learner.toss(3.0, 0.08, f64::from(*toss).mul_add(1.0 / 16_777_216.0, 8.2e-3));
                learner.push_mbps() > 0.0
            })
            .count();
        assert!((4800..5200).contains(&heads), "{heads}");
    }

    proptest! {
        /// For any reports, b stays within its bounds.
        #[test]
        fn b_stays_within_its_bounds(given in 0.001f64..1e6, reports in proptest::collection::vec((proptest::num::f64::ANY, proptest::num::f64::ANY, proptest::num::f64::ANY), 1..40)) {
            let mut learner = Learner::new(Learning::Adapted, given);
            for (surprise, variance, noise) in reports {
                learner.observe(surprise, variance, noise);
                learner.toss(variance, 0.08, surprise);
                let b = learner.response();
                prop_assert!(b >= given * BOUNDS.0 && b <= given * BOUNDS.1, "{b} of {given}");
            }
        }
    }
}
