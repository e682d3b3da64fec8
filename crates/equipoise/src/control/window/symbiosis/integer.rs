use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use super::SymbiosisConfig;
use super::fixed::{FixedLaw, FixedNoise, FixedPath, LEAST_STEP_US, PARAMETER_ONE, RATE_ONE, WINDOW_ONE, oscillated};
use crate::control::window::{Acknowledged, Reno, WindowController, WindowSnapshot};
use crate::measure::BandwidthEstimate;
use crate::random::generator;
use crate::units::{Instant, Rate, SenderClock, Size};

/// [`Symbiosis`](super::Symbiosis) as the Linux kernel runs it: with the integers of [`fixed`](super::fixed) and whole
/// segments.
///
/// This type contains the oscillation of [`Oscillating`](crate::control::window::Oscillating). Source and
/// interpretation are those of `Symbiosis` and of `Oscillating`. [`fixed`](super::fixed) lists how the integer form
/// differs from `Symbiosis`. Before the first measurement, the window is that of [`Reno`], as in `Symbiosis`. In this
/// type, Reno's window can have a fraction of a segment. In a kernel, Reno's window is a whole number of segments.
#[derive(Clone, Debug)]
pub struct FixedSymbiosis {
    law: FixedLaw,
    noise_weight: u64,
    strength: u64,
    packet: Size,
    noise: FixedNoise,
    measured: Option<BandwidthEstimate>,
    reno: Reno,
    /// The window in segments, as a Q20 fixed-point number, while the law controls it; `None` while Reno controls it.
    window: Option<u64>,
    last_step: Option<Instant<SenderClock>>,
    random: Pcg64Mcg,
}

/// Number of the random stream, which is independent of other uses of the seed. The value is our choice: "fixd" in
/// ASCII.
const STREAM: u64 = 0x6669_7864;
/// Minimum window of the law, in segments. The value is our choice: a single segment would wait for the receiver's
/// delayed acknowledgement.
const LEAST_WINDOW: f64 = 2.0;

impl FixedSymbiosis {
    /// Creates a law that starts as Reno, in slow start. `oscillation` is the strength m of the window's random
    /// oscillation, and `seed` is the seed of the random numbers.
    ///
    /// A parameter that is negative or NaN counts as zero.
    pub fn new(config: SymbiosisConfig, oscillation: f64, seed: u64) -> Self {
        Self {
            law: FixedLaw { gamma: parameter(config.gamma), epsilon_per_s: parameter(config.epsilon_per_s) },
            noise_weight: parameter(config.noise_weight),
            strength: parameter(oscillation),
            packet: config.packet,
            noise: FixedNoise::default(),
            measured: None,
            reno: Reno::new(config.initial_window),
            window: None,
            last_step: None,
            random: generator(seed, STREAM),
        }
    }

    /// Returns γ, reduced by the measured noise, as a Q20 fixed-point number.
    fn gamma(&self) -> u64 {
        self.noise.gamma(self.law.gamma, self.noise_weight)
    }

    /// Converts a rate to segments/s, as a Q10 fixed-point number.
    fn segments(&self, rate: Rate) -> u64 {
        // `min` prevents an overflow of the Q10 number. The law limits the result to `LARGEST_RATE` afterwards.
        rate.as_bps().min(u64::MAX / RATE_ONE) * RATE_ONE / self.packet.as_bits().max(1)
    }

    /// Returns the path in integers; `None` if the bandwidth or the round-trip time is unknown.
    fn path(&self, ack: &Acknowledged) -> Option<FixedPath> {
        let (measured, min_round_trip) = (self.measured?, ack.min_round_trip?);
        Some(FixedPath {
            capacity: self.segments(measured.capacity.rate),
            available: self.segments(measured.available.rate),
            min_round_trip_us: u64::try_from(min_round_trip.as_nanos() / 1000).ok()?,
        })
    }

    /// Sets the window, in segments, as a Q20 fixed-point number. From now on, the law controls the window.
    fn take_over(&mut self, window: u64) {
        self.window = Some(window);
        self.reno.take_over(((window / WINDOW_ONE) as f64).max(LEAST_WINDOW));
    }
}

/// Converts a parameter to a fixed-point number with 20 fractional bits (Q20).
fn parameter(value: f64) -> u64 {
    // The conversion saturates, and converts NaN to zero.
    libm::round(value * PARAMETER_ONE as f64) as u64
}

impl WindowController for FixedSymbiosis {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        let law = FixedLaw { gamma: self.gamma(), ..self.law };
        let Some((path, _)) = self.path(ack).and_then(|path| Some((path, law.converged(&path)?))) else {
            self.reno.on_ack(now, ack);
            return;
        };
        let window = self.window.unwrap_or((self.reno.window() * WINDOW_ONE as f64) as u64);
        let elapsed_us = self.last_step.map_or(0, |last| ((now - last).as_nanos() / 1000).max(0)) as u64;
        if self.last_step.is_some() && elapsed_us < LEAST_STEP_US {
            return;
        }
        self.last_step = Some(now);
        let elapsed_us = u32::try_from(elapsed_us).unwrap_or(u32::MAX);
        let Some(next) = law.window(window, &path, elapsed_us) else { return };
        if !ack.window_limited {
            self.take_over(next.min(window));
            return;
        }
        let random = core::array::from_fn(|_| self.random.next_u32());
        self.take_over(oscillated(next, self.strength, u64::from(elapsed_us), random));
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_loss(now, in_flight);
        (self.last_step, self.window) = (None, None);
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_timeout(now, in_flight);
        (self.last_step, self.window, self.measured) = (None, None, None);
        self.noise.reset();
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        self.reno.on_restart(now, window);
        (self.last_step, self.window) = (None, None);
    }

    fn on_bandwidth(&mut self, _now: Instant<SenderClock>, estimate: &BandwidthEstimate) {
        let [capacity, available] = [estimate.capacity, estimate.available].map(|found| self.segments(found.rate));
        if capacity == 0 {
            return;
        }
        self.noise.push(capacity.saturating_sub(available));
        self.measured = Some(*estimate);
    }

    fn window(&self) -> f64 {
        self.reno.window()
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.reno.slow_start_threshold()
    }

    fn reset_to(&mut self, window: f64) {
        self.reno.reset_to(window);
        self.window = None;
    }

    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot { gamma: Some(self.gamma() as f64 / PARAMETER_ONE as f64), bandwidth: self.measured }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Symbiosis;
    use super::super::tests::{At, CONFIG, ack, estimate};
    use super::*;

    const FROM_100: SymbiosisConfig = SymbiosisConfig { initial_window: 100.0, ..CONFIG };

    fn at_us(us: u64) -> At {
        At::from_nanos(us * 1000)
    }

    /// The path changes every second, an acknowledgement arrives every 100 µs, and there is one loss.
    #[test]
    fn it_keeps_within_rounding_to_whole_segments_of_the_float_form() {
        let (mut fixed, mut float) = (FixedSymbiosis::new(FROM_100, 0.0, 1), Symbiosis::new(FROM_100));
        for tick in 0..300_000_u64 {
            let now = at_us(tick * 100);
            if tick % 10_000 == 0 {
                let available = [120, 30, 90, 150, 0][(tick / 10_000 % 5) as usize] * 1_000_000;
                fixed.on_bandwidth(now, &estimate(150_000_000, available));
                float.on_bandwidth(now, &estimate(150_000_000, available));
            }
            if tick == 123_456 {
                fixed.on_loss(now, 600);
                float.on_loss(now, 600);
            }
            fixed.on_ack(now, &ack());
            float.on_ack(now, &ack());
            let (integer, exact) = (fixed.window(), float.window());
            // The integer form changes its window at most every 500 µs, and it does not send a fraction of a segment.
            let near = integer <= exact * 1.001 + 0.1 && integer >= exact * 0.999 - 1.1;
            assert!(near, "{integer} {exact} at {tick}");
        }
        let [fixed, float] = [fixed.snapshot().gamma, float.snapshot().gamma].map(Option::unwrap);
        assert!((fixed - float).abs() < 1e-4, "{fixed} {float}");
    }

    #[test]
    fn a_timeout_discards_what_was_measured_and_reno_goes_on() {
        let mut fixed = FixedSymbiosis::new(FROM_100, 0.0, 1);
        fixed.on_bandwidth(At::ZERO, &estimate(150_000_000, 20_000_000));
        fixed.on_ack(at_us(1), &ack());
        fixed.on_timeout(at_us(2), 100);
        assert!((fixed.window() - 1.0).abs() < 1e-12);
        (0..7).for_each(|us| fixed.on_ack(at_us(10_000 + us), &ack()));
        assert!((fixed.window() - 8.0).abs() < 1e-12, "slow start: {}", fixed.window());
        assert_eq!(fixed.snapshot().bandwidth, None);
    }

    #[test]
    fn the_seed_moves_an_oscillating_one_only_and_an_unused_window_does_not_rise() {
        let run = |strength, seed, window_limited| {
            let mut fixed = FixedSymbiosis::new(FROM_100, strength, seed);
            fixed.on_bandwidth(At::ZERO, &estimate(150_000_000, 120_000_000));
            (0..1000).for_each(|ms| fixed.on_ack(at_us(1000 * ms), &Acknowledged { window_limited, ..ack() }));
            fixed.window()
        };
        let differ = |a: f64, b: f64| (a - b).abs() > 1e-9;
        assert!(!differ(run(0.0, 1, true), run(0.0, 2, true)) && differ(run(0.3, 1, true), run(0.3, 2, true)));
        assert!(!differ(run(0.3, 1, false), 100.0), "unused: {}", run(0.3, 1, false));
    }
}
