//! Conversion between the caller's times and the controllers'.

use equipoise::units::{Instant, ReceiverClock, SenderClock, Span};

/// The caller's clock: nanoseconds from any origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallersClock {
    start_ns: i64,
}

/// The caller's first time on the controller's clock, in ns: 36 years. It is far from zero, because a receiver's
/// timestamps wrap and may seem to be earlier than the first time.
const EPOCH: u64 = 1 << 60;

/// A time that is never reached.
pub const EQ_NEVER: i64 = i64::MAX;

impl CallersClock {
    pub(crate) const fn starting_at(now_ns: i64) -> Self {
        Self { start_ns: now_ns }
    }

    pub(crate) fn time(self, at_ns: i64) -> Instant<SenderClock> {
        Instant::from_nanos(bounded(i128::from(EPOCH) + i128::from(at_ns) - i128::from(self.start_ns)))
    }

    pub(crate) fn nanos(self, at: Instant<SenderClock>) -> i64 {
        let since = i128::from(at.as_nanos()) - i128::from(EPOCH) + i128::from(self.start_ns);
        since.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// A time of the receiver's clock, with any origin.
pub(crate) fn arrival(at_ns: i64) -> Instant<ReceiverClock> {
    Instant::from_nanos(bounded(i128::from(EPOCH) + i128::from(at_ns)))
}

/// The given time if it is positive, otherwise `standard`.
pub(crate) const fn span_or(nanos: i64, standard: Span) -> Span {
    if nanos > 0 { Span::from_nanos(nanos) } else { standard }
}

fn bounded(nanos: i128) -> u64 {
    nanos.clamp(0, u64::MAX.into()) as u64
}
