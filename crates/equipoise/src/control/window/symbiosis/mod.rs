//! TCP Symbiosis: a window for each measurement of the path, as competing species find their numbers.
//!
//! Each flow is a species, the bottleneck its food. A flow that knows the capacity and what the others leave of it follows
//! the growth law of such species to a window at which all of them survive, without losing a packet to find it.
//!
//! Source: Kodama 2009, Sec. 2.2.2 (the law, [`Law`]) and Sec. 3.2 (γ under noise, [`NoiseAwareness`]). The oscillation
//! of Sec. 4 is [`Oscillating`](super::Oscillating), around this law or another.

pub mod fixed;
mod integer;
mod law;

pub use integer::FixedSymbiosis;
pub use law::{Law, Path};

use super::{Acknowledged, NoiseAwareness, Reno, WindowController, WindowSnapshot};
use crate::measure::BandwidthEstimate;
use crate::units::{Instant, SenderClock, Size};

/// Reno until the path's bandwidth is measured, [`Law`] from then on.
///
/// Source: Kodama 2009, Sec. 2.2.2: Eq. 10 on every acknowledgement, with the time between the last two of them as t; half
/// the window after a loss, as Reno; after a timeout, one segment, slow start and no measurement.
///
/// Readings, where the text is silent:
/// - Loss recovery belongs to the transport and gives no acknowledgements to the law. The clock of t starts anew
///   after it, as it does after an idle time: the first acknowledgement sets it and moves no window, so that a long
///   interval is not one jump.
/// - While the application or the receiver leaves part of the window unused, Eq. 10 may lower the window and does not raise
///   it (as RFC 9438, Sec. 5.8 says of other laws).
/// - "Half the window" is half of what is under way, two segments at least (RFC 5681, Eq. 4). Eq. 10 goes on from there.
/// - A measurement of no capacity at all is none. Without a round-trip time there is no law, and Reno's goes on.
/// - Once there is a law, its threshold of slow start is never above the window, whatever the window.
/// - Noise is forgotten with the measurements.
#[derive(Clone, Debug)]
pub struct Symbiosis {
    law: Law,
    packet: Size,
    /// Holds the window in either phase.
    reno: Reno,
    noise: NoiseAwareness,
    measured: Option<BandwidthEstimate>,
    last_ack: Option<Instant<SenderClock>>,
}

/// What Symbiosis goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymbiosisConfig {
    /// γ without noise, from 0 to below 1 (Kodama 2009, Sec. 3.3: 0.95).
    pub gamma: f64,
    /// ε, in 1/s. The thesis does not say its own.
    pub epsilon_per_s: f64,
    /// l, the weight of noise in γ (Eq. 15); zero for a γ that stays.
    pub noise_weight: f64,
    /// Window of the beginning, in segments.
    pub initial_window: f64,
    /// Size of an IP packet that carries a whole segment, by which rates become segments/s.
    pub packet: Size,
}

impl Symbiosis {
    /// Begins as Reno, in slow start.
    pub const fn new(config: SymbiosisConfig) -> Self {
        Self {
            law: Law { gamma: config.gamma, epsilon_per_s: config.epsilon_per_s },
            packet: config.packet,
            reno: Reno::new(config.initial_window),
            noise: NoiseAwareness::new(config.noise_weight),
            measured: None,
            last_ack: None,
        }
    }

    /// γ as noise leaves it (Eq. 15).
    fn gamma(&self) -> f64 {
        self.law.gamma * self.noise.factor()
    }

    /// The path in segments; `None` before a measurement and without a round-trip time.
    fn path(&self, ack: &Acknowledged) -> Option<Path> {
        let (measured, min_round_trip) = (self.measured?, ack.min_round_trip?);
        let bits = self.packet.as_bits() as f64;
        Some(Path {
            capacity: measured.capacity.rate.as_bps_f64() / bits,
            available: measured.available.rate.as_bps_f64() / bits,
            min_round_trip_s: min_round_trip.as_secs_f64(),
        })
    }
}

impl WindowController for Symbiosis {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        let elapsed_s = self.last_ack.map_or(0.0, |last| (now - last).as_secs_f64());
        self.last_ack = Some(now);
        let law = Law { gamma: self.gamma(), ..self.law };
        let window = self.reno.window();
        match self.path(ack).and_then(|path| law.window(window, &path, elapsed_s)) {
            Some(next) if ack.window_limited || next < window => self.reno.take_over(next),
            Some(_) => self.reno.leave_slow_start(),
            None => self.reno.on_ack(now, ack),
        }
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_loss(now, in_flight);
        self.last_ack = None;
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_timeout(now, in_flight);
        (self.last_ack, self.measured) = (None, None);
        self.noise.reset();
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        self.reno.on_restart(now, window);
        self.last_ack = None;
    }

    fn on_bandwidth(&mut self, _now: Instant<SenderClock>, estimate: &BandwidthEstimate) {
        let (capacity, available) = (estimate.capacity.rate, estimate.available.rate);
        if capacity.as_bps() == 0 {
            return;
        }
        // What Eq. 15 watches is K - A', the rate of the others.
        self.noise.push(capacity.as_bps().saturating_sub(available.as_bps()) as f64);
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
    }

    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot { gamma: Some(self.gamma()), bandwidth: self.measured }
    }
}

#[cfg(test)]
mod tests;
