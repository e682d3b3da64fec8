//! What a scenario can name.

use equipoise::control::scheduler::{self, BoxedScheduler};
use equipoise::control::window::{self, BoxedWindowController, WindowContext};
use equipoise::control::{self, BoxedController, ConfigError, Entry, Parameters, RateContext};
use equipoise::units::Size;
use equipoise_path::source::{self, BoxedTraffic};
use thiserror::Error;

/// What a scenario can name: our own entries by default, and those that another crate adds.
///
/// ```
/// use equipoise::control::{Cbr, Entry};
/// use equipoise::units::Rate;
/// use equipoise_lab::scenario::{Catalogue, NameTaken};
///
/// static TELEPHONE: Entry = Entry {
///     name: "telephone",
///     summary: "80 kbit/s, whatever the path does",
///     source: "ours",
///     parameters: &[],
///     make: |_, _| Ok(Box::new(Cbr::new(Rate::from_bps(80_000)))),
/// };
///
/// # fn main() -> Result<(), NameTaken> {
/// let mut catalogue = Catalogue::default();
/// catalogue.controllers.add(&TELEPHONE)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Rate controllers: `controller = { name = … }`.
    pub controllers: Table<BoxedController, RateContext>,
    /// Window laws: `window = { name = … }`.
    pub window_laws: Table<BoxedWindowController, WindowContext>,
    /// What divides a session among its paths: `scheduler = { name = … }`.
    pub schedulers: Table<BoxedScheduler, Size>,
    /// Traffic models: `source = { kind = … }` of a background flow.
    pub traffic: Table<BoxedTraffic, ()>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            controllers: Table::new("controller", control::entries()),
            window_laws: Table::new("window law", window::entries()),
            schedulers: Table::new("scheduler", scheduler::entries()),
            traffic: Table::new("traffic model", source::entries()),
        }
    }
}

/// Entries of one kind, each with a name of its own.
#[derive(Debug)]
pub struct Table<C: 'static, X: 'static> {
    what: &'static str,
    entries: Vec<&'static Entry<C, X>>,
}

/// The name is an entry's already.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is a {what} `{name}` already; give the new one another name")]
pub struct NameTaken {
    /// What the entry is.
    pub what: &'static str,
    /// Its name.
    pub name: &'static str,
}

impl<C, X> Table<C, X> {
    fn new(what: &'static str, entries: &'static [Entry<C, X>]) -> Self {
        Self { what, entries: entries.iter().collect() }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`NameTaken`] if there is one of its name.
    pub fn add(&mut self, entry: &'static Entry<C, X>) -> Result<(), NameTaken> {
        if self.find(entry.name).is_some() {
            return Err(NameTaken { what: self.what, name: entry.name });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The entry of this name.
    pub fn find(&self, name: &str) -> Option<&'static Entry<C, X>> {
        self.entries.iter().find(|entry| entry.name == name).copied()
    }

    /// All entries, ours first.
    pub fn iter(&self) -> impl Iterator<Item = &'static Entry<C, X>> {
        self.entries.iter().copied()
    }

    /// What the entries are, in the singular.
    pub(super) const fn what(&self) -> &'static str {
        self.what
    }

    /// All names, between commas.
    pub(crate) fn names(&self) -> String {
        self.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    }
}

// Not derived: neither what an entry makes nor its context is copied.
impl<C, X> Clone for Table<C, X> {
    fn clone(&self) -> Self {
        Self { what: self.what, entries: self.entries.clone() }
    }
}

/// An entry of the catalogue with values for its parameters: a rate controller, unless the types say otherwise.
#[derive(Debug)]
pub struct Choice<C: 'static = BoxedController, X: 'static = RateContext> {
    /// The entry.
    pub entry: &'static Entry<C, X>,
    /// A value for every parameter.
    pub parameters: Parameters,
}

/// A window law with values for its parameters.
pub type LawChoice = Choice<BoxedWindowController, WindowContext>;
/// What divides a session among its paths, with values for its parameters.
pub type SchedulerChoice = Choice<BoxedScheduler, Size>;
/// A traffic model with values for its parameters.
pub type TrafficChoice = Choice<BoxedTraffic, ()>;

impl<C, X> Choice<C, X> {
    /// A fresh one, in a context; that of a controller or a scheduler may be the size of the flow's IP packets alone.
    ///
    /// # Errors
    /// [`ConfigError`] if the parameters are not the entry's, which [`Scenario::parse`](super::Scenario::parse) rules out.
    pub fn build(&self, context: impl Into<X>) -> Result<C, ConfigError> {
        self.entry.build(&self.parameters, context)
    }
}

// Not derived: neither what an entry makes nor its context is copied.
impl<C, X> Clone for Choice<C, X> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, parameters: self.parameters.clone() }
    }
}
