use super::{Allowance, Controller, Feedback, Needs, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock};

/// A constant rate, independent of the path, for comparison with other controllers (Waki 2013, Sec. 6.1.2).
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    rate: Rate,
}

impl Cbr {
    /// Creates a controller that always allows `rate`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }
}

impl Controller for Cbr {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn needs(&self) -> Needs {
        Needs::NOTHING
    }

    /// Returns a tenth of the rate. A circuit breaker lowers the rate to this tenth (RFC 8083, Sec. 4.3), but no
    /// further. After a circuit breaker has stopped the media, the media restarts at this tenth.
    fn lowest_rate(&self) -> Rate {
        Rate::from_bps((self.rate.as_bps() / 10).max(1))
    }

    fn is_held_to_proof(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() }
    }
}
