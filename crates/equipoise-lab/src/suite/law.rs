//! Prepares an item of a suite: replaces the controllers of its scenario, and changes the queues of its links.

use std::collections::BTreeMap;
use std::error::Error;

use equipoise::error::Chain;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::link::{Capacity, Discipline, PipeConfig, QueueLimit};

use super::{Item, SuiteError};
use crate::scenario::nearest::similar;
use crate::scenario::{
    Catalogue, DuplexPart, Flow, FlowKind, Link, Listed, Override, Scenario, Swap, SwapError, Value,
};
use crate::sim;

/// The queue discipline of a bottleneck link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// Drop-tail: drops arriving packets when the queue is full.
    DropTail,
    /// CoDel, controlled delay (RFC 8289).
    Codel,
    /// FQ-CoDel, flow queueing with controlled delay (RFC 8290).
    FqCodel,
    /// PIE, proportional integral controller enhanced (RFC 8033).
    Pie,
    /// `DualPI2`, two coupled queues, one of them for L4S traffic (RFC 9332).
    DualPi2,
}

impl Aqm {
    /// All queue disciplines.
    pub const ALL: [Self; 5] = [Self::DropTail, Self::Codel, Self::FqCodel, Self::Pie, Self::DualPi2];

    /// The name of the discipline. It is also the name in scenarios, except for drop-tail: a scenario has no name for
    /// this default.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel => "codel",
            Self::FqCodel => "fq_codel",
            Self::Pie => "pie",
            Self::DualPi2 => "dualpi2",
        }
    }

    /// Returns the discipline with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aqm| aqm.name() == name)
    }
}

/// Refuses names of controllers that the catalogue does not contain, and an empty list of names.
pub(super) fn check_names(catalogue: &Catalogue, controllers: &[String]) -> Result<(), SuiteError> {
    let known = &catalogue.controllers;
    let unknown = controllers.iter().find(|name| known.find(name).is_none());
    match unknown {
        Some(name) => Err(SuiteError::UnknownController {
            name: name.clone(),
            known: known.names(),
            similar: similar(name, known.iter().map(Listed::name)),
        }),
        None if controllers.is_empty() => Err(SuiteError::NoController),
        None => Ok(()),
    }
}

/// Returns the scenario of an item. If `aqm` is given, all links with a rate limit use this queue discipline.
pub(super) fn parse(catalogue: &Catalogue, item: &Item, aqm: Option<Aqm>) -> Result<Scenario, SuiteError> {
    let parse = |overrides: &[Override]| {
        let wrong = |source| SuiteError::Scenario {
            case: item.case.clone(),
            variant: item.variant.clone(),
            source: Box::new(source),
        };
        Scenario::parse_in(catalogue, &item.text, overrides).map_err(wrong)
    };
    let scenario = parse(&item.overrides)?;
    let Some(aqm) = aqm else { return Ok(scenario) };
    let changes = scenario.links.iter().flat_map(|link| queue_changes(&scenario, link, aqm));
    let overrides: Vec<_> = item.overrides.iter().cloned().chain(changes).collect();
    parse(&overrides)
}

/// Returns the overrides that change the queue discipline of a link. There are none if the link has no rate limit.
fn queue_changes(scenario: &Scenario, link: &Link, aqm: Aqm) -> Vec<Override> {
    let key = |key: &str| format!("link.\"{}\".{key}", link.name);
    let PipeConfig { capacity, queue, discipline, .. } = &link.forward;
    let has_aqm = *discipline != Discipline::DropTail;
    let Some(rate) = first_rate(capacity, scenario) else { return Vec::new() };
    if aqm == Aqm::DropTail {
        return if has_aqm { vec![Override::remove(key("aqm"))] } else { Vec::new() };
    }
    let name = [("name".to_owned(), Value::from(aqm.name()))].into_iter().collect();
    let mut changes = vec![Override::set(key("aqm"), Value::Table(name))];
    // With active queue management, the limit of a queue is in bytes. RFC 8868, Sec. 4.3 has the conversion: bytes =
    // seconds x bit/s / 8.
    if let QueueLimit::Time(time) = queue {
        let bits = time.as_secs_f64() * rate.as_bps_f64();
        let room = Size::from_bytes((bits / 8.0).round() as u64);
        changes.push(Override::set(key("queue"), format!("{} B", room.as_bytes())));
    }
    changes
}

/// Returns the rate of a link at the start of a run. For a link with a traffic shaper or a trace, returns the mean rate
/// over the run instead. `None` if the link has no rate limit.
fn first_rate(capacity: &Capacity, scenario: &Scenario) -> Option<Rate> {
    match capacity {
        Capacity::Rate(rate) => Some(rate.initial()),
        other => {
            let bits = other.bits(Span::ZERO, scenario.duration)?;
            Rate::from_bps_f64(bits / scenario.duration.as_secs_f64())
        }
    }
}

/// Checks that a controller has the parameter that an item needs. The error is the reason why the controller cannot run
/// the item.
pub(super) fn lacks(catalogue: &Catalogue, item: &Item, controller: &str) -> Result<(), String> {
    let Some(needed) = item.needs else { return Ok(()) };
    let entry = catalogue.controllers.find(controller);
    let has = entry.is_some_and(|entry| entry.parameters().iter().any(|parameter| parameter.name == needed));
    if has { Ok(()) } else { Err(format!("{controller} has no parameter `{needed}`")) }
}

/// Returns the scenario in which every session uses this controller. The error is the reason why this is impossible.
pub(super) fn with_controller(
    catalogue: &Catalogue,
    scenario: &Scenario,
    controller: &str,
) -> Result<Scenario, String> {
    let scenario = exchanged(catalogue, scenario, controller).map_err(|error| in_one_line(&error))?;
    sim::check(&scenario).map_err(|error| in_one_line(&error))?;
    Ok(scenario)
}

/// The rate for controllers that send at a fixed rate. It is the example of a video's target rate in RFC 8593, Sec. 5.
const FIXED_RATE: &str = "1 Mbit/s";

/// Whether a controller sends at a fixed rate that the scenario must specify.
fn has_fixed_rate(catalogue: &Catalogue, controller: &str) -> bool {
    let entry = catalogue.controllers.find(controller);
    entry.is_some_and(|entry| entry.parameters().iter().any(|it| it.name == "rate" && it.default.is_none()))
}

/// Replaces the controller of each session. A session keeps its values of those parameters that the new controller also
/// has.
fn exchanged(catalogue: &Catalogue, scenario: &Scenario, controller: &str) -> Result<Scenario, SwapError> {
    let mut found = scenario.clone();
    for flow in scenario.flows.iter().filter(|flow| controller_of(flow).is_some_and(|name| name != controller)) {
        let rate = has_fixed_rate(catalogue, controller)
            .then(|| Override::set(format!("flow.{}.controller.rate", flow.name), FIXED_RATE));
        let overrides: Vec<_> = rate.into_iter().collect();
        let swap = Swap::new(catalogue, &found.text, &overrides, Some(&flow.name))?;
        // `with` returns one scenario for each name, and there is only one name.
        found = swap.with([controller])?.pop().unwrap_or(found);
    }
    Ok(found)
}

/// Returns the name of a session's controller; `None` for other flows and for the reverse media of a session.
fn controller_of(flow: &Flow) -> Option<&str> {
    match &flow.kind {
        FlowKind::Session { controller, .. } if flow.part != Some(DuplexPart::Back) => Some(controller.entry.name()),
        FlowKind::Multipath(multipath) => Some(multipath.controller.entry.name()),
        _ => None,
    }
}

/// Returns the parameters of the first session's controller, as text in the form of a scenario file.
pub(super) fn parameters(scenario: &Scenario) -> BTreeMap<String, String> {
    let first = scenario.flows.iter().find_map(|flow| match &flow.kind {
        FlowKind::Session { controller, .. } => Some(&controller.parameters),
        FlowKind::Multipath(multipath) => Some(&multipath.controller.parameters),
        _ => None,
    });
    let all = first.into_iter().flat_map(equipoise::control::Parameters::iter);
    all.map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// Formats an error and all its causes in one line.
pub(super) fn in_one_line(error: &dyn Error) -> String {
    Chain(error).to_string().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::rfc8867;

    fn item(name: &str) -> Item {
        rfc8867::items(&[name.to_owned()], false).expect("a case").pop().expect("one variant")
    }

    #[test]
    fn another_queue_has_its_room_in_bytes_of_the_first_rate() {
        let catalogue = Catalogue::default();
        let parsed = |name: &str, aqm| parse(&catalogue, &item(name), aqm).expect("a right scenario");
        let managed = parsed("5.1/50ms-link", Some(Aqm::FqCodel));
        let PipeConfig { queue, discipline, .. } = managed.links[0].forward;
        assert!(matches!(discipline, Discipline::FqCodel(_)));
        assert_eq!(queue, QueueLimit::Bytes(Size::from_bytes(37_500)), "300 ms at 1 Mbit/s");
        let access = &parsed("5.5/10-150ms", Some(Aqm::Pie)).links[0];
        assert_eq!(access.forward.discipline, Discipline::DropTail, "where nothing waits nothing is managed");
        let plain = parsed("6.2/5.1-codel", Some(Aqm::DropTail));
        assert_eq!(plain.links[0].forward.discipline, Discipline::DropTail);
        assert!(matches!(parsed("6.2/5.1-codel", None).links[0].forward.discipline, Discipline::Codel(_)));
        assert!(Aqm::ALL.into_iter().all(|aqm| Aqm::find(aqm.name()) == Some(aqm)));
    }

    #[test]
    fn every_session_gets_the_controller_with_the_limits_of_its_own() {
        let catalogue = Catalogue::default();
        let scenario = parse(&catalogue, &item("5.5/10-150ms"), None).expect("a right scenario");
        let found = with_controller(&catalogue, &scenario, "tfrc").expect("it runs");
        assert_eq!(found.flows.iter().filter_map(controller_of).collect::<Vec<_>>(), ["tfrc"; 5]);
        assert_eq!(parameters(&found).get("initial_rate").map(String::as_str), Some("210 kbit/s"));
        let again = with_controller(&catalogue, &scenario, "ap").expect("it runs");
        assert_eq!(again.text, scenario.text, "what has the controller already stays as it is");
        let fixed = with_controller(&catalogue, &scenario, "cbr").expect("it runs");
        assert_eq!(parameters(&fixed).get("rate").map(String::as_str), Some("1 Mbit/s"));
        let refused = with_controller(&catalogue, &scenario, "tq").expect_err("there is no playout buffer");
        assert!(refused.contains("playout"), "{refused}");
    }
}
