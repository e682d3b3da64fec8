//! The table of rate controllers.

use alloc::boxed::Box;

use super::super::ap::{Ap, ApConfig, Learning, Printed, PrintedConfig, Response};
use super::super::{Aimd, BoxedController, Cbr, RateLimits};
use super::{ConfigError, Entry, Kind, Parameter, Parameters};
use crate::units::Size;

impl Parameters {
    fn learning(&self) -> Result<Learning, ConfigError> {
        Ok(match self.choice(&LEARN)? {
            "probe" => Learning::Probed,
            "adapt" => Learning::Adapted,
            _ => Learning::Fixed,
        })
    }

    fn limits(&self) -> Result<RateLimits, ConfigError> {
        RateLimits::new(self.rate(&MIN_RATE)?, self.rate(&MAX_RATE)?)
    }

    fn printed(&self, response: Response, packet: Size) -> Result<BoxedController, ConfigError> {
        let (target, limits) = (self.span(&TARGET)?, self.limits()?);
        Ok(Box::new(Printed::new(PrintedConfig { target, limits, response, packet })))
    }
}

const TARGET: Parameter = Parameter {
    name: "target",
    kind: Kind::Span,
    default: None,
    range: Some(("0.1 ms", "60 s")),
    meaning: "one-way delay to hold; above the path's propagation delay",
    source: "the application",
};
pub(super) const MIN_RATE: Parameter = Parameter {
    name: "min_rate",
    kind: Kind::Rate,
    default: Some("0.1 Mbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "lowest rate, at which the session starts",
    source: "Waki 2013, Sec. 6.1.2",
};
const MAX_RATE: Parameter = Parameter {
    name: "max_rate",
    kind: Kind::Rate,
    default: Some("15 Mbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "highest rate",
    source: "Waki 2013, Sec. 6.1.2",
};
const UNREST: Parameter = Parameter {
    name: "unrest",
    kind: Kind::Number { unit: "" },
    default: Some("0.08"),
    range: Some(("0.001", "1")),
    meaning: "share of the headroom by which noise may move the rate; less is steadier, and finds free capacity later",
    source: "ours",
};
const RESPONSE: Parameter = Parameter {
    name: "b",
    kind: Kind::Number { unit: "1/(s·Mbit/s)" },
    default: Some("300"),
    range: Some(("0.001", "1000000")),
    meaning: "coefficient of response; larger is slower",
    source: "Waki 2013, Sec. 4.2",
};
const LEARN: Parameter = Parameter {
    name: "learn",
    kind: Kind::Choice(&["never", "probe", "adapt"]),
    default: Some("never"),
    range: None,
    meaning: "whether b is learned by small pushes of the rate: not at all, at the beginning, or all the time",
    source: "Waki 2013, Sec. 8",
};
const RATE: Parameter = Parameter {
    name: "rate",
    kind: Kind::Rate,
    default: None,
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "the rate",
    source: "the application",
};
const INCREASE: Parameter = Parameter {
    name: "increase",
    kind: Kind::Rate,
    default: Some("0.4 Mbit/s"),
    range: Some(("1 bit/s", "1 Gbit/s")),
    meaning: "A, added in every interval whose mean delay is below the target",
    source: "Waki 2013, Sec. 6.1.2",
};
const DECREASE: Parameter = Parameter {
    name: "decrease",
    kind: Kind::Number { unit: "" },
    default: Some("0.5"),
    range: Some(("0.01", "0.99")),
    meaning: "B, by which the rate is multiplied in every other interval",
    source: "Waki 2013, Sec. 6.1.2",
};

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        name: "ap",
        summary: "attractor perturbation that can be trusted: filtered, along the whole curve of the delay",
        source: "Waki 2013, Eq. 7, 15, 16",
        parameters: &[TARGET, RESPONSE, LEARN, UNREST, MIN_RATE, MAX_RATE],
        make: |given, packet| {
            let (target, limits) = (given.span(&TARGET)?, given.limits()?);
            let (response, unrest) = (given.number(&RESPONSE)?, given.number(&UNREST)?);
            let learning = given.learning()?;
            Ok(Box::new(Ap::new(ApConfig { target, limits, response, learning, unrest, packet })))
        },
    },
    Entry {
        name: "ap-printed",
        summary: "attractor perturbation as printed: step the rate by the delay's error over b times its variance",
        source: "Waki 2013, Eq. 15, 16",
        parameters: &[TARGET, RESPONSE, MIN_RATE, MAX_RATE],
        make: |given, packet| given.printed(Response::Constant(given.number(&RESPONSE)?), packet),
    },
    Entry {
        name: "ap-load",
        summary: "attractor perturbation as printed, with b(ρ) from the bottleneck's load, where the world knows it",
        source: "Waki 2013, Eq. 11, 15, 16",
        parameters: &[TARGET, RESPONSE, MIN_RATE, MAX_RATE],
        make: |given, packet| given.printed(Response::OfLoad { fallback: given.number(&RESPONSE)? }, packet),
    },
    Entry {
        name: "aimd",
        summary: "additive increase below the target delay, multiplicative decrease above",
        source: "Waki 2013, Eq. 17",
        parameters: &[TARGET, INCREASE, DECREASE, MIN_RATE, MAX_RATE],
        make: |given, _| {
            let (increase, decrease) = (given.rate(&INCREASE)?, given.number(&DECREASE)?);
            Ok(Box::new(Aimd::new(given.span(&TARGET)?, given.limits()?, increase, decrease)))
        },
    },
    Entry {
        name: "cbr",
        summary: "constant bit rate, whatever the path does",
        source: "Waki 2013, Sec. 6.1.2",
        parameters: &[RATE],
        make: |given, _| Ok(Box::new(Cbr::new(given.rate(&RATE)?))),
    },
];
