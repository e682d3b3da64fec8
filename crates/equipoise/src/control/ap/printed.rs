use super::{md1, step_mbps};
use crate::control::{Allowance, Controller, Feedback, IntervalSummary, PathLoad, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The configuration of a [`Printed`] controller.
#[derive(Clone, Debug)]
pub struct PrintedConfig {
    /// The target one-way delay.
    pub target: Span,
    /// Lowest and highest sending rate. The session starts at the lowest rate.
    pub limits: RateLimits,
    /// How the coefficient of response b is obtained.
    pub response: Response,
    /// Size of the IP packets. It is needed to convert rates between packets/s and Mbit/s.
    pub packet: Size,
}

/// How the coefficient of response b is obtained.
#[derive(Clone, Debug)]
pub enum Response {
    /// A constant value of b, in 1/(s·Mbit/s).
    Constant(f64),
    /// b(ρ) of an M/D/1 queue, where ρ is the load of the bottleneck in the last interval (Waki 2013, Eq. 11). Only a
    /// simulator or a link emulator knows this load. Until the load is known, `fallback` applies.
    OfLoad {
        /// Value of the coefficient of response b while the load is unknown, in 1/(s·Mbit/s).
        fallback: f64,
        /// The shared cell in which the simulator or link emulator writes the load.
        load: PathLoad,
    },
}

/// The AP controller as printed in Waki 2013, Sec. 5.1: a step of the rate has no bound except the rate limits.
#[derive(Clone, Debug)]
pub struct Printed {
    config: PrintedConfig,
    rate: Rate,
    snapshot: Snapshot,
}

impl Printed {
    /// Creates a controller that starts at the lowest rate.
    pub const fn new(config: PrintedConfig) -> Self {
        let snapshot = Snapshot { reason: None, law_step_bps: None, response: None };
        Self { rate: config.limits.min(), config, snapshot }
    }

    fn response(&self) -> f64 {
        match &self.config.response {
            Response::Constant(b) => *b,
            Response::OfLoad { fallback, load } => {
                load.get().map_or(*fallback, |rho| md1::response(rho, self.config.packet))
            }
        }
    }

    fn on_interval(&mut self, interval: &IntervalSummary) {
        let Some(delay) = interval.delay.filter(|d| d.mean_s.is_finite() && d.variance_s2.is_finite()) else {
            self.snapshot = Snapshot { reason: Some(Reason::NoStatistics), ..Snapshot::default() };
            return;
        };
        let response = self.response();
        let step = step_mbps(self.config.target.as_secs_f64(), delay.mean_s, delay.variance_s2, response);
        let reason = if let Some(step) = step {
            let (rate, cut) = self.config.limits.clamp((self.rate.as_mbps_f64() + step) * 1e6);
            self.rate = rate;
            RateLimits::reason(Reason::Law, cut)
        } else {
            Reason::NoVariance
        };
        let law_step_bps = step.map(|mbps| mbps * 1e6);
        self.snapshot = Snapshot { reason: Some(reason), law_step_bps, response: Some(response) };
    }
}

impl Printed {
    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.rate = self.config.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Printed {
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
        self.config.limits.min()
    }

    fn is_held_to_proof(&self) -> bool {
        false
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
    use crate::measure::DelaySummary;

    fn controller(rate_mbps: f64) -> Printed {
        let limits = RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(15_000_000)).expect("in order");
        let mut ap = Printed::new(PrintedConfig {
            target: Span::from_micros(8200),
            limits,
            response: Response::Constant(300.0),
            packet: Size::from_bytes(1000),
        });
        ap.rate = Rate::from_bps_f64(rate_mbps * 1e6).expect("not negative");
        ap
    }

    /// Passes the mean delay in ms and its variance in ms² to `ap`. Returns the new rate in Mbit/s and the reason for
    /// it.
    fn after(ap: &mut Printed, mean_ms: f64, variance_ms2: f64) -> (f64, Option<Reason>) {
        let delay = Some(DelaySummary { mean_s: mean_ms / 1e3, variance_s2: variance_ms2 / 1e6, samples: 100 });
        ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, ..IntervalSummary::unmeasured() }));
        (ap.allowance().rate.expect("a rate").as_mbps_f64(), ap.snapshot().reason)
    }

    #[test]
    fn the_step_is_the_papers() {
        let (rate, reason) = after(&mut controller(3.0), 9.07, 3.23);
        assert!((rate - (3.0 - 0.8978)).abs() < 5e-5, "{rate}");
        assert_eq!(reason, Some(Reason::Law));
    }

    /// Shows why the printed law is not the default: it hardly reacts to a queueing delay that rises from 0 to 533 ms
    /// within an interval.
    #[test]
    fn a_ramp_far_above_the_target_hardly_moves_the_rate() {
        let (rate, _) = after(&mut controller(8.0), 270.0, 23_700.0);
        assert!(rate > 7.9, "{rate}");
    }

    #[test]
    fn without_variance_or_statistics_the_rate_is_kept() {
        assert_eq!(after(&mut controller(1.0), 5.0, 0.0), (1.0, Some(Reason::NoVariance)));
        let mut ap = controller(4.0);
        let lossy = IntervalSummary { fraction_lost: Some(0.5), ..IntervalSummary::unmeasured() };
        ap.on_feedback(Instant::ZERO, &Feedback::Interval(lossy));
        assert_eq!((ap.rate.as_mbps_f64(), ap.snapshot.reason), (4.0, Some(Reason::NoStatistics)));
    }

    #[test]
    fn a_known_load_sets_the_response_and_an_unknown_one_leaves_the_fallback() {
        let mut ap = controller(3.0);
        let load = PathLoad::default();
        ap.config.response = Response::OfLoad { fallback: 300.0, load: load.clone() };
        let delay = Some(DelaySummary { mean_s: 9e-3, variance_s2: 3e-6, samples: 9 });
        for (path_load, expected) in [(None, 300.0), (Some(0.75), 307.692)] {
            if let Some(path_load) = path_load {
                load.set(path_load);
            }
            let interval = IntervalSummary { delay, ..IntervalSummary::unmeasured() };
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(interval));
            let response = ap.snapshot().response.expect("a response");
            assert!((response - expected).abs() < 1e-3, "{response}");
        }
    }

    #[test]
    fn missing_reports_halve_down_to_the_lowest_rate() {
        let mut ap = controller(0.3);
        ap.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
        assert_eq!(ap.allowance().rate, Some(Rate::from_bps(150_000)));
        ap.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
        assert_eq!((ap.rate, ap.snapshot().reason), (ap.config.limits.min(), Some(Reason::ReportsMissing)));
    }

    proptest! {
        /// For any statistics, even `NaN` or infinite, the rate stays within its limits.
        #[test]
        fn any_feedback_keeps_the_rate_within_limits(mean in proptest::num::f64::ANY, variance in proptest::num::f64::ANY, load in proptest::option::of(proptest::num::f64::ANY)) {
            let mut ap = controller(3.0);
            let cell = PathLoad::default();
            if let Some(load) = load {
                cell.set(load);
            }
            ap.config.response = Response::OfLoad { fallback: 300.0, load: cell };
            let delay = Some(DelaySummary { mean_s: mean, variance_s2: variance, samples: 3 });
            ap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary { delay, ..IntervalSummary::unmeasured() }));
            prop_assert!(ap.rate >= ap.config.limits.min() && ap.rate <= ap.config.limits.max());
        }
    }
}
