//! Replaces the controller of a flow. Parameters that both controllers have are kept.

use equipoise::control::{Kind, Parameter};
use thiserror::Error;
use toml::{Table, Value};

use super::nearest::similar;
use super::{Catalogue, Listed, Override, Scenario, ScenarioError, overrides};

/// A scenario in which the controller of a flow can be replaced.
#[derive(Clone, Debug)]
pub struct Swap<'a> {
    catalogue: &'a Catalogue,
    text: &'a str,
    overrides: &'a [Override],
    flow: String,
    /// The controller that will be replaced.
    old: &'a Listed,
    /// The keys in the table of the old controller except `name`, including keys that overrides set.
    given: Vec<String>,
}

/// Why the controller of a flow cannot be replaced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SwapError {
    /// The scenario itself is wrong.
    #[error("the scenario is wrong as it is")]
    Scenario(#[from] ScenarioError),
    /// No flow of the scenario has a controller.
    #[error("no flow of the scenario has a `controller`")]
    NoController,
    /// Several flows have a controller, and the caller named none of them.
    #[error("several flows have a `controller`; name the one to exchange it in: {known}")]
    WhichFlow {
        /// Names of the flows that have a controller.
        known: String,
    },
    /// The named flow does not exist or has no controller.
    #[error("there is no flow `{flow}` with a `controller`; there are: {known}")]
    NoSuchFlow {
        /// The name of the flow.
        flow: String,
        /// Names of the flows that have a controller.
        known: String,
    },
    /// The catalogue has no controller with this name.
    #[error("there is no controller `{name}`{similar}; there are: {known}")]
    UnknownController {
        /// The name that is not in the catalogue.
        name: String,
        /// The names of the existing controllers.
        known: String,
        /// Text that suggests the most similar controller; empty if none is similar.
        similar: String,
    },
    /// The scenario sets a parameter that neither the old nor any new controller has.
    #[error("none of the controllers has `{parameter}`, which is given{similar}; they have: {known}")]
    UnknownParameter {
        /// The name of the parameter.
        parameter: String,
        /// The names of the parameters of the old and new controllers.
        known: String,
        /// Text that suggests the most similar parameter; empty if none is similar.
        similar: String,
    },
    /// The new controller needs a parameter that is not set.
    #[error("{controller} needs `{parameter}`, {meaning}; give it by --set '{example}'")]
    Missing {
        /// The name of the new controller.
        controller: String,
        /// The name of the parameter.
        parameter: &'static str,
        /// What the parameter means.
        meaning: &'static str,
        /// An override that sets the parameter, as `KEY=VALUE`.
        example: String,
    },
    /// The scenario would be invalid with the new controller.
    #[error("with the controller {controller}")]
    With {
        /// The name of the new controller.
        controller: String,
        /// What would be wrong in the scenario.
        source: ScenarioError,
    },
}

impl<'a> Swap<'a> {
    /// Prepares to replace the controller of `flow` in the scenario `text`, after `overrides` are applied. If `flow` is
    /// `None`, the scenario must have exactly one flow with a controller.
    ///
    /// # Errors
    /// [`SwapError`] if there is no such flow with a controller, if `flow` is `None` and several flows have a
    /// controller, if the text is not valid TOML, or if an override cannot be applied. Most other faults of the
    /// scenario are errors of [`with`](Self::with).
    pub fn new(
        catalogue: &'a Catalogue,
        text: &'a str,
        overrides: &'a [Override],
        flow: Option<&str>,
    ) -> Result<Self, SwapError> {
        let scenario = overrides::applied(text, overrides)?;
        let flows = scenario.get("flow").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let controlled: Vec<_> = flows.iter().filter_map(named_controller).collect();
        let known = || controlled.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (flow, table) = match (flow, controlled.as_slice()) {
            (_, []) => {
                // If the scenario itself is wrong, its error is more useful than `NoController`.
                Scenario::parse_in(catalogue, text, overrides)?;
                return Err(SwapError::NoController);
            }
            (None, [only]) => *only,
            (None, _) => return Err(SwapError::WhichFlow { known: known() }),
            (Some(flow), all) => *all
                .iter()
                .find(|(name, _)| *name == flow)
                .ok_or_else(|| SwapError::NoSuchFlow { flow: flow.to_owned(), known: known() })?,
        };
        let Some(old) = table.get("name").and_then(Value::as_str).and_then(|name| catalogue.controllers.find(name))
        else {
            Scenario::parse_in(catalogue, text, overrides)?;
            return Err(SwapError::NoController);
        };
        let given = table.keys().filter(|key| *key != "name").cloned().collect();
        Ok(Self { catalogue, text, overrides, flow: flow.to_owned(), old, given })
    }

    /// The name of the flow whose controller is replaced.
    pub fn flow(&self) -> &str {
        &self.flow
    }

    /// Returns one scenario for each controller in `names`. A parameter of the old controller is kept if the new
    /// controller has a parameter with the same name and kind. The scenario can also contain parameters that only the
    /// new controller has; these parameters are kept too.
    ///
    /// # Errors
    /// [`SwapError`] if a controller does not exist, needs a parameter that is not set, or makes the scenario invalid,
    /// or if the scenario sets a parameter that neither the old nor any of the new controllers has.
    pub fn with<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Scenario>, SwapError> {
        let entries = names.into_iter().map(|name| self.entry(name)).collect::<Result<Vec<_>, _>>()?;
        self.check_given(&entries)?;
        entries.into_iter().map(|entry| self.exchange(entry)).collect()
    }

    fn entry(&self, name: &str) -> Result<&'a Listed, SwapError> {
        let controllers = &self.catalogue.controllers;
        controllers.find(name).ok_or_else(|| SwapError::UnknownController {
            name: name.to_owned(),
            known: controllers.names(),
            similar: similar(name, controllers.iter().map(Listed::name)),
        })
    }

    /// Checks that each parameter in the scenario is a parameter of the old controller or of at least one new
    /// controller.
    fn check_given(&self, entries: &[&Listed]) -> Result<(), SwapError> {
        let mut known: Vec<_> =
            entries.iter().chain([&self.old]).flat_map(|entry| entry.parameters()).map(|p| p.name).collect();
        known.sort_unstable();
        known.dedup();
        let stray = self.given.iter().find(|given| !known.contains(&given.as_str()));
        stray.map_or(Ok(()), |stray| {
            let similar = similar(stray, known.iter().copied());
            Err(SwapError::UnknownParameter { parameter: stray.clone(), known: known.join(", "), similar })
        })
    }

    fn exchange(&self, new: &Listed) -> Result<Scenario, SwapError> {
        let controller = format!("flow.{}.controller", quoted(&self.flow));
        let is_kept = |given: &&String| {
            let (old, new) = (kind(self.old, given), kind(new, given));
            // If the old controller does not have a parameter, the parameter was set for one of the new controllers.
            new.is_some() && (old.is_none() || old == new)
        };
        let kept: Vec<_> = self.given.iter().filter(is_kept).collect();
        let is_missing =
            |parameter: &&Parameter| parameter.default.is_none() && kept.iter().all(|kept| *kept != parameter.name);
        if let Some(missing) = new.parameters().iter().find(is_missing) {
            let example = format!("{controller}.{}={}", missing.name, example(missing));
            let (controller, meaning) = (new.name().to_owned(), missing.meaning);
            return Err(SwapError::Missing { controller, parameter: missing.name, meaning, example });
        }
        let mut overrides = self.overrides.to_vec();
        let dropped = self.given.iter().filter(|given| !kept.contains(given));
        overrides.extend(dropped.map(|dropped| Override::remove(format!("{controller}.{}", quoted(dropped)))));
        overrides.push(Override::set(format!("{controller}.name"), new.name()));
        let swapped = Scenario::parse_in(self.catalogue, self.text, &overrides);
        swapped.map_err(|source| SwapError::With { controller: new.name().to_owned(), source })
    }
}

/// Returns a flow's name and its controller's table; `None` if the flow has no controller.
fn named_controller(flow: &Value) -> Option<(&str, &Table)> {
    Some((flow.get("name")?.as_str()?, flow.get("controller")?.as_table()?))
}

fn kind(entry: &Listed, parameter: &str) -> Option<Kind> {
    entry.parameters().iter().find(|known| known.name == parameter).map(|known| known.kind)
}

/// Returns a key in the form that a path of keys needs, in quotes if necessary.
fn quoted(key: &str) -> String {
    match key {
        key if key.contains('"') => format!("'{key}'"),
        key if key.contains(['.', '\'']) => format!("\"{key}\""),
        key => key.to_owned(),
    }
}

/// Returns an example of a value that a parameter can have.
fn example(parameter: &Parameter) -> &'static str {
    match parameter.kind {
        Kind::Rate => "3 Mbit/s",
        Kind::Span => "40 ms",
        Kind::Number { .. } => parameter.range.map_or("1", |(least, _)| least),
        Kind::Choice(words) => words.first().copied().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEMO;
    use crate::scenario::FlowKind;

    fn swapped(overrides: &[Override], names: &[&str]) -> Result<Vec<Scenario>, SwapError> {
        Swap::new(&Catalogue::default(), DEMO, overrides, None)?.with(names.iter().copied())
    }

    /// Returns the name of the first flow's controller, and the values of the controller's parameters.
    fn controller(scenario: &Scenario) -> (&str, Vec<String>) {
        let FlowKind::Session { controller, .. } = &scenario.flows[0].kind else { panic!("a session") };
        let given = controller.parameters.iter().map(|(name, value)| format!("{name} = {value}"));
        (controller.entry.name(), given.collect())
    }

    #[test]
    fn parameters_of_the_same_name_and_kind_are_kept_and_others_left_out() {
        let rate = Override::set("flow.media.controller.rate", "3 Mbit/s");
        let scenarios = swapped(&[rate], &["ap", "aimd", "tfrc", "cbr", "lda"]).expect("right controllers");
        let has = |place: usize, words: &str| {
            let (name, parameters) = controller(&scenarios[place]);
            assert!(parameters.iter().any(|parameter| parameter == words), "{name}: {words} in {parameters:?}");
        };
        has(0, "b = 300");
        has(1, "target = 8.2 ms");
        has(1, "min_rate = 100 kbit/s");
        has(2, "min_rate = 100 kbit/s");
        has(3, "rate = 3 Mbit/s");
        has(4, "max_rate = 15 Mbit/s");
        assert_eq!(
            scenarios.iter().map(|scenario| controller(scenario).0).collect::<Vec<_>>(),
            ["ap", "aimd", "tfrc", "cbr", "lda"]
        );
    }

    #[test]
    fn what_is_missing_or_unknown_is_said_with_what_to_set() {
        let cases: [(&[Override], &[&str], &[&str]); 5] = [
            (&[], &["ap", "cbr"], &["cbr needs `rate`", "--set 'flow.media.controller.rate=3 Mbit/s'"]),
            (&[], &["ap", "tfcr"], &["no controller `tfcr`; a similar one exists: `tfrc`"]),
            (&[Override::set("flow.media.controller.rat", "3 Mbit/s")], &["ap", "cbr"], &["`rat`", "`rate`"]),
            (&[], &["tq"], &["with the controller tq"]),
            (&[Override::set("flow.media.controller.name", "app")], &["ap"], &["wrong as it is"]),
        ];
        for (overrides, names, expected) in cases {
            let refused = swapped(overrides, names).expect_err("wrong on purpose").to_string();
            for words in expected {
                assert!(refused.contains(words), "{names:?} are refused with `{refused}`, without `{words}`");
            }
        }
    }

    #[test]
    fn the_flow_has_to_be_clear() {
        let catalogue = Catalogue::default();
        let two = DEMO.replace("[[link]]", "[[flow]]\nname = \"x.y\"\npath = [\"bottleneck\"]\npacket_size = \"1000 B\"\nreport_interval = \"1 s\"\ncontroller = { name = \"ap\", target = \"9 ms\" }\n[[link]]");
        let refused =
            |text: &str, flow| Swap::new(&catalogue, text, &[], flow).expect_err("wrong on purpose").to_string();
        assert!(refused(&two, None).contains("x.y, media"), "{}", refused(&two, None));
        assert!(refused(&two, Some("background")).contains("there are: x.y, media"));
        let swap = Swap::new(&catalogue, &two, &[], Some("x.y")).expect("a flow with a controller");
        assert_eq!(controller(&swap.with(["aimd"]).expect("a controller")[0]).0, "aimd");
        let background = &DEMO[DEMO.rfind("[[flow]]").expect("two flows")..];
        let none = DEMO[..DEMO.find("[[flow]]").expect("two flows")].to_owned() + background;
        assert!(refused(&none, None).contains("no flow of the scenario has a `controller`"));
        assert!(refused("name = 3", None).contains("wrong as it is"));
    }
}
