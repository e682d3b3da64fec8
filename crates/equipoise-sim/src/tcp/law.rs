use equipoise::control::window::{Acknowledged, BoxedWindowController, WindowSnapshot};
use equipoise::control::{BoxedController, Feedback};
use equipoise::measure::BandwidthEstimate;
use equipoise::units::{Instant, Rate, SenderClock, Size};

/// What decides how much a sender sends.
///
/// A window law counts segments and acknowledgements as the TCP standards do, and leaves loss recovery to its host: that is
/// what the papers on window laws describe, and what ns-2 and the kernel do. A controller sees packets as it does in any
/// other session, and answers losses itself. Neither can stand for the other: an acknowledgement that covers two segments is
/// one step of TCP's Reno and two of [`Windowed`](equipoise::control::adapt::Windowed), whose recovery also ends elsewhere.
#[derive(Debug)]
#[non_exhaustive]
pub enum Law {
    /// A window law.
    Window(BoxedWindowController),
    /// A controller that needs nothing, or [`Needs::PACKETS`](equipoise::control::Needs::PACKETS).
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

/// What only a window law is told; a controller is told of packets.
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

/// What either is told, and what it says.
impl Law {
    /// The retransmission timer ran out with so many segments under way: of the window, and on the path.
    pub(super) fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64, under_way: Size) {
        match self {
            Self::Window(law) => law.on_timeout(now, in_flight),
            Self::Controller(controller) => controller.on_feedback(now, &Feedback::TimedOut { in_flight: under_way }),
        }
    }

    /// The window in segments of `packet`; infinite if a controller leaves it open.
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
