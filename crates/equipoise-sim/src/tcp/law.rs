use equipoise::control::window::{Acknowledged, BoxedWindowController, WindowSnapshot};
use equipoise::control::{BoxedController, Feedback};
use equipoise::measure::BandwidthEstimate;
use equipoise::units::{Instant, Rate, SenderClock, Size};

/// The congestion control of a TCP sender.
///
/// A window law counts segments and acknowledgements as in the TCP standards. It leaves loss recovery to the TCP host,
/// as in the papers on window laws, in ns-2 and in Linux. A controller gets reports about packets, as in any other
/// session, and reacts to losses itself.
///
/// The same law behaves differently as a window law and as a controller. If an acknowledgement covers two segments,
/// Reno as a window law increases its window once, but Reno in a
/// [`Windowed`](equipoise::control::adapt::Windowed) controller increases it twice. Loss recovery ends at different
/// times, too.
#[derive(Debug)]
#[non_exhaustive]
pub enum Law {
    /// A window law, which sets the congestion window in segments.
    Window(BoxedWindowController),
    /// A controller that needs no feedback, or needs [`Needs::PACKETS`](equipoise::control::Needs::PACKETS).
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

/// Events that are passed only to a window law. A controller gets reports about packets instead.
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

/// The values that the sender reads, and the event `on_timeout`, which is passed to window laws and to controllers.
impl Law {
    /// Records that the retransmission timer expired. `in_flight` is the number of unacknowledged segments, or the
    /// window if the window is smaller. `under_way` is the size of the data that is assumed to be on the path.
    pub(super) fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64, under_way: Size) {
        match self {
            Self::Window(law) => law.on_timeout(now, in_flight),
            Self::Controller(controller) => controller.on_feedback(now, &Feedback::TimedOut { in_flight: under_way }),
        }
    }

    /// The congestion window in segments of size `packet`; infinite if a controller sets no window.
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
