use equipoise::control::{Allowance, Controller, Entry, Feedback, Kind, Parameter};
use equipoise::units::{Instant, Rate, SenderClock};

/// A rate controller that reduces the rate by a third after an interval with losses. After an interval without losses,
/// it increases the rate by the share `climb`, unless the application sent less than the rate allows.
#[derive(Clone, Debug)]
struct Gentle {
    rate: Rate,
    climb: f64,
}

impl Controller for Gentle {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        let Feedback::Interval(interval) = feedback else { return };
        let factor = match interval.has_losses() {
            true => 2.0 / 3.0,
            false if interval.app_limited => 1.0,
            false => 1.0 + self.climb,
        };
        self.rate = Rate::from_bps_f64(self.rate.as_bps_f64() * factor).unwrap_or(self.rate);
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }
}

const CLIMB: Parameter = Parameter {
    name: "climb",
    kind: Kind::Number { unit: "" },
    default: Some("0.02"),
    range: Some(("0.001", "1")),
    meaning: "share by which the rate rises after an interval without loss",
    source: "this example",
};

pub(crate) static GENTLE: Entry = Entry {
    name: "gentle",
    summary: "a third less upon loss, a little more otherwise",
    source: "this example",
    parameters: &[CLIMB],
    make: |given, _| Ok(Box::new(Gentle { rate: Rate::from_bps(500_000), climb: given.number(&CLIMB)? })),
};
