//! Converts feedback for a control law to Python objects, and the law's decisions from Python objects. Times are in
//! seconds, rates in bit/s, sizes in bytes.

use equipoise::control::{
    self, Ecn, Fate, Feedback, IntervalSummary, Needs, PacketFeedback, PacketReport, QueuedFrame, SentPacket,
};
use equipoise::units::{Instant, Rate, Size, Span};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// The summary of a report interval, as measured by the receiver. Values that were not measured are None.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Interval(IntervalSummary);

fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

fn bps(rate: Option<Rate>) -> Option<u64> {
    rate.map(Rate::as_bps)
}

#[pymethods]
impl Interval {
    #[getter]
    fn delay_mean_s(&self) -> Option<f64> {
        self.0.delay.map(|delay| delay.mean_s)
    }

    #[getter]
    fn delay_variance_s2(&self) -> Option<f64> {
        self.0.delay.map(|delay| delay.variance_s2)
    }

    #[getter]
    fn fraction_lost(&self) -> Option<f64> {
        self.0.fraction_lost
    }

    #[getter]
    fn fraction_marked(&self) -> Option<f64> {
        self.0.fraction_marked
    }

    #[getter]
    fn packets(&self) -> Option<u64> {
        self.0.packets
    }

    #[getter]
    fn delivered_bps(&self) -> Option<u64> {
        bps(self.0.delivered)
    }

    #[getter]
    fn round_trip_s(&self) -> Option<f64> {
        seconds(self.0.round_trip)
    }

    #[getter]
    fn bottleneck_bps(&self) -> Option<u64> {
        bps(self.0.bottleneck)
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }

    fn __repr__(&self) -> String {
        let IntervalSummary { packets, fraction_lost, .. } = self.0;
        format!(
            "Interval(delay_mean_s={:?}, packets={packets:?}, fraction_lost={fraction_lost:?})",
            self.delay_mean_s()
        )
    }
}

/// Feedback on single packets, in the order in which they were sent.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Packets {
    reports: Vec<PacketReport>,
    round_trip: Option<Span>,
    in_flight: Size,
    app_limited: bool,
}

#[pymethods]
impl Packets {
    #[getter]
    fn packets(&self) -> Vec<Packet> {
        self.reports.iter().copied().map(Packet).collect()
    }

    #[getter]
    fn round_trip_s(&self) -> Option<f64> {
        seconds(self.round_trip)
    }

    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.in_flight.as_bytes()
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.app_limited
    }

    fn __len__(&self) -> usize {
        self.reports.len()
    }

    fn __repr__(&self) -> String {
        format!("Packets({} packets, in_flight_bytes={})", self.reports.len(), self.in_flight.as_bytes())
    }
}

/// Feedback on one packet: whether and when it arrived.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Packet(PacketReport);

#[pymethods]
impl Packet {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.size.as_bytes()
    }

    #[getter]
    fn departed_s(&self) -> f64 {
        (self.0.departed - Instant::ZERO).as_secs_f64()
    }

    #[getter]
    fn lost(&self) -> bool {
        self.0.fate == Fate::Lost
    }

    #[getter]
    fn arrived_s(&self) -> Option<f64> {
        match self.0.fate {
            Fate::Arrived { at: Some(at), .. } => Some((at - Instant::ZERO).as_secs_f64()),
            _ => None,
        }
    }

    #[getter]
    fn marked(&self) -> bool {
        matches!(self.0.fate, Fate::Arrived { ecn: Ecn::Ce, .. })
    }

    fn __repr__(&self) -> String {
        format!("Packet(number={}, size_bytes={}, lost={})", self.number(), self.size_bytes(), self.lost())
    }
}

/// The feedback to a control law when no report has arrived for a number of report intervals.
#[pyclass(frozen, get_all, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Silence {
    reports: u64,
}

/// A packet that was sent.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Sent(pub(crate) SentPacket);

#[pymethods]
impl Sent {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.size.as_bytes()
    }

    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight.as_bytes()
    }
}

/// A frame of live media that the application adds to the send queue.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Frame(pub(crate) QueuedFrame);

#[pymethods]
impl Frame {
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.size.as_bytes()
    }

    #[getter]
    fn waiting_bytes(&self) -> u64 {
        self.0.waiting.as_bytes()
    }

    #[getter]
    fn waited_s(&self) -> f64 {
        self.0.waited.as_secs_f64()
    }
}

/// The rate at which a session may send, and the amount of data that may be in flight.
#[pyclass(frozen, get_all, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Allowance {
    rate_bps: f64,
    window_bytes: Option<u64>,
    pace_bps: Option<f64>,
}

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (rate_bps, *, window_bytes=None, pace_bps=None))]
    fn new(rate_bps: f64, window_bytes: Option<u64>, pace_bps: Option<f64>) -> PyResult<Self> {
        for rate in [Some(rate_bps), pace_bps].into_iter().flatten() {
            positive(rate)?;
        }
        Ok(Self { rate_bps, window_bytes, pace_bps })
    }

    fn __repr__(&self) -> String {
        let show = |value: Option<String>| value.unwrap_or_else(|| "None".to_owned());
        let (window, pace) = (self.window_bytes.map(|it| it.to_string()), self.pace_bps.map(|it| it.to_string()));
        format!("Allowance({}, window_bytes={}, pace_bps={})", self.rate_bps, show(window), show(pace))
    }
}

/// Converts feedback for a control law to a Python object. Returns None for kinds of feedback that no session sends to
/// a law.
pub(crate) fn shown<'py>(py: Python<'py>, told: &Feedback<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match told {
        Feedback::Interval(summary) => Bound::new(py, Interval(*summary))?.into_any(),
        Feedback::Packets(PacketFeedback { packets, round_trip, in_flight, app_limited, .. }) => {
            let (reports, in_flight) = (packets.to_vec(), *in_flight);
            Bound::new(py, Packets { reports, round_trip: *round_trip, in_flight, app_limited: *app_limited })?
                .into_any()
        }
        Feedback::Silent { reports } => Bound::new(py, Silence { reports: *reports })?.into_any(),
        _ => return Ok(None),
    }))
}

/// Calls the method `allowance` of a control law written in Python. The method returns a rate in bit/s, or an
/// `Allowance`.
pub(crate) fn allowance(law: &Bound<'_, PyAny>) -> PyResult<control::Allowance> {
    let said = law.call_method0(intern!(law.py(), "allowance"))?;
    let Ok(whole) = said.cast::<Allowance>() else { return Ok(control::Allowance::rate(rate(&said)?)) };
    let Allowance { rate_bps, window_bytes, pace_bps } = whole.get();
    let rate = positive(*rate_bps)?;
    let allowed = window_bytes.map_or(control::Allowance::rate(rate), |window| {
        control::Allowance::paced_window(rate, Size::from_bytes(window))
    });
    pace_bps.map_or(Ok(allowed), |pace| Ok(allowed.with_pace(positive(pace)?)))
}

/// Reads a rate in bit/s, which must be above zero and finite.
pub(crate) fn rate(said: &Bound<'_, PyAny>) -> PyResult<Rate> {
    let wrong = |_| {
        let kind = said.get_type();
        PyTypeError::new_err(format!("a law allows a rate in bit/s, a number, or an equipoise.Allowance, not {kind}"))
    };
    positive(said.extract().map_err(wrong)?)
}

fn positive(bps: f64) -> PyResult<Rate> {
    let rate = Rate::from_bps_f64(bps).filter(|rate| *rate > Rate::ZERO && bps.is_finite());
    rate.ok_or_else(|| PyValueError::new_err(format!("a rate is {bps} bit/s; it must be above zero and finite")))
}

const NEEDS: [(&str, Needs); 5] = [
    ("intervals", Needs::INTERVALS),
    ("packets", Needs::PACKETS),
    ("packet-pairs", Needs::PACKET_PAIRS),
    ("playout", Needs::PLAYOUT),
    ("ecn", Needs::ECN),
];

/// Reads the attribute `needs` of a control law, which says what the law needs from its session: one word, or several
/// words.
pub(crate) fn needs(said: &Bound<'_, PyAny>) -> PyResult<Needs> {
    let words: Vec<String> = said.extract::<String>().map(|word| vec![word]).or_else(|_| said.extract())?;
    words.iter().try_fold(Needs::NOTHING, |needs, word| {
        let found = NEEDS.iter().find(|(name, _)| name == word).map(|(_, need)| needs.and(*need));
        found.ok_or_else(|| {
            let known = NEEDS.map(|(name, _)| name).join(", ");
            PyValueError::new_err(format!("a law needs `{word}`, which no session provides; there are: {known}"))
        })
    })
}
