use super::trendline::{Estimate, TRUSTED};
use crate::units::Span;

/// The filter of the draft: a scalar Kalman filter whose state is the trend of the delay.
///
/// ```text
/// z   = d - m                                  innovation, cut to 3 sqrt(v); d: delay difference of two groups, ms
/// v   = max(1, α v + (1 - α) z²)               variance of the measurement, ms²
/// k   = (e + q) / (v + e + q)                  gain; q: variance that each group adds, ms²
/// m   = m + k z                                trend of the delay, ms a group
/// e   = (1 - k) (e + q)                        variance of the estimate, ms²
/// α   = (1 - χ)^(30 / (1000 f))                weight of the old v; f: highest rate among 60 groups, 1/ms
/// ```
///
/// Source: draft-ietf-rmcat-gcc-02, Sec. 5.3.
///
/// What the draft leaves open is our choice. f is the maximum over the last 60 groups; groups that arrived at the same
/// time do not affect f. χ is 0.001, the lower end of the draft's range, as in pion. As in pion and in libwebrtc at the
/// time of the draft, the threshold is compared with `m` times the number of groups, at most 60. Without this factor,
/// overloads of a few percent are never detected.
#[derive(Clone, Debug)]
pub(super) struct Kalman {
    trend_ms: f64,
    error_ms2: f64,
    noise_ms2: f64,
    /// Gaps between the arrivals of successive groups in ms, the newest last; zero for gaps that do not exist yet.
    gaps_ms: [f64; TRUSTED],
    count: usize,
}

/// q, the variance that each group adds to the variance of the estimate, in ms². With a larger value, the estimate
/// follows changes of the delay faster (draft-ietf-rmcat-gcc-02, Sec. 5.3).
const STATE_NOISE: f64 = 1e-3;
/// e(0), the initial variance of the estimate, in ms² (draft-ietf-rmcat-gcc-02, Sec. 5.3).
const FIRST_ERROR: f64 = 0.1;
/// Lower limit and initial value of v, the variance of the measurement, in ms² (draft-ietf-rmcat-gcc-02, Sec. 5.3).
const LEAST_NOISE: f64 = 1.0;
/// χ, the gain of the variance v; the draft allows 0.001 to 0.1. With a larger value, v follows the innovations sooner
/// (draft-ietf-rmcat-gcc-02, Sec. 5.3).
const CHI: f64 = 0.001;
/// Number of standard deviations at which an innovation is clamped (draft-ietf-rmcat-gcc-02, Sec. 5.3).
const OUTLIER: f64 = 3.0;

impl Default for Kalman {
    fn default() -> Self {
        let gaps_ms = [0.0; TRUSTED];
        Self { trend_ms: 0.0, error_ms2: FIRST_ERROR, noise_ms2: LEAST_NOISE, gaps_ms, count: 0 }
    }
}

impl Kalman {
    /// Processes a group of packets. The delay of the group exceeds the delay of the previous group by `delay_ms`. The
    /// group arrived `gap` after the previous group.
    pub(super) fn push(&mut self, delay_ms: f64, gap: Span) -> Estimate {
        self.count = (self.count + 1).min(TRUSTED);
        self.gaps_ms.rotate_left(1);
        if let Some(last) = self.gaps_ms.last_mut() {
            *last = gap.as_millis_f64();
        }
        let innovation = delay_ms - self.trend_ms;
        let most = OUTLIER * libm::sqrt(self.noise_ms2);
        let cut = innovation.clamp(-most, most);
        let alpha = self.forgetting();
        self.noise_ms2 = (alpha * self.noise_ms2 + (1.0 - alpha) * cut * cut).max(LEAST_NOISE);
        let error_ms2 = self.error_ms2 + STATE_NOISE;
        let gain = error_ms2 / (self.noise_ms2 + error_ms2);
        self.error_ms2 = (1.0 - gain) * error_ms2;
        self.trend_ms += gain * cut;
        Estimate { compared_ms: self.count as f64 * self.trend_ms, trend: self.trend_ms }
    }

    /// Returns α, the weight of the old variance in the new variance. If groups arrive more often, α is closer to 1, so
    /// that the variance is averaged over more groups.
    fn forgetting(&self) -> f64 {
        let shortest_ms = self.gaps_ms.iter().copied().filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min);
        if shortest_ms.is_finite() { libm::pow(1.0 - CHI, 30.0 * shortest_ms / 1000.0) } else { 1.0 - CHI }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(delay_ms: f64, count: usize) -> (Kalman, Estimate) {
        let mut kalman = Kalman::default();
        let mut last = Estimate { compared_ms: 0.0, trend: 0.0 };
        (0..count).for_each(|_| last = kalman.push(delay_ms, Span::from_millis(20)));
        (kalman, last)
    }

    /// The expected values are computed by hand, with the symbols of [`Kalman`]: z = 2 ms and α = 0.999^0.6, so
    /// v = α + 4 (1 - α) = 1 + 3 (1 - α), k = 0.101/(v + 0.101), m = 2 k, and e = 0.101 (1 - k).
    #[test]
    fn the_first_step_is_that_of_the_draft() {
        let (kalman, found) = run(2.0, 1);
        let noise = 1.0 + (1.0 - 0.999f64.powf(0.6)) * 3.0;
        let gain = 0.101 / (noise + 0.101);
        assert!((found.trend - 2.0 * gain).abs() < 1e-12, "{found:?}");
        assert!((kalman.error_ms2 - (1.0 - gain) * 0.101).abs() < 1e-12);
        assert!((gain - 0.0916).abs() < 2e-4);
    }

    /// In the steady state, with the symbols of [`Kalman`], e solves e² + q e - q v = 0, and the gain is k = e/v. For
    /// v = 1, the gain is 0.0311.
    #[test]
    fn the_gain_tends_to_that_of_the_steady_state() {
        let (kalman, _) = run(0.0, 2000);
        let steady = f64::midpoint(-1e-3, (1e-6f64 + 4e-3).sqrt());
        assert!((kalman.error_ms2 - steady).abs() < 1e-9, "{} for {steady}", kalman.error_ms2);
    }

    #[test]
    fn a_constant_trend_is_found_and_counts_sixty_times() {
        let (_, found) = run(1.0, 500);
        assert!((found.trend - 1.0).abs() < 1e-3 && (found.compared_ms - 60.0 * found.trend).abs() < 1e-9);
    }

    /// Innovations are clamped at three standard deviations, which are 3 ms here. Therefore innovations of 1000 ms and
    /// of 3 ms change the estimate equally.
    #[test]
    fn an_outlier_is_cut() {
        let (calm, _) = run(0.0, 100);
        let after = |delay_ms: f64| calm.clone().push(delay_ms, Span::from_millis(20)).trend;
        assert!((after(1000.0) - after(3.0)).abs() < 1e-12);
        assert!((after(-1000.0) + after(3.0)).abs() < 1e-12);
    }

    #[test]
    fn groups_without_a_gap_give_a_finite_estimate() {
        let mut kalman = Kalman::default();
        let found = kalman.push(-20.0, Span::ZERO);
        assert!(found.trend.is_finite() && found.trend < 0.0);
    }
}
