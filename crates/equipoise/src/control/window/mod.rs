//! Computes a congestion window from acknowledgements.
//!
//! The laws here are for a transport that has its own acknowledgements, such as TCP. A window law decides how many
//! segments may be in flight. The transport detects losses, runs the timers and retransmits. Windows are in full-sized
//! segments, and need not be whole numbers.

mod cubic;
mod noise;
mod oscillation;
mod reno;
pub mod symbiosis;
mod vegas;

use alloc::boxed::Box;
use core::fmt::Debug;

pub use cubic::Cubic;
pub use noise::NoiseAwareness;
pub use oscillation::Oscillating;
pub use reno::Reno;
pub use symbiosis::{FixedSymbiosis, Symbiosis, SymbiosisConfig};
pub use vegas::{Vegas, VegasConfig};

pub use super::catalogue::{WindowContext, WindowEntry, find_window as find, window_entries as entries};

use crate::measure::BandwidthEstimate;
use crate::units::{Instant, Rate, SenderClock, Span};

/// A window law, which computes a congestion window from acknowledgements and losses.
pub trait WindowController: Send + Sync + Debug {
    /// Called when an acknowledgement covers new data, outside of loss recovery.
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged);

    /// Called when loss recovery begins with `in_flight` segments in flight: once per window in which segments were
    /// lost.
    ///
    /// After the call, [`window`](Self::window) returns the limit during recovery, which is also the window at the end
    /// of recovery.
    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64);

    /// Called at the first expiry of the retransmission timer since the last acknowledgement of new data, while
    /// `in_flight` segments are in flight. After the call, the window is one segment (RFC 5681, Sec. 3.1).
    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64);

    /// Called when nothing was sent for longer than the retransmission timeout. The sender may now send a burst of at
    /// most `window` segments (RFC 5681, Sec. 4.1).
    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64);

    /// Called when the path's bandwidth was measured. Has no effect unless the law uses bandwidth measurements.
    fn on_bandwidth(&mut self, _now: Instant<SenderClock>, _estimate: &BandwidthEstimate) {}

    /// Returns the congestion window, in segments, which is never below one.
    fn window(&self) -> f64;

    /// Returns the window in segments below which the law is in slow start; `None` before slow start has ended for
    /// the first time.
    fn slow_start_threshold(&self) -> Option<f64>;

    /// Continues from a window of `window` segments, at least one, that was decided outside of the law.
    fn reset_to(&mut self, window: f64);

    /// Returns the rate at which segments may leave; `None` to send whenever the window allows it.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the law's state for reports.
    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot::default()
    }
}

/// A window law on the heap, as a transport owns it.
pub type BoxedWindowController = Box<dyn WindowController>;

impl<W: WindowController + ?Sized> WindowController for Box<W> {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        (**self).on_ack(now, ack);
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        (**self).on_loss(now, in_flight);
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        (**self).on_timeout(now, in_flight);
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        (**self).on_restart(now, window);
    }

    fn on_bandwidth(&mut self, now: Instant<SenderClock>, estimate: &BandwidthEstimate) {
        (**self).on_bandwidth(now, estimate);
    }

    fn window(&self) -> f64 {
        (**self).window()
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        (**self).slow_start_threshold()
    }

    fn reset_to(&mut self, window: f64) {
        (**self).reset_to(window);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (**self).pacing_rate()
    }

    fn snapshot(&self) -> WindowSnapshot {
        (**self).snapshot()
    }
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acknowledged {
    /// Number of segments that the acknowledgement newly covers.
    pub segments: u64,
    /// Round-trip time of a segment that was sent only once (Karn 1987); `None` if the acknowledgement covers no such
    /// segment.
    pub round_trip: Option<Span>,
    /// Smoothed round-trip time (RFC 6298, Sec. 2).
    pub smoothed_round_trip: Option<Span>,
    /// Minimum round-trip time of the connection.
    pub min_round_trip: Option<Span>,
    /// Segments in flight when the acknowledgement arrived, including the acknowledged segments.
    pub in_flight: u64,
    /// Whether the sender was limited by the window, not by the application or the receiver (RFC 9438, Sec. 5.8).
    pub window_limited: bool,
}

/// The state of a window law, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowSnapshot {
    /// Current γ of Symbiosis, the weight of cross traffic; `None` for laws without γ.
    pub gamma: Option<f64>,
    /// The measured bandwidth that the law uses; `None` for laws without bandwidth measurements, and before the first
    /// measurement.
    pub bandwidth: Option<BandwidthEstimate>,
}
