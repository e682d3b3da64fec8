//! Named threads with punctual timers. A thread is stopped when its owner is dropped.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use equipoise::units::Span;
use nix::sys::prctl::set_timerslack;

use crate::NetError;

/// How often a waiting thread checks whether it should stop.
pub(crate) const STOP_CHECK: Span = Span::from_millis(10);

/// A thread with a stop flag. When this value is dropped, the flag is set, and the drop waits until the thread has
/// ended.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    name: String,
    stop: Arc<AtomicBool>,
    /// The thread; `None` after it was joined.
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread that runs `body`. `body` must return soon after its stop flag is set.
    ///
    /// The thread sets its timer slack to the minimum, so that the kernel does not delay its timers.
    pub(crate) fn spawn(name: &str, body: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Result<Self, NetError> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let run = move || {
            // If this call fails, timers expire up to 50 µs late, which is acceptable.
            let _ = set_timerslack(1);
            body(&flag)
        };
        let name = name.to_string();
        match Builder::new().name(name.clone()).spawn(run) {
            Ok(thread) => Ok(Self { name, stop, thread: Some(thread) }),
            Err(source) => Err(NetError::Spawn { name, source }),
        }
    }
}

impl<T> Worker<T> {
    /// Sets the stop flag of the thread. Does not wait.
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the thread has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the thread ends. Does not set the stop flag.
    pub(crate) fn join(self) -> Result<T, NetError> {
        self.release()()
    }

    /// Returns a function that waits until the thread ends. If the returned function is never called, the thread still
    /// runs until it ends by itself.
    pub(crate) fn release(mut self) -> impl FnOnce() -> Result<T, NetError> + use<T> {
        let (name, thread) = (mem::take(&mut self.name), self.thread.take());
        move || thread.and_then(|thread| thread.join().ok()).ok_or(NetError::Panicked { name })
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.request_stop();
            // A panic of the thread cannot be reported from `drop`.
            let _ = thread.join();
        }
    }
}
