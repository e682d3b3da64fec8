use equipoise::units::Span;

use crate::Time;

/// A timer that is put off far more often than it runs out.
///
/// Putting it off costs nothing: it wakes at the time that it was first asked for, and is then asked for anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    deadline: Option<Time>,
    wake: Option<Time>,
}

impl Timer {
    /// Runs out at `deadline`, or not at all.
    pub(super) fn set(&mut self, deadline: Option<Time>) {
        self.deadline = deadline;
        self.wake = match (self.wake, deadline) {
            (Some(wake), Some(deadline)) => Some(wake.min(deadline)),
            (Some(wake), None) => Some(wake),
            (None, deadline) => deadline,
        };
    }

    /// Whether it has run out at `now`; to be asked at every wake-up.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let due = self.deadline.is_some_and(|deadline| deadline <= now);
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = self.deadline.filter(|_| !due);
        }
        if due {
            self.deadline = None;
        }
        due
    }

    /// Whether it runs.
    pub(super) const fn is_set(&self) -> bool {
        self.deadline.is_some()
    }

    /// When it wants to be woken, which may be before its time.
    pub(super) const fn wake(&self) -> Option<Time> {
        self.wake
    }
}

/// Round-trip times and the timeout that follows from them.
///
/// Source: RFC 6298, Sec. 2 and 5.5; clock granularity is 1 ms.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    smoothed: Option<Span>,
    variation: Span,
    least: Option<Span>,
    min_rto: Span,
    /// Timeouts since the last sample: the timeout doubles with each.
    backoff: u32,
    /// Holds before the first sample.
    initial_rto: Span,
}

/// RFC 6298, Sec. 2.1.
const INITIAL_RTO: Span = Span::from_secs(1);
/// RFC 6298, Sec. 5.7: after a SYN was lost.
const RTO_AFTER_LOST_SYN: Span = Span::from_secs(3);
/// RFC 6298, Sec. 2.5.
const MAX_RTO: Span = Span::from_secs(60);
/// RFC 6298, Sec. 4: G.
const GRANULARITY: Span = Span::from_millis(1);

impl RoundTrips {
    pub(super) const fn new(min_rto: Span) -> Self {
        Self { smoothed: None, variation: Span::ZERO, least: None, min_rto, backoff: 0, initial_rto: INITIAL_RTO }
    }

    /// A round trip of a segment that was sent once.
    pub(super) fn push(&mut self, sample: Span) {
        let nanos = sample.as_nanos();
        // RFC 6298, Eq. 2.2 and 2.3: alpha = 1/8, beta = 1/4.
        let (smoothed, variation) = match self.smoothed {
            None => (nanos, nanos / 2),
            Some(smoothed) => {
                let (smoothed, variation) = (smoothed.as_nanos(), self.variation.as_nanos());
                (smoothed + (nanos - smoothed) / 8, variation + ((smoothed - nanos).abs() - variation) / 4)
            }
        };
        (self.smoothed, self.variation) = (Some(Span::from_nanos(smoothed)), Span::from_nanos(variation));
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.backoff = 0;
    }

    /// The timer ran out.
    pub(super) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// A SYN had to be sent again.
    pub(super) const fn syn_was_lost(&mut self) {
        (self.initial_rto, self.backoff) = (RTO_AFTER_LOST_SYN, 0);
    }

    pub(super) const fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    pub(super) const fn least(&self) -> Option<Span> {
        self.least
    }

    /// The retransmission timeout as it is now.
    pub(super) fn timeout(&self) -> Span {
        let base = match self.smoothed {
            None => self.initial_rto,
            Some(smoothed) => {
                let spread = Span::from_nanos(self.variation.as_nanos().saturating_mul(4)).max(GRANULARITY);
                (smoothed + spread).max(self.min_rto)
            }
        };
        let doubled = base.as_nanos().saturating_mul(1 << self.backoff.min(16));
        Span::from_nanos(doubled).min(MAX_RTO)
    }
}
