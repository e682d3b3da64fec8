//! Parses overrides in the form in which a user writes them: `KEY=VALUE`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use toml::Value;

use super::error::OverrideProblem;
use super::overrides::{self, Override};

/// Why a text is not an override.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The text contains no `=` after a key.
    #[error("write KEY=VALUE, such as link.bottleneck.rate=\"10 Mbit/s\" or flow.media.controller.b=2")]
    NoValue,
    /// The key is not a valid path of keys.
    #[error(transparent)]
    Key(#[from] OverrideProblem),
}

/// Parses `KEY=VALUE`, in which `KEY` is the path of a key and `VALUE` is its new value. A value that is valid TOML is
/// parsed as TOML. Any other value is a string, so quantities need no quotes: `duration=30 s`.
impl FromStr for Override {
    type Err = SetError;

    fn from_str(text: &str) -> Result<Self, SetError> {
        let end = end_of_key(text).ok_or(SetError::NoValue)?;
        let (path, value) =
            (text.get(..end).unwrap_or_default().trim(), text.get(end + 1..).unwrap_or_default().trim());
        if overrides::keys(path).is_none() {
            return Err(OverrideProblem::Path.into());
        }
        let value = Value::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok(Self::set(path, value))
    }
}

/// Returns the position of the first `=` outside quotes.
fn end_of_key(text: &str) -> Option<usize> {
    let mut quote = None;
    for (place, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '=') => return Some(place),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    None
}

/// Formats an override as on a command line, but without the quotes that a shell needs. An override that removes a key
/// cannot be written on a command line, and is formatted as `KEY removed`.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(Value::String(text)) => write!(f, "{}={text}", self.path()),
            Some(value) => write!(f, "{}={value}", self.path()),
            None => write!(f, "{} removed", self.path()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> Override {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_value_that_reads_as_toml_is_that_and_everything_else_is_a_text() {
        let cases = [
            ("duration=30s", Override::set("duration", "30s")),
            ("link.bottleneck.rate=10 Mbit/s", Override::set("link.bottleneck.rate", "10 Mbit/s")),
            ("link.bottleneck.rate = \"10 Mbit/s\"", Override::set("link.bottleneck.rate", "10 Mbit/s")),
            ("flow.media.controller.b=2", Override::set("flow.media.controller.b", 2)),
            ("flow.media.controller.b=0.5", Override::set("flow.media.controller.b", 0.5)),
            ("flow.media.circuit_breakers=false", Override::set("flow.media.circuit_breakers", false)),
            ("flow.media.path=[\"a\", \"b\"]", Override::set("flow.media.path", vec!["a", "b"])),
            ("description=a = b", Override::set("description", "a = b")),
            ("flow.'a=b'.start=1 s", Override::set("flow.'a=b'.start", "1 s")),
            ("description=", Override::set("description", "")),
            ("description=1\nseed = 2", Override::set("description", "1\nseed = 2")),
        ];
        for (text, expected) in cases {
            assert_eq!(set(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_override_is_refused_with_what_would_be_one() {
        for (text, words) in
            [("duration", "KEY=VALUE"), ("", "KEY=VALUE"), ("=3", "chain of keys"), ("a..b=3", "chain of keys")]
        {
            let refused = text.parse::<Override>().expect_err(text).to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange_and_what_is_shown_is_read_again(text in ".*", value in "[a-z0-9 ./%]{0,12}") {
            drop(text.parse::<Override>());
            let shown = set(&format!("flow.media.start={value}"));
            prop_assert_eq!(set(&shown.to_string()), shown);
        }
    }
}
