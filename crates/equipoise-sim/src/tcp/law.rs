use equipoise::control::window::{Acknowledged, BoxedWindowController, WindowSnapshot};
use equipoise::control::{BoxedController, Feedback};
use equipoise::measure::BandwidthEstimate;
use equipoise::units::{Instant, Rate, SenderClock, Size};

/// The control law of a sender.
///
/// A window law counts segments and acknowledgements as in the TCP standards, and leaves loss recovery to its host, as
/// in the papers on window laws, in ns-2 and in the kernel. A controller gets packets as in any other session, and
/// reacts to losses itself. The two are not equivalent: an acknowledgement that covers two segments is one step of
/// TCP's Reno but two steps of [`Windowed`](equipoise::control::adapt::Windowed), whose recovery also ends at another
/// point.
#[derive(Debug)]
#[non_exhaustive]
pub enum Law {
    /// A window law.
    Window(BoxedWindowController),
    /// A controller that needs no feedback, or [`Needs::PACKETS`](equipoise::control::Needs::PACKETS).
    Controller(BoxedController),
}

impl From<BoxedWindowController> for Law {
    fn from(law: BoxedWindowController) -> Self {
        Self::Window(law)
    }
}

impl From<BoxedController> for Law {
    fn from(controller: BoxedController) -> Self {
        Self::Controller(controller)
    }
}

/// Calls for a window law only; a controller gets packets instead.
impl Law {
    pub(super) fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        if let Self::Window(law) = self {
            law.on_ack(now, ack);
        }
    }

    pub(super) fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        if let Self::Window(law) = self {
            law.on_loss(now, in_flight);
        }
    }

    pub(super) fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        if let Self::Window(law) = self {
            law.on_restart(now, window);
        }
    }

    pub(super) fn on_bandwidth(&mut self, now: Instant<SenderClock>, estimate: &BandwidthEstimate) {
        if let Self::Window(law) = self {
            law.on_bandwidth(now, estimate);
        }
    }

    pub(super) fn reset_to(&mut self, window: f64) {
        if let Self::Window(law) = self {
            law.reset_to(window);
        }
    }
}

/// Calls for both kinds of law.
impl Law {
    /// Records that the retransmission timer expired, with `in_flight` segments of the window and `under_way` data on
    /// the path.
    pub(super) fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64, under_way: Size) {
        match self {
            Self::Window(law) => law.on_timeout(now, in_flight),
            Self::Controller(controller) => controller.on_feedback(now, &Feedback::TimedOut { in_flight: under_way }),
        }
    }

    /// The window in segments of `packet`; infinite if a controller sets none.
    pub(super) fn window(&self, packet: Size) -> f64 {
        match self {
            Self::Window(law) => law.window(),
            Self::Controller(controller) => {
                let window = controller.allowance().window;
                window.map_or(f64::INFINITY, |window| window.as_bytes() as f64 / packet.as_bytes() as f64)
            }
        }
    }

    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Window(law) => law.pacing_rate(),
            Self::Controller(controller) => controller.allowance().rate,
        }
    }

    pub(super) fn slow_start_threshold(&self) -> Option<f64> {
        if let Self::Window(law) = self { law.slow_start_threshold() } else { None }
    }

    pub(super) fn snapshot(&self) -> WindowSnapshot {
        if let Self::Window(law) = self { law.snapshot() } else { WindowSnapshot::default() }
    }
}
