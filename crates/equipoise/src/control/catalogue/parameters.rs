//! The parameters of a controller, and their values.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::units::{Rate, Span, UnitError};

/// Names of the parameters for the lowest and the highest rate. An error about both rates names `MIN_RATE`.
pub(super) const MIN_RATE: &str = "min_rate";
pub(super) const MAX_RATE: &str = "max_rate";

/// A parameter of a controller in the catalogue.
#[derive(Debug)]
pub struct Parameter {
    /// The parameter's name, in lower case.
    pub name: &'static str,
    /// The kind of the parameter's values.
    pub kind: Kind,
    /// The default value as text; `None` if the parameter is required.
    pub default: Option<&'static str>,
    /// The smallest and the largest allowed value as text; `None` for a choice.
    pub range: Option<(&'static str, &'static str)>,
    /// The meaning of the parameter, and the effect of changing it.
    pub meaning: &'static str,
    /// The origin of the default value: a publication, or our own choice.
    pub source: &'static str,
}

/// The kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in the given unit.
    Number {
        /// The unit of the number; empty for a plain ratio.
        unit: &'static str,
    },
    /// A rate, written with its unit.
    Rate,
    /// A time, written with its unit.
    Span,
    /// One of the given words.
    Choice(&'static [&'static str]),
}

/// For a number, writes the number's unit, or "number" if there is no unit. For a choice, writes the allowed words. For
/// a rate or a time, writes "rate" or "time".
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
    /// A number, in the unit that the parameter's [`Kind::Number`] states.
    Number(f64),
    /// A rate.
    Rate(Rate),
    /// A time.
    Span(Span),
    /// One of the words that the parameter's [`Kind::Choice`] allows.
    Choice(&'static str),
}

/// The checked values of all parameters of a catalogue entry. The `Default` value is for an entry without parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(pub(super) Vec<(&'static str, Value)>);

/// The reason why a controller cannot be built.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The controller has no parameter of this name.
    #[error("`{name}` is not a parameter of {controller}; it has {known}")]
    UnknownParameter {
        /// The name that was given, which is unknown.
        name: String,
        /// The controller's name.
        controller: String,
        /// The names of the controller's parameters, separated by commas.
        known: String,
    },
    /// A parameter without a default was not given.
    #[error("{controller} needs `{name}`: {meaning}")]
    Missing {
        /// The name of the missing parameter.
        name: &'static str,
        /// The controller's name.
        controller: &'static str,
        /// What the parameter means.
        meaning: &'static str,
    },
    /// The text is not a quantity of the parameter's kind.
    #[error("`{name}`: {source}")]
    Unit {
        /// The parameter's name.
        name: &'static str,
        /// What is wrong with the text.
        source: UnitError,
    },
    /// The text is not a number.
    #[error("`{name}` must be a number{unit}, not `{text}`")]
    NotANumber {
        /// The parameter's name.
        name: &'static str,
        /// The expected unit, prefixed with " in ", or empty.
        unit: String,
        /// The given text, which is not a number.
        text: String,
    },
    /// The text is not one of the allowed words.
    #[error("`{name}` must be one of {known}, not `{text}`")]
    NotAChoice {
        /// The parameter's name.
        name: &'static str,
        /// The allowed words, separated by commas.
        known: String,
        /// The given text, which is not an allowed word.
        text: String,
    },
    /// The value is outside the parameter's range.
    #[error("`{name}` is {text}; it must lie between {min} and {max}")]
    OutOfRange {
        /// The parameter's name.
        name: &'static str,
        /// The given text, whose value is out of range.
        text: String,
        /// The smallest allowed value, as text.
        min: &'static str,
        /// The largest allowed value, as text.
        max: &'static str,
    },
    /// The parameters belong to another catalogue entry.
    #[error("`{name}` is not among these parameters, which belong to another entry")]
    Foreign {
        /// The name of the missing parameter.
        name: &'static str,
    },
    /// Each value is valid, but together they are inconsistent.
    #[error("`{name}`: {problem}")]
    Together {
        /// The name of the parameter that should be changed.
        name: &'static str,
        /// The inconsistency, and how to correct it.
        problem: String,
    },
    /// The lowest rate is above the highest.
    #[error("`min_rate` is {min}, above `max_rate`, which is {max}; swap them or lower `min_rate`")]
    MinAboveMax {
        /// The configured lowest rate.
        min: Rate,
        /// The configured highest rate.
        max: Rate,
    },
    /// The lowest rate is zero.
    #[error("`min_rate` is zero; a session that sends nothing measures nothing, so it must be above zero")]
    ZeroRate,
}

impl ConfigError {
    /// Returns the name of the parameter that is wrong.
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
    /// Returns the value in its base unit, for comparison: bit/s for a rate and s for a time. Returns `None` for a
    /// choice.
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
    /// Returns name and value of every parameter, in the order of the catalogue entry.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the value of the parameter `max_rate`, or `None` if the controller has no such parameter.
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

    /// Returns the value of `parameter`, whose kind must be [`Kind::Number`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if the catalogue entry of these values has no parameter of this name and kind.
    pub fn number(&self, parameter: &Parameter) -> Result<f64, ConfigError> {
        if let Value::Number(number) = self.value(parameter)? { Ok(number) } else { Err(parameter.foreign()) }
    }

    /// Returns the value of `parameter`, whose kind must be [`Kind::Rate`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if the catalogue entry of these values has no parameter of this name and kind.
    pub fn rate(&self, parameter: &Parameter) -> Result<Rate, ConfigError> {
        if let Value::Rate(rate) = self.value(parameter)? { Ok(rate) } else { Err(parameter.foreign()) }
    }

    /// Returns the value of `parameter`, whose kind must be [`Kind::Span`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if the catalogue entry of these values has no parameter of this name and kind.
    pub fn span(&self, parameter: &Parameter) -> Result<Span, ConfigError> {
        if let Value::Span(span) = self.value(parameter)? { Ok(span) } else { Err(parameter.foreign()) }
    }

    /// Returns the value of `parameter`, whose kind must be [`Kind::Choice`].
    ///
    /// # Errors
    /// [`ConfigError::Foreign`] if the catalogue entry of these values has no parameter of this name and kind.
    pub fn choice(&self, parameter: &Parameter) -> Result<&'static str, ConfigError> {
        if let Value::Choice(word) = self.value(parameter)? { Ok(word) } else { Err(parameter.foreign()) }
    }
}

impl Parameter {
    const fn foreign(&self) -> ConfigError {
        ConfigError::Foreign { name: self.name }
    }
}
