//! Guesses which existing name a user meant by a name that does not exist.

/// Smallest Jaro similarity, from 0 to 1, at which two names count as similar. The library clap uses the same value to
/// suggest similar arguments.
const SIMILAR_FROM: f64 = 0.7;

/// Returns the known name that is most similar to `name`; `None` if no known name is similar enough.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similar = known.into_iter().map(|known| (strsim::jaro(name, known), known));
    similar
        .filter(|(similarity, _)| *similarity >= SIMILAR_FROM)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}

/// Returns text that suggests the known name most similar to `name`, for the end of an error message; empty if no
/// known name is similar.
pub(crate) fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |similar| format!("; a similar one exists: `{similar}`"))
}

/// An unknown key, and the keys that are valid at the same position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownField<'a> {
    pub(super) name: &'a str,
    pub(super) known: Vec<&'a str>,
}

impl<'a> UnknownField<'a> {
    /// Parses the message of [`serde::de::Error::unknown_field`], because serde provides the names of the unknown field
    /// and of the known fields only in this message.
    pub(super) fn of(message: &'a str) -> Option<Self> {
        let (name, expected) = message.strip_prefix("unknown field `")?.split_once('`')?;
        // Ignores the suggestion that [`similar`] may have appended to the names.
        let (expected, _) = expected.split_once(';').unwrap_or((expected, ""));
        Some(Self { name, known: expected.split('`').skip(1).step_by(2).collect() })
    }
}

#[cfg(test)]
mod tests {
    use serde::de::Error as _;

    use super::*;

    #[test]
    fn a_typing_error_finds_the_key_that_was_meant() {
        let known = ["name", "description", "duration", "warm_up", "seed", "link", "path", "flow"];
        for (typed, meant) in [("durration", "duration"), ("warmup", "warm_up"), ("flows", "flow"), ("sed", "seed")] {
            assert_eq!(nearest(typed, known), Some(meant), "{typed}");
        }
        assert_eq!(nearest("xyzzy", known), None);
        assert_eq!(nearest("seed", []), None);
        assert_eq!(similar("sed", known), "; a similar one exists: `seed`");
        assert_eq!(similar("xyzzy", known), "");
    }

    /// If this test fails, serde has changed the wording of its message, and no similar key is suggested any more.
    #[test]
    fn serdes_message_of_an_unknown_field_is_understood() {
        for known in [&["at", "rate"][..], &["name", "links", "down"], &["only"]] {
            let message =
                toml::de::Error::unknown_field("rat", Box::leak(known.to_vec().into_boxed_slice())).to_string();
            let expected = UnknownField { name: "rat", known: known.to_vec() };
            let message = message.trim_end().to_owned() + &similar("rat", known.iter().copied());
            assert_eq!(UnknownField::of(&message), Some(expected), "{message}");
        }
        assert_eq!(UnknownField::of("missing field `name`"), None);
    }
}
