//! Runs jobs without Python's global interpreter lock (GIL). During a job, signals are handled and the progress is
//! shown.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_lab::sim::Stop;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// Time between two checks for signals such as Ctrl-C, and between two updates of the progress.
const WAIT: Duration = Duration::from_millis(100);

/// Executes `job`, which is a single simulation run, on this thread. Signals are handled when the job reports its
/// progress. `progress` is None, True for a progress bar, or a function that is called with the completed share, from 0
/// to 1.
///
/// If a signal handler (such as that of Ctrl-C) or `progress` raises an exception, the job is ended through `stop`, and
/// the exception is raised.
pub(crate) fn here<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&(dyn Fn(f64) + Sync)) -> T + Send,
) -> PyResult<T> {
    let shown = progress.map(shown).transpose()?.flatten().map(Bound::unbind);
    let watch = Mutex::new((Instant::now(), Ok(())));
    let look = |share: f64| {
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.1.is_ok() && (watch.0.elapsed() >= WAIT || share >= 1.0) {
            watch.1 = Python::attach(|py| {
                py.check_signals()?;
                show(shown.as_ref().map(|shown| shown.bind(py)), share)
            });
            watch.0 = Instant::now();
            if watch.1.is_err() {
                stop.stop();
            }
        }
    };
    let result = py.detach(|| job(&look));
    watch.into_inner().unwrap_or_else(PoisonError::into_inner).1.map(|()| result)
}

/// Runs a job of several simulation runs on a separate thread. Meanwhile, the calling thread waits, handles signals and
/// shows the progress. Arguments and exceptions are those of [`here`].
pub(crate) fn aside<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&(dyn Fn(f64) + Sync)) -> T + Send,
) -> PyResult<T> {
    let shown = progress.map(shown).transpose()?.flatten();
    let (share, is_over, waiting) = (AtomicU64::new(0), AtomicBool::new(false), thread::current());
    let (share, is_over) = (&share, &is_over);
    thread::scope(|scope| {
        let working = scope.spawn(move || {
            // When this guard is dropped, it wakes the waiting thread. A panic of the job drops it, too.
            let _wake = Wake { is_over, waiting };
            // Attach the thread to the interpreter once, at the start of the job. Then control laws written in Python
            // can attach the thread faster at each feedback.
            Python::attach(|py| py.detach(|| job(&|done: f64| share.store(done.to_bits(), Ordering::Relaxed))))
        });
        let mut ended = Ok(());
        while !is_over.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(WAIT));
            if ended.is_ok() {
                ended = py.check_signals().and_then(|()| show(shown.as_ref(), read(share)));
                if ended.is_err() {
                    stop.stop();
                }
            }
        }
        let result = py.detach(|| working.join()).unwrap_or_else(|panic| resume_unwind(panic));
        ended.and_then(|()| show(shown.as_ref(), read(share))).map(|()| result)
    })
}

/// A guard that wakes the waiting thread when the guard is dropped.
struct Wake<'a> {
    is_over: &'a AtomicBool,
    waiting: thread::Thread,
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waiting.unpark();
    }
}

/// Returns the function to call with the completed share; `None` if no progress is to be shown.
fn shown<'py>(progress: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match progress.cast::<PyBool>() {
        Ok(flag) if !flag.is_true() => Ok(None),
        Ok(_) => progress.py().import("equipoise._progress")?.getattr("Bar")?.call0().map(Some),
        Err(_) => Ok(Some(progress.clone())),
    }
}

fn read(share: &AtomicU64) -> f64 {
    f64::from_bits(share.load(Ordering::Relaxed))
}

fn show(shown: Option<&Bound<'_, PyAny>>, share: f64) -> PyResult<()> {
    shown.map_or(Ok(()), |shown| shown.call1((share,)).map(drop))
}
