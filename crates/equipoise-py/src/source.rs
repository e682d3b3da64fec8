//! Reads a scenario and its overrides from Python. The scenario is a dict, a text or a file. The overrides are a dict.

use std::path::PathBuf;

use equipoise_lab::scenario::{Catalogue, Override, Scenario, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyMapping, PyString, PyTuple};

use crate::error;

/// Returns the text of a scenario. `source` is a mapping, a text of several lines, or the path of a file.
pub(crate) fn text(source: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(mapping) = source.cast::<PyMapping>() {
        let table = value(mapping.as_any())?;
        return toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()));
    }
    if let Ok(text) = source.cast::<PyString>() {
        let text = text.to_cow()?;
        if text.contains('\n') {
            return Ok(text.into_owned());
        }
    }
    let path: PathBuf = source.extract().map_err(|_| {
        PyTypeError::new_err("a scenario is a dict, a text of several lines in TOML, or the path of a file")
    })?;
    Scenario::read_text(&path).map_err(|refused| match refused {
        equipoise_lab::scenario::ScenarioError::Read(source) => error::unread(&path, &source),
        other => error::wrong(source.py(), &other),
    })
}

/// Reads overrides from a dict, which maps key paths to values. The value None removes the key from the scenario.
pub(crate) fn overrides(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Override>> {
    let Some(set) = set else { return Ok(Vec::new()) };
    let one = |(path, given): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let path: String = path.extract()?;
        if given.is_none() { Ok(Override::remove(path)) } else { Ok(Override::set(path, value(&given)?)) }
    };
    set.iter().map(one).collect()
}

/// Reads and checks a scenario.
pub(crate) fn scenario(
    source: &Bound<'_, PyAny>,
    set: Option<&Bound<'_, PyDict>>,
    catalogue: &Catalogue,
) -> PyResult<Scenario> {
    let (text, overrides) = (text(source)?, overrides(set)?);
    Scenario::parse_in(catalogue, &text, &overrides).map_err(|refused| error::wrong(source.py(), &refused))
}

/// Converts a Python value to a TOML value.
pub(crate) fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::String(text.to_cow()?.into_owned()));
    }
    if let Ok(number) = given.cast::<PyFloat>() {
        return Ok(Value::Float(number.extract()?));
    }
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let mut table = toml::Table::new();
        for item in mapping.items()?.iter() {
            let (key, inner): (String, Bound<'_, PyAny>) = item.extract()?;
            table.insert(key, value(&inner)?);
        }
        return Ok(Value::Table(table));
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let entries = given.try_iter()?.map(|entry| value(&entry?));
        return Ok(Value::Array(entries.collect::<PyResult<_>>()?));
    }
    // Accept other objects that can be converted to a number, such as the numbers of numpy.
    if let Ok(number) = given.extract() {
        return Ok(Value::Integer(number));
    }
    if let Ok(number) = given.extract() {
        return Ok(Value::Float(number));
    }
    let kind = given.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a scenario has texts, numbers, bools, lists and dicts, and no {kind}; leave a key out to have its default"
    )))
}
