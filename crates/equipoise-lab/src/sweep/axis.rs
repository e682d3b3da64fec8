//! Parses `KEY=V1,V2,…`, which lists the values that a key takes in a sweep.

use std::str::FromStr;

use thiserror::Error;
use toml::Value;

use super::quantity::{Quantity, Unit};
use crate::scenario::{Override, SetError};

/// Why a text is not a key with a list of values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AxisError {
    /// The text is not of the form `KEY=VALUE`.
    #[error(transparent)]
    Key(#[from] SetError),
    /// One of the values is empty.
    #[error("a value is empty; write KEY=V1,V2 as in link.bottleneck.rate=\"5 Mbit/s\",\"10 Mbit/s\"")]
    Empty,
    /// The key is the seed, which a sweep cannot vary.
    #[error("the seeds of the runs follow from the first seed and the number of runs of each point")]
    Seed,
    /// The same key is varied or drawn twice.
    #[error("`{key}` is varied or drawn twice")]
    Twice {
        /// The key that appears twice.
        key: String,
    },
    /// The column of the key would have the same name as another column.
    #[error("the column of `{key}` would have the name of another one; vary a key within it")]
    Column {
        /// The key whose column this is.
        key: String,
    },
}

/// A key, and the values that the key takes in a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) path: String,
    pub(super) values: Vec<Value>,
}

impl Axis {
    /// Returns the override that sets the key to value number `number`, counted from 0.
    pub(super) fn change(&self, number: u64) -> Option<Override> {
        let value = self.values.get(usize::try_from(number).ok()?)?;
        Some(Override::set(self.path.clone(), value.clone()))
    }

    /// Returns the unit that all values have; `None` if they have no common unit.
    pub(super) fn unit(&self) -> Option<Unit> {
        unit_of(&self.values)
    }
}

/// Returns the unit that all values have; `None` if they have no common unit.
pub(super) fn unit_of(values: &[Value]) -> Option<Unit> {
    let mut units = values.iter().map(|value| Quantity::of(value).map(|quantity| quantity.unit));
    let first = units.next()??;
    units.all(|unit| unit == Some(first)).then_some(first)
}

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let parts = split(text);
        let (first, others) = parts.split_first().ok_or(AxisError::Empty)?;
        let first: Override = first.parse()?;
        let path = first.path().to_owned();
        if path == "seed" {
            return Err(AxisError::Seed);
        }
        let mut values = vec![first.value().cloned().ok_or(AxisError::Empty)?];
        for other in others {
            let other: Override = format!("{path}={other}").parse()?;
            values.extend(other.value().cloned());
        }
        let is_empty = |value: &Value| value.as_str().is_some_and(str::is_empty);
        if values.iter().any(is_empty) {
            return Err(AxisError::Empty);
        }
        Ok(Self { path, values })
    }
}

/// Splits a text at those commas that are outside quotes and brackets.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (place, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '[' | '{' | '(') => depth = depth.saturating_add(1),
            (None, ']' | '}' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text.get(begin..place).unwrap_or_default());
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..).unwrap_or_default());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(text: &str) -> Axis {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn values_are_those_of_set_between_commas() {
        assert_eq!(axis("duration=20s, 40 s").values, ["20s".into(), Value::from("40 s")]);
        assert_eq!(axis("flow.media.controller.b=150,300").values, [150.into(), Value::from(300)]);
        assert_eq!(axis("name=\"a,b\",c").values, ["a,b".into(), Value::from("c")]);
        assert_eq!(axis("flow.media.path=[\"a\", \"b\"],[\"a\"]").values.len(), 2);
        let tables = axis("flow.media.controller={ name = \"ap\", b = 2 },{ name = \"aimd\" }");
        assert!(tables.values.iter().all(Value::is_table) && tables.values.len() == 2);
        let quoted = axis("flow.'a,b'.start=1 s,2 s");
        assert_eq!((quoted.path.as_str(), quoted.values.len()), ("flow.'a,b'.start", 2));
    }

    #[test]
    fn the_unit_is_the_one_of_all_values() {
        let cases = [
            ("link.bottleneck.rate=5M,10 Mbit/s", Some(Unit::Rate)),
            ("link.bottleneck.queue=50 ms,100 packets", None),
            ("flow.media.controller.b=1,2.5", Some(Unit::Plain)),
            ("flow.media.controller.name=ap,aimd", None),
        ];
        for (text, unit) in cases {
            assert_eq!(axis(text).unit(), unit, "{text}");
        }
    }

    #[test]
    fn what_is_no_axis_is_refused_with_what_would_be_one() {
        for (text, words) in
            [("duration", "KEY=VALUE"), ("duration=", "empty"), ("duration=1s,,2s", "empty"), ("seed=1,2", "seeds")]
        {
            let refused = text.parse::<Axis>().expect_err(text).to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".*") {
            drop(text.parse::<Axis>());
            prop_assert_eq!(split(&text).join(","), text);
        }
    }
}
