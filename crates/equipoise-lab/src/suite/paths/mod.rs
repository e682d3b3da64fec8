//! The suite of random paths: each seed draws a random path, flows under one control law use this path, and each run is
//! judged separately.
//!
//! ```text
//!   seed ──▶ path ──▶ scenario ──▶ sim ──▶ tenths of a second ──▶ faults ──▶ list, JSON
//! ```
//!
//! The suites of cases show how well control laws work. This suite shows how often a law does something that no law
//! should do. The book's chapter on the suite lists the ranges of the paths and the criteria. The ranges were fixed
//! before our own law was written.

mod draw;
mod judge;
mod result;
mod watch;

use std::sync::atomic::{AtomicU32, Ordering};

pub use draw::{DURATION, INITIAL_RATE, MAX_SHARE, MIN_RATE, Path};
pub use judge::Fault;
use rayon::prelude::*;
pub use result::{PathRun, PathsResult};

use super::{SuiteError, law};
use crate::scenario::{Catalogue, Scenario};
use crate::sim::{self, SimError};
use watch::Watch;

/// The name of the suite.
pub const NAME: &str = "paths";
/// The control law that is judged by default.
pub const CONTROLLER: &str = "equipoise";
/// Largest acceptable share of runs with a [`Fault`], 0 to 1.
pub const MOST_BAD: f64 = 0.005;

/// Settings of a run of this suite.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of the first run; each further run uses the next number.
    pub first_seed: u64,
    /// Number of runs, each with its own seed and path.
    pub runs: u32,
    /// Number of threads; `None` to use all processor cores. The results do not depend on this number.
    pub threads: Option<usize>,
}

/// Returns the scenario of a random path under a controller, ready to run.
///
/// # Errors
/// [`SuiteError::UnknownController`], [`SuiteError::NothingRuns`] if the controller cannot run the scenario, and
/// [`SuiteError::Scenario`].
pub fn scenario(path: &Path, (catalogue, controller): (&Catalogue, &str)) -> Result<Scenario, SuiteError> {
    law::check_names(catalogue, &[controller.to_owned()])?;
    let parsed = law::parse(catalogue, &path.item(), None)?;
    law::with_controller(catalogue, &parsed, controller).map_err(|reason| SuiteError::NothingRuns { reason })
}

/// Runs the paths of all seeds. `progress` is called with the share of the runs that are complete, 0 to 1.
///
/// # Errors
/// The errors of [`scenario`], and [`SuiteError::Run`].
pub fn run(law: (&Catalogue, &str), plan: &Plan, progress: &(dyn Fn(f64) + Sync)) -> Result<PathsResult, SuiteError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(plan.threads.unwrap_or(0)).build();
    let pool = pool.map_err(SimError::from)?;
    let done = AtomicU32::new(0);
    let one = |number: u32| {
        let found = over(&Path::draw(plan.first_seed.wrapping_add(u64::from(number))), law);
        progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / f64::from(plan.runs));
        found
    };
    let runs: Result<Vec<_>, _> = pool.install(|| (0..plan.runs).into_par_iter().map(one).collect());
    Ok(PathsResult::new(law.1, plan, runs?))
}

/// Runs the flows of one path, and judges the run.
fn over(path: &Path, law: (&Catalogue, &str)) -> Result<PathRun, SuiteError> {
    let scenario = scenario(path, law)?;
    let watch = Watch::new(path.starts.len(), path.delay, path.max_rate());
    let (run, watch) = sim::simulate_observed(&scenario, path.seed, watch)?;
    Ok(PathRun::new(path, &run, &watch))
}
