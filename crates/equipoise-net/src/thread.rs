//! Named threads with punctual timers, which end with their owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use equipoise::units::Span;
use nix::sys::prctl::set_timerslack;

use crate::NetError;

/// How often a thread that waits looks whether it shall stop.
pub(crate) const STOP_CHECK: Span = Span::from_millis(10);

/// A thread that is told to stop, and joined, at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    name: String,
    stop: Arc<AtomicBool>,
    /// `None` once joined.
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts `body`, which is to end soon after the flag that it gets is set.
    ///
    /// Its timers are not put off by the kernel to group them.
    pub(crate) fn spawn(name: &str, body: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Result<Self, NetError> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let run = move || {
            // Where it is refused timers come up to 50 µs later, which is no reason to do without them.
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
    /// Tells the thread to stop, without waiting.
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the thread has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread's own end.
    pub(crate) fn join(mut self) -> Result<T, NetError> {
        let panicked = || NetError::Panicked { name: self.name.clone() };
        self.thread.take().and_then(|thread| thread.join().ok()).ok_or_else(panicked)
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            // Nobody is left to hear of a panic.
            let _ = thread.join();
        }
    }
}
