use super::{md1, step_mbps};
use crate::control::{Allowance, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot};
use crate::measure::DelaySummary;
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// What an AP controller is made of.
#[derive(Clone, Copy, Debug)]
pub struct ApConfig {
    /// One-way delay to hold.
    pub target: Span,
    /// Lowest rate, at which the session starts, and highest.
    pub limits: RateLimits,
    /// Where b comes from.
    pub response: Response,
    /// What bounds the law's step.
    pub guards: Guards,
    /// Size of an IP packet, which b's unit depends on.
    pub packet: Size,
}

/// Where the coefficient of response b comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// A constant, in 1/(s·Mbit/s).
    Constant(f64),
    /// b(ρ) of an M/D/1 queue at the load of the last interval (Waki 2013, Eq. 11), which some world has to know; the
    /// constant, in 1/(s·Mbit/s), holds until it says so.
    OfLoad {
        /// b while the load is unknown.
        fallback: f64,
    },
}

/// What bounds the law's step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guards {
    /// Nothing but the limits of the rate: the law as printed.
    Off,
    /// The three guards of the module's documentation.
    On {
        /// Largest step up as a share of the headroom, above 0 up to 1. Larger is quicker and overshoots more.
        headroom_share: f64,
    },
}

/// The AP controller of Waki 2013, Sec. 5.1.
#[derive(Clone, Debug)]
pub struct Ap {
    config: ApConfig,
    rate: Rate,
    snapshot: Snapshot,
}

/// A mean delay above so many targets is far above (ours): there the queue is a ramp and the law's step vanishes.
const FAR_ABOVE: f64 = 2.0;

impl Ap {
    /// A controller at its lowest rate.
    pub const fn new(config: ApConfig) -> Self {
        let snapshot = Snapshot { reason: None, law_step_bps: None, response: None };
        Self { rate: config.limits.min(), config, snapshot }
    }

    fn response(&self, path_load: Option<f64>) -> f64 {
        match (self.config.response, path_load) {
            (Response::Constant(b), _) | (Response::OfLoad { fallback: b }, None) => b,
            (Response::OfLoad { .. }, Some(rho)) => md1::response(rho, self.config.packet),
        }
    }

    /// The next rate in Mbit/s before the limits, and why; `None` to keep the present one.
    fn next_mbps(&self, delay: &DelaySummary, response: f64, step: Option<f64>) -> (Option<f64>, Reason) {
        let now = self.rate.as_mbps_f64();
        match self.config.guards {
            Guards::Off => (step.map(|step| now + step), if step.is_some() { Reason::Law } else { Reason::NoVariance }),
            Guards::On { headroom_share } => {
                let (next, reason) = self.guarded_mbps(delay, response, step, headroom_share);
                (Some(next), reason)
            }
        }
    }

    fn guarded_mbps(&self, delay: &DelaySummary, response: f64, step: Option<f64>, share: f64) -> (f64, Reason) {
        let now = self.rate.as_mbps_f64();
        let target_s = self.config.target.as_secs_f64();
        if delay.mean_s > FAR_ABOVE * target_s {
            return (now / 2.0, Reason::FarAboveTarget);
        }
        let Some(step) = step else {
            let next = if delay.mean_s < target_s { now * 2.0 } else { now / 2.0 };
            return (next, Reason::NoVariance);
        };
        let headroom = share * md1::headroom_mbps(response, delay.variance_s2, self.config.packet);
        let (step, reason) = if step > headroom { (headroom, Reason::HeadroomGuard) } else { (step, Reason::Law) };
        let next = now + step;
        let (least, most) = (now / 2.0, now * 2.0);
        let reason = if (least..=most).contains(&next) { reason } else { Reason::StepGuard };
        (next.clamp(least, most), reason)
    }

    /// Without statistics the guards still know an overload: packets are lost, or the report itself was under way for
    /// longer than a path far above the target takes there and back. Then the delay has outgrown the interval, whose
    /// packets all left before the cut of Waki 2013, Eq. 14, and the law would never hear of it.
    fn on_no_statistics(&mut self, interval: &IntervalSummary) {
        let far = self.config.target.as_secs_f64() * FAR_ABOVE * 2.0;
        let is_far = interval.round_trip.is_some_and(|round_trip| round_trip.as_secs_f64() > far);
        let overloaded = interval.fraction_lost > 0.0 || is_far;
        let reason = match self.config.guards {
            Guards::On { .. } if overloaded => {
                self.rate = self.config.limits.halve(self.rate);
                Reason::FarAboveTarget
            }
            _ => Reason::NoStatistics,
        };
        self.snapshot = Snapshot { reason: Some(reason), ..Snapshot::default() };
    }

    fn on_interval(&mut self, interval: &IntervalSummary) {
        let Some(delay) = interval.delay.filter(|d| d.mean_s.is_finite() && d.variance_s2.is_finite()) else {
            return self.on_no_statistics(interval);
        };
        let response = self.response(interval.path_load);
        let step = step_mbps(self.config.target.as_secs_f64(), delay.mean_s, delay.variance_s2, response);
        let (next, reason) = self.next_mbps(&delay, response, step);
        let (rate, cut) = next.map_or((self.rate, false), |mbps| self.config.limits.clamp(mbps * 1e6));
        self.rate = rate;
        self.snapshot = Snapshot {
            reason: Some(RateLimits::reason(reason, cut)),
            law_step_bps: step.map(|mbps| mbps * 1e6),
            response: Some(response),
        };
    }
}

impl Controller for Ap {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, Feedback::Interval(interval): &Feedback) {
        self.on_interval(interval);
    }

    fn allowance(&self) -> Allowance {
        Allowance { rate: self.rate }
    }

    fn on_timeout(&mut self, _now: Instant<SenderClock>) {
        self.rate = self.config.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn target_delay(&self) -> Option<Span> {
        Some(self.config.target)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> RateLimits {
        RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(15_000_000)).expect("in order")
    }

    fn controller(guards: Guards, rate_mbps: f64) -> Ap {
        let mut ap = Ap::new(ApConfig {
            target: Span::from_micros(8200),
            limits: limits(),
            response: Response::Constant(300.0),
            guards,
            packet: Size::from_bytes(1000),
        });
        ap.rate = Rate::from_bps_f64(rate_mbps * 1e6).expect("not negative");
        ap
    }

    const GUARDED: Guards = Guards::On { headroom_share: 0.125 };

    /// Rate in Mbit/s and reason after an interval of this mean in ms and variance in ms².
    fn after(ap: &mut Ap, mean_ms: f64, variance_ms2: f64) -> (f64, Option<Reason>) {
        let delay = Some(DelaySummary { mean_s: mean_ms / 1e3, variance_s2: variance_ms2 / 1e6, samples: 100 });
        ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, ..Default::default() }));
        (ap.allowance().rate.as_mbps_f64(), ap.snapshot().reason)
    }

    #[test]
    fn near_the_target_both_take_the_printed_step() {
        for guards in [Guards::Off, GUARDED] {
            let (rate, reason) = after(&mut controller(guards, 3.0), 9.07, 3.23);
            assert!((rate - (3.0 - 0.8978)).abs() < 5e-5, "{guards:?}: {rate}");
            assert_eq!(reason, Some(Reason::Law));
        }
    }

    #[test]
    fn a_step_up_is_cut_to_a_share_of_the_headroom() {
        // Load 0.8 of 15 Mbit/s leaves 3 Mbit/s; an eighth of it is 0.375, where the law asks for much more.
        let b = md1::response(0.8, Size::from_bytes(1000));
        let mut ap = controller(GUARDED, 3.0);
        ap.config.response = Response::Constant(b);
        let (rate, reason) = after(&mut ap, 6.6, 1.517_037);
        assert!((rate - 3.375).abs() < 1e-3, "{rate}");
        assert_eq!(reason, Some(Reason::HeadroomGuard));
    }

    #[test]
    fn a_ramp_far_above_the_target_halves_where_the_printed_law_hardly_moves() {
        // A queue that fills from empty to 533 ms within the interval.
        let (mean, variance) = (270.0, 23_700.0);
        assert_eq!(after(&mut controller(GUARDED, 8.0), mean, variance), (4.0, Some(Reason::FarAboveTarget)));
        let (printed, _) = after(&mut controller(Guards::Off, 8.0), mean, variance);
        assert!(printed > 7.9, "{printed}");
    }

    #[test]
    fn without_variance_the_guarded_rate_doubles_or_halves_and_the_printed_is_kept() {
        assert_eq!(after(&mut controller(GUARDED, 1.0), 5.0, 0.0), (2.0, Some(Reason::NoVariance)));
        assert_eq!(after(&mut controller(GUARDED, 1.0), 9.0, 0.0), (0.5, Some(Reason::NoVariance)));
        assert_eq!(after(&mut controller(Guards::Off, 1.0), 5.0, 0.0), (1.0, Some(Reason::NoVariance)));
    }

    #[test]
    fn without_statistics_only_signs_of_overload_halve_and_only_under_guards() {
        let quiet = IntervalSummary { round_trip: Some(Span::from_millis(20)), ..Default::default() };
        let lossy = IntervalSummary { fraction_lost: 0.5, ..Default::default() };
        let slow = IntervalSummary { round_trip: Some(Span::from_millis(600)), ..Default::default() };
        for (guards, interval, expected) in [
            (GUARDED, quiet, (4.0, Reason::NoStatistics)),
            (GUARDED, lossy, (2.0, Reason::FarAboveTarget)),
            (GUARDED, slow, (2.0, Reason::FarAboveTarget)),
            (Guards::Off, lossy, (4.0, Reason::NoStatistics)),
        ] {
            let mut ap = controller(guards, 4.0);
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(interval));
            assert_eq!((ap.rate.as_mbps_f64(), ap.snapshot().reason), (expected.0, Some(expected.1)));
        }
    }

    #[test]
    fn a_known_load_sets_the_response_and_an_unknown_one_leaves_the_fallback() {
        let mut ap = controller(Guards::Off, 3.0);
        ap.config.response = Response::OfLoad { fallback: 300.0 };
        let delay = Some(DelaySummary { mean_s: 9e-3, variance_s2: 3e-6, samples: 9 });
        for (path_load, expected) in [(None, 300.0), (Some(0.75), 307.692)] {
            let interval = IntervalSummary { delay, path_load, ..Default::default() };
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(interval));
            let response = ap.snapshot().response.expect("a response");
            assert!((response - expected).abs() < 1e-3, "{response}");
        }
    }

    #[test]
    fn missing_reports_halve_down_to_the_lowest_rate() {
        let mut ap = controller(GUARDED, 0.3);
        ap.on_timeout(Instant::ZERO);
        assert_eq!(ap.allowance().rate, Rate::from_bps(150_000));
        ap.on_timeout(Instant::ZERO);
        assert_eq!((ap.allowance().rate, ap.snapshot().reason), (limits().min(), Some(Reason::ReportsMissing)));
    }

    proptest! {
        /// No statistics whatever, not even hostile ones, bring the rate out of its limits or make it jump.
        #[test]
        fn any_feedback_keeps_the_rate_within_limits_and_factor_two(
            rate in 0.1f64..15.0, mean in proptest::num::f64::ANY, variance in proptest::num::f64::ANY, load in proptest::option::of(proptest::num::f64::ANY),
        ) {
            let mut ap = controller(GUARDED, rate);
            ap.config.response = Response::OfLoad { fallback: 300.0 };
            let before = ap.rate.as_mbps_f64();
            let delay = Some(DelaySummary { mean_s: mean, variance_s2: variance, samples: 3 });
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, path_load: load, ..Default::default() }));
            let now = ap.rate.as_mbps_f64();
            prop_assert!(ap.rate >= limits().min() && ap.rate <= limits().max());
            prop_assert!(now <= before * 2.0 + 1e-5 && now >= before / 2.0 - 1e-5 || ap.rate == limits().min());
        }

        /// The rate moves towards the target's side, never away from it.
        #[test]
        fn the_rate_moves_to_the_targets_side(rate in 0.2f64..14.0, mean in 5.0f64..50.0, variance in 0.0f64..1e4) {
            for guards in [GUARDED, Guards::Off] {
                let (now, _) = after(&mut controller(guards, rate), mean, variance);
                prop_assert!((now - rate) * (8.2 - mean) >= -1e-5, "{rate} to {now} at {mean} ms");
            }
        }

        /// At the target there is nothing to do.
        #[test]
        fn the_target_is_a_fixed_point(rate in 0.1f64..15.0, variance in 1e-6f64..1e3) {
            for guards in [GUARDED, Guards::Off] {
                let mut ap = controller(guards, rate);
                let before = ap.rate;
                after(&mut ap, 8.2, variance);
                prop_assert!((ap.rate.as_bps_f64() - before.as_bps_f64()).abs() <= 1.0);
            }
        }
    }
}
