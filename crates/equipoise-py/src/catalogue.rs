//! The list of rate controllers.

use equipoise::control::{Entry, entries};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns all rate controllers with their parameters.
#[pyfunction]
pub(crate) fn controllers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    entries().iter().map(|entry| described(py, entry)).collect()
}

fn described<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let parameters = PyDict::new(py);
    for parameter in entry.parameters {
        let about = PyDict::new(py);
        about.set_item("kind", parameter.kind.to_string())?;
        about.set_item("default", parameter.default)?;
        about.set_item("range", parameter.range)?;
        about.set_item("meaning", parameter.meaning)?;
        parameters.set_item(parameter.name, about)?;
    }
    let about = PyDict::new(py);
    about.set_item("name", entry.name)?;
    about.set_item("summary", entry.summary)?;
    about.set_item("source", entry.source)?;
    about.set_item("parameters", parameters)?;
    Ok(about)
}
