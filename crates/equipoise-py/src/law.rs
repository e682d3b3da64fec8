//! Control laws written in Python, which sessions use like built-in controllers.

use std::sync::{Arc, Mutex, PoisonError};

use equipoise::control::{
    self, BoxedController, ConfigError, Controller, Feedback, Needs, QueuedFrame, Reason, SentPacket, Snapshot,
};
use equipoise::units::{Instant, Rate, SenderClock, Span};
use equipoise_lab::scenario::Catalogue;
use equipoise_lab::sim::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};

use crate::feedback::{self, Frame, Sent};

/// The controllers that scenarios can name during one call from Python: the built-in controllers, and the caller's own
/// laws.
pub(crate) struct Laws {
    pub(crate) catalogue: Catalogue,
    fault: Arc<Fault>,
}

impl Laws {
    /// Reads the control laws of a dict. Each key is the name of a law. Each value is a function that creates this law
    /// for one flow; its argument is the size of the flow's packets in bytes. If a law raises an exception, `stop` ends
    /// the runs.
    pub(crate) fn new(laws: Option<&Bound<'_, PyDict>>, stop: &Stop) -> PyResult<Self> {
        let mut catalogue = Catalogue::default();
        let fault = Arc::new(Fault { first: Mutex::new(None), stop: stop.clone() });
        for (name, make) in laws.into_iter().flat_map(PyDictMethods::iter) {
            let (name, make) = (name.extract::<String>()?, make.unbind());
            let fault = Arc::clone(&fault);
            let add = catalogue.controllers.add_made(name, move |context| {
                Python::attach(|py| Law::made(py, &make, context.packet.as_bytes(), &fault))
            });
            add.map_err(|taken| PyValueError::new_err(taken.to_string()))?;
        }
        Ok(Self { catalogue, fault })
    }

    /// Returns the exception that a law has raised; `found` if no law has raised one.
    pub(crate) fn checked<T>(&self, found: PyResult<T>) -> PyResult<T> {
        self.fault.take().map_or(found, Err)
    }
}

/// The first exception that a law has raised during the present call from Python, and the signal that ends the runs.
#[derive(Debug)]
struct Fault {
    first: Mutex<Option<PyErr>>,
    stop: Stop,
}

impl Fault {
    fn take(&self) -> Option<PyErr> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, error: PyErr) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.stop();
    }
}

/// A control law written in Python. `object` has the methods of `equipoise.Law`.
#[derive(Debug)]
pub(crate) struct Law {
    object: Py<PyAny>,
    needs: Needs,
    lowest: Option<Rate>,
    target: Option<Span>,
    has: Has,
    allowance: control::Allowance,
    timer: Option<Instant<SenderClock>>,
    has_decided: bool,
    fault: Arc<Fault>,
}

/// Which of the optional methods the law has.
#[derive(Clone, Copy, Debug)]
struct Has {
    sent: bool,
    frame: bool,
    timer: bool,
}

impl Law {
    fn made(
        py: Python<'_>,
        make: &Py<PyAny>,
        packet_bytes: u64,
        fault: &Arc<Fault>,
    ) -> Result<BoxedController, ConfigError> {
        let law = make.bind(py).call1((packet_bytes,)).and_then(|object| Self::new(&object, fault));
        law.map(|law| Box::new(law) as _).map_err(|error| {
            let problem = error.to_string();
            fault.keep(error);
            ConfigError::Together { name: "name", problem }
        })
    }

    fn new(object: &Bound<'_, PyAny>, fault: &Arc<Fault>) -> PyResult<Self> {
        let given = |name: &str| object.getattr_opt(name);
        let needs = given("needs")?.map_or(Ok(Needs::INTERVALS), |needs| feedback::needs(&needs))?;
        let lowest = given("lowest_rate_bps")?.map(|rate| feedback::rate(&rate)).transpose()?;
        let target = given("target_s")?.map(|target| target.extract()).transpose()?;
        let mut law = Self {
            allowance: feedback::allowance(object)?,
            needs,
            lowest,
            target: target.and_then(Span::from_secs_f64),
            has: Has {
                sent: given("on_sent")?.is_some(),
                frame: given("on_frame")?.is_some(),
                timer: given("next_timer_s")?.is_some(),
            },
            object: object.clone().unbind(),
            timer: None,
            has_decided: false,
            fault: Arc::clone(fault),
        };
        law.timer = law.asks_for(object)?;
        Ok(law)
    }

    /// Calls the law's method `next_timer_s`, if it has one, and returns the time at which `on_timer` is to be called.
    fn asks_for(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<Instant<SenderClock>>> {
        if !self.has.timer {
            return Ok(None);
        }
        let at: Option<f64> = object.call_method0(intern!(object.py(), "next_timer_s"))?.extract()?;
        Ok(at.and_then(Span::from_secs_f64).map(|at| Instant::ZERO + at))
    }

    /// Calls the law with `call`, then reads the law's timer and allowance. Does nothing if the runs were stopped, for
    /// example because a law raised an exception.
    fn call(&mut self, call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<()>) {
        if self.fault.stop.is_stopped() {
            return;
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            let called = call(object).and_then(|()| {
                let timer = self.asks_for(object)?;
                Ok((feedback::allowance(object)?, timer))
            });
            match called {
                Ok((allowance, timer)) => (self.allowance, self.timer) = (allowance, timer),
                Err(error) => self.fault.keep(error),
            }
        });
    }
}

fn seconds(now: Instant<SenderClock>) -> f64 {
    (now - Instant::ZERO).as_secs_f64()
}

impl Controller for Law {
    fn on_feedback(&mut self, now: Instant<SenderClock>, told: &Feedback<'_>) {
        self.has_decided = true;
        self.call(|object| match feedback::shown(object.py(), told)? {
            Some(shown) => object.call_method1(intern!(object.py(), "on_feedback"), (seconds(now), shown)).map(drop),
            None => Ok(()),
        });
    }

    fn allowance(&self) -> control::Allowance {
        self.allowance
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        if self.has.sent {
            self.call(|object| {
                object.call_method1(intern!(object.py(), "on_sent"), (seconds(now), Sent(*packet))).map(drop)
            });
        }
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        if self.has.frame {
            self.call(|object| {
                object.call_method1(intern!(object.py(), "on_frame"), (seconds(now), Frame(*frame))).map(drop)
            });
        }
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        self.call(|object| object.call_method1(intern!(object.py(), "on_timer"), (seconds(now),)).map(drop));
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.timer
    }

    fn lowest_rate(&self) -> Rate {
        self.lowest.unwrap_or(Rate::from_bps(1_000))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { reason: self.has_decided.then_some(Reason::Law), ..Snapshot::default() }
    }

    fn target_delay(&self) -> Option<Span> {
        self.target
    }
}
