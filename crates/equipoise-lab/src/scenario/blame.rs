//! Finds the override that causes an error in a changed scenario file. Errors name an override instead of a line,
//! because the user never sees the text of the changed file.

use equipoise::control::ConfigError;
use toml::de::{DeTable, DeValue};

use super::error::{OverrideProblem, Problem, ScenarioError, SyntaxError};
use super::excerpt::Place;
use super::nearest::{UnknownField, similar};
use super::overrides::{ALL, Override, keys};

/// Attributes an error in a text that `overrides` have changed. Returns the first of these errors that exists:
///
/// 1. the error of the override that sets the wrong value or key,
/// 2. the error in the `original` text,
/// 3. the error of an override that changes the section with the error and has the wrong key in its path,
/// 4. an error that names the path of the wrong value in the changed text.
pub(super) fn lay(
    error: ScenarioError,
    changed: &str,
    overrides: &[Override],
    original: impl FnOnce() -> Option<ScenarioError>,
) -> ScenarioError {
    let (place, key, problem) = match error {
        ScenarioError::Wrong { line, column, key, value, problem } => (
            Place { line, column },
            key,
            OverrideProblem::Value { value, similar: similar_parameter(&problem), problem },
        ),
        ScenarioError::Syntax(syntax) => {
            (Place { line: syntax.line, column: syntax.column }, String::new(), of_syntax(syntax))
        }
        other => return other,
    };
    let path = path_at(changed, place.byte(changed)).unwrap_or_default();
    let is_unknown = matches!(problem, OverrideProblem::UnknownKey { .. });
    let fault = Fault { path: &path, key: &key, is_unknown };
    let mut latest = overrides.iter().rev();
    let problem = Box::new(problem);
    if let Some(culprit) = latest.clone().find(|change| fault.is_at(change)) {
        return ScenarioError::Override { path: culprit.path().to_owned(), problem };
    }
    if let Some(original) = original() {
        return original;
    }
    match latest.find(|change| fault.is_beside(change)) {
        Some(culprit) => ScenarioError::Override { path: culprit.path().to_owned(), problem },
        None => ScenarioError::Changed { path: shown(&path), problem },
    }
}

/// If the problem is an unknown parameter, returns text that suggests the most similar known parameter. For any other
/// problem, or if no known parameter is similar, the text is empty.
fn similar_parameter(problem: &Problem) -> String {
    match problem {
        Problem::Controller(ConfigError::UnknownParameter { name, known, .. }) => similar(name, known.split(", ")),
        _ => String::new(),
    }
}

fn of_syntax(error: SyntaxError) -> OverrideProblem {
    match UnknownField::of(&error.message) {
        Some(UnknownField { name, known }) => OverrideProblem::UnknownKey {
            key: name.to_owned(),
            known: known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", "),
            similar: similar(name, known),
        },
        None => OverrideProblem::Mistyped { message: error.message },
    }
}

/// Number of keys in the path of a section: its kind and its name.
const SECTION: usize = 2;

/// The location of an error in the text of a scenario after overrides have changed the text.
struct Fault<'a> {
    path: &'a [String],
    /// The key that the error names. The location of the error may be the name of the section instead of this key.
    key: &'a str,
    /// Whether the key is unknown: no scenario can have it at this position.
    is_unknown: bool,
}

impl Fault<'_> {
    /// Whether the error is in the value that an override sets, or points to a table that contains this value. An error
    /// that points to a section, or to a table of sections, counts only if it reports an unknown key.
    fn is_at(&self, change: &Override) -> bool {
        let keys = keys(change.path()).unwrap_or_default();
        let common = self.common(&keys);
        let is_around = common == self.path.len() && common > 0 && (self.is_unknown || common > SECTION);
        common == keys.len() || is_around
    }

    /// Whether an override changes the section that contains the error, and the override's path contains the key that
    /// the error names. This key may be at any depth within the section.
    fn is_beside(&self, change: &Override) -> bool {
        let keys = keys(change.path()).unwrap_or_default();
        self.common(&keys) >= SECTION && keys.iter().skip(SECTION).any(|key| *key == self.key)
    }

    /// Returns the number of leading keys in which `keys` and the path of the error are equal. The key `ALL` equals
    /// every key.
    fn common(&self, keys: &[&str]) -> usize {
        keys.iter().zip(self.path).take_while(|(key, at)| **key == ALL || **key == at.as_str()).count()
    }
}

/// Formats a path of keys for an error message: with dots between the keys, and quotes around a key that contains a
/// dot.
fn shown(path: &[String]) -> String {
    let key = |key: &String| if key.contains('.') { format!("\"{key}\"") } else { key.clone() };
    path.iter().map(key).collect::<Vec<_>>().join(".")
}

/// Returns the path of keys that leads to a byte of a TOML text. Sections and entries that have a name are identified
/// by their name, and other entries by their index.
fn path_at(text: &str, byte: usize) -> Option<Vec<String>> {
    let document = DeTable::parse(text).ok()?;
    let mut path = Vec::new();
    find_in_table(document.get_ref(), byte, &mut path).then_some(path)
}

/// Whether the byte is in a table. If it is, extends `path` with the keys that lead to the byte.
fn find_in_table(table: &DeTable<'_>, byte: usize, path: &mut Vec<String>) -> bool {
    table.iter().any(|(key, value)| {
        path.push(key.get_ref().to_string());
        let found =
            key.span().contains(&byte) || find_in_value(value.get_ref(), byte, path) || value.span().contains(&byte);
        if !found {
            path.pop();
        }
        found
    })
}

fn find_in_value(value: &DeValue<'_>, byte: usize, path: &mut Vec<String>) -> bool {
    match value {
        DeValue::Table(table) => find_in_table(table, byte, path),
        DeValue::Array(list) => list.iter().enumerate().any(|(place, entry)| {
            let name = entry.get_ref().get("name").and_then(|name| name.get_ref().as_str().map(str::to_owned));
            path.push(name.unwrap_or_else(|| place.to_string()));
            let found = find_in_value(entry.get_ref(), byte, path) || entry.span().contains(&byte);
            if !found {
                path.pop();
            }
            found
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_text_has_the_path_that_an_override_would_have() {
        let text =
            "name = \"x\"\n[[flow]]\nname = \"a.b\"\nsteps = [{ at = 1 }, { at = 23 }]\n[flow.controller]\nb = 7\n";
        for (sign, expected) in [
            ("\"x\"", "name"),
            ("23", "flow.\"a.b\".steps.1.at"),
            ("\"a.b\"", "flow.\"a.b\".name"),
            ("7", "flow.\"a.b\".controller.b"),
            ("b = 7", "flow.\"a.b\".controller.b"),
        ] {
            let path = path_at(text, text.find(sign).expect(sign)).expect(sign);
            assert_eq!(shown(&path), expected, "{sign}");
        }
        assert_eq!(path_at("a = ", 0), None, "no TOML");
    }
}
