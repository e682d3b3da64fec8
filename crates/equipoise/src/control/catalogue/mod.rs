//! The one catalogue of all controllers: help, scenario checks and the book's tables are made from it.
//!
//! Three tables: rate controllers for sessions that report, window laws for transports that acknowledge, schedulers for
//! sessions with several paths. An [`Entry`] of another crate stands on the same footing: it checks and builds as ours do.

mod rates;
mod schedulers;
mod windows;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use thiserror::Error;

pub use rates::RateContext;
pub use schedulers::SchedulerEntry;
pub use windows::{WindowContext, WindowEntry};

use super::BoxedController;
use crate::units::{Rate, Size, Span, UnitError};

/// A controller that can be had by name: a rate controller, unless the types say otherwise.
pub struct Entry<C: 'static = BoxedController, X: 'static = RateContext> {
    /// The name, in lower case.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// What makes one, of values for these parameters; it fails if they do not fit together.
    pub make: fn(&Parameters, &X) -> Result<C, ConfigError>,
}

/// What a controller has to know in addition to its parameters.
pub trait Context {
    /// The context in which [`Entry::parse`] tries whether parameters fit together.
    fn trial() -> Self;
}

impl Context for () {
    fn trial() -> Self {}
}

/// Size of the session's IP packets.
impl Context for Size {
    fn trial() -> Self {
        Self::from_bytes(1000)
    }
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
#[non_exhaustive]
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
    /// The parameters are another entry's.
    #[error("`{name}` is asked for and is not among these parameters, which are another entry's")]
    Foreign {
        /// The parameter that is missing.
        name: &'static str,
    },
    /// Values that are right by themselves do not fit together.
    #[error("`{name}`: {problem}")]
    Together {
        /// The parameter that would best be changed.
        name: &'static str,
        /// What does not fit, and what would.
        problem: String,
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
            | Self::OutOfRange { name, .. }
            | Self::Foreign { name }
            | Self::Together { name, .. } => name,
            Self::MinAboveMax { .. } | Self::ZeroRate => rates::MIN_RATE.name,
        }
    }
}

/// All rate controllers, in the order of their listing.
pub fn entries() -> &'static [Entry] {
    rates::ENTRIES
}

/// The rate controller of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    rates::ENTRIES.iter().find(|entry| entry.name == name)
}

/// All window laws, in the order of their listing.
pub fn window_entries() -> &'static [WindowEntry] {
    windows::ENTRIES
}

/// The window law of this name.
pub fn find_window(name: &str) -> Option<&'static WindowEntry> {
    windows::ENTRIES.iter().find(|entry| entry.name == name)
}

/// All schedulers, in the order of their listing.
pub fn scheduler_entries() -> &'static [SchedulerEntry] {
    schedulers::ENTRIES
}

/// The scheduler of this name.
pub fn find_scheduler(name: &str) -> Option<&'static SchedulerEntry> {
    schedulers::ENTRIES.iter().find(|entry| entry.name == name)
}

// Not derived: what an entry makes need not be printable.
impl<C, X> core::fmt::Debug for Entry<C, X> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl<C, X> Entry<C, X> {
    /// A controller in a context; that of a rate controller or a scheduler may be the size of the session's IP packets alone.
    ///
    /// # Errors
    /// [`ConfigError`] if `parameters` are another entry's.
    pub fn build(&self, parameters: &Parameters, context: impl Into<X>) -> Result<C, ConfigError> {
        (self.make)(parameters, &context.into())
    }
}

impl<C, X: Context> Entry<C, X> {
    /// Values for all parameters from the texts given by name; defaults for the others.
    ///
    /// # Errors
    /// [`ConfigError`] for the first parameter that is unknown, missing, of the wrong kind or out of range, and for
    /// values that do not fit together.
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
        (self.make)(&parameters, &X::trial())?;
        Ok(parameters)
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
        found.ok_or(ConfigError::Foreign { name: parameter.name })
    }

    /// The value of a [`Kind::Number`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if these are not the values of an entry with this parameter
    pub fn number(&self, parameter: &Parameter) -> Result<f64, ConfigError> {
        if let Value::Number(number) = self.value(parameter)? { Ok(number) } else { Err(parameter.foreign()) }
    }

    /// The value of a [`Kind::Rate`].
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn rate(&self, parameter: &Parameter) -> Result<Rate, ConfigError> {
        if let Value::Rate(rate) = self.value(parameter)? { Ok(rate) } else { Err(parameter.foreign()) }
    }

    /// The value of a [`Kind::Span`].
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn span(&self, parameter: &Parameter) -> Result<Span, ConfigError> {
        if let Value::Span(span) = self.value(parameter)? { Ok(span) } else { Err(parameter.foreign()) }
    }

    /// The value of a [`Kind::Choice`].
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn choice(&self, parameter: &Parameter) -> Result<&'static str, ConfigError> {
        if let Value::Choice(word) = self.value(parameter)? { Ok(word) } else { Err(parameter.foreign()) }
    }
}

impl Parameter {
    const fn foreign(&self) -> ConfigError {
        ConfigError::Foreign { name: self.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: WindowContext = WindowContext { packet: Size::from_bytes(1500), seed: 1 };

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
            assert!(controller.allowance().rate.is_some_and(|rate| rate > Rate::ZERO), "{}", entry.name);
        }
    }

    #[test]
    fn schedulers_are_a_table_of_their_own_and_build_from_what_they_ask_for() {
        assert_eq!(
            scheduler_entries().iter().map(|entry| entry.name).collect::<Vec<_>>(),
            ["ap", "single", "equal", "min-delay"]
        );
        for entry in scheduler_entries() {
            let given: &[_] = if entry.name == "single" { &[("path", "1")] } else { &[] };
            let parameters = entry.parse(given).expect("defaults suffice");
            let mut scheduler = entry.build(&parameters, Size::from_bytes(500)).expect("it builds");
            assert!(scheduler.split(Rate::from_bps(1_000_000), &[]).is_empty(), "{}", entry.name);
        }
        let single = find_scheduler("single").expect("in the catalogue");
        assert_eq!(single.parse(&[]).expect_err("it needs a path").parameter(), "path");
        assert_eq!(single.parse(&[("path", "70000")]).expect_err("too many").parameter(), "path");
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

    #[test]
    fn every_window_law_builds_from_its_defaults_and_begins_as_rfc_6928_has_it() {
        for entry in window_entries() {
            let parameters = entry.parse(&[]).expect("everything has a default");
            let law = entry.build(&parameters, CONTEXT).expect("it builds");
            assert!((law.window() - 10.0).abs() < 1e-12, "{}", entry.name);
            assert_eq!(law.slow_start_threshold(), None, "{}", entry.name);
            let parameters = entry.parse(&[("initial_window", "3"), ("oscillation", "0.3")]).expect("within range");
            let law = entry.build(&parameters, CONTEXT).expect("it builds");
            assert!((law.window() - 3.0).abs() < 1e-12, "{}", entry.name);
        }
        assert_eq!(
            window_entries().iter().map(|entry| entry.name).collect::<Vec<_>>(),
            ["reno", "cubic", "vegas", "symbiosis"]
        );
        assert!(find_window("ap").is_none() && find("reno").is_none(), "the tables are apart");
    }

    #[test]
    fn what_is_wrong_with_a_window_law_is_named_with_what_would_be_right() {
        let wrong = [
            ("symbiosis", ("gamma", "1"), "gamma", "between 0.01 and 0.99"),
            ("symbiosis", ("noise_aware", "maybe"), "noise_aware", "on, off"),
            ("reno", ("oscillation", "2"), "oscillation", "between 0 and 1"),
            ("reno", ("gamma", "0.5"), "gamma", "initial_window, oscillation"),
            ("cubic", ("initial_window", "0"), "initial_window", "between 1 and"),
            ("vegas", ("alpha", "5"), "alpha", "above `beta`"),
        ];
        for (law, given, parameter, remedy) in wrong {
            let error = find_window(law).expect("in the catalogue").parse(&[given]).expect_err("wrong on purpose");
            assert_eq!(error.parameter(), parameter);
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }

    /// Oscillation draws from the seed, and from nothing else.
    #[test]
    fn the_seed_of_a_window_law_moves_an_oscillating_one_only() {
        use crate::control::window::Acknowledged;
        use crate::units::{Instant, Span};
        let run = |oscillation, seed| {
            let entry = find_window("reno").expect("in the catalogue");
            let parameters = entry.parse(&[("oscillation", oscillation)]).expect("within range");
            let mut law = entry.build(&parameters, WindowContext { seed, ..CONTEXT }).expect("it builds");
            law.on_loss(Instant::ZERO, 40);
            let ack = Acknowledged { segments: 1, in_flight: 20, window_limited: true, ..Acknowledged::default() };
            (1..100).for_each(|ms| law.on_ack(Instant::ZERO + Span::from_millis(ms), &ack));
            law.window().to_bits()
        };
        assert_eq!(run("0", 1), run("0", 2));
        assert_eq!(run("0.3", 1), run("0.3", 1));
        assert_ne!(run("0.3", 1), run("0.3", 2));
    }
}
