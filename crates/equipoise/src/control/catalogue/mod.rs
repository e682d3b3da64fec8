//! The catalogue of all controllers. Help texts, checks of scenarios and tables of the documentation are generated from
//! this catalogue.
//!
//! The catalogue has three tables: rate controllers for sessions with reports, window laws for transports with
//! acknowledgements, and schedulers for sessions with several paths. An [`Entry`] that another crate defines is checked
//! and built in the same way.

mod packets;
mod parameters;
mod rates;
mod schedulers;
mod windows;

use alloc::string::ToString;
use alloc::vec::Vec;

pub use parameters::{ConfigError, Kind, Parameter, Parameters, Value};
pub use rates::RateContext;
pub use schedulers::SchedulerEntry;
pub use windows::{WindowContext, WindowEntry};

use super::BoxedController;
use crate::units::Size;

/// A controller that can be built by name. With the default type parameters, it is a rate controller.
pub struct Entry<C: 'static = BoxedController, X: 'static = RateContext> {
    /// The controller's name, in lower case.
    pub name: &'static str,
    /// What the controller does, in one line.
    pub summary: &'static str,
    /// The publication or standard that defines the controller.
    pub source: &'static str,
    /// The controller's parameters.
    pub parameters: &'static [Parameter],
    /// Builds the controller from parameter values; fails if they are inconsistent.
    pub make: fn(&Parameters, &X) -> Result<C, ConfigError>,
}

/// The data that a controller needs in addition to its parameters, such as the packet size.
pub trait Context {
    /// Returns an example context, with which [`Entry::parse`] checks that the parameter values are consistent.
    fn trial() -> Self;
}

impl Context for () {
    fn trial() -> Self {}
}

/// A scheduler needs, in addition to its parameters, only the size of the session's IP packets.
impl Context for Size {
    fn trial() -> Self {
        Self::from_bytes(1000)
    }
}

/// Returns all rate controllers, in the order in which help texts list them.
pub fn entries() -> &'static [Entry] {
    rates::ENTRIES
}

/// Returns the rate controller with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    rates::ENTRIES.iter().find(|entry| entry.name == name)
}

/// Returns all window laws, in the order in which help texts list them.
pub fn window_entries() -> &'static [WindowEntry] {
    windows::ENTRIES
}

/// Returns the window law with this name.
pub fn find_window(name: &str) -> Option<&'static WindowEntry> {
    windows::ENTRIES.iter().find(|entry| entry.name == name)
}

/// Returns all schedulers, in the order in which help texts list them.
pub fn scheduler_entries() -> &'static [SchedulerEntry] {
    schedulers::ENTRIES
}

/// Returns the scheduler with this name.
pub fn find_scheduler(name: &str) -> Option<&'static SchedulerEntry> {
    schedulers::ENTRIES.iter().find(|entry| entry.name == name)
}

// `Debug` is not derived, because a derived implementation would require that `C` and `X` implement `Debug`.
impl<C, X> core::fmt::Debug for Entry<C, X> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl<C, X> Entry<C, X> {
    /// Builds a controller from `parameters` and a context. For a rate controller or a scheduler, the size of the
    /// session's IP packets is sufficient as context.
    ///
    /// # Errors
    /// [`ConfigError`] if `parameters` belong to another entry.
    pub fn build(&self, parameters: &Parameters, context: impl Into<X>) -> Result<C, ConfigError> {
        (self.make)(parameters, &context.into())
    }
}

impl<C, X: Context> Entry<C, X> {
    /// Parses `given`, which are pairs of a parameter's name and its value as text. A parameter that is not given
    /// gets its default value.
    ///
    /// # Errors
    /// [`ConfigError`] for the first parameter that is unknown, of the wrong kind or out of range; if a parameter without
    /// a default value is not given; and if the values are inconsistent.
    pub fn parse(&self, given: &[(&str, &str)]) -> Result<Parameters, ConfigError> {
        if let Some((name, _)) = given.iter().find(|(name, _)| self.parameters.iter().all(|p| p.name != *name)) {
            let known: Vec<_> = self.parameters.iter().map(|p| p.name).collect();
            return Err(ConfigError::UnknownParameter {
                name: (*name).to_string(),
                controller: self.name.to_string(),
                known: known.join(", "),
            });
        }
        let value = |parameter: &'static Parameter| {
            let text = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, text)| *text);
            let text = text.or(parameter.default).ok_or(ConfigError::Missing {
                name: parameter.name,
                controller: self.name,
                meaning: parameter.meaning,
            })?;
            Ok((parameter.name, parameter.parse(text)?))
        };
        let parameters = Parameters(self.parameters.iter().map(value).collect::<Result<_, _>>()?);
        (self.make)(&parameters, &X::trial())?;
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    const CONTEXT: WindowContext = WindowContext { packet: Size::from_bytes(1500), seed: 1 };

    #[test]
    fn every_default_lies_in_its_own_range_and_every_entry_builds_from_its_defaults() {
        for entry in entries() {
            for parameter in entry.parameters {
                if let Some(default) = parameter.default {
                    parameter.parse(default).expect("a default within its range");
                }
            }
            let required: Vec<_> = entry.parameters.iter().filter(|p| p.default.is_none()).collect();
            let given: Vec<_> =
                required.iter().map(|p| (p.name, if p.kind == Kind::Rate { "3 Mbit/s" } else { "8.2 ms" })).collect();
            let parameters = entry.parse(&given).expect("defaults and required parameters suffice");
            let controller = entry.build(&parameters, Size::from_bytes(1000)).expect("it builds");
            assert!(controller.allowance().rate.is_some_and(|rate| rate > Rate::ZERO), "{}", entry.name);
        }
    }

    #[test]
    fn schedulers_are_a_table_of_their_own_and_build_from_what_they_ask_for() {
        assert_eq!(
            scheduler_entries().iter().map(|entry| entry.name).collect::<Vec<_>>(),
            ["ap", "single", "equal", "min-delay"]
        );
        for entry in scheduler_entries() {
            let given: &[_] = if entry.name == "single" { &[("path", "1")] } else { &[] };
            let parameters = entry.parse(given).expect("defaults suffice");
            let mut scheduler = entry.build(&parameters, Size::from_bytes(500)).expect("it builds");
            assert!(scheduler.split(Rate::from_bps(1_000_000), &[]).is_empty(), "{}", entry.name);
        }
        let single = find_scheduler("single").expect("in the catalogue");
        assert_eq!(single.parse(&[]).expect_err("it needs a path").parameter(), "path");
        assert_eq!(single.parse(&[("path", "70000")]).expect_err("too many").parameter(), "path");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let ap = find("ap").expect("in the catalogue");
        let wrong = [
            (&[("target", "8.2")][..], "target", "no unit"),
            (&[("goal", "8.2 ms")], "goal", "target, b, learn, unrest"),
            (&[("b", "300")], "target", "needs `target`"),
            (&[("target", "8.2 ms"), ("b", "fast")], "b", "1/(s·Mbit/s)"),
            (&[("target", "8.2 ms"), ("b", "-3")], "b", "between 0.001 and"),
            (&[("target", "8.2 ms"), ("unrest", "2")], "unrest", "between 0.001 and"),
            (&[("target", "8.2 ms"), ("min_rate", "20 Mbit/s")], "min_rate", "above `max_rate`"),
        ];
        for (given, parameter, remedy) in wrong {
            let error = ap.parse(given).expect_err("wrong on purpose");
            assert_eq!(error.parameter(), parameter);
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }

    #[test]
    fn every_window_law_builds_from_its_defaults_and_begins_as_rfc_6928_has_it() {
        for entry in window_entries() {
            let parameters = entry.parse(&[]).expect("everything has a default");
            let law = entry.build(&parameters, CONTEXT).expect("it builds");
            assert!((law.window() - 10.0).abs() < 1e-12, "{}", entry.name);
            assert_eq!(law.slow_start_threshold(), None, "{}", entry.name);
            let parameters = entry.parse(&[("initial_window", "3"), ("oscillation", "0.3")]).expect("within range");
            let law = entry.build(&parameters, CONTEXT).expect("it builds");
            assert!((law.window() - 3.0).abs() < 1e-12, "{}", entry.name);
        }
        assert_eq!(
            window_entries().iter().map(|entry| entry.name).collect::<Vec<_>>(),
            ["reno", "cubic", "vegas", "symbiosis"]
        );
        assert!(find_window("ap").is_none() && find("reno").is_none(), "the tables are apart");
    }

    #[test]
    fn what_is_wrong_with_a_window_law_is_named_with_what_would_be_right() {
        let wrong = [
            ("symbiosis", ("gamma", "1"), "gamma", "between 0.01 and 0.99"),
            ("symbiosis", ("noise_aware", "maybe"), "noise_aware", "on, off"),
            ("reno", ("oscillation", "2"), "oscillation", "between 0 and 1"),
            ("reno", ("gamma", "0.5"), "gamma", "initial_window, oscillation"),
            ("cubic", ("initial_window", "0"), "initial_window", "between 1 and"),
            ("vegas", ("alpha", "5"), "alpha", "above `beta`"),
        ];
        for (law, given, parameter, remedy) in wrong {
            let error = find_window(law).expect("in the catalogue").parse(&[given]).expect_err("wrong on purpose");
            assert_eq!(error.parameter(), parameter);
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }

    /// Only an oscillating window law uses random numbers, so the seed must not change any other law.
    #[test]
    fn the_seed_of_a_window_law_moves_an_oscillating_one_only() {
        use crate::control::window::Acknowledged;
        use crate::units::{Instant, Span};
        let run = |oscillation, seed| {
            let entry = find_window("reno").expect("in the catalogue");
            let parameters = entry.parse(&[("oscillation", oscillation)]).expect("within range");
            let mut law = entry.build(&parameters, WindowContext { seed, ..CONTEXT }).expect("it builds");
            law.on_loss(Instant::ZERO, 40);
            let ack = Acknowledged { segments: 1, in_flight: 20, window_limited: true, ..Acknowledged::default() };
            (1..100).for_each(|ms| law.on_ack(Instant::ZERO + Span::from_millis(ms), &ack));
            law.window().to_bits()
        };
        assert_eq!(run("0", 1), run("0", 2));
        assert_eq!(run("0.3", 1), run("0.3", 1));
        assert_ne!(run("0.3", 1), run("0.3", 2));
    }
}
