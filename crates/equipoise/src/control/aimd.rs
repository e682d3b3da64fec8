use super::{Allowance, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Span};

/// AIMD: additive increase and multiplicative decrease of the rate, by the mean one-way delay.
///
/// Source: Waki 2013, Eq. 17: the rate `a` becomes `a + A` if the mean delay is below the target, and `B a` otherwise.
/// `A` is the increase in each interval, and `B` is a factor between 0 and 1.
///
/// What the source leaves open is our choice. The rate starts at [`RateLimits::start`]. If an interval has too few
/// samples, the rate does not change. If an interval is [`IntervalSummary::app_limited`], the rate is not raised. If
/// reports are missing, the rate is halved, as with AP.
#[derive(Clone, Debug)]
pub struct Aimd {
    target: Span,
    limits: RateLimits,
    increase: Rate,
    decrease: f64,
    printed: bool,
    rate: Rate,
    snapshot: Snapshot,
}

impl Aimd {
    /// Creates a controller that keeps the delay near `target`. In each interval, the controller adds `increase` to the
    /// rate if the mean delay is below `target`. Otherwise, it multiplies the rate by `decrease` (between 0 and 1).
    pub const fn new(target: Span, limits: RateLimits, increase: Rate, decrease: f64) -> Self {
        let snapshot = Snapshot { reason: None, law_step_bps: None, response: None };
        Self { target, limits, increase, decrease, printed: false, rate: limits.start(), snapshot }
    }

    /// Returns the law as printed in Waki 2013. Only two of the session's safety limits apply to the returned law: the
    /// circuit breakers, and the halving of the rate after missing reports ([`Controller::is_held_to_proof`]).
    #[must_use]
    pub const fn as_printed(self) -> Self {
        Self { printed: true, ..self }
    }

    fn decide(&mut self, rate: Rate, reason: Reason, law_step_bps: Option<f64>) {
        self.rate = rate;
        self.snapshot = Snapshot { reason: Some(reason), law_step_bps, response: None };
    }
}

impl Aimd {
    fn on_interval(&mut self, interval: &IntervalSummary) {
        let Some(mean_s) = interval.delay.map(|delay| delay.mean_s).filter(|mean| mean.is_finite()) else {
            return self.decide(self.rate, Reason::NoStatistics, None);
        };
        let bps = self.rate.as_bps_f64();
        // Waki 2013, Eq. 17.
        let next =
            if mean_s < self.target.as_secs_f64() { bps + self.increase.as_bps_f64() } else { self.decrease * bps };
        if next > bps && interval.app_limited {
            return self.decide(self.rate, Reason::AppLimited, Some(next - bps));
        }
        let (rate, cut) = self.limits.clamp(next);
        self.decide(rate, RateLimits::reason(Reason::Law, cut), Some(next - bps));
    }

    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.decide(self.limits.halve(self.rate), Reason::ReportsMissing, None);
    }
}

impl Controller for Aimd {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Interval(interval) => self.on_interval(interval),
            Feedback::Silent { .. } => self.on_silence(),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn is_held_to_proof(&self) -> bool {
        !self.printed
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn target_delay(&self) -> Option<Span> {
        Some(self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::DelaySummary;

    fn after(controller: &mut Aimd, mean_s: f64) -> f64 {
        let delay = Some(DelaySummary { mean_s, variance_s2: 1e-6, samples: 100 });
        controller.on_feedback(
            Instant::ZERO,
            &Feedback::Interval(IntervalSummary { delay, ..IntervalSummary::unmeasured() }),
        );
        controller.allowance().rate.expect("a rate").as_mbps_f64()
    }

    #[test]
    fn it_adds_below_the_target_and_halves_at_it_within_the_limits() {
        let limits = RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(1_000_000)).expect("in order");
        let mut aimd = Aimd::new(Span::from_micros(8200), limits, Rate::from_bps(400_000), 0.5);
        let rates = [8e-3, 8e-3, 8e-3, 8.2e-3, 9e-3, 9e-3, 9e-3].map(|mean| after(&mut aimd, mean));
        for (found, expected) in rates.iter().zip([0.5, 0.9, 1.0, 0.5, 0.25, 0.125, 0.1]) {
            assert!((found - expected).abs() < 1e-9, "{rates:?}");
        }
        assert_eq!(aimd.snapshot().reason, Some(Reason::RateLimit));
    }

    #[test]
    fn no_statistics_keep_the_rate_and_missing_reports_halve_it() {
        let limits = RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(1_000_000)).expect("in order");
        let mut aimd = Aimd::new(Span::from_micros(8200), limits, Rate::from_bps(400_000), 0.5);
        after(&mut aimd, 8e-3);
        after(&mut aimd, f64::NAN);
        assert_eq!(aimd.allowance().rate, Some(Rate::from_bps(500_000)));
        aimd.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
        assert_eq!(aimd.allowance().rate, Some(Rate::from_bps(250_000)));
    }
}
