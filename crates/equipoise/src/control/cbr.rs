use super::{Allowance, Controller, Feedback, Needs, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock};

/// A constant rate, whatever the path does: the comparator of Waki 2013, Sec. 6.1.2.
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    rate: Rate,
}

impl Cbr {
    /// Always `rate`.
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

    fn snapshot(&self) -> Snapshot {
        Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() }
    }
}
