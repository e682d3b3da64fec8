//! Sweeps, each stored in a folder. The Python module `equipoise._sweep` distributes the parts of a sweep to workers.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use equipoise_lab::scenario::{Catalogue, Scenario};
use equipoise_lab::sim::{Execution, Stop};
use equipoise_lab::sweep::{Design, Folder, NamedText, Plan, Shard, SweepError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};

use crate::{error, job, source};

/// A sweep, stored in a folder.
#[pyclass(frozen, module = "equipoise._native")]
#[derive(Debug)]
pub(crate) struct SweepFolder(Folder);

fn refused(py: Python<'_>, error: &SweepError) -> PyErr {
    error::failed(py, error)
}

#[pymethods]
impl SweepFolder {
    /// Opens the sweep that is stored in a folder.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Folder::open(&path)).map(Self).map_err(|error| refused(py, &error))
    }

    /// Creates the folder of a sweep. If the folder already contains the same sweep, opens this sweep.
    #[staticmethod]
    #[pyo3(signature = (path, scenario, *, set, vary, draw, points, runs, seed))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        scenario: &Bound<'_, PyAny>,
        set: Option<&Bound<'_, PyDict>>,
        vary: Option<&Bound<'_, PyDict>>,
        draw: Option<&Bound<'_, PyDict>>,
        points: u32,
        runs: u32,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let Scenario { name, text, seed: own, .. } = source::scenario(scenario, set, &Catalogue::default())?;
        let design = Design {
            scenarios: vec![NamedText { file: name, text }],
            set: Vec::new(),
            vary: written(vary, listed)?,
            draw: written(draw, |value| value.extract())?,
            random_points: points,
            seed: seed.unwrap_or(own),
            runs,
        };
        let folder = py.detach(|| Folder::create(&path, &Plan::new(design)?));
        folder.map(Self).map_err(|error| refused(py, &error))
    }

    #[getter]
    fn parts(&self) -> u64 {
        self.0.plan().parts()
    }

    #[getter]
    fn runs(&self) -> u64 {
        self.0.plan().runs()
    }

    /// Returns the numbers of the parts that have no result yet.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        py.detach(|| self.0.missing(Shard::ALL)).map_err(|error| refused(py, &error))
    }

    /// Stores the result of part `part`, which a worker has run.
    fn put(&self, py: Python<'_>, part: u64, content: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.put(part, content)).map_err(|error| refused(py, &error))
    }

    /// Runs the parts of shard I/N that have no result yet. The parts of the sweep are divided into N shards.
    #[pyo3(signature = (shard, *, threads=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        shard: &str,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let shard: Shard = shard.parse().map_err(|wrong| error::failed(py, &wrong))?;
        let stop = Stop::default();
        let execution = Execution { threads, stop: stop.clone() };
        let ran = job::aside(py, &stop, progress, |progress| {
            self.0.run(shard, execution, &|at| progress(at.done as f64 / at.planned.max(1) as f64))
        })?;
        ran.map(drop).map_err(|error| refused(py, &error))
    }

    /// Writes the rows of all parts into one Parquet file.
    fn merge(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        let out = File::create(&file).map_err(|failed| error::unread(&file, &failed))?;
        py.detach(|| self.0.merge(Some(Box::new(BufWriter::new(out))), None)).map_err(|error| refused(py, &error))
    }
}

/// Converts the entries of a dict to the form `KEY=VALUE`.
fn written(
    given: Option<&Bound<'_, PyDict>>,
    text: impl Fn(&Bound<'_, PyAny>) -> PyResult<String>,
) -> PyResult<Vec<String>> {
    let entries = given.into_iter().flat_map(PyDictMethods::iter);
    entries.map(|(key, value)| Ok(format!("{}={}", key.extract::<String>()?, text(&value)?))).collect()
}

/// Joins a list of values with commas.
fn listed(values: &Bound<'_, PyAny>) -> PyResult<String> {
    if values.is_instance_of::<pyo3::types::PyString>() {
        return Err(PyValueError::new_err("what is varied is a list of values, not a text"));
    }
    let texts = values.try_iter()?.map(|value| Ok(source::value(&value?)?.to_string()));
    Ok(texts.collect::<PyResult<Vec<_>>>()?.join(","))
}
