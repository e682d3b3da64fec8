//! A rate controller for a program with its own network code.

use equipoise::control::{BoxedController, Fate, find};
use equipoise::pace::Readiness;
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::feedback::Format;
use equipoise_session::guest::{FeedbackKind, PacedConfig, PacedGuest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyDictMethods};

use crate::error;

/// A rate controller with its pacer. The controller's rate is at most twice the rate at which packets arrived according
/// to feedback. This limit does not apply to a fixed rate or to a law that must run exactly as in its paper.
#[pyclass(module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Controller {
    inner: PacedGuest,
    name: &'static str,
}

/// Time 0 of the caller's clock, as a time on the controller's clock: about 36 years. The value is far above zero,
/// because a receiver's timestamps may seem to be earlier than time 0.
const EPOCH: Instant<SenderClock> = Instant::from_nanos(1 << 60);

fn time(now_s: f64) -> PyResult<Instant<SenderClock>> {
    let since = Span::from_secs_f64(now_s).filter(|_| now_s.is_finite());
    since
        .map(|since| EPOCH + since)
        .ok_or_else(|| PyValueError::new_err(format!("a time is {now_s}; it must be finite")))
}

fn seconds(at: Instant<SenderClock>) -> f64 {
    (at - EPOCH).as_secs_f64()
}

fn kind(name: &str) -> PyResult<FeedbackKind> {
    match name {
        "arrivals" => Ok(FeedbackKind::Arrivals),
        "acks" => Ok(FeedbackKind::Acks),
        "twcc" => Ok(FeedbackKind::Rtcp(Format::TransportWide)),
        "rfc8888" => Ok(FeedbackKind::Rtcp(Format::CongestionFeedback)),
        other => Err(PyValueError::new_err(format!("feedback is arrivals, acks, twcc or rfc8888, not `{other}`"))),
    }
}

/// Creates a controller of the catalogue from its name and from its parameters, whose values are texts or numbers.
fn built(
    py: Python<'_>,
    name: &str,
    parameters: Option<&Bound<'_, PyDict>>,
    packet: Size,
) -> PyResult<(&'static str, BoxedController)> {
    let entry = find(name).ok_or_else(|| {
        let known: Vec<_> = equipoise::control::entries().iter().map(|entry| entry.name).collect();
        PyValueError::new_err(format!("there is no controller `{name}`; there are: {}", known.join(", ")))
    })?;
    let texts = parameters
        .into_iter()
        .flat_map(PyDictMethods::iter)
        .map(|(key, value)| Ok((key.extract::<String>()?, value.str()?.to_cow()?.into_owned())));
    let texts = texts.collect::<PyResult<Vec<_>>>()?;
    let texts: Vec<_> = texts.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let made = entry.parse(&texts).and_then(|parameters| entry.build(&parameters, packet));
    made.map(|made| (entry.name, made)).map_err(|refused| error::failed(py, &refused))
}

#[pymethods]
impl Controller {
    #[new]
    #[pyo3(signature = (name, /, *, feedback="arrivals", packet_bytes=1240, pacing=1.5, interval_s=0.25, has_ecn=false, now_s=0.0, **parameters))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        name: &str,
        feedback: &str,
        packet_bytes: u32,
        pacing: f64,
        interval_s: f64,
        has_ecn: bool,
        now_s: f64,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let interval = Span::from_secs_f64(interval_s).filter(|interval| *interval > Span::ZERO && interval_s < 1e6);
        let interval = interval.ok_or_else(|| PyValueError::new_err("interval_s must be above zero"))?;
        if !(1.0..=1e6).contains(&pacing) {
            return Err(PyValueError::new_err("pacing must be 1 or more"));
        }
        let (name, controller) = built(py, name, parameters, Size::from_bytes(packet_bytes.into()))?;
        let config = PacedConfig { feedback: kind(feedback)?, pacing, interval, has_ecn };
        let inner = PacedGuest::new(controller, config, time(now_s)?);
        inner.map(|inner| Self { inner, name }).map_err(|refused| error::failed(py, &refused))
    }

    /// Reports a packet that was sent.
    #[pyo3(signature = (now_s, number, size_bytes, *, ssrc=0))]
    fn sent(&mut self, py: Python<'_>, now_s: f64, number: u64, size_bytes: u32, ssrc: u32) -> PyResult<()> {
        let size = Size::from_bytes(size_bytes.into());
        self.inner.on_sent(time(now_s)?, ssrc, number, size).map_err(|refused| error::failed(py, &refused))
    }

    /// Reports packets as arrived or lost.
    fn feedback(&mut self, py: Python<'_>, now_s: f64, packets: Vec<(u64, Option<f64>)>) -> PyResult<()> {
        let fate = |(number, arrived): (u64, Option<f64>)| {
            let Some(arrived) = arrived else { return Ok((number, Fate::Lost)) };
            // NaN means that the packet arrived at an unknown time.
            let at = if arrived.is_nan() { None } else { Some(time(arrived)?.assume_clock()) };
            Ok((number, Fate::Arrived { at, ecn: equipoise::control::Ecn::NotEct }))
        };
        let fates = packets.into_iter().map(fate).collect::<PyResult<Vec<_>>>()?;
        self.inner.on_fates(time(now_s)?, &fates).map_err(|refused| error::failed(py, &refused))
    }

    /// Processes an RTCP datagram that arrived.
    fn rtcp(&mut self, py: Python<'_>, now_s: f64, datagram: &Bound<'_, PyBytes>) -> PyResult<()> {
        let taken = self.inner.on_rtcp(time(now_s)?, datagram.as_bytes());
        taken.map_err(|refused| error::failed(py, &refused))
    }

    /// Reports that no packet waits to be sent.
    fn idle(&mut self, now_s: f64) -> PyResult<()> {
        self.inner.on_idle(time(now_s)?);
        Ok(())
    }

    /// Advances the controller's time to `now_s`.
    fn timer(&mut self, now_s: f64) -> PyResult<()> {
        self.inner.on_timer(time(now_s)?);
        Ok(())
    }

    #[getter]
    fn next_timer_s(&self) -> Option<f64> {
        self.inner.next_timer().map(seconds)
    }

    /// Returns the time at which the next packet may be sent; None while the window is full or the rate is 0.
    fn next_departure_s(&self, now_s: f64) -> PyResult<Option<f64>> {
        Ok(match self.inner.next_departure(time(now_s)?) {
            Readiness::Now => Some(now_s),
            Readiness::At(due) => Some(seconds(due)),
            Readiness::Never => None,
        })
    }

    #[getter]
    fn rate_bps(&self) -> u64 {
        self.inner.guest().rate().as_bps()
    }

    #[getter]
    fn pace_bps(&self) -> u64 {
        self.inner.pace().as_bps()
    }

    #[getter]
    fn window_bytes(&self) -> Option<u64> {
        self.inner.guest().window().map(Size::as_bytes)
    }

    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.inner.in_flight().as_bytes()
    }

    #[getter]
    fn round_trip_s(&self) -> f64 {
        self.inner.guest().round_trip().as_secs_f64()
    }

    #[getter]
    fn why(&self) -> Option<&'static str> {
        self.inner.guest().snapshot().reason.map(equipoise::control::Reason::name)
    }

    fn __repr__(&self) -> String {
        format!("Controller({:?}: {} bit/s)", self.name, self.rate_bps())
    }
}
