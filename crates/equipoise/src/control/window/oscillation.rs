use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::{Acknowledged, WindowController, WindowSnapshot};
use crate::measure::BandwidthEstimate;
use crate::random::generator;
use crate::units::{Instant, Rate, SenderClock};

/// Adds a self-induced oscillation to any window law.
///
/// If the window varies a little, the flow uses free capacity, and lets a queue drain, before a measurement shows the
/// free capacity or the queue.
///
/// Source: Kodama 2009, Eq. 17, 18: white noise of strength m in the growth of the window,
///
/// ```text
/// dw = (the law) dt + m w dB
/// w  ← (the law's next window) + m w dB,   dB normal with mean 0 and variance dt
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `w` | window before the acknowledgement | segments |
/// | `m` | strength | 1/√s |
/// | `dt` | time since the last acknowledgement | s |
/// | `dB` | increment of Brownian motion | √s |
///
/// Our interpretation of the source:
/// - The variance of dB is dt, as in an Euler-Maruyama step of Eq. 17. Eq. 18 itself is different: at each
///   acknowledgement, a random number of variance one is added to B, and m w B is added to the window. So the variance
///   of B grows without bound.
/// - Nothing is added in slow start, because Eq. 18 replaces only Eq. 10, the law of Symbiosis. After slow start, any
///   law oscillates, including Reno. Symbiosis leaves slow start as soon as the path is measured.
/// - Nothing is added while part of the window is unused. At such times, the law does not raise the window, so it would
///   not undo a random decrease.
/// - After a loss, a timeout or an idle time, dt starts again from zero.
#[derive(Clone, Debug)]
pub struct Oscillating<L> {
    law: L,
    strength: f64,
    random: Pcg64Mcg,
    last_ack: Option<Instant<SenderClock>>,
}

/// Maximum of the time step dt, in s. The value is our choice: the minimum retransmission timeout (RFC 6298, Sec. 2.4),
/// because acknowledgements further apart than this timeout do not serve as a clock.
const LONGEST_STEP_S: f64 = 1.0;
/// Maximum change of the window per step, as a share of the window. The limit is necessary because large Euler steps
/// are inaccurate. The value is our choice: a loss changes the window by the same share.
const LARGEST_STEP: f64 = 0.5;
/// Number of the random stream, which is independent of other uses of the seed. The value is our choice: "osci" in
/// ASCII.
const STREAM: u64 = 0x6F73_6369;

impl<L> Oscillating<L> {
    /// Adds a random oscillation to `law`. The oscillation has the strength m = `strength`, and the random numbers come
    /// from `seed`. If `strength` is zero, negative, infinite or NaN, there is no oscillation.
    pub fn new(law: L, strength: f64, seed: u64) -> Self {
        let strength = if strength.is_finite() { strength.max(0.0) } else { 0.0 };
        Self { law, strength, random: generator(seed, STREAM), last_ack: None }
    }

    /// Returns the inner law.
    pub const fn law(&self) -> &L {
        &self.law
    }

    /// Returns the random change of the window since the last acknowledgement, as a share of the window: the strength m
    /// times the step dB of a Brownian motion.
    fn step(&mut self, now: Instant<SenderClock>) -> f64 {
        let elapsed_s = self.last_ack.map_or(0.0, |last| (now - last).as_secs_f64()).clamp(0.0, LONGEST_STEP_S);
        let normal: f64 = StandardNormal.sample(&mut self.random);
        (self.strength * libm::sqrt(elapsed_s) * normal).clamp(-LARGEST_STEP, LARGEST_STEP)
    }
}

impl<L: WindowController> WindowController for Oscillating<L> {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        let window = self.law.window();
        self.law.on_ack(now, ack);
        let avoids_congestion = self.law.slow_start_threshold().is_some_and(|threshold| self.law.window() >= threshold);
        if self.strength > 0.0 && avoids_congestion && ack.window_limited {
            // Kodama 2009, Eq. 18.
            let step = self.step(now);
            self.law.reset_to(self.law.window() + window * step);
        }
        self.last_ack = Some(now);
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.law.on_loss(now, in_flight);
        self.last_ack = None;
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.law.on_timeout(now, in_flight);
        self.last_ack = None;
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        self.law.on_restart(now, window);
        self.last_ack = None;
    }

    fn on_bandwidth(&mut self, now: Instant<SenderClock>, estimate: &BandwidthEstimate) {
        self.law.on_bandwidth(now, estimate);
    }

    fn window(&self) -> f64 {
        self.law.window()
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.law.slow_start_threshold()
    }

    fn reset_to(&mut self, window: f64) {
        self.law.reset_to(window);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.law.pacing_rate()
    }

    fn snapshot(&self) -> WindowSnapshot {
        self.law.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Reno;
    use super::*;
    use crate::measure::Moments;

    type At = Instant<SenderClock>;

    /// A law with a constant window. It records the changes that the oscillation makes.
    #[derive(Debug)]
    struct Still {
        shifts: Moments,
    }

    impl WindowController for Still {
        fn on_ack(&mut self, _now: At, _ack: &Acknowledged) {}
        fn on_loss(&mut self, _now: At, _in_flight: u64) {}
        fn on_timeout(&mut self, _now: At, _in_flight: u64) {}
        fn on_restart(&mut self, _now: At, _window: f64) {}
        fn window(&self) -> f64 {
            100.0
        }
        fn slow_start_threshold(&self) -> Option<f64> {
            Some(2.0)
        }
        fn reset_to(&mut self, window: f64) {
            self.shifts.push(window - self.window());
        }
    }

    fn ack() -> Acknowledged {
        Acknowledged { segments: 1, in_flight: 100, window_limited: true, ..Acknowledged::default() }
    }

    fn at_ms(ms: u64) -> At {
        At::from_nanos(ms * 1_000_000)
    }

    /// The variance of a Brownian motion grows with the elapsed time. The variance must not depend on the number of
    /// acknowledgements.
    #[test]
    fn the_variance_is_that_of_the_time_and_not_of_the_number_of_acknowledgements() {
        for step_ms in [1, 10, 100] {
            let mut still = Oscillating::new(Still { shifts: Moments::default() }, 0.3, 7);
            let steps = 20_000;
            (0..=steps).for_each(|step| still.on_ack(at_ms(step * step_ms), &ack()));
            let found = still.law().shifts;
            // There is one shift for each acknowledgement. The expected variance of a shift is m² w² dt, with the
            // strength m = 0.3 and the window w = 100 segments.
            let expected = 0.09 * 1e4 * (step_ms as f64 / 1e3);
            let variance = found.standard_deviation().unwrap() * found.standard_deviation().unwrap();
            assert!((variance / expected - 1.0).abs() < 0.05, "five standard errors: {variance} for {expected}");
            let standard_error = libm::sqrt(expected / steps as f64);
            assert!(found.mean().unwrap().abs() < 4.0 * standard_error, "{:?}", found.mean());
        }
    }

    #[test]
    fn long_gaps_recovery_and_idle_times_make_no_large_step() {
        let mut still = Oscillating::new(Still { shifts: Moments::default() }, 1.0, 7);
        for hour in 0..1000 {
            still.on_ack(at_ms(hour * 3_600_000), &ack());
        }
        let spread = still.law().shifts.standard_deviation().unwrap();
        assert!(spread <= 50.0, "no step takes more than half of the window: {spread}");
        let mut still = Oscillating::new(Still { shifts: Moments::default() }, 1.0, 7);
        for hour in 0..1000 {
            match hour % 3 {
                0 => still.on_loss(at_ms(hour * 3_600_000), 10),
                1 => still.on_timeout(at_ms(hour * 3_600_000), 10),
                _ => still.on_restart(at_ms(hour * 3_600_000), 10.0),
            }
            still.on_ack(at_ms(hour * 3_600_000 + 10), &ack());
        }
        assert!(still.law().shifts.standard_deviation().unwrap() < 1e-12, "the clock restarted each time");
    }

    #[test]
    fn slow_start_and_an_unused_window_are_left_alone() {
        let (mut moved, mut bare) = (Oscillating::new(Reno::new(10.0), 0.5, 3), Reno::new(10.0));
        for ms in 0..100 {
            moved.on_ack(at_ms(ms), &ack());
            bare.on_ack(at_ms(ms), &ack());
        }
        assert_eq!(moved.law(), &bare, "slow start");
        moved.on_loss(at_ms(100), 60);
        bare.on_loss(at_ms(100), 60);
        for ms in 100..200 {
            moved.on_ack(at_ms(ms), &Acknowledged { window_limited: false, ..ack() });
        }
        assert_eq!(moved.law(), &bare, "unused");
        moved.on_ack(at_ms(300), &ack());
        bare.on_ack(at_ms(300), &ack());
        assert_ne!(moved.law(), &bare, "congestion avoidance");
    }

    fn walk(strength: f64, seed: u64, times: &[(u64, bool)]) -> (Oscillating<Reno>, Reno) {
        let (mut moved, mut bare) = (Oscillating::new(Reno::new(10.0), strength, seed), Reno::new(10.0));
        for (nanos, loss) in times {
            let now = At::from_nanos(*nanos);
            if *loss {
                moved.on_loss(now, 20);
                bare.on_loss(now, 20);
            }
            moved.on_ack(now, &ack());
            bare.on_ack(now, &ack());
        }
        (moved, bare)
    }

    proptest! {
        #[test]
        fn no_strength_is_the_law_itself(seed in any::<u64>(), times in prop::collection::vec(any::<(u64, bool)>(), 1..50)) {
            for strength in [0.0, -1.0, f64::NAN] {
                let (moved, bare) = walk(strength, seed, &times);
                prop_assert_eq!(*moved.law(), bare);
            }
        }

        #[test]
        fn the_window_is_finite_and_at_least_one_for_any_strength_seed_and_time(strength in prop::num::f64::ANY, seed in any::<u64>(), times in prop::collection::vec(any::<(u64, bool)>(), 1..50)) {
            let (moved, _) = walk(strength, seed, &times);
            prop_assert!(moved.window().is_finite() && moved.window() >= 1.0);
        }

        #[test]
        fn the_same_seed_gives_the_same_windows(seed in any::<u64>(), times in prop::collection::vec(any::<(u64, bool)>(), 1..50)) {
            let (first, second) = (walk(0.3, seed, &times).0, walk(0.3, seed, &times).0);
            prop_assert_eq!(first.law(), second.law());
        }
    }
}
