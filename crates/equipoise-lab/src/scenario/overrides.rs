//! Overrides: changes that set or remove keys of a scenario file. Each override contains the path of keys that leads to
//! the changed key.
//!
//! Overrides are applied to the parsed file, and the result is checked like any other file. An override that cannot be
//! applied is an error: the scenario never silently runs with its old values.

use toml::{Table, Value};

use super::error::{OverrideProblem, ScenarioError, SyntaxError};

/// Kinds of sections that have names. In a path of keys, such a section is identified by its name.
const SECTIONS: [&str; 3] = ["link", "path", "flow"];
/// In a path of keys, this word stands for every section of a kind, or for every entry of a list.
pub(super) const ALL: &str = "*";

/// A change of one key of a scenario file, or of several keys if the path contains `*`.
///
/// The path of the key is a chain of keys separated by dots:
///
/// - `duration`, `flow.media.packet_size`, `link.bottleneck.queue`: a section `[[link]]`, `[[path]]` or `[[flow]]` is
///   addressed by its name;
/// - `flow.media.controller.b`: a key of a table within a section;
/// - `flow.media.source.steps.0.rate`: an entry of a list is addressed by its index, from 0;
/// - `flow.*.packet_size`: `*` addresses every section, or every entry of a list;
/// - `flow."cbr-0.5".start`: a name with a dot is in quotes, `"` or `'`.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    path: String,
    change: Change,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Set(Value),
    Remove,
}

impl Override {
    /// Creates an override that sets the key at `path`, and inserts the key if the file omits it. Quantities are
    /// strings with their unit, as in the file.
    pub fn set(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { path: path.into(), change: Change::Set(value.into()) }
    }

    /// Creates an override that removes the key at `path`, so that the key's default applies. `path` can also be the
    /// path of a whole section or of an entry of a list; then the section or the entry is removed.
    pub fn remove(path: impl Into<String>) -> Self {
        Self { path: path.into(), change: Change::Remove }
    }

    /// The path of the key that the override changes.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value that the override sets; `None` if the override removes the key.
    pub(crate) const fn value(&self) -> Option<&Value> {
        match &self.change {
            Change::Set(value) => Some(value),
            Change::Remove => None,
        }
    }

    fn apply(&self, scenario: &mut Table) -> Result<(), OverrideProblem> {
        let keys = keys(&self.path).ok_or(OverrideProblem::Path)?;
        let (first, rest) = keys.split_first().ok_or(OverrideProblem::Path)?;
        if let (false, Some(name), true) = (scenario.contains_key(*first), rest.first(), SECTIONS.contains(first)) {
            return Err(OverrideProblem::UnknownName {
                what: (*first).to_owned(),
                name: (*name).to_owned(),
                known: none(),
            });
        }
        self.change.in_table(scenario, first, rest)
    }
}

/// Returns the text of a scenario after the overrides were applied in order. Without overrides, returns the unchanged
/// text.
///
/// # Errors
/// The errors of [`applied`].
pub(super) fn apply(text: &str, overrides: &[Override]) -> Result<String, ScenarioError> {
    if overrides.is_empty() { Ok(text.to_owned()) } else { Ok(applied(text, overrides)?.to_string()) }
}

/// Returns the TOML table of a scenario's text after the overrides were applied in order.
///
/// # Errors
/// [`ScenarioError::Syntax`] if the text is not valid TOML, or [`ScenarioError::Override`] for the first override that
/// cannot be applied.
pub(super) fn applied(text: &str, overrides: &[Override]) -> Result<Table, ScenarioError> {
    let mut scenario: Table = toml::from_str(text).map_err(|error| SyntaxError::new(text, &error))?;
    for change in overrides {
        change
            .apply(&mut scenario)
            .map_err(|problem| ScenarioError::Override { path: change.path.clone(), problem: Box::new(problem) })?;
    }
    Ok(scenario)
}

/// Splits a path into its keys; `None` if the path is not a chain of keys.
pub(super) fn keys(path: &str) -> Option<Vec<&str>> {
    let mut keys = Vec::new();
    let mut rest = path;
    loop {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        let (key, after) = match quote {
            Some(quote) => rest.strip_prefix(quote)?.split_once(quote)?,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if key.is_empty() {
            return None;
        }
        keys.push(key);
        if after.is_empty() {
            return Some(keys);
        }
        rest = after.strip_prefix('.')?;
    }
}

impl Change {
    /// Applies the change in a table. If `rest` is empty, changes `key` itself. Otherwise, follows the path `rest` from
    /// the value of `key`, and changes the key at the end of this path.
    fn in_table(&self, table: &mut Table, key: &str, rest: &[&str]) -> Result<(), OverrideProblem> {
        let Some((next, after)) = rest.split_first() else {
            return match self {
                Self::Set(value) => {
                    table.insert(key.to_owned(), value.clone());
                    Ok(())
                }
                Self::Remove => table.remove(key).map(drop).ok_or_else(|| missing(table, key)),
            };
        };
        match (table.get_mut(key), self) {
            (Some(Value::Table(inner)), _) => self.in_table(inner, next, after),
            (Some(Value::Array(list)), _) => self.in_list(list, key, next, after),
            (Some(other), _) => {
                let found = other.type_str();
                Err(OverrideProblem::NotATable { key: key.to_owned(), found, next: (*next).to_owned() })
            }
            (None, Self::Remove) => Err(missing(table, key)),
            // An index or `*` selects entries of a list, but the file omits the list under `key`.
            (None, Self::Set(_)) if *next == ALL || next.parse::<usize>().is_ok() => {
                Err(OverrideProblem::NoSuchEntry { list: key.to_owned(), entry: (*next).to_owned(), length: 0 })
            }
            (None, Self::Set(_)) => {
                let mut inner = Table::new();
                self.in_table(&mut inner, next, after)?;
                table.insert(key.to_owned(), Value::Table(inner));
                Ok(())
            }
        }
    }

    /// Applies the change in the list under `key`. If `rest` is empty, changes `entry` itself. Otherwise, changes the
    /// key to which the path `rest` leads from `entry`.
    fn in_list(&self, list: &mut Vec<Value>, key: &str, entry: &str, rest: &[&str]) -> Result<(), OverrideProblem> {
        let places = places(list, key, entry)?;
        // The last entry is changed first, so that a removal does not move entries that must still be changed.
        for place in places.into_iter().rev() {
            let (Some(value), Some((next, after))) = (list.get_mut(place), rest.split_first()) else {
                self.whole_entry(list, place);
                continue;
            };
            match value {
                Value::Table(table) => self.in_table(table, next, after)?,
                other => {
                    let found = other.type_str();
                    return Err(OverrideProblem::NotATable { key: entry.to_owned(), found, next: (*next).to_owned() });
                }
            }
        }
        Ok(())
    }

    fn whole_entry(&self, list: &mut Vec<Value>, place: usize) {
        match (self, list.get_mut(place)) {
            (Self::Set(value), Some(entry)) => *entry = value.clone(),
            (Self::Remove, Some(_)) => drop(list.remove(place)),
            (_, None) => {}
        }
    }
}

/// Returns the indices of the entries that `entry` identifies in the list under `key`. On success, there is at least
/// one index.
fn places(list: &[Value], key: &str, entry: &str) -> Result<Vec<usize>, OverrideProblem> {
    if entry == ALL && !list.is_empty() {
        return Ok((0..list.len()).collect());
    }
    let names: Vec<_> = list.iter().filter_map(|value| value.get("name")?.as_str()).collect();
    if names.is_empty() {
        let place = entry.parse().ok().filter(|place| *place < list.len());
        let problem =
            || OverrideProblem::NoSuchEntry { list: key.to_owned(), entry: entry.to_owned(), length: list.len() };
        return Ok(vec![place.ok_or_else(problem)?]);
    }
    let named = |value: &Value| value.get("name").and_then(Value::as_str) == Some(entry);
    let place = list.iter().position(named).ok_or_else(|| OverrideProblem::UnknownName {
        what: key.to_owned(),
        name: entry.to_owned(),
        known: names.join(", "),
    })?;
    Ok(vec![place])
}

fn missing(table: &Table, key: &str) -> OverrideProblem {
    let known = if table.is_empty() { none() } else { table.keys().cloned().collect::<Vec<_>>().join(", ") };
    OverrideProblem::NothingToRemove { key: key.to_owned(), known }
}

fn none() -> String {
    "none".to_owned()
}
