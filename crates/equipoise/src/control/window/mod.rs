//! Acknowledgements → a congestion window.
//!
//! The middle step of the loop for a transport that has its own acknowledgements, such as TCP. A window law says how
//! many segments may be under way; which of them are lost, when a timer runs out and what is sent again is the
//! transport's business. Windows are counted in segments of full size, as the papers count them, and need not be whole.

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

/// A window law: acknowledgements and losses in, a congestion window out.
pub trait WindowController: Send + Sync + Debug {
    /// An acknowledgement covers new data, outside of loss recovery.
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged);

    /// Loss recovery begins with `in_flight` segments under way: once for each window in which segments were lost.
    ///
    /// [`window`](Self::window) is then what recovery may hold under way, and where it ends.
    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64);

    /// The retransmission timer ran out with `in_flight` segments under way, for the first time since the last
    /// acknowledgement of new data. The window is one segment afterwards (RFC 5681, Sec. 3.1).
    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64);

    /// Nothing was sent for longer than the retransmission timeout: at most `window` segments may go out at once now
    /// (RFC 5681, Sec. 4.1).
    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64);

    /// The path's bandwidth was measured. Nothing changes unless the law makes use of it.
    fn on_bandwidth(&mut self, _now: Instant<SenderClock>, _estimate: &BandwidthEstimate) {}

    /// The congestion window, in segments; never below one.
    fn window(&self) -> f64;

    /// Below this window, in segments, the law is in slow start; `None` before the first loss.
    fn slow_start_threshold(&self) -> Option<f64>;

    /// Goes on from a window of `window` segments, one at least, which was decided outside of the law.
    fn reset_to(&mut self, window: f64);

    /// How fast segments may leave; `None` to send whenever the window has room.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// What the law can say of its last decision.
    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot::default()
    }
}

/// A window law on the heap, as a transport holds it.
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

/// What an acknowledgement of new data tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acknowledged {
    /// Segments that it is the first to cover.
    pub segments: u64,
    /// Round-trip time of a segment that was sent once only (Karn); `None` where it measures none.
    pub round_trip: Option<Span>,
    /// Smoothed round-trip time (RFC 6298, Sec. 2).
    pub smoothed_round_trip: Option<Span>,
    /// Least round-trip time of the connection.
    pub min_round_trip: Option<Span>,
    /// Segments under way when it came, those that it covers among them.
    pub in_flight: u64,
    /// The window was what held the sender back, and not the application or the receiver (RFC 9438, Sec. 5.8).
    pub window_limited: bool,
}

/// A window law's own account of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowSnapshot {
    /// Symbiosis' γ as it is now; `None` for laws without it.
    pub gamma: Option<f64>,
    /// The bandwidth that the law goes by; `None` for laws that measure none, and before the first measurement.
    pub bandwidth: Option<BandwidthEstimate>,
}
