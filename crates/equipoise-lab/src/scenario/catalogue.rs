//! The entries that a scenario can name.

use std::fmt;
use std::sync::Arc;

use equipoise::control::scheduler::{self, BoxedScheduler};
use equipoise::control::window::{self, BoxedWindowController, WindowContext};
use equipoise::control::{self, BoxedController, ConfigError, Context, Entry, Parameter, Parameters, RateContext};
use equipoise::units::Size;
use equipoise_path::source::{self, BoxedTraffic};
use thiserror::Error;

/// The entries that a scenario can name: this library's by default, those that another crate adds, and those that a
/// program makes at run time.
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
    /// Schedulers of a session over several paths: `scheduler = { name = … }`.
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

/// Entries of one kind, with unique names.
#[derive(Debug)]
pub struct Table<C: 'static, X: 'static> {
    what: &'static str,
    entries: Vec<Listed<C, X>>,
}

/// An entry that a scenario can name.
#[derive(Debug)]
pub enum Listed<C: 'static = BoxedController, X: 'static = RateContext> {
    /// A static entry, with parameters that a scenario can set.
    Entry(&'static Entry<C, X>),
    /// An entry made and configured by the program itself; a scenario can only name it.
    Made(Arc<Made<C, X>>),
}

/// See [`Table::add_made`].
pub struct Made<C: 'static, X: 'static> {
    name: String,
    make: Box<Make<C, X>>,
}

type Make<C, X> = dyn Fn(&X) -> Result<C, ConfigError> + Send + Sync;

/// The name is already in use by another entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is a {what} `{name}` already; give the new one another name")]
pub struct NameTaken {
    /// The kind of the entry.
    pub what: &'static str,
    /// Its name.
    pub name: String,
}

impl<C, X> Table<C, X> {
    fn new(what: &'static str, entries: &'static [Entry<C, X>]) -> Self {
        Self { what, entries: entries.iter().map(Listed::Entry).collect() }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`NameTaken`] if another entry has the same name.
    pub fn add(&mut self, entry: &'static Entry<C, X>) -> Result<(), NameTaken> {
        self.list(Listed::Entry(entry))
    }

    /// Adds an entry with a name, which `make` builds in a context. `make` captures its settings, and a scenario gives
    /// no parameters. `make` is called for each flow of each run and when a scenario is checked; its result must not
    /// depend on the number of calls.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_made(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&X) -> Result<C, ConfigError> + Send + Sync + 'static,
    ) -> Result<(), NameTaken> {
        self.list(Listed::Made(Arc::new(Made { name: name.into(), make: Box::new(make) })))
    }

    fn list(&mut self, listed: Listed<C, X>) -> Result<(), NameTaken> {
        if self.find(listed.name()).is_some() {
            return Err(NameTaken { what: self.what, name: listed.name().to_owned() });
        }
        self.entries.push(listed);
        Ok(())
    }

    /// The entry of this name.
    pub fn find(&self, name: &str) -> Option<&Listed<C, X>> {
        self.entries.iter().find(|entry| entry.name() == name)
    }

    /// All entries, this library's first.
    pub fn iter(&self) -> impl Iterator<Item = &Listed<C, X>> {
        self.entries.iter()
    }

    /// The kind of the entries, in the singular.
    pub(super) const fn what(&self) -> &'static str {
        self.what
    }

    /// All names, separated by commas.
    pub(crate) fn names(&self) -> String {
        self.iter().map(Listed::name).collect::<Vec<_>>().join(", ")
    }
}

// Not derived: a derived `Clone` would require `Clone` of the result and of the context.
impl<C, X> Clone for Table<C, X> {
    fn clone(&self) -> Self {
        Self { what: self.what, entries: self.entries.clone() }
    }
}

impl<C, X> Listed<C, X> {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Entry(entry) => entry.name,
            Self::Made(made) => &made.name,
        }
    }

    /// Its description in one line.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Entry(entry) => entry.summary,
            Self::Made(_) => "made by the program that runs the scenario",
        }
    }

    /// The parameters that a scenario can set.
    pub fn parameters(&self) -> &'static [Parameter] {
        match self {
            Self::Entry(entry) => entry.parameters,
            Self::Made(_) => &[],
        }
    }

    fn build(&self, parameters: &Parameters, context: impl Into<X>) -> Result<C, ConfigError> {
        match self {
            Self::Entry(entry) => entry.build(parameters, context),
            Self::Made(made) => (made.make)(&context.into()),
        }
    }
}

impl<C, X: Context> Listed<C, X> {
    /// As [`Entry::parse`].
    pub(super) fn parse(&self, given: &[(&str, &str)]) -> Result<Parameters, ConfigError> {
        match (self, given) {
            (Self::Entry(entry), given) => entry.parse(given),
            (Self::Made(made), []) => (made.make)(&X::trial()).map(|_| Parameters::default()),
            (Self::Made(made), [(name, _), ..]) => Err(ConfigError::UnknownParameter {
                name: (*name).to_owned(),
                controller: made.name.clone(),
                known: "none".to_owned(),
            }),
        }
    }
}

// Not derived: a derived `Clone` would require `Clone` of the result and of the context.
impl<C, X> Clone for Listed<C, X> {
    fn clone(&self) -> Self {
        match self {
            Self::Entry(entry) => Self::Entry(entry),
            Self::Made(made) => Self::Made(Arc::clone(made)),
        }
    }
}

impl<C, X> fmt::Debug for Made<C, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An entry of the catalogue with values for its parameters: a rate controller, unless the types say otherwise.
#[derive(Debug)]
pub struct Choice<C: 'static = BoxedController, X: 'static = RateContext> {
    /// The entry.
    pub entry: Listed<C, X>,
    /// A value for every parameter.
    pub parameters: Parameters,
}

/// A window law with values for its parameters.
pub type LawChoice = Choice<BoxedWindowController, WindowContext>;
/// A scheduler of a session over several paths, with values for its parameters.
pub type SchedulerChoice = Choice<BoxedScheduler, Size>;
/// A traffic model with values for its parameters.
pub type TrafficChoice = Choice<BoxedTraffic, ()>;

impl<C, X> Choice<C, X> {
    /// Builds a new instance in a context. The context of a controller or a scheduler may be just the size of the
    /// flow's IP packets.
    ///
    /// # Errors
    /// [`ConfigError`] if the parameters do not fit the entry, which [`Scenario::parse`](super::Scenario::parse)
    /// excludes.
    pub fn build(&self, context: impl Into<X>) -> Result<C, ConfigError> {
        self.entry.build(&self.parameters, context)
    }
}

// Not derived: a derived `Clone` would require `Clone` of the result and of the context.
impl<C, X> Clone for Choice<C, X> {
    fn clone(&self) -> Self {
        Self { entry: self.entry.clone(), parameters: self.parameters.clone() }
    }
}
