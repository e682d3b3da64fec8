//! Analysis of packet captures: round-trip times of TCP, and RTP streams.

use std::fs::File;
use std::path::PathBuf;

use equipoise::units::Span;
use equipoise_papers::capture::{
    AckRule, Analysis, Direction, Distribution, Options, RoundTrip, RtpAnalysis, RtpOptions, RtpStream, Side, analyse,
    analyse_rtp,
};
use equipoise_papers::page::capture_html;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;
use crate::result::loaded;
use crate::table::{Columns, Table};

/// Round-trip times of the TCP connections in a packet capture.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Capture {
    name: String,
    analysis: Analysis,
}

/// Measures the round-trip times of the TCP connections in a packet capture.
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

/// The RTP streams in a packet capture.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct RtpCapture(RtpAnalysis);

/// Analyses the RTP streams in a packet capture.
#[pyfunction]
#[pyo3(signature = (path, *, clock_rate=None))]
pub(crate) fn capture_rtp(py: Python<'_>, path: PathBuf, clock_rate: Option<u32>) -> PyResult<RtpCapture> {
    if clock_rate == Some(0) {
        return Err(PyValueError::new_err("clock_rate is 1 Hz or more, such as 90000 of video"));
    }
    let file = File::open(&path).map_err(|refused| error::unread(&path, &refused))?;
    let analysis = py.detach(|| analyse_rtp(file, &RtpOptions { clock_rate }));
    analysis.map(RtpCapture).map_err(|refused| error::failed(py, &refused))
}

/// A row of a table: an item, and the RTP stream to which it belongs.
struct StreamRow<'a, T> {
    stream: &'a RtpStream,
    of: T,
}

impl<T> Columns<StreamRow<'_, T>> {
    fn identified(self) -> Self {
        self.count("interface", |row| Some(row.stream.interface.into()))
            .text("from", |row| Some(row.stream.from.as_str()))
            .text("to", |row| Some(row.stream.to.as_str()))
            .text("ssrc", |row| Some(row.stream.ssrc.as_str()))
    }
}

#[pymethods]
impl RtpCapture {
    #[getter]
    fn streams(&self) -> PyResult<Table> {
        let types = |stream: &RtpStream| stream.payload_types.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        Columns::of(self.0.streams.iter().map(|stream| StreamRow { stream, of: () }))
            .identified()
            .made("payload_types", |row| Some(types(row.stream)))
            .number("start_s", |row| Some(row.stream.start_s))
            .number("end_s", |row| Some(row.stream.end_s))
            .count("packets", |row| Some(row.stream.packets))
            .count("duplicates", |row| Some(row.stream.duplicates))
            .count("reordered", |row| Some(row.stream.reordered))
            .count("expected", |row| Some(row.stream.expected))
            .number("lost", |row| Some(row.stream.lost as f64))
            .number("lost_share", |row| Some(row.stream.lost_share))
            .number("rate_bps", |row| row.stream.rate_bps)
            .number("jitter_mean_s", |row| Some(row.stream.jitter?.mean_s))
            .number("jitter_max_s", |row| Some(row.stream.jitter?.max_s))
            .number("jitter_last_s", |row| Some(row.stream.jitter?.last_s))
            .count("delay_from_interface", |row| Some(row.stream.delay?.from_interface.into()))
            .count("delay_packets", |row| Some(row.stream.delay?.packets))
            .number("delay_min_s", |row| Some(row.stream.delay?.min_s))
            .number("delay_mean_s", |row| Some(row.stream.delay?.mean_s))
            .number("delay_p50_s", |row| Some(row.stream.delay?.p50_s))
            .number("delay_p95_s", |row| Some(row.stream.delay?.p95_s))
            .number("delay_max_s", |row| Some(row.stream.delay?.max_s))
            .table()
    }

    #[getter]
    fn seconds(&self) -> PyResult<Table> {
        let rows = self.0.streams.iter().flat_map(|stream| {
            let seconds = stream.seconds.iter();
            seconds.map(move |second| StreamRow { stream, of: second })
        });
        Columns::of(rows)
            .identified()
            .number("at_s", |row| Some(row.of.at_s))
            .count("packets", |row| Some(row.of.packets))
            .number("rate_bps", |row| Some(row.of.rate_bps))
            .number("jitter_s", |row| row.of.jitter_s)
            .number("delay_mean_s", |row| row.of.delay_mean_s)
            .table()
    }

    #[getter]
    fn round_trips(&self) -> PyResult<Table> {
        let rows = self.0.round_trips.iter().flat_map(|trip| trip.samples.iter().map(move |sample| (trip, *sample)));
        Columns::of(rows)
            .count("interface", |(trip, _)| Some(trip.interface.into()))
            .text("sender_ssrc", |(trip, _): &(&RoundTrip, _)| Some(trip.sender_ssrc.as_str()))
            .text("reporter_ssrc", |(trip, _): &(&RoundTrip, _)| Some(trip.reporter_ssrc.as_str()))
            .number("at_s", |(_, sample)| Some(sample.at_s))
            .number("round_trip_s", |(_, sample)| Some(sample.round_trip_s))
            .table()
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.0.to_json())
    }

    fn __repr__(&self) -> String {
        let RtpAnalysis { frames, rtp_packets, streams, .. } = &self.0;
        format!("RtpCapture({frames} frames, {rtp_packets} packets of RTP, {} streams)", streams.len())
    }
}
