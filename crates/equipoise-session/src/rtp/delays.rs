use crate::Event;
use crate::wire::DelayReport;
use equipoise::measure::{DelaySummary, Notice, PathClock};
use equipoise::units::{Instant, SenderClock, Span};

/// The kind of delay that the controller uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delays {
    /// One-way delays as reported by a receiver that knows the relation of the clocks. A report covers only packets
    /// that were sent at the sender's current rate. The receiver estimates when this rate took effect (Waki 2013, Eq.
    /// 13).
    #[default]
    Agreed,
    /// One-way delays: arrival time minus sending time. The clocks must be synchronised.
    Synchronised,
    /// One-way delays with a clock offset estimated from round trips: accurate to half of the shortest round-trip time.
    Estimated,
    /// Queueing delays: the delay above the minimum delay of the path. The clocks need not agree.
    Queueing,
}

/// Converts the delays in reports into delays for the controller. Except with [`Delays::Agreed`], a reported delay is
/// the arrival time by the receiver's clock minus the sending time by the sender's clock.
#[derive(Debug)]
pub(super) struct DelayReader {
    delays: Delays,
    clock: PathClock,
}

/// The delay that a report provides for the controller.
pub(super) enum Reading {
    /// Delay statistics; `None` if the report has too few samples, or if the clocks were not compared yet.
    Delay(Option<DelaySummary>),
    /// No value, because a clock was set during the interval.
    Spoilt,
}

impl DelayReader {
    pub(super) fn new(delays: Delays) -> Self {
        Self { delays, clock: PathClock::new() }
    }

    /// Whether the receiver uses its estimate of the one-way delay to decide which packets belong to an interval (Waki
    /// 2013, Eq. 13).
    pub(super) fn receiver_cuts(&self) -> bool {
        self.delays == Delays::Agreed
    }

    /// Processes a report that arrived at `now`. Calls `tell` with [`Event::ClockStepped`] if a clock was set, and with
    /// [`Event::ClocksCompared`] if the base delay is known.
    pub(super) fn read(
        &mut self,
        now: Instant<SenderClock>,
        report: &DelayReport,
        round_trip: Span,
        tell: &mut dyn FnMut(Event),
    ) -> Reading {
        let Some(origin) = report.origin.filter(|_| self.delays != Delays::Agreed) else {
            return Reading::Delay(report.delay);
        };
        let mut spoilt = false;
        if let Some(least) = origin.least {
            if let Notice::ClockStepped { by } = self.clock.observe(now, origin.origin + least, round_trip) {
                spoilt = true;
                tell(Event::ClockStepped { by });
            }
            if let Some(base) = self.clock.base(now) {
                let (offset, drift) = (self.clock.offset(now), self.clock.drift_ppm());
                tell(Event::ClocksCompared { base, offset, drift });
            }
        }
        if spoilt {
            return Reading::Spoilt;
        }
        let zero = match self.delays {
            Delays::Agreed | Delays::Synchronised => Some(Span::ZERO),
            Delays::Estimated => self.clock.offset(now).map(|offset| offset.receiver_ahead),
            Delays::Queueing => self.clock.base(now),
        };
        let from_zero = |delay: DelaySummary| {
            // Both `origin` and `zero` may be large. Their difference is computed before the conversion to seconds, so
            // that no precision is lost.
            Some(DelaySummary { mean_s: delay.mean_s + (origin.origin - zero?).as_secs_f64(), ..delay })
        };
        Reading::Delay(report.delay.and_then(from_zero))
    }
}
