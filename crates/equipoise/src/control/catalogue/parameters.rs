//! The parameters of a controller, and their values.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::units::{Rate, Span, UnitError};

/// The parameter that is named in an error about both rate limits.
pub(super) const MIN_RATE: &str = "min_rate";
pub(super) const MAX_RATE: &str = "max_rate";

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The name, in lower case.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The default as text; `None` for a required parameter.
    pub default: Option<&'static str>,
    /// Smallest and largest value as text, both allowed; `None` for a choice.
    pub range: Option<(&'static str, &'static str)>,
    /// The meaning of the parameter, and the effect of changing it.
    pub meaning: &'static str,
    /// Source of the default.
    pub source: &'static str,
}

/// The kind of a parameter's values.
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
    /// One of several words.
    Choice(&'static [&'static str]),
}

/// As text: `rate`, `time`, `number`, the unit of a number, or the allowed words.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => f.write_str("rate"),
            Self::Span => f.write_str("time"),
            Self::Number { unit: "" } => f.write_str("number"),
            Self::Number { unit } => f.write_str(unit),
            Self::Choice(words) => {
                for (place, word) in words.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{word}")?;
                }
                Ok(())
            }
        }
    }
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

/// A checked value for every parameter of a catalogue entry. The default is for an entry without parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(pub(super) Vec<(&'static str, Value)>);

/// Why a controller cannot be built.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The controller has no parameter of this name.
    #[error("`{name}` is not a parameter of {controller}; it has {known}")]
    UnknownParameter {
        /// The name that was given.
        name: String,
        /// The controller's name.
        controller: String,
        /// The controller's parameters.
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
    #[error("`{name}` must be a number{unit}, not `{text}`")]
    NotANumber {
        /// The parameter.
        name: &'static str,
        /// The expected unit, prefixed with " in ", or empty.
        unit: String,
        /// The text that was given.
        text: String,
    },
    /// The text is not one of the allowed words.
    #[error("`{name}` must be one of {known}, not `{text}`")]
    NotAChoice {
        /// The parameter.
        name: &'static str,
        /// The allowed words.
        known: String,
        /// The text that was given.
        text: String,
    },
    /// The value is outside its range.
    #[error("`{name}` is {text}; it must lie between {min} and {max}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The text that was given.
        text: String,
        /// The smallest value.
        min: &'static str,
        /// The largest value.
        max: &'static str,
    },
    /// The parameters belong to another catalogue entry.
    #[error("`{name}` is not among these parameters, which belong to another entry")]
    Foreign {
        /// The parameter that is missing.
        name: &'static str,
    },
    /// Each value is valid, but together they are inconsistent.
    #[error("`{name}`: {problem}")]
    Together {
        /// The parameter that should be changed.
        name: &'static str,
        /// The inconsistency, and how to correct it.
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
            Self::MinAboveMax { .. } | Self::ZeroRate => MIN_RATE,
        }
    }
}

impl Parameter {
    /// Parses `text` as a value of this parameter.
    ///
    /// # Errors
    /// [`ConfigError`] for a text of the wrong kind or a value out of range.
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
    /// Name and value of every parameter, in catalogue order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.0.iter().copied()
    }

    /// The highest rate of the controller, if it has one as a parameter.
    pub fn highest_rate(&self) -> Option<Rate> {
        self.0.iter().find_map(|(name, value)| match value {
            Value::Rate(rate) if *name == MAX_RATE => Some(*rate),
            _ => None,
        })
    }

    fn value(&self, parameter: &Parameter) -> Result<Value, ConfigError> {
        let found = self.0.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| *value);
        found.ok_or(ConfigError::Foreign { name: parameter.name })
    }

    /// The value of a [`Kind::Number`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if the entry of these values has no such parameter.
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
