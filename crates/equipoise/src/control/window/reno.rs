use super::{Acknowledged, WindowController};
use crate::units::{Instant, SenderClock};

/// Reno: slow start and congestion avoidance.
///
/// Source: RFC 5681, Sec. 3.1: while the window is below the threshold, an acknowledgement of new data adds one
/// segment, even if the acknowledgement covers two segments (Eq. 2). At or above the threshold, the acknowledgement
/// adds `1 / w` segments, where w is the window in segments (Eq. 3). A loss sets threshold and window to half of the
/// data in flight, at least two segments (Eq. 4). Our interpretation: the window does not rise while the sender is
/// limited by the application or the receiver (RFC 9438, Sec. 5.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reno {
    window: f64,
    threshold: Option<f64>,
}

/// After a loss, window and threshold are this share of the segments in flight (RFC 5681, Eq. 4).
const DECREASE: f64 = 0.5;
/// Minimum threshold, in segments (RFC 5681, Eq. 4; RFC 9438, Sec. 4.6).
const LEAST_THRESHOLD: f64 = 2.0;

impl Reno {
    /// Creates a law in slow start with a window of `initial_window` segments, at least one.
    pub const fn new(initial_window: f64) -> Self {
        Self { window: initial_window.max(1.0), threshold: None }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.window < threshold)
    }

    /// Sets the window to the value that another law computed, but to at least one segment. Ends slow start.
    pub(super) fn take_over(&mut self, window: f64) {
        self.window = window.max(1.0);
        self.leave_slow_start();
    }

    /// Reacts to a loss: sets threshold and window to `segments`, at least two.
    pub(super) fn reduce(&mut self, segments: f64) {
        self.window = segments.max(LEAST_THRESHOLD);
        self.threshold = Some(self.window);
    }

    /// Reacts to a timeout: sets the threshold as after a loss, and begins slow start with a window of one segment.
    pub(super) fn start_again(&mut self, threshold: f64) {
        self.reduce(threshold);
        self.window = 1.0;
    }

    /// Ends slow start: lowers the threshold, if necessary, to the window.
    pub(super) fn leave_slow_start(&mut self) {
        self.threshold = Some(self.threshold.map_or(self.window, |threshold| threshold.min(self.window)));
    }
}

impl WindowController for Reno {
    fn on_ack(&mut self, _now: Instant<SenderClock>, ack: &Acknowledged) {
        if ack.window_limited {
            self.window += if self.in_slow_start() { 1.0 } else { 1.0 / self.window };
        }
    }

    fn on_loss(&mut self, _now: Instant<SenderClock>, in_flight: u64) {
        self.reduce(in_flight as f64 * DECREASE);
    }

    fn on_timeout(&mut self, _now: Instant<SenderClock>, in_flight: u64) {
        self.start_again(in_flight as f64 * DECREASE);
    }

    fn on_restart(&mut self, _now: Instant<SenderClock>, window: f64) {
        self.window = self.window.min(window).max(1.0);
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.threshold
    }

    fn reset_to(&mut self, window: f64) {
        let slow_start = self.in_slow_start();
        self.window = window.max(1.0);
        // A window set from outside does not return the law to slow start.
        if !slow_start {
            self.leave_slow_start();
        }
    }
}
