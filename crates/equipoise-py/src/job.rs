//! Jobs without the GIL, while somebody looks for signals and shows how far they are.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_lab::sim::Stop;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// How long Ctrl-C, and what shows the progress, may have to wait.
const WAIT: Duration = Duration::from_millis(100);

/// Does a job of a single run on this thread, which looks up when the job says what share of it is done. `progress` is None, True for
/// a bar, or called with that share.
///
/// A signal's exception, as of Ctrl-C, and one of `progress` end the job by `stop` and are raised.
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

/// Does a job of many runs on a thread of its own, while this one waits; else as [`here`].
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
            // What wakes the waiting thread stands in a guard, so that a panic wakes it, too.
            let _wake = Wake { is_over, waiting };
            // This thread's state in Python lives as long as the job: laws written in Python come back to it for each feedback.
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

/// Wakes the thread that waits.
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

/// What is called with the share that is done.
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
