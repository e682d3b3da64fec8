use equipoise::control::window::{Acknowledged, WindowController, WindowEntry};
use equipoise::units::{Instant, SenderClock};

/// Scalable TCP (Kelly 2003): after slow start, increases the window by 0.01 segments for each acknowledged segment.
/// Reduces the window by an eighth after a loss.
#[derive(Clone, Debug)]
struct Scalable {
    window: f64,
    threshold: Option<f64>,
}

impl WindowController for Scalable {
    fn on_ack(&mut self, _now: Instant<SenderClock>, ack: &Acknowledged) {
        let slow_start = self.threshold.is_none_or(|threshold| self.window < threshold);
        if ack.window_limited {
            self.window += ack.segments as f64 * if slow_start { 1.0 } else { 0.01 };
        }
    }

    fn on_loss(&mut self, _now: Instant<SenderClock>, in_flight: u64) {
        self.window = (in_flight as f64 * 0.875).max(2.0);
        self.threshold = Some(self.window);
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.on_loss(now, in_flight);
        self.window = 1.0;
    }

    fn on_restart(&mut self, _now: Instant<SenderClock>, window: f64) {
        self.window = self.window.min(window).max(1.0);
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn reset_to(&mut self, window: f64) {
        self.window = window.max(1.0);
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.threshold
    }
}

pub(crate) static SCALABLE: WindowEntry = WindowEntry {
    name: "scalable",
    summary: "a hundredth of a segment for each one acknowledged, an eighth less upon loss",
    source: "this example",
    parameters: &[],
    make: |_, _| Ok(Box::new(Scalable { window: 10.0, threshold: None })),
};
