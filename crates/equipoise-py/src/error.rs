//! Converts errors to Python exceptions. The exception classes are in `equipoise._errors`.

use std::error::Error;
use std::io;
use std::path::Path;

use equipoise::error::Chain;
use equipoise_lab::compare::CompareError;
use equipoise_lab::scenario::{ScenarioError, SwapError};
use equipoise_lab::suite::SuiteError;
use pyo3::prelude::*;

/// Converts an error to an `EquipoiseError`.
pub(crate) fn failed(py: Python<'_>, error: &dyn Error) -> PyErr {
    raised(py, "EquipoiseError", |class| class.call1((Chain(error).to_string(),)))
}

/// Converts an error of a scenario. If the file cannot be read, the result is an `OSError`, otherwise a `ScenarioError`
/// with line, column and key, if they are known.
pub(crate) fn wrong(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let (line, column, key) = match error {
        ScenarioError::Read(source) => return io::Error::new(source.kind(), Chain(error).to_string()).into(),
        ScenarioError::Wrong { line, column, key, .. } => (Some(*line), Some(*column), Some(key.as_str())),
        ScenarioError::Syntax(syntax) => (Some(syntax.line), Some(syntax.column), None),
        ScenarioError::Override { path, .. } | ScenarioError::Changed { path, .. } => (None, None, Some(path.as_str())),
        _ => (None, None, None),
    };
    raised(py, "ScenarioError", |class| class.call1((Chain(error).to_string(), line, column, key)))
}

/// Converts a [`SwapError`] to a Python exception. The error says why a controller cannot be replaced.
pub(crate) fn not_swapped(py: Python<'_>, error: &SwapError) -> PyErr {
    match error {
        SwapError::Scenario(source) | SwapError::With { source, .. } => wrong(py, source),
        other => failed(py, other),
    }
}

/// Converts a [`CompareError`] to a Python exception. The error says why variants cannot be compared.
pub(crate) fn not_compared(py: Python<'_>, error: &CompareError) -> PyErr {
    failed(py, error)
}

/// Converts a [`SuiteError`] to a Python exception. The error says why a suite cannot be run.
pub(crate) fn no_suite(py: Python<'_>, error: &SuiteError) -> PyErr {
    match error {
        SuiteError::Scenario { source, .. } => wrong(py, source),
        other => failed(py, other),
    }
}

/// Converts the error that a file cannot be opened or read.
pub(crate) fn unread(path: &Path, error: &io::Error) -> PyErr {
    io::Error::new(error.kind(), format!("{}: {error}", path.display())).into()
}

fn raised<'py>(
    py: Python<'py>,
    class: &str,
    make: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyErr {
    let made = py.import("equipoise._errors").and_then(|module| module.getattr(class)).and_then(make);
    made.map_or_else(|error| error, PyErr::from_value)
}
