//! A suite runs many cases, each under several controllers with the same seeds, and collects all results in one table.
//!
//! ```text
//!   cases or traces ──▶ items ──┐               ┌─▶ sim, all seeds at once ──┐
//!                               ├─▶ scenarios ──┤                            ├─▶ result ──▶ JSON, CSV, report
//!   controllers, AQM ───────────┘               └─▶ live, one by one ────────┘
//! ```
//!
//! [`rfc8867`] has the cases of RFC 8867, and [`traces`] makes a case of each recorded link in a folder. [`bars`]
//! checks our own control law against limits, which are called bars. These suites compute the means of the metrics over
//! the seeds, and measure time series for charts. [`live`] adds results over real sockets to the simulated results.
//! [`paths`] is a different kind of suite, in which each seed has its own random path.

pub mod bars;
mod csv;
mod error;
mod kept;
mod law;
#[cfg(feature = "live")]
pub mod live;
pub mod paths;
mod result;
pub mod rfc8867;
mod rows;
mod series;
pub mod traces;
mod verdict;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

pub use bars::{BarResult, LawValue, Limit, Unit};
pub use error::SuiteError;
pub use law::Aqm;
pub use result::{CaseFlow, CaseResult, Estimate, FlowKind, Machine, Metrics, NotRun, PhaseResult, Row, SuiteResult};
pub use rows::{MetricRow, Scope};
pub use series::{FlowSeries, Second};
pub use verdict::{JUDGED, Verdict};

use crate::result::{Run, World};
use crate::scenario::{Catalogue, Override, Scenario};
use crate::sim::{self, Execution, RunObserver};
use kept::Kept;
use series::Watch;

/// The controllers that a suite compares by default. Controllers that the catalogue does not contain are omitted.
pub const CONTROLLERS: [&str; 5] = ["gcc", "nada", "scream", "ap", "equipoise"];

/// A variant of a case, which a suite runs under each controller.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name of the case, such as "5.1", or the name of a trace.
    pub case: String,
    /// The title of the case.
    pub title: String,
    /// The name of the variant, such as "50ms-link".
    pub variant: String,
    /// The text of the scenario. The suite replaces the controllers of all sessions in the scenario.
    pub text: Cow<'static, str>,
    /// Overrides of keys of the scenario, which are applied before the controllers are replaced.
    pub overrides: Vec<Override>,
    /// The name of a parameter that a controller must have in order to run the item; `None` if any controller can run
    /// it.
    pub needs: Option<&'static str>,
}

/// Settings of a suite's runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of the first run; each further run uses the next number.
    pub seed: u64,
    /// Number of runs of each variant of a case under each controller.
    pub runs: u32,
    /// The queue discipline of all bottleneck links; `None` if each scenario keeps its own discipline.
    pub aqm: Option<Aqm>,
    /// The number of threads, and the handle that can end the suite early.
    pub execution: Execution,
}

/// Returns those controllers of [`CONTROLLERS`] that a catalogue contains.
pub fn default_controllers(catalogue: &Catalogue) -> Vec<String> {
    let has = |name: &&str| catalogue.controllers.find(name).is_some();
    CONTROLLERS.into_iter().filter(has).map(str::to_owned).collect()
}

/// A variant, its controller, and the scenario that runs the variant with this controller.
struct Prepared<'a> {
    item: &'a Item,
    controller: &'a str,
    scenario: Scenario,
}

impl Prepared<'_> {
    #[cfg(feature = "live")]
    fn not_run(&self, reason: String, worlds: Vec<World>) -> NotRun {
        not_run(self.item, self.controller, reason, worlds)
    }
}

fn not_run(item: &Item, controller: &str, reason: String, worlds: Vec<World>) -> NotRun {
    NotRun {
        case: item.case.clone(),
        title: item.title.clone(),
        variant: item.variant.clone(),
        controller: controller.to_owned(),
        worlds,
        reason,
    }
}

/// Runs every item under every controller with the same seeds. An item that a controller cannot run is not an error:
/// the result contains the reason. `progress` is called with the share of the runs that are complete, 0 to 1.
///
/// # Errors
/// [`SuiteError::NoController`], [`SuiteError::UnknownController`], [`SuiteError::Scenario`] if an item has an invalid
/// scenario and its [`Item::needs`] is `None`, [`SuiteError::NothingRuns`] if no controller can run any item, and
/// [`SuiteError::Run`].
pub fn run(
    name: &str,
    items: &[Item],
    (catalogue, controllers): (&Catalogue, &[String]),
    plan: &Plan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<SuiteResult, SuiteError> {
    let (prepared, not_run) = prepare(items, (catalogue, controllers), plan)?;
    let kept = run_each(&prepared, plan, Watch::default, |_, run, watch| Kept::of(run, watch), progress)?;
    let by_item = prepared.iter().zip(kept.chunks(plan.runs.max(1) as usize));
    let results = by_item.map(|(prepared, runs)| case_result(prepared, runs, plan, World::Sim)).collect();
    Ok(suite_result(name, plan, results, not_run))
}

/// Executes the runs of all prepared variants. `keep` extracts the data to be kept from each run.
fn run_each<O: RunObserver, T: Send>(
    prepared: &[Prepared<'_>],
    plan: &Plan,
    observer: impl Fn() -> O + Sync,
    keep: impl Fn(&Prepared<'_>, Run, O) -> T + Sync,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<T>, SuiteError> {
    let jobs = prepared.iter().flat_map(|prepared| {
        (0..plan.runs).map(|number| (&prepared.scenario, plan.seed.wrapping_add(u64::from(number))))
    });
    let jobs: Vec<_> = jobs.collect();
    let done = AtomicU32::new(0);
    let keep = |place: usize, run, observer| {
        let kept = prepared.get(place / plan.runs.max(1) as usize).map(|prepared| keep(prepared, run, observer));
        progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / jobs.len() as f64);
        kept
    };
    let kept = sim::observe_each(&jobs, &plan.execution, observer, keep)?;
    // Every run belongs to a prepared variant, so `flatten` removes nothing.
    Ok(kept.into_iter().flatten().collect())
}

fn suite_result(name: &str, plan: &Plan, results: Vec<CaseResult>, not_run: Vec<NotRun>) -> SuiteResult {
    SuiteResult {
        suite: name.to_owned(),
        version: crate::VERSION.to_owned(),
        seed: plan.seed,
        runs: plan.runs,
        live_runs: None,
        aqm: plan.aqm.map(|aqm| aqm.name().to_owned()),
        bars: Vec::new(),
        results,
        not_run,
    }
}

/// Returns the variants that can be run. For each variant that cannot be run, returns an entry with the reason.
fn prepare<'a>(
    items: &'a [Item],
    (catalogue, controllers): (&Catalogue, &'a [String]),
    plan: &Plan,
) -> Result<(Vec<Prepared<'a>>, Vec<NotRun>), SuiteError> {
    law::check_names(catalogue, controllers)?;
    let (mut prepared, mut refused) = (Vec::new(), Vec::new());
    for item in items {
        let scenario = law::parse(catalogue, item, plan.aqm);
        let scenario = match (scenario, item.needs) {
            (Err(error), None) => return Err(error),
            (scenario, _) => scenario,
        };
        for controller in controllers {
            let found = law::lacks(catalogue, item, controller)
                .and_then(|()| scenario.as_ref().map_err(|error| law::in_one_line(error)))
                .and_then(|scenario| law::with_controller(catalogue, scenario, controller));
            match found {
                Ok(scenario) => prepared.push(Prepared { item, controller, scenario }),
                Err(reason) => refused.push(not_run(item, controller, reason, vec![World::Sim])),
            }
        }
    }
    match (prepared.is_empty(), refused.first()) {
        (true, Some(first)) => Err(SuiteError::NothingRuns { reason: first.reason.clone() }),
        _ => Ok((prepared, refused)),
    }
}

fn case_result(prepared: &Prepared<'_>, runs: &[Kept], plan: &Plan, world: World) -> CaseResult {
    let Prepared { item, controller, scenario } = prepared;
    CaseResult {
        case: item.case.clone(),
        title: item.title.clone(),
        variant: item.variant.clone(),
        description: scenario.description.trim().to_owned(),
        world,
        controller: (*controller).to_owned(),
        implementation: result::OURS.to_owned(),
        version: crate::VERSION.to_owned(),
        seed: plan.seed,
        parameters: law::parameters(scenario),
        runs: u32::try_from(runs.len()).unwrap_or(plan.runs),
        duration_s: scenario.duration.as_secs_f64(),
        flows: kept::flows(runs),
        phases: kept::phases(runs),
        metrics: kept::whole(runs),
        machine: None,
        series: kept::series(runs),
        capacity: series::capacity(scenario),
    }
}
