//! Runs a scenario for the web page, once for each chosen controller. The user may have changed the scenario. All runs
//! have the same seed.

use equipoise::control;
use equipoise::units::Span;
use equipoise_lab::result::Report;
use equipoise_lab::scenario::{Catalogue, FlowKind, Override, Scenario, ScenarioError, Swap, SwapError};
use equipoise_lab::sim::{self, SimError};
use equipoise_lab::timeline::{Columns, Timeline};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::pull::{self, Pull, PullError};

/// A request of the web page: what to simulate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The text of a scenario file.
    pub scenario: String,
    /// Seed of the run; `None` to use the scenario's seed.
    pub seed: Option<u32>,
    /// Length of the run in seconds; `None` to use the scenario's length.
    pub duration_s: Option<f64>,
    /// Names of controllers. The scenario is run once for each name; in this run, the observed flow has the named
    /// controller. If the list is empty, the scenario is run once with its own controllers.
    #[serde(default)]
    pub controllers: Vec<String>,
    /// Changes of the link that the user made by hand.
    #[serde(default)]
    pub pulls: Vec<Pull>,
}

/// The results of a request, which the web page draws.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// Name of the observed flow.
    pub flow: String,
    /// Name of the bottleneck link. The user can change the properties of this link by hand.
    pub link: String,
    /// The link's capacity over time: pairs of a start time in seconds and a value in bit/s. Empty if the capacity is
    /// unlimited. If the capacity varies over time as recorded in a trace file, this is the mean capacity.
    pub capacity: Vec<(f64, f64)>,
    /// The link's propagation delay over time: pairs of a start time and a value, both in seconds.
    pub delay: Vec<(f64, f64)>,
    /// The link's random loss over time: pairs of a start time in seconds and the share of lost packets, from 0 to 1.
    /// If losses occur in bursts, this is the mean share.
    pub loss: Vec<(f64, f64)>,
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// The results of each run: one for each controller of the request, or one if the request names no controller.
    pub lanes: Vec<Lane>,
}

/// The results of the run with one controller.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// Name of the controller.
    pub controller: String,
    /// The text of the scenario file that was run, with the request's seed and the changes made by hand.
    pub scenario: String,
    /// The report that `equipoise sim` writes for this scenario file.
    pub report: Report,
    /// Time series of the observed flow.
    pub columns: Columns,
}

/// A controller that the page offers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offer {
    name: &'static str,
    summary: &'static str,
}

/// A scenario included in the page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Preset {
    name: String,
    description: String,
    duration_s: f64,
    text: &'static str,
}

/// Errors of a request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The controllers cannot be replaced.
    #[error(transparent)]
    Swap(#[from] SwapError),
    /// A change by hand is invalid.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The scenario has no flow that the page can show.
    #[error("the scenario has no flow with a `controller` over one path; the page needs one to show")]
    NothingToWatch,
}

/// Time between two points of the observed flow's time series.
const PIECE: Span = Span::from_millis(100);

/// The scenarios included in the page.
const PRESETS: [&str; 4] = [
    equipoise_lab::DEMO_OWN,
    equipoise_lab::DEMO,
    include_str!("../../../scenarios/call.toml"),
    include_str!("../../../scenarios/rfc8867/5.1-50ms-link.toml"),
];

pub(crate) fn controllers() -> Vec<Offer> {
    control::entries().iter().map(|entry| Offer { name: entry.name, summary: entry.summary }).collect()
}

pub(crate) fn scenarios() -> Vec<Preset> {
    let preset = |text| {
        let Scenario { name, description, duration, .. } = Scenario::parse(text).ok()?;
        let duration_s = duration.as_secs_f64();
        Some(Preset { name, description: description.trim().to_owned(), duration_s, text })
    };
    PRESETS.into_iter().filter_map(preset).collect()
}

/// Runs the request's scenario once for each controller. Each run includes the changes that the user made by hand.
///
/// # Errors
/// [`PlayError`] for the first error found.
pub fn play(request: &Request) -> Result<Played, PlayError> {
    let mut overrides = Vec::new();
    if let Some(duration) = request.duration_s {
        overrides.push(Override::set("duration", format!("{duration} s")));
    }
    if let Some(seed) = request.seed {
        overrides.push(Override::set("seed", seed));
    }
    let planned = Scenario::parse_with(&request.scenario, &overrides)?;
    let watched = watched(&planned).ok_or(PlayError::NothingToWatch)?;
    let link = pull::bottleneck(&planned, watched).ok_or(PlayError::NothingToWatch)?;
    let (steps, others) = pull::steps(link, &request.pulls)?;
    overrides.extend(steps);
    let text = format!("{}{}", request.scenario, others.unwrap_or_default());
    let flow = &planned.flows[watched].name;
    let scenarios = if request.controllers.is_empty() {
        vec![Scenario::parse_with(&text, &overrides)?]
    } else {
        let catalogue = Catalogue::default();
        let swap = Swap::new(&catalogue, &text, &overrides, Some(flow))?;
        swap.with(request.controllers.iter().map(String::as_str))?
    };
    let pulled = scenarios.first().unwrap_or(&planned);
    let link = pull::bottleneck(pulled, watched).unwrap_or(link);
    let capacity = link.forward.capacity.rate();
    Ok(Played {
        flow: flow.clone(),
        link: link.name.clone(),
        capacity: capacity.map(|rate| steps_of(&rate, |rate| rate.as_bps() as f64)).unwrap_or_default(),
        delay: steps_of(&link.forward.delay, Span::as_secs_f64),
        loss: steps_of(&link.forward.loss, |loss| loss.mean_share().as_fraction()),
        duration_s: planned.duration.as_secs_f64(),
        lanes: scenarios.iter().map(|scenario| lane(scenario, watched)).collect::<Result<_, _>>()?,
    })
}

fn lane(scenario: &Scenario, watched: usize) -> Result<Lane, SimError> {
    let seed = scenario.seed;
    let (run, timeline) = sim::simulate_observed(scenario, seed, Timeline::new(scenario, PIECE))?;
    let controller = match &scenario.flows[watched].kind {
        FlowKind::Session { controller, .. } => controller.entry.name().to_owned(),
        _ => String::new(),
    };
    Ok(Lane {
        controller,
        scenario: scenario.text.clone(),
        report: Report::new(scenario, seed, vec![run]),
        columns: timeline.columns(watched),
    })
}

/// Returns the index of the observed flow, which is the first session over a single path.
fn watched(scenario: &Scenario) -> Option<usize> {
    scenario.flows.iter().position(|flow| matches!(flow.kind, FlowKind::Session { .. }))
}

/// Converts a schedule to a list of pairs: a time in seconds, and the value from that time on.
fn steps_of<T: Copy>(schedule: &equipoise::units::Schedule<T>, value: impl Fn(T) -> f64) -> Vec<(f64, f64)> {
    let first = (0.0, value(schedule.initial()));
    let later = schedule.steps().iter().map(|(at, step)| (at.as_secs_f64(), value(*step)));
    std::iter::once(first).chain(later).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::Quantity;

    fn request(pulls: Vec<Pull>) -> Request {
        let scenario = equipoise_lab::DEMO_OWN.to_owned();
        Request { scenario, seed: None, duration_s: Some(20.0), controllers: Vec::new(), pulls }
    }

    const fn pull(at_s: f64, quantity: Quantity, value: f64) -> Pull {
        Pull { at_s, quantity, value }
    }

    /// If this test fails, a change made by hand modifies results before the time of the change.
    #[test]
    fn a_pull_changes_nothing_before_it() {
        let usual = play(&request(Vec::new())).expect("the demo");
        for (quantity, value) in
            [(Quantity::Capacity, 4e5), (Quantity::Delay, 0.1), (Quantity::Loss, 0.3), (Quantity::Cross, 5e5)]
        {
            let pulled = play(&request(vec![pull(10.0, quantity, value)])).expect("a pull");
            let [was, is] = [&usual, &pulled].map(|played| &played.lanes[0].columns.received_bps);
            assert_eq!(was[..100], is[..100], "{quantity:?}");
            assert_ne!(was[100..], is[100..], "{quantity:?}");
        }
    }

    /// If this test fails, a change made by hand does not replace the scenario's later steps of the same quantity.
    #[test]
    fn a_pull_holds_until_the_next_one() {
        let pulls = vec![
            pull(5.0, Quantity::Capacity, 3e6),
            pull(9.5, Quantity::Capacity, 2e6),
            pull(6.0, Quantity::Delay, 0.05),
            pull(6.0, Quantity::Loss, 0.025),
        ];
        let played = play(&request(pulls)).expect("pulls");
        assert_eq!(played.capacity, [(0.0, 1e6), (5.0, 3e6), (9.5, 2e6)]);
        assert_eq!(played.delay, [(0.0, 0.02), (6.0, 0.05)]);
        assert_eq!(played.loss, [(0.0, 0.0), (6.0, 0.025)]);
        // Before the first change made by hand, the scenario's own steps apply.
        let played = play(&request(vec![pull(8.0, Quantity::Capacity, 3e6)])).expect("a pull");
        assert_eq!(played.capacity, [(0.0, 1e6), (7.0, 2.5e6), (8.0, 3e6)]);
    }

    /// If this test fails, the exported scenario file does not reproduce the results on the page.
    #[test]
    fn the_scenario_of_a_lane_gives_its_results_again() {
        let pulls = vec![
            pull(3.0, Quantity::Cross, 3e5),
            pull(8.0, Quantity::Cross, 0.0),
            pull(9.0, Quantity::Delay, 0.06),
            pull(10.0, Quantity::Loss, 0.012_34),
        ];
        let controllers = vec!["gcc".to_owned(), "equipoise".to_owned()];
        let played = play(&Request { controllers, seed: Some(7), ..request(pulls) }).expect("two controllers");
        assert_eq!(played.lanes.iter().map(|lane| lane.controller.as_str()).collect::<Vec<_>>(), ["gcc", "equipoise"]);
        for lane in &played.lanes {
            let scenario = Scenario::parse(&lane.scenario).expect("the exported file");
            let run = sim::simulate(&scenario, scenario.seed, &mut |_| {}).expect("a run");
            assert_eq!((scenario.seed, &lane.report.runs), (7, &vec![run]));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (at_s, value) in [(-1.0, 1e6), (f64::NAN, 1e6), (1.0, 0.0), (1.0, f64::INFINITY), (1.0, -1.0)] {
            let refused = play(&request(vec![pull(at_s, Quantity::Capacity, value)]));
            assert!(matches!(refused, Err(PlayError::Pull(PullError::Value))), "{at_s}, {value}: {refused:?}");
        }
        for (rate, reason) in [("\"unlimited\"", "unlimited"), ("\"1 Mbit/s\"\nrate_burst = \"30 kB\"", "rate_burst")] {
            let scenario = equipoise_lab::DEMO_OWN.lines().filter(|line| !line.starts_with("steps"));
            let scenario =
                scenario.collect::<Vec<_>>().join("\n").replace("rate = \"1 Mbit/s\"", &format!("rate = {rate}"));
            let refused = play(&Request { scenario, ..request(vec![pull(1.0, Quantity::Capacity, 1e6)]) });
            let refused = refused.expect_err("no rate to change");
            assert!(matches!(refused, PlayError::Pull(PullError::NoRate)), "{refused:?}");
            assert!(refused.to_string().contains(reason), "{refused}");
        }
        let only = |scenario: &str| play(&Request { scenario: scenario.to_owned(), ..request(Vec::new()) });
        assert!(matches!(only("name = 3"), Err(PlayError::Scenario(_))));
        let without = equipoise_lab::DEMO_OWN.lines().filter(|line| !line.starts_with("controller"));
        let without = without
            .collect::<Vec<_>>()
            .join("\n")
            .replace("\"encoder\", frame_rate = 30, min_rate = \"150 kbit/s\", max_", "\"poisson\", ");
        let without = without.replace(", reaction = \"100 ms\"", "").replace("report_interval = \"250 ms\"", "");
        assert!(matches!(only(&without), Err(PlayError::NothingToWatch)), "{:?}", only(&without));
        let unknown = play(&Request { controllers: vec!["gc".to_owned()], ..request(Vec::new()) });
        assert!(matches!(unknown, Err(PlayError::Swap(_))));
    }

    /// If this test fails, the page cannot show one of its own scenarios.
    #[test]
    fn all_scenarios_of_the_page_can_be_watched() {
        assert_eq!(scenarios().len(), PRESETS.len());
        for preset in scenarios() {
            let request = Request { scenario: preset.text.to_owned(), duration_s: None, ..request(Vec::new()) };
            let played = play(&request).map(|played| played.lanes.len());
            assert_eq!(played.expect("a run"), 1, "{}", preset.name);
        }
    }
}
