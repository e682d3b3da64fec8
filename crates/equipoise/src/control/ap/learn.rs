/// How the coefficient of response b is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// It is given, and stays.
    Fixed,
    /// A short probing phase at the beginning finds it; then it stays.
    Probed,
    /// The same, and pushes as small as the noise go on for the whole session, with old answers being forgotten.
    Adapted,
}

/// What pushes of the rate have told of b, and how far to push next.
///
/// The rate is pushed up or down by the toss of a coin. A push of p Mbit/s at a variance of σ² moves the mean by b·p·σ²
/// (Waki 2013, Eq. 3), so b is the regression of what the report says beyond the expectation on p·σ². The coin makes it
/// sound: a step of the law answers to the noise of the reports, and would be found guilty of the noise's next turn; a
/// coin knows nothing of it. The given b stands in the regression as what was known before, to within a half of itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Learner {
    learning: Learning,
    given: f64,
    /// Sum of p·σ²·answer/s², in the unit of b's inverse.
    answers: f64,
    /// Sum of (p·σ²)²/s², in the unit of b's inverse squared.
    information: f64,
    reports: u32,
    probed: bool,
    /// The push in force, in Mbit/s.
    push_mbps: f64,
}

/// The given b is believed to within this share of itself, one standard deviation.
const GIVEN_WITHIN: f64 = 0.5;
/// The learned b stays between a quarter of the given one and eight times as much: too small a b makes for steps that are
/// too long, too large a one costs little.
const BOUNDS: (f64, f64) = (0.25, 8.0);
/// A push while probing, as a share of the headroom.
const PROBE: f64 = 0.25;
/// The probing phase ends when b is known to within this share of itself,
const KNOWN_WITHIN: f64 = 0.25;
/// but not before so many reports,
const LEAST_REPORTS: u32 = 8;
/// and at the latest after so many.
const MOST_REPORTS: u32 = 64;
/// While adapting, an answer counts for about so many reports.
const MEMORY: f64 = 64.0;

impl Learner {
    pub(in crate::control) const fn new(learning: Learning, given: f64) -> Self {
        let probed = matches!(learning, Learning::Fixed);
        Self { learning, given, answers: 0.0, information: 0.0, reports: 0, probed, push_mbps: 0.0 }
    }

    /// b as it is known now, in 1/(s·Mbit/s).
    pub(in crate::control) fn response(&self) -> f64 {
        let known = self.known_before();
        let learned = (known * self.given + self.answers) / (known + self.information);
        if learned.is_finite() { learned.clamp(self.given * BOUNDS.0, self.given * BOUNDS.1) } else { self.given }
    }

    /// The push in force, in Mbit/s.
    pub(in crate::control) const fn push_mbps(&self) -> f64 {
        self.push_mbps
    }

    /// Takes a report whose mean lay `surprise_s` beyond what was expected with the push and [`Self::response`], at a delay
    /// of variance `variance_s2`; what reports bring beyond expectation varies by `noise_s2`.
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

    /// Tosses for the next push, which `headroom_mbps` and the allowed `unrest` bound. `coin` is any number that the
    /// pushes have no part in.
    pub(in crate::control) fn toss(&mut self, headroom_mbps: f64, unrest: f64, coin: f64) {
        let push = self.length_mbps(headroom_mbps, unrest);
        self.push(if heads(coin) { push } else { -push });
    }

    /// How long the next push may be, in Mbit/s.
    pub(in crate::control) fn length_mbps(&self, headroom_mbps: f64, unrest: f64) -> f64 {
        let share = match (self.probed, self.learning) {
            (false, _) => PROBE,
            (true, Learning::Adapted) => unrest.min(PROBE),
            (true, _) => 0.0,
        };
        if headroom_mbps.is_finite() { share * headroom_mbps } else { 0.0 }
    }

    /// Sets the push, whose sign somebody has tossed for.
    pub(in crate::control) const fn push(&mut self, mbps: f64) {
        self.push_mbps = mbps;
    }

    /// No push while there is nothing to be learned.
    pub(in crate::control) const fn rest(&mut self) {
        self.push_mbps = 0.0;
    }

    /// The information in the given b. Where the answers speak of a larger one, the given is less exact than it looks.
    fn known_before(&self) -> f64 {
        let heard = (self.answers / self.information).min(self.given * BOUNDS.1);
        let deviation = GIVEN_WITHIN * heard.max(self.given);
        1.0 / (deviation * deviation)
    }
}

/// A toss of a coin out of any number.
pub(in crate::control) fn heads(coin: f64) -> bool {
    // Fibonacci hashing: the lowest digits of the number, which are chance, decide.
    coin.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const VARIANCE: f64 = 1.5e-6;
    const NOISE: f64 = 2.5e-4;

    /// Noise of deviation 1, and a number for the coin.
    fn chance(state: &mut u64) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (*state >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum
    }

    /// A learner after so many reports of a path whose b is `truth`, where the law itself answers to the noise.
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
        /// Whatever reports claim, b stays within its bounds.
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
