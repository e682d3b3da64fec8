//! Runs jobs without the GIL, handles signals meanwhile, and shows the progress.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_lab::sim::Stop;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// Maximum delay of Ctrl-C and of progress updates.
const WAIT: Duration = Duration::from_millis(100);

/// Runs a job with a single run on this thread. When the job reports its progress, signals are handled. `progress` is
/// None, True for a bar, or a function that is called with the completed share.
///
/// An exception of a signal handler, such as for Ctrl-C, or of `progress` ends the job through `stop` and is raised.
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

/// Runs a job with many runs on a separate thread, while this thread waits; otherwise like [`here`].
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
            // The waiting thread is woken by a guard, so that a panic wakes it, too.
            let _wake = Wake { is_over, waiting };
            // Attach once for the whole job, because control laws written in Python attach again for each feedback.
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

/// Wakes the waiting thread when it is dropped.
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

/// The function to call with the completed share, if any.
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
