use crate::Event;
use crate::wire::DelayReport;
use equipoise::measure::{DelaySummary, Notice, PathClock};
use equipoise::units::{Instant, SenderClock, Span};

/// What the delays that control goes by are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delays {
    /// One-way delays as reported, between clocks that agree, of intervals that the receiver cuts by Waki 2013, Eq. 13.
    #[default]
    Agreed,
    /// One-way delays, between clocks that are declared to be synchronised.
    Synchronised,
    /// One-way delays, between clocks whose difference is estimated from the round trips: true to within half of the
    /// shortest one.
    Estimated,
    /// Queueing delays: beyond the least delay of the path. No clock has to agree with another.
    Queueing,
}

/// What reports from across two clocks come to.
#[derive(Debug)]
pub(super) struct DelayReader {
    delays: Delays,
    clock: PathClock,
}

/// What a report says of the delay, for control.
pub(super) enum Reading {
    /// These statistics; `None` for too few samples.
    Delay(Option<DelaySummary>),
    /// Nothing: a clock was set in the middle of it.
    Spoilt,
}

impl DelayReader {
    pub(super) fn new(delays: Delays) -> Self {
        Self { delays, clock: PathClock::new() }
    }

    /// Whether the receiver cuts the interval by its own knowledge of the way (Waki 2013, Eq. 13).
    pub(super) fn receiver_cuts(&self) -> bool {
        self.delays == Delays::Agreed
    }

    /// Reads a report that came at `now`. `tell` is told what there is to know of clocks and path.
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
            // The difference of two large numbers, before it becomes a fraction of seconds.
            Some(DelaySummary { mean_s: delay.mean_s + (origin.origin - zero?).as_secs_f64(), ..delay })
        };
        Reading::Delay(report.delay.and_then(from_zero))
    }
}
