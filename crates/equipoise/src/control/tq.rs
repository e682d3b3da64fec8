use super::{Allowance, Controller, Feedback, IntervalSummary, Needs, RateLimits, Reason, Snapshot};
use crate::measure::{Traffic, TrafficAccumulation};
use crate::units::{Instant, Rate, SenderClock, Size};

/// The rate change by which a source brings the playout buffer to its desired occupancy.
///
/// Source: Subramanya 2003, Eq. 2 and 4: `e = x - x_d`, `u = (x_d - f + k_v e) / T`. With this law, by Eq. 1 and 5, the
/// error is `e(k+1) = Sat(k_v e(k) + d(k))`. Here `d(k)` is the disturbance in interval k, and Sat keeps the occupancy
/// between an empty and a full buffer. Without further disturbances, each interval multiplies the error by `k_v`. If no
/// disturbance exceeds a value D, the error does not remain above `D / (1 - k_v)`.
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `x_d` | `desired` | packets |
/// | `k_v` | `gain` | 1, between 0 and 1 |
/// | T | [`Traffic::interval_s`] | s |
/// | x | [`Traffic::occupancy`] | packets |
/// | f | `accumulation`, the packets in the network and the buffer, estimated by [`TrafficAccumulation`] | packets |
/// | u | the result | packets/s |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TqLaw {
    /// Desired number of packets in the playout buffer.
    pub desired: f64,
    /// An interval without disturbances multiplies the error of the buffer's occupancy by this factor.
    pub gain: f64,
}

impl TqLaw {
    /// Returns the rate change u in packets/s, after an interval with the measurements `traffic`. `accumulation` is f,
    /// the number of packets in the network and the playout buffer.
    ///
    /// Returns NaN or ±∞ for an interval of zero or for non-finite input. The caller must check the result.
    pub fn change(&self, traffic: &Traffic, accumulation: f64) -> f64 {
        // Subramanya 2003, Eq. 2.
        let error = traffic.occupancy - self.desired;
        // Subramanya 2003, Eq. 4.
        (self.desired - accumulation + self.gain * error) / traffic.interval_s
    }
}

/// The configuration of a [`Tq`].
#[derive(Clone, Copy, Debug)]
pub struct TqConfig {
    /// The control law.
    pub law: TqLaw,
    /// How the traffic accumulation f is estimated.
    pub accumulation: TrafficAccumulation,
    /// Lowest and highest rate. The highest rate is the peak packet rate of Subramanya 2003.
    pub limits: RateLimits,
    /// Size of the IP packets.
    pub packet: Size,
}

/// Explicit rate control (TQ), based on the packets that enter the network, leave it, and wait in the playout buffer.
///
/// Source: Subramanya 2003, Sec. 3.
///
/// What the paper leaves open is our choice:
/// - The new rate is `I_n + u`. Here `I_n` is the rate at which packets entered in the interval, even if the source
///   sent less than allowed, and u is the rate change of [`TqLaw`].
/// - A positive change never lowers the rate, and does not raise it if the application did not use the current rate.
/// - Several sources may share one buffer. The report of a session counts only the packets of this session. The law is
///   linear, so the sources together behave like a single source with the sum of their desired occupancies. A
///   first-come, first-served buffer serves each source in proportion to the source's packets in the buffer, so the
///   rates of the sources become proportional to the desired occupancies.
/// - The controller starts at the highest rate, like the paper's sources.
/// - A report without a playout buffer, or with an interval of zero length, keeps the rate. Three missing reports halve
///   the rate, as with the other controllers.
#[derive(Clone, Debug)]
pub struct Tq {
    law: TqLaw,
    accumulation: TrafficAccumulation,
    limits: RateLimits,
    packet: Size,
    rate: Rate,
    snapshot: Snapshot,
}

impl Tq {
    /// Creates a controller at its highest rate.
    pub const fn new(config: TqConfig) -> Self {
        let TqConfig { law, accumulation, limits, packet } = config;
        let snapshot = Snapshot { reason: None, law_step_bps: None, response: None };
        Self { law, accumulation, limits, packet, rate: limits.max(), snapshot }
    }

    /// Returns the measurements of an interval in the paper's units; `None` without a playout buffer, or if the length
    /// of the interval or the packet size is zero.
    fn traffic(&self, interval: &IntervalSummary) -> Option<Traffic> {
        let playout = interval.playout?;
        let interval_s = playout.interval.as_secs_f64();
        let packets = |rate: Rate| rate.as_bps_f64() / self.packet.as_bits() as f64;
        (interval_s > 0.0 && self.packet > Size::ZERO).then(|| Traffic {
            interval_s,
            ingress: packets(playout.ingress),
            arrival: packets(playout.arrival),
            service: packets(playout.service),
            occupancy: playout.occupancy as f64,
            delay_s: interval.delay.map(|delay| delay.mean_s),
        })
    }

    fn decide(&mut self, rate: Rate, reason: Reason, law_step_bps: Option<f64>) {
        self.rate = rate;
        self.snapshot = Snapshot { reason: Some(reason), law_step_bps, response: None };
    }
}

impl Tq {
    fn on_interval(&mut self, interval: &IntervalSummary) {
        let Some(traffic) = self.traffic(interval) else {
            return self.decide(self.rate, Reason::NoStatistics, None);
        };
        let change = self.law.change(&traffic, self.accumulation.after(&traffic));
        let step_bps = change * self.packet.as_bits() as f64;
        let asked = (traffic.ingress + change) * self.packet.as_bits() as f64;
        if step_bps >= 0.0 && (interval.app_limited || asked < self.rate.as_bps_f64()) {
            return self.decide(self.rate, Reason::AppLimited, Some(step_bps));
        }
        let (rate, cut) = self.limits.clamp(asked);
        self.decide(rate, RateLimits::reason(Reason::Law, cut), Some(step_bps));
    }

    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.decide(self.limits.halve(self.rate), Reason::ReportsMissing, None);
    }
}

impl Controller for Tq {
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

    fn needs(&self) -> Needs {
        Needs::INTERVALS.and(Needs::PLAYOUT)
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    /// Returns `false`, because the controller starts at its highest rate, before any packet has provably arrived. The
    /// reports on the receiver's playout buffer limit the rate. A session without such reports rejects this controller.
    fn is_held_to_proof(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::measure::PlayoutSummary;
    use crate::units::Span;

    /// The expected values are computed by hand: a queue of q = 5 packets, an accumulation of f = 24 packets, and a
    /// rate change of u = -138 packets/s.
    #[test]
    fn the_law_by_hand() {
        let traffic = Traffic {
            interval_s: 0.1,
            ingress: 250.0,
            arrival: 200.0,
            service: 180.0,
            occupancy: 12.0,
            ..Traffic::default()
        };
        let f = TrafficAccumulation::printed().after(&traffic);
        assert!((f - 24.0).abs() < 1e-12, "{f}");
        let u = TqLaw { desired: 10.0, gain: 0.1 }.change(&traffic, f);
        assert!((u + 138.0).abs() < 1e-9, "{u}");
    }

    const PACKET: Size = Size::from_bytes(1000);

    fn tq(desired: f64) -> Tq {
        let limits = RateLimits::new(Rate::from_bps(80_000), Rate::from_bps(2_000_000)).expect("in order");
        Tq::new(TqConfig {
            law: TqLaw { desired, gain: 0.5 },
            accumulation: TrafficAccumulation::printed(),
            limits,
            packet: PACKET,
        })
    }

    /// Returns the rate of `packets` packets/s, each of 1000 bytes.
    fn rate(packets: f64) -> Rate {
        Rate::from_bps_f64(packets * 8000.0).expect("not negative")
    }

    fn tell(tq: &mut Tq, playout: Option<PlayoutSummary>, app_limited: bool) -> f64 {
        let summary = IntervalSummary { app_limited, playout, ..IntervalSummary::unmeasured() };
        tq.on_feedback(Instant::ZERO, &Feedback::Interval(summary));
        tq.allowance().rate.expect("a rate").as_bps_f64() / 8000.0
    }

    fn seen(ingress: f64, service: f64, occupancy: u64) -> PlayoutSummary {
        let (ingress, service) = (rate(ingress), rate(service));
        PlayoutSummary { interval: Span::from_millis(100), ingress, arrival: ingress, service, occupancy }
    }

    /// The buffer serves 62.5 packets/s and contains 10 packets instead of the desired 5 packets. With the gain 0.5 and
    /// an interval of 0.1 s, the rate must be `62.5 + 0.5 · (5 − 10) / 0.1` = 37.5 packets/s. In the next interval the
    /// buffer contains 5 packets, so the rate must be 62.5 packets/s.
    #[test]
    fn an_overfull_buffer_is_served_at_its_rate_less_what_waits() {
        let mut tq = tq(5.0);
        assert!(
            (tq.allowance().rate.expect("a rate").as_bps_f64() / 8000.0 - 250.0).abs() < 1e-9,
            "it begins at the peak"
        );
        assert!((tell(&mut tq, Some(seen(250.0, 62.5, 10)), false) - 37.5).abs() < 1e-3);
        assert!((tell(&mut tq, Some(seen(37.5, 62.5, 5)), false) - 62.5).abs() < 1e-3);
        assert!((tell(&mut tq, Some(seen(62.5, 62.5, 200)), false) - 10.0).abs() < 1e-3, "the lowest");
        assert_eq!(tq.snapshot().reason, Some(Reason::RateLimit));
    }

    #[test]
    fn without_a_buffer_the_rate_stays_and_an_idle_application_does_not_move_it() {
        let mut tq = tq(5.0);
        tell(&mut tq, Some(seen(250.0, 62.5, 10)), false);
        for (playout, limited) in
            [(None, false), (Some(PlayoutSummary::default()), false), (Some(seen(1.0, 1.0, 0)), true)]
        {
            assert!((tell(&mut tq, playout, limited) - 37.5).abs() < 1e-3);
        }
        tq.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
        assert!((tq.allowance().rate.expect("a rate").as_bps_f64() / 8000.0 - 18.75).abs() < 1e-3);
    }

    proptest! {
        /// Subramanya 2003, Eq. 1 and 5, with the symbols of [`TqLaw`]: for |k_v| < 1, disturbances of at most d and
        /// any first occupancy, the error after k intervals is at most `|k_v|^k |e(0)| + d / (1 - |k_v|)`. The
        /// simulated occupancy follows Eq. 1 and is limited to the buffer's size. The accumulation f in Eq. 1 is that
        /// of `TrafficAccumulation::printed`.
        #[test]
        fn the_error_is_bounded_under_bounded_disturbance(
            gain in -0.99f64..0.99,
            (size, share, first) in (1.0f64..200.0, 0.0f64..1.0, 0.0f64..1.0),
            largest in 0.0f64..50.0,
            rates in proptest::collection::vec((0.0f64..2000.0, 0.0f64..2000.0, -1.0f64..1.0), 1..60),
        ) {
            let law = TqLaw { desired: share * size, gain };
            let mut x = first * size;
            let mut bound = (x - law.desired).abs();
            for (ingress, service, noise) in rates {
                let traffic =
                    Traffic { interval_s: 0.1, ingress, arrival: ingress, service, occupancy: x , delay_s: None };
                let f = TrafficAccumulation::printed().after(&traffic);
                let u = law.change(&traffic, f);
                x = (f + 0.1 * u + noise * largest).clamp(0.0, size);
                bound = gain.abs() * bound + largest;
                let error = (x - law.desired).abs();
                prop_assert!(error <= bound + 1e-9, "{error} beyond {bound}");
            }
            prop_assert!(bound <= first.max(1.0) * size + largest / (1.0 - gain.abs()) + 1e-9);
        }

        /// The rate changes of several sources on one buffer add up to the rate change of a single source with the sum
        /// of their traffic.
        #[test]
        fn changes_of_sources_on_one_buffer_add_up(
            sources in proptest::collection::vec((0.0f64..500.0, 0.0f64..500.0, 0.0f64..500.0, 0.0f64..50.0, 0.0f64..20.0), 1..8),
        ) {
            let change = |(ingress, arrival, service, occupancy, desired): (f64, f64, f64, f64, f64)| {
                let traffic = Traffic { interval_s: 0.1, ingress, arrival, service, occupancy , delay_s: None };
                TqLaw { desired, gain: 0.5 }.change(&traffic, TrafficAccumulation::printed().after(&traffic))
            };
            let each: f64 = sources.iter().map(|source| change(*source)).sum();
            let add = |a: (f64, f64, f64, f64, f64), b: &(f64, f64, f64, f64, f64)| {
                (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3, a.4 + b.4)
            };
            let all = change(sources.iter().fold((0.0, 0.0, 0.0, 0.0, 0.0), add));
            prop_assert!((each - all).abs() < 1e-6);
        }

        /// For any report, the rate stays within its limits.
        #[test]
        fn the_rate_stays_within_its_limits(
            reports in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40, any::<u64>(), any::<u32>(), any::<i64>()), 1..20),
        ) {
            let mut tq = tq(5.0);
            for (ingress, arrival, service, occupancy, interval) in reports {
                let playout = PlayoutSummary {
                    interval: Span::from_nanos(interval),
                    ingress: Rate::from_bps(ingress),
                    arrival: Rate::from_bps(arrival),
                    service: Rate::from_bps(service),
                    occupancy: u64::from(occupancy),
                };
                let found = tell(&mut tq, Some(playout), false);
                prop_assert!((10.0..=250.0).contains(&found), "{found}");
            }
        }
    }

    /// Subramanya 2003, Eq. 5 and 6, with a gain of 0.5 and a disturbance of 3 packets in each interval. With
    /// [`TrafficAccumulation::printed`], the queue settles 3 / (1 - 0.5) = 6 packets above its desired length. With
    /// [`TrafficAccumulation::adaptive`], the queue settles at its desired length.
    #[test]
    fn the_adaptive_estimator_removes_what_a_constant_disturbance_leaves() {
        let rest = |mut accumulation: TrafficAccumulation| {
            let law = TqLaw { desired: 20.0, gain: 0.5 };
            let (mut x, mut ingress) = (20.0, 100.0);
            for _ in 0..400 {
                let traffic =
                    Traffic { interval_s: 0.1, ingress, arrival: ingress, service: 100.0, occupancy: x, delay_s: None };
                ingress += law.change(&traffic, accumulation.after(&traffic));
                x = (x + 3.0 + (ingress - 100.0) * 0.1).max(0.0);
            }
            x - law.desired
        };
        let printed = rest(TrafficAccumulation::printed());
        assert!((printed - 6.0).abs() < 1e-9, "{printed}");
        let adaptive = rest(TrafficAccumulation::adaptive());
        assert!(adaptive.abs() < 1e-9, "{adaptive}");
    }

    /// If this test fails, the control loop oscillates forever, because each report takes effect one interval late.
    #[test]
    fn with_reports_an_interval_late_the_buffer_still_settles() {
        let law = TqLaw { desired: 5.0, gain: 0.5 };
        let (mut x, mut rates) = (5.0f64, [62.5f64; 2]);
        let mut errors = Vec::new();
        for step in 0..60 {
            let service = if step < 5 { 62.5 } else { 31.25 };
            x = (x + (rates[0] - service) * 0.1).clamp(0.0, 10.0);
            let ingress = rates[0];
            let traffic = Traffic { interval_s: 0.1, ingress, arrival: ingress, service, occupancy: x, delay_s: None };
            let u = law.change(&traffic, TrafficAccumulation::printed().after(&traffic));
            rates = [rates[1], (ingress + u).max(0.0)];
            errors.push((x - 5.0).abs());
        }
        assert!(errors.iter().any(|error| *error > 2.0), "the step disturbs it");
        assert!(errors[50..].iter().all(|error| *error < 0.01), "{errors:?}");
    }
}
