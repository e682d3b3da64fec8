//! Captures of TCP.

use std::fs::File;
use std::path::PathBuf;

use equipoise::units::Span;
use equipoise_papers::capture::{AckRule, Analysis, Direction, Distribution, Options, Side, analyse};
use equipoise_papers::page::capture_html;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;
use crate::result::loaded;
use crate::table::{Columns, Table};

/// Round-trip times in a capture.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Capture {
    name: String,
    analysis: Analysis,
}

/// Round-trip times of TCP in a capture.
#[pyfunction]
#[pyo3(signature = (path, *, acks="pair", bin=None))]
pub(crate) fn capture_rtt(py: Python<'_>, path: PathBuf, acks: &str, bin: Option<&str>) -> PyResult<Capture> {
    let rule = match acks {
        "pair" => AckRule::Pair,
        "every" => AckRule::Every,
        other => return Err(PyValueError::new_err(format!("acks is pair or every, not `{other}`"))),
    };
    let bin: Option<Span> = bin.map(str::parse).transpose().map_err(|wrong| error::failed(py, &wrong))?;
    let file = File::open(&path).map_err(|refused| error::unread(&path, &refused))?;
    let analysis =
        py.detach(|| analyse(file, &Options { rule, bin })).map_err(|refused| error::failed(py, &refused))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Capture { name, analysis })
}

const fn side(side: Side) -> &'static str {
    match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
        Side::Unknown => "unknown",
    }
}

#[pymethods]
impl Capture {
    #[getter]
    fn directions(&self) -> PyResult<Table> {
        type Row<'a> = (&'a Direction, &'a Distribution);
        let time = |of: fn(&Distribution) -> f64| move |(_, rtt): &Row<'_>| Some(of(rtt));
        Columns::of(self.analysis.measured())
            .text("from", |(direction, _)| Some(direction.from.as_str()))
            .text("to", |(direction, _)| Some(direction.to.as_str()))
            .text("side", |(direction, _)| Some(side(direction.side)))
            .count("data_segments", |(direction, _)| Some(direction.data_segments))
            .count("data_bytes", |(direction, _)| Some(direction.data_bytes))
            .count("retransmitted", |(direction, _)| Some(direction.retransmitted))
            .count("samples", |(_, rtt)| Some(rtt.samples))
            .number("min_s", time(|rtt| rtt.min_s))
            .number("p50_s", time(|rtt| rtt.p50_s))
            .number("mean_s", time(|rtt| rtt.mean_s))
            .number("p95_s", time(|rtt| rtt.p95_s))
            .number("max_s", time(|rtt| rtt.max_s))
            .number("deviation_s", |(_, rtt)| rtt.deviation_s)
            .number("skewness", |(_, rtt)| rtt.skewness)
            .number("excess_kurtosis", |(_, rtt)| rtt.excess_kurtosis)
            .number("ks_distance", |(_, rtt)| rtt.ks_distance)
            .table()
    }

    fn to_json(&self) -> String {
        self.analysis.to_json()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.analysis.to_json())
    }

    fn to_html(&self) -> String {
        capture_html(&self.name, &self.analysis)
    }

    fn __repr__(&self) -> String {
        let Analysis { frames, segments, connections, .. } = &self.analysis;
        format!("Capture({frames} frames, {segments} segments, {} connections)", connections.len())
    }
}
