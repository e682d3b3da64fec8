//! The results of all runs of a scenario, as a Python object.

use equipoise_lab::report;
use equipoise_lab::result::{Report, Run};
use pyo3::prelude::*;

use crate::rows;
use crate::table::Table;

/// The results of all runs of a scenario.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Result(Report);

impl Result {
    pub(crate) const fn new(report: Report) -> Self {
        Self(report)
    }

    fn without_series(&self) -> Report {
        let runs = self.0.runs.iter().cloned().map(Run::without_series).collect();
        Report { runs, ..self.0.clone() }
    }
}

/// Converts a JSON text to a Python object.
pub(crate) fn loaded(py: Python<'_>, json: String) -> PyResult<Bound<'_, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}

#[pymethods]
impl Result {
    #[getter]
    fn scenario(&self) -> &str {
        &self.0.scenario
    }

    #[getter]
    fn scenario_text(&self) -> &str {
        &self.0.scenario_text
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.without_series().to_json())
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.0.to_json())
    }

    fn to_html(&self) -> String {
        report::html(&self.0)
    }

    #[getter]
    fn flows(&self) -> PyResult<Table> {
        rows::flows(&self.0)
    }

    #[getter]
    fn links(&self) -> PyResult<Table> {
        rows::links(&self.0)
    }

    #[getter]
    fn paths(&self) -> PyResult<Table> {
        rows::paths(&self.0)
    }

    #[getter]
    fn phases(&self) -> PyResult<Table> {
        rows::phases(&self.0)
    }

    #[getter]
    fn steps(&self) -> PyResult<Table> {
        rows::steps(&self.0)
    }

    #[getter]
    fn means(&self) -> PyResult<Table> {
        rows::means(&self.0)
    }

    #[getter]
    fn intervals(&self) -> PyResult<Table> {
        rows::intervals(&self.0)
    }

    #[getter]
    fn link_samples(&self) -> PyResult<Table> {
        rows::link_samples(&self.0)
    }

    #[getter]
    fn tcp_samples(&self) -> PyResult<Table> {
        rows::tcp_samples(&self.0)
    }

    #[getter]
    fn received(&self) -> PyResult<Table> {
        rows::received(&self.0)
    }

    #[getter]
    fn beliefs(&self) -> PyResult<Table> {
        rows::beliefs(&self.0)
    }

    #[getter]
    fn distribution(&self) -> PyResult<Table> {
        rows::distribution(&self.0)
    }

    fn __repr__(&self) -> String {
        let runs = self.0.runs.len();
        let last = self.0.seed.wrapping_add(runs.saturating_sub(1) as u64);
        format!("Result({:?}: {runs} runs on the seeds {} to {last})", self.0.scenario, self.0.seed)
    }
}
