//! Random paths: a seed draws a path, flows under one control law use it, and each run is judged alone.
//!
//! ```text
//!   seed ──▶ path ──▶ scenario ──▶ sim ──▶ tenths of a second ──▶ faults ──▶ list, JSON
//! ```
//!
//! The suites of cases show how well laws work; this suite shows how often a law does what no law should do. The ranges
//! of the paths and the criteria are in the book's chapter on held-out tests, and were fixed before the law was.

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
/// The default law under test.
pub const CONTROLLER: &str = "equipoise";
/// Largest acceptable share of bad runs.
pub const MOST_BAD: f64 = 0.005;

/// Settings of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed; the seeds of the other runs follow it.
    pub first_seed: u64,
    /// Number of runs, each with a seed and path of its own.
    pub runs: u32,
    /// Number of threads; `None` for all cores. The results do not depend on this number.
    pub threads: Option<usize>,
}

/// Returns the scenario of a seed's path under a controller, ready to run.
///
/// # Errors
/// [`SuiteError::UnknownController`], [`SuiteError::NothingRuns`] for a controller that cannot run it, and
/// [`SuiteError::Scenario`].
pub fn scenario(path: &Path, (catalogue, controller): (&Catalogue, &str)) -> Result<Scenario, SuiteError> {
    law::check_names(catalogue, &[controller.to_owned()])?;
    let parsed = law::parse(catalogue, &path.item(), None)?;
    law::with_controller(catalogue, &parsed, controller).map_err(|reason| SuiteError::NothingRuns { reason })
}

/// Runs the paths of all seeds. `progress` gets the share of the runs that are complete.
///
/// # Errors
/// As [`scenario`], and [`SuiteError::Run`].
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

/// Runs a path.
fn over(path: &Path, law: (&Catalogue, &str)) -> Result<PathRun, SuiteError> {
    let scenario = scenario(path, law)?;
    let watch = Watch::new(path.starts.len(), path.delay, path.max_rate());
    let (run, watch) = sim::simulate_observed(&scenario, path.seed, watch)?;
    Ok(PathRun::new(path, &run, &watch))
}
