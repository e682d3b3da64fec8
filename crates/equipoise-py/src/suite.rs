//! The test cases of RFC 8867, run with several controllers.

use equipoise_lab::report;
use equipoise_lab::scenario::Catalogue;
use equipoise_lab::sim::{Execution, Stop};
use equipoise_lab::suite::{self as lab, Aqm, MetricRow, Plan, SuiteResult, rfc8867};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::law::Laws;
use crate::result::loaded;
use crate::run::at_least_one;
use crate::table::{Columns, Table};
use crate::{error, job};

/// The results of a suite.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Suite(SuiteResult);

/// Runs test cases of RFC 8867 with several controllers.
#[pyfunction]
#[pyo3(signature = (cases=None, controllers=None, *, quick=false, runs=None, seed=1, aqm=None, laws=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn suite(
    py: Python<'_>,
    cases: Option<Vec<String>>,
    controllers: Option<Vec<String>>,
    quick: bool,
    runs: Option<u32>,
    seed: u64,
    aqm: Option<&str>,
    laws: Option<&Bound<'_, PyDict>>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Suite> {
    let stop = Stop::default();
    let laws = Laws::new(laws, &stop)?;
    let items = rfc8867::items(&cases.unwrap_or_default(), quick).map_err(|refused| error::no_suite(py, &refused))?;
    let controllers = controllers.unwrap_or_else(|| lab::default_controllers(&Catalogue::default()));
    let usual = if quick { rfc8867::QUICK_RUNS } else { rfc8867::RUNS };
    let plan = Plan {
        seed,
        runs: at_least_one(runs.unwrap_or(usual))?,
        aqm: aqm.map(of_name).transpose()?,
        execution: Execution { threads, stop: stop.clone() },
    };
    let ran = job::aside(py, &stop, progress, |progress| {
        lab::run(rfc8867::NAME, &items, (&laws.catalogue, &controllers), &plan, progress)
    })?;
    laws.checked(ran.map_err(|refused| error::no_suite(py, &refused))).map(Suite)
}

fn of_name(name: &str) -> PyResult<Aqm> {
    Aqm::find(name).ok_or_else(|| {
        let known = Aqm::ALL.map(Aqm::name).join(", ");
        PyValueError::new_err(format!("there is no queue `{name}`; there are: {known}"))
    })
}

#[pymethods]
impl Suite {
    #[getter]
    fn metrics(&self) -> PyResult<Table> {
        Columns::of(self.0.measured())
            .text("suite", |_| Some(self.0.suite.as_str()))
            .text("case", |row| Some(row.case.case.as_str()))
            .text("variant", |row| Some(row.case.variant.as_str()))
            .text("world", |row| Some(row.case.world.name()))
            .text("controller", |row| Some(row.case.controller.as_str()))
            .text("implementation", |row| Some(row.case.implementation.as_str()))
            .text("scope", |row| Some(row.scope.word()))
            .made("name", MetricRow::name)
            .text("kind", MetricRow::kind)
            .number("start_s", |row| row.phase_s().map(|[start, _]| start))
            .number("end_s", |row| row.phase_s().map(|[_, end]| end))
            .text("metric", |row| Some(row.metric))
            .number("mean", |row| Some(row.found.mean))
            .number("lo", |row| row.found.lo)
            .number("hi", |row| row.found.hi)
            .count("runs", |row| Some(row.found.runs.into()))
            .table()
    }

    #[getter]
    fn not_run(&self) -> PyResult<Table> {
        Columns::of(&self.0.not_run)
            .text("case", |it| Some(it.case.as_str()))
            .text("variant", |it| Some(it.variant.as_str()))
            .text("controller", |it| Some(it.controller.as_str()))
            .text("reason", |it| Some(it.reason.as_str()))
            .table()
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.0.to_json())
    }

    fn to_csv(&self) -> String {
        self.0.to_csv()
    }

    fn to_html(&self) -> String {
        report::suite_html(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("Suite({}: {} results, {})", self.0.suite, self.0.results.len(), self.0.controllers().join(", "))
    }
}
