use equipoise::units::Span;

use crate::Time;

/// A timer whose deadline is moved to a later time much more often than the timer expires.
///
/// Moving the deadline to a later time does not change the wake-up time. At the wake-up, the timer checks whether the
/// deadline has passed; if not, the deadline is the next wake-up time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    deadline: Option<Time>,
    wake: Option<Time>,
}

impl Timer {
    /// Sets the time at which the timer expires; `None` to stop the timer.
    pub(super) fn set(&mut self, deadline: Option<Time>) {
        self.deadline = deadline;
        self.wake = match (self.wake, deadline) {
            (Some(wake), Some(deadline)) => Some(wake.min(deadline)),
            (Some(wake), None) => Some(wake),
            (None, deadline) => deadline,
        };
    }

    /// Whether the timer has expired at `now`; if so, it is stopped. Must be called at every wake-up.
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

    /// Whether the timer is running.
    pub(super) const fn is_set(&self) -> bool {
        self.deadline.is_some()
    }

    /// The wake-up time, which may be before the time at which the timer expires.
    pub(super) const fn wake(&self) -> Option<Time> {
        self.wake
    }
}

/// Measured round-trip times, and the retransmission timeout that is computed from them.
///
/// Source: RFC 6298, Sec. 2 and 5.5, with a clock granularity of 1 ms.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    smoothed: Option<Span>,
    variation: Span,
    least: Option<Span>,
    min_rto: Span,
    /// Number of timeouts since the last measured round-trip time; each timeout doubles the retransmission timeout.
    backoff: u32,
    /// The retransmission timeout before the first measured round-trip time.
    initial_rto: Span,
}

/// Retransmission timeout before the first measured round-trip time (RFC 6298, Sec. 2.1).
const INITIAL_RTO: Span = Span::from_secs(1);
/// Retransmission timeout after a lost SYN (RFC 6298, Sec. 5.7).
const RTO_AFTER_LOST_SYN: Span = Span::from_secs(3);
/// Maximum retransmission timeout (RFC 6298, Sec. 2.5).
const MAX_RTO: Span = Span::from_secs(60);
/// Clock granularity G (RFC 6298, Sec. 4).
const GRANULARITY: Span = Span::from_millis(1);

impl RoundTrips {
    pub(super) const fn new(min_rto: Span) -> Self {
        Self { smoothed: None, variation: Span::ZERO, least: None, min_rto, backoff: 0, initial_rto: INITIAL_RTO }
    }

    /// Records the measured round-trip time of a segment that was sent only once.
    pub(super) fn push(&mut self, sample: Span) {
        let nanos = sample.as_nanos();
        // RFC 6298, Sec. 2.2 and 2.3: a new measurement has the weight 1/8 in the mean, and 1/4 in the variation.
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

    /// Records that the retransmission timer expired.
    pub(super) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Records that a SYN was retransmitted.
    pub(super) const fn syn_was_lost(&mut self) {
        (self.initial_rto, self.backoff) = (RTO_AFTER_LOST_SYN, 0);
    }

    pub(super) const fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    pub(super) const fn least(&self) -> Option<Span> {
        self.least
    }

    /// The current retransmission timeout.
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
