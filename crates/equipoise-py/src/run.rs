//! Runs of a scenario.

use equipoise_lab::result::{Report, Run};
use equipoise_lab::scenario::Catalogue;
use equipoise_lab::sim::{Execution, SimError, Stop, simulate_many};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::law::Laws;
use crate::result::Result;
use crate::{error, job, source};

/// Runs a scenario in the simulator.
#[pyfunction]
#[pyo3(signature = (scenario, *, set=None, seed=None, runs=1, laws=None, series=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    set: Option<&Bound<'_, PyDict>>,
    seed: Option<u64>,
    runs: u32,
    laws: Option<&Bound<'_, PyDict>>,
    series: Option<bool>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Result> {
    let stop = Stop::default();
    let laws = Laws::new(laws, &stop)?;
    let scenario = laws.checked(source::scenario(scenario, set, &laws.catalogue))?;
    let seed = seed.unwrap_or(scenario.seed);
    let runs = at_least_one(runs)?;
    // By default, only the first runs keep their values over time, as in the command `equipoise`, so that memory is
    // bounded.
    let whole = match series {
        Some(true) => runs,
        Some(false) => 0,
        None => scenario.runs_with_series(),
    };
    let keep = |run: Run| {
        let number = run.seed.wrapping_sub(seed);
        if number < u64::from(whole) { run } else { run.without_series() }
    };
    let execution = Execution { threads, stop: stop.clone() };
    let job = |progress: &(dyn Fn(f64) + Sync)| {
        let runs = simulate_many(&scenario, (seed, runs), execution, keep, progress)?;
        Ok(Report::new(&scenario, seed, runs))
    };
    let ran = if runs == 1 { job::here(py, &stop, progress, job) } else { job::aside(py, &stop, progress, job) };
    let report = laws.checked(ran?.map_err(|refused: SimError| error::failed(py, &refused)))?;
    Ok(Result::new(report))
}

/// Describes in words what a scenario would run.
#[pyfunction]
#[pyo3(signature = (scenario, *, set=None))]
pub(crate) fn explain(scenario: &Bound<'_, PyAny>, set: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    Ok(source::scenario(scenario, set, &Catalogue::default())?.explain())
}

/// Checks that a number of runs is at least one.
pub(crate) fn at_least_one(runs: u32) -> PyResult<u32> {
    if runs == 0 { Err(PyValueError::new_err("runs must be 1 or more")) } else { Ok(runs) }
}
