//! The one table of all controllers: help, scenario checks and the book's tables are made from it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use thiserror::Error;

use super::ap::{Ap, ApConfig, Learning, Printed, PrintedConfig, Response};
use super::{Aimd, BoxedController, Cbr, RateLimits};
use crate::units::{Rate, Size, Span, UnitError};

/// A controller that can be had by name.
#[derive(Debug)]
pub struct Entry {
    /// The name, in lower case.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    make: fn(&Parameters, Size) -> Result<BoxedController, ConfigError>,
}

/// Something that can be set.
#[derive(Debug)]
pub struct Parameter {
    /// The name, in lower case.
    pub name: &'static str,
    /// What it is set to.
    pub kind: Kind,
    /// Its value where none is given, as one would write it; `None` where it has to be given.
    pub default: Option<&'static str>,
    /// Smallest and largest value, both allowed, as one would write them; `None` for a choice.
    pub range: Option<(&'static str, &'static str)>,
    /// What it means and what turning it does.
    pub meaning: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

/// What a parameter is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in the given unit; an empty unit for a plain ratio.
    Number {
        /// The unit.
        unit: &'static str,
    },
    /// A rate with its unit.
    Rate,
    /// A time with its unit.
    Span,
    /// One of some words.
    Choice(&'static [&'static str]),
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number in the unit of its [`Kind::Number`].
    Number(f64),
    /// A rate.
    Rate(Rate),
    /// A time.
    Span(Span),
    /// One of the words of its [`Kind::Choice`].
    Choice(&'static str),
}

/// A value for every parameter of an entry, each checked against kind and range.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters(Vec<(&'static str, Value)>);

/// Why a controller cannot be made as asked.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// The controller has no such parameter.
    #[error("`{name}` is not a parameter of {controller}; it has {known}")]
    UnknownParameter {
        /// What was given.
        name: String,
        /// The controller's name.
        controller: &'static str,
        /// Its parameters.
        known: String,
    },
    /// A parameter without a default was not given.
    #[error("{controller} needs `{name}`: {meaning}")]
    Missing {
        /// The parameter.
        name: &'static str,
        /// The controller's name.
        controller: &'static str,
        /// What the parameter means.
        meaning: &'static str,
    },
    /// The text is not a quantity of the parameter's kind.
    #[error("`{name}`: {source}")]
    Unit {
        /// The parameter.
        name: &'static str,
        /// What is wrong with the text.
        source: UnitError,
    },
    /// The text is not a number.
    #[error("`{name}` is to be a number{unit}, not `{text}`")]
    NotANumber {
        /// The parameter.
        name: &'static str,
        /// The unit it counts in, led by " in ", or nothing.
        unit: String,
        /// What was given.
        text: String,
    },
    /// The text is not one of the words allowed.
    #[error("`{name}` is to be one of {known}, not `{text}`")]
    NotAChoice {
        /// The parameter.
        name: &'static str,
        /// The words allowed.
        known: String,
        /// What was given.
        text: String,
    },
    /// The value lies outside its range.
    #[error("`{name}` is {text}; it must lie between {min} and {max}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        text: String,
        /// The smallest value.
        min: &'static str,
        /// The largest value.
        max: &'static str,
    },
    /// The lowest rate is above the highest.
    #[error("`min_rate` is {min}, above `max_rate`, which is {max}; swap them or lower `min_rate`")]
    MinAboveMax {
        /// The lowest rate.
        min: Rate,
        /// The highest rate.
        max: Rate,
    },
    /// The lowest rate is zero.
    #[error("`min_rate` is zero; a session that sends nothing measures nothing, so it must be above zero")]
    ZeroRate,
}

impl ConfigError {
    /// The parameter that is wrong.
    pub fn parameter(&self) -> &str {
        match self {
            Self::UnknownParameter { name, .. } => name,
            Self::Missing { name, .. }
            | Self::Unit { name, .. }
            | Self::NotANumber { name, .. }
            | Self::NotAChoice { name, .. }
            | Self::OutOfRange { name, .. } => name,
            Self::MinAboveMax { .. } | Self::ZeroRate => MIN_RATE.name,
        }
    }
}

/// All controllers, in the order of their listing.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The controller of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// Values for all parameters from the texts given by name; defaults for the others.
    ///
    /// # Errors
    /// [`ConfigError`] for the first parameter that is unknown, missing, of the wrong kind or out of range, and for
    /// limits of the rate that leave no rate.
    pub fn parse(&self, given: &[(&str, &str)]) -> Result<Parameters, ConfigError> {
        if let Some((name, _)) = given.iter().find(|(name, _)| self.parameters.iter().all(|p| p.name != *name)) {
            let known: Vec<_> = self.parameters.iter().map(|p| p.name).collect();
            return Err(ConfigError::UnknownParameter {
                name: (*name).to_string(),
                controller: self.name,
                known: known.join(", "),
            });
        }
        let value = |parameter: &'static Parameter| {
            let text = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, text)| *text);
            let text = text.or(parameter.default).ok_or(ConfigError::Missing {
                name: parameter.name,
                controller: self.name,
                meaning: parameter.meaning,
            })?;
            Ok((parameter.name, parameter.parse(text)?))
        };
        let parameters = Parameters(self.parameters.iter().map(value).collect::<Result<_, _>>()?);
        self.build(&parameters, Size::from_bytes(1000))?;
        Ok(parameters)
    }

    /// A controller for IP packets of `packet`.
    ///
    /// # Errors
    /// [`ConfigError`] where `parameters` are another entry's.
    pub fn build(&self, parameters: &Parameters, packet: Size) -> Result<BoxedController, ConfigError> {
        (self.make)(parameters, packet)
    }
}

impl Parameter {
    /// The value that `text` stands for.
    ///
    /// # Errors
    /// [`ConfigError`] for a text of another kind or a value out of range.
    pub fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        let value = self.read(text)?;
        let Some((min, max)) = self.range else { return Ok(value) };
        let inside = match (value.base(), self.read(min)?.base(), self.read(max)?.base()) {
            (Some(value), Some(low), Some(high)) => (low..=high).contains(&value),
            _ => true,
        };
        if inside {
            return Ok(value);
        }
        Err(ConfigError::OutOfRange { name: self.name, text: text.to_string(), min, max })
    }

    fn read(&self, text: &str) -> Result<Value, ConfigError> {
        let name = self.name;
        let wrong_unit = |source| ConfigError::Unit { name, source };
        match self.kind {
            Kind::Rate => text.parse().map(Value::Rate).map_err(wrong_unit),
            Kind::Span => text.parse().map(Value::Span).map_err(wrong_unit),
            Kind::Number { unit } => {
                text.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Number).ok_or_else(|| {
                    let unit = if unit.is_empty() { String::new() } else { alloc::format!(" in {unit}") };
                    ConfigError::NotANumber { name, unit, text: text.to_string() }
                })
            }
            Kind::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| ConfigError::NotAChoice { name, known: words.join(", "), text: text.to_string() }),
        }
    }
}

impl Value {
    /// The value in its base unit, for comparison; `None` for a choice.
    fn base(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Rate(rate) => Some(rate.as_bps_f64()),
            Self::Span(span) => Some(span.as_secs_f64()),
            Self::Choice(_) => None,
        }
    }
}

impl core::fmt::Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Span(span) => write!(f, "{span}"),
            Self::Choice(word) => f.write_str(word),
        }
    }
}

impl Parameters {
    /// Every parameter's name and value, in the order of the catalogue.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.0.iter().copied()
    }

    fn value(&self, parameter: &Parameter) -> Result<Value, ConfigError> {
        let found = self.0.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| *value);
        found.map_or_else(|| Err(parameter.foreign()), Ok)
    }

    fn number(&self, parameter: &Parameter) -> Result<f64, ConfigError> {
        if let Value::Number(number) = self.value(parameter)? { Ok(number) } else { Err(parameter.foreign()) }
    }

    fn rate(&self, parameter: &Parameter) -> Result<Rate, ConfigError> {
        if let Value::Rate(rate) = self.value(parameter)? { Ok(rate) } else { Err(parameter.foreign()) }
    }

    fn span(&self, parameter: &Parameter) -> Result<Span, ConfigError> {
        if let Value::Span(span) = self.value(parameter)? { Ok(span) } else { Err(parameter.foreign()) }
    }

    fn choice(&self, parameter: &Parameter) -> Result<&'static str, ConfigError> {
        if let Value::Choice(word) = self.value(parameter)? { Ok(word) } else { Err(parameter.foreign()) }
    }

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

impl Parameter {
    /// The error for a set of parameters that is another entry's.
    fn foreign(&self) -> ConfigError {
        ConfigError::Missing { name: self.name, controller: "the controller", meaning: self.meaning }
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
const MIN_RATE: Parameter = Parameter {
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

static ENTRIES: &[Entry] = &[
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_in_its_own_range_and_every_entry_builds_from_its_defaults() {
        for entry in entries() {
            for parameter in entry.parameters {
                if let Some(default) = parameter.default {
                    parameter.parse(default).expect("a default within its range");
                }
            }
            let required: Vec<_> = entry.parameters.iter().filter(|p| p.default.is_none()).collect();
            let given: Vec<_> =
                required.iter().map(|p| (p.name, if p.kind == Kind::Rate { "3 Mbit/s" } else { "8.2 ms" })).collect();
            let parameters = entry.parse(&given).expect("defaults and required parameters suffice");
            let controller = entry.build(&parameters, Size::from_bytes(1000)).expect("it builds");
            assert!(controller.allowance().rate > Rate::ZERO, "{}", entry.name);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let ap = find("ap").expect("in the catalogue");
        let wrong = [
            (&[("target", "8.2")][..], "target", "no unit"),
            (&[("goal", "8.2 ms")], "goal", "target, b, learn, unrest"),
            (&[("b", "300")], "target", "needs `target`"),
            (&[("target", "8.2 ms"), ("b", "fast")], "b", "1/(s·Mbit/s)"),
            (&[("target", "8.2 ms"), ("b", "-3")], "b", "between 0.001 and"),
            (&[("target", "8.2 ms"), ("unrest", "2")], "unrest", "between 0.001 and"),
            (&[("target", "8.2 ms"), ("min_rate", "20 Mbit/s")], "min_rate", "above `max_rate`"),
        ];
        for (given, parameter, remedy) in wrong {
            let error = ap.parse(given).expect_err("wrong on purpose");
            assert_eq!(error.parameter(), parameter);
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}
