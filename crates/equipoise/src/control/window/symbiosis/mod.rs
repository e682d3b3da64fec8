//! TCP Symbiosis: computes the window from measurements of the path, by a model of competing species.
//!
//! Each flow is a species, and the bottleneck is its food. A flow measures the capacity, and the bandwidth that other
//! flows leave. Its window follows the growth law of competing species, and converges to a value at which all flows
//! survive. The flow needs no packet loss to find this window.
//!
//! Source: Kodama 2009, Sec. 2.2.2 (the law, [`Law`]) and Sec. 3.2 (γ under noise, [`NoiseAwareness`]). The oscillation
//! of Sec. 4 is [`Oscillating`](super::Oscillating), which works with any law.

pub mod fixed;
mod integer;
mod law;

pub use integer::FixedSymbiosis;
pub use law::{Law, Path};

use super::{Acknowledged, NoiseAwareness, Reno, WindowController, WindowSnapshot};
use crate::measure::BandwidthEstimate;
use crate::units::{Instant, SenderClock, Size};

/// TCP Symbiosis: the window follows Reno until the path's bandwidth is measured, and [`Law`] after that.
///
/// Source: Kodama 2009, Sec. 2.2.2: every acknowledgement applies Eq. 10, and t is the time since the last
/// acknowledgement. A loss halves the window, as in Reno. A timeout sets the window to one segment, begins slow start,
/// and discards the measurement.
///
/// What the source leaves open is our choice:
/// - Loss recovery belongs to the transport, which passes no acknowledgements to the law during recovery. After
///   recovery, as after an idle time, t restarts: the first acknowledgement only sets the start time, so that a long
///   interval does not cause a jump.
/// - While the sender is limited by the application or the receiver, Eq. 10 may lower the window but not raise it.
///   CUBIC has the same rule (RFC 9438, Sec. 5.8).
/// - After a loss, the window is half of the data in flight, but at least two segments (RFC 5681, Eq. 4). Eq. 10
///   continues from this window.
/// - A capacity of zero is ignored. While no round-trip time is known, Reno continues to control the window.
/// - While the law controls the window, the slow start threshold is never above the window.
/// - Noise statistics are discarded together with the measurements.
#[derive(Clone, Debug)]
pub struct Symbiosis {
    law: Law,
    packet: Size,
    /// The Reno law. It stores the window even while [`Law`] controls the window.
    reno: Reno,
    noise: NoiseAwareness,
    measured: Option<BandwidthEstimate>,
    last_ack: Option<Instant<SenderClock>>,
}

/// The configuration of [`Symbiosis`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymbiosisConfig {
    /// γ, the weight of cross traffic if there is no noise, from 0 to below 1 (Kodama 2009, Sec. 3.3: 0.95).
    pub gamma: f64,
    /// ε, the speed of convergence, in 1/s. The thesis does not state its value.
    pub epsilon_per_s: f64,
    /// l, how strongly noise reduces γ, the weight of cross traffic (Kodama 2009, Eq. 15); zero for a constant γ.
    pub noise_weight: f64,
    /// Initial window, in segments.
    pub initial_window: f64,
    /// Size of an IP packet with a full segment, by which rates are converted into segments/s.
    pub packet: Size,
}

impl Symbiosis {
    /// Creates a law that starts as Reno, in slow start.
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

    /// Returns γ, the weight of cross traffic, reduced by the measured noise (Kodama 2009, Eq. 15).
    fn gamma(&self) -> f64 {
        self.law.gamma * self.noise.factor()
    }

    /// Returns the properties of the path, with rates in segments/s; `None` if the bandwidth or the round-trip time is
    /// unknown.
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
        // Kodama 2009, Eq. 15 uses the noise of the measured rate of cross traffic, K - A.
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
