//! Defines a custom controller. Two methods are enough to use it instead of a built-in controller.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use equipoise::control::{Allowance, Controller, Feedback, IntervalSummary, Needs, Reason, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock};

/// Reduces the rate by a third after an interval with losses. After any other interval, raises the rate by 2 %, unless
/// the application sent less than the rate.
#[derive(Clone, Debug)]
struct Gentle {
    rate: Rate,
    backed_off: bool,
}

impl Controller for Gentle {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        let Feedback::Interval(interval) = feedback else { return };
        self.backed_off = interval.has_losses();
        let factor = if self.backed_off { 2.0 / 3.0 } else { 1.02 };
        if self.backed_off || !interval.app_limited {
            self.rate = Rate::from_bps_f64(self.rate.as_bps_f64() * factor).unwrap_or(self.rate);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    // The following methods are optional. `needs` returns the kind of feedback that the controller requires. `snapshot`
    // returns the last decision, for logs.
    fn needs(&self) -> Needs {
        Needs::INTERVALS
    }

    fn snapshot(&self) -> Snapshot {
        let reason = if self.backed_off { Reason::Other("backed-off") } else { Reason::Law };
        Snapshot { reason: Some(reason), ..Snapshot::default() }
    }
}

fn main() {
    let mut gentle = Gentle { rate: Rate::from_bps(1_000_000), backed_off: false };
    for lost in [0.0, 0.0, 0.1, 0.0] {
        let mut interval = IntervalSummary::unmeasured();
        interval.fraction_lost = Some(lost);
        gentle.on_feedback(Instant::ZERO, &Feedback::Interval(interval));
        println!("{:?} {}", gentle.allowance().rate, gentle.snapshot().reason.map_or("", Reason::name));
    }
    // Signals that three reports are missing. This controller ignores the signal, so a session would halve the rate
    // itself.
    gentle.on_feedback(Instant::ZERO, &Feedback::Silent { reports: 3 });
}
