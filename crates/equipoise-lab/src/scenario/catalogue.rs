//! The catalogue of controllers, window laws, schedulers and traffic models that a scenario can name.

use std::fmt;
use std::sync::Arc;

use equipoise::control::scheduler::{self, BoxedScheduler};
use equipoise::control::window::{self, BoxedWindowController, WindowContext};
use equipoise::control::{self, BoxedController, ConfigError, Context, Entry, Parameter, Parameters, RateContext};
use equipoise::units::Size;
use equipoise_path::source::{self, BoxedTraffic};
use thiserror::Error;

/// The entries that a scenario can name. By default, these are the entries of this library. Other crates can add
/// entries, and a program can create entries at run time.
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

/// Entries of one kind. Each entry has a unique name.
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
    /// An entry that the program itself creates and configures. A scenario can only name it, without parameters.
    Made(Arc<Made<C, X>>),
}

/// An entry that a program adds with [`Table::add_made`].
pub struct Made<C: 'static, X: 'static> {
    name: String,
    make: Box<Make<C, X>>,
}

type Make<C, X> = dyn Fn(&X) -> Result<C, ConfigError> + Send + Sync;

/// The error that another entry already uses the name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is a {what} `{name}` already; give the new one another name")]
pub struct NameTaken {
    /// The kind of the two entries.
    pub what: &'static str,
    /// The name of the two entries.
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

    /// Adds an entry with the name `name`. The function `make` builds an instance of the entry from a context. The
    /// settings of the entry are part of `make`, because a scenario cannot set them. `make` is called for each flow of
    /// each run and when a scenario is checked, so its result must not depend on the number of calls.
    ///
    /// # Errors
    /// The same as the errors of [`add`](Self::add).
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

    /// Returns the entry with this name.
    pub fn find(&self, name: &str) -> Option<&Listed<C, X>> {
        self.entries.iter().find(|entry| entry.name() == name)
    }

    /// Iterates over all entries, starting with the entries of this library.
    pub fn iter(&self) -> impl Iterator<Item = &Listed<C, X>> {
        self.entries.iter()
    }

    /// The kind of the entries as a singular noun, such as "controller".
    pub(super) const fn what(&self) -> &'static str {
        self.what
    }

    /// Returns the names of all entries, separated by commas.
    pub(crate) fn names(&self) -> String {
        self.iter().map(Listed::name).collect::<Vec<_>>().join(", ")
    }
}

// `Clone` is not derived, because a derived `Clone` would require `Clone` of both type parameters.
impl<C, X> Clone for Table<C, X> {
    fn clone(&self) -> Self {
        Self { what: self.what, entries: self.entries.clone() }
    }
}

impl<C, X> Listed<C, X> {
    /// The entry's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Entry(entry) => entry.name,
            Self::Made(made) => &made.name,
        }
    }

    /// A description of the entry in one line.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Entry(entry) => entry.summary,
            Self::Made(_) => "made by the program that runs the scenario",
        }
    }

    /// The entry's parameters, which a scenario can set.
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
    /// Like [`Entry::parse`], checks the values that a scenario sets, and returns the values of all parameters.
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

// `Clone` is not derived, because a derived `Clone` would require `Clone` of both type parameters.
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

/// An entry of the catalogue with values for the entry's parameters. The default types are those of a rate controller.
#[derive(Debug)]
pub struct Choice<C: 'static = BoxedController, X: 'static = RateContext> {
    /// The entry of the catalogue.
    pub entry: Listed<C, X>,
    /// Values for all parameters of the entry.
    pub parameters: Parameters,
}

/// A window law with values for the law's parameters.
pub type LawChoice = Choice<BoxedWindowController, WindowContext>;
/// A scheduler for a session over several paths, with values for the scheduler's parameters.
pub type SchedulerChoice = Choice<BoxedScheduler, Size>;
/// A traffic model with values for the model's parameters.
pub type TrafficChoice = Choice<BoxedTraffic, ()>;

impl<C, X> Choice<C, X> {
    /// Builds a new instance of the entry from a context. For a rate controller or a scheduler, the size of the flow's
    /// IP packets is sufficient as context.
    ///
    /// # Errors
    /// [`ConfigError`] if the parameters do not fit the entry, or if the entry rejects the context.
    /// [`Scenario::parse`](super::Scenario::parse) has already checked the parameters of a scenario's choices.
    pub fn build(&self, context: impl Into<X>) -> Result<C, ConfigError> {
        self.entry.build(&self.parameters, context)
    }
}

// `Clone` is not derived, because a derived `Clone` would require `Clone` of both type parameters.
impl<C, X> Clone for Choice<C, X> {
    fn clone(&self) -> Self {
        Self { entry: self.entry.clone(), parameters: self.parameters.clone() }
    }
}
