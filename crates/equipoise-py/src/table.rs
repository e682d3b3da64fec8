//! Tables of Arrow columns, which pandas, polars, pyarrow and other libraries read without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyDictMethods};

/// A table of Arrow columns.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

fn unmade(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let array = self.column(column)?;
        (0..array.len()).map(|row| cell(py, array, row)).collect()
    }

    #[pyo3(signature = (**values))]
    fn r#where(&self, values: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut kept = vec![true; self.0.num_rows()];
        for (name, value) in values.into_iter().flat_map(PyDictMethods::iter) {
            let array = self.column(&name.extract::<String>()?)?;
            for (row, keep) in kept.iter_mut().enumerate() {
                *keep = *keep && cell(value.py(), array, row)?.eq(&value)?;
            }
        }
        let filtered = arrow_select::filter::filter_record_batch(&self.0, &BooleanArray::from(kept));
        filtered.map(Self).map_err(|error| unmade(&error))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The Arrow PyCapsule interface allows an implementation to ignore the requested schema.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(|error| unmade(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.0.num_rows(), self.columns().join(", "))
    }
}

impl Table {
    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("there is no column `{name}`; there are: {}", self.columns().join(", ")))
        })
    }
}

/// Converts a cell to a Python value, which is None if the cell is empty.
fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let any = array.as_any();
    if array.is_null(row) {
        Ok(py.None().into_bound(py))
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        Ok(numbers.value(row).into_pyobject(py)?.into_any())
    } else if let Some(counts) = any.downcast_ref::<UInt64Array>() {
        Ok(counts.value(row).into_pyobject(py)?.into_any())
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        Ok(texts.value(row).into_pyobject(py)?.into_any())
    } else if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        Ok(flags.value(row).into_pyobject(py)?.to_owned().into_any())
    } else {
        Err(PyTypeError::new_err("a column of another kind"))
    }
}

/// A table to which columns are added. Each column computes its cells from `rows`.
pub(crate) struct Columns<R> {
    rows: Vec<R>,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<R> Columns<R> {
    pub(crate) fn of(rows: impl IntoIterator<Item = R>) -> Self {
        Self { rows: rows.into_iter().collect(), fields: Vec::new(), arrays: Vec::new() }
    }

    fn with(mut self, name: &str, kind: DataType, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, kind, true));
        self.arrays.push(array);
        self
    }

    pub(crate) fn number(self, name: &str, of: impl Fn(&R) -> Option<f64>) -> Self {
        let array: Float64Array = self.rows.iter().map(of).collect();
        self.with(name, DataType::Float64, Arc::new(array))
    }

    pub(crate) fn count(self, name: &str, of: impl Fn(&R) -> Option<u64>) -> Self {
        let array: UInt64Array = self.rows.iter().map(of).collect();
        self.with(name, DataType::UInt64, Arc::new(array))
    }

    pub(crate) fn text<'a>(self, name: &str, of: impl Fn(&R) -> Option<&'a str>) -> Self {
        let array: StringArray = self.rows.iter().map(of).collect();
        self.with(name, DataType::Utf8, Arc::new(array))
    }

    /// Adds a column of texts that `of` creates. (The method `text` is for texts that exist already.)
    pub(crate) fn made(self, name: &str, of: impl Fn(&R) -> Option<String>) -> Self {
        let array: StringArray = self.rows.iter().map(of).collect();
        self.with(name, DataType::Utf8, Arc::new(array))
    }

    pub(crate) fn flag(self, name: &str, of: impl Fn(&R) -> Option<bool>) -> Self {
        let array: BooleanArray = self.rows.iter().map(of).collect();
        self.with(name, DataType::Boolean, Arc::new(array))
    }

    pub(crate) fn table(self) -> PyResult<Table> {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays);
        batch.map(Table).map_err(|error| unmade(&error))
    }
}
