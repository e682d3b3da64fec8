//! Conversion between times of the caller's clock and times of the controllers' clocks.

use equipoise::units::{Instant, ReceiverClock, SenderClock, Span};

/// The caller's clock. It counts nanoseconds, from an origin that the caller chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallersClock {
    start_ns: i64,
}

/// The time that the controller's clock shows when the handle is created, in ns. A receiver's timestamps wrap around,
/// so they may seem to be earlier than the creation of the handle. The clock has no times below zero. Therefore the
/// value is far above zero: about 36 years.
const EPOCH: u64 = 1 << 60;

/// Value of a time in ns that means never.
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

/// Converts a time of the receiver's clock, in ns from any origin.
pub(crate) fn arrival(at_ns: i64) -> Instant<ReceiverClock> {
    Instant::from_nanos(bounded(i128::from(EPOCH) + i128::from(at_ns)))
}

/// Returns `nanos` as a time span if it is positive, otherwise `standard`.
pub(crate) const fn span_or(nanos: i64, standard: Span) -> Span {
    if nanos > 0 { Span::from_nanos(nanos) } else { standard }
}

fn bounded(nanos: i128) -> u64 {
    nanos.clamp(0, u64::MAX.into()) as u64
}
