use std::fmt;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::NetError;

/// A session's thread, which is stopped when this value is dropped. Dropping waits until the thread has ended, except
/// within a tokio runtime.
pub(crate) struct Leaving<T: Send + 'static> {
    /// The thread; `None` after it was taken.
    thread: Option<T>,
}

impl<T: Send + 'static> Leaving<T> {
    pub(crate) const fn new(thread: T) -> Self {
        Self { thread: Some(thread) }
    }

    /// Returns the thread. The caller must then wait for the end of the thread.
    pub(crate) fn take(mut self) -> Option<T> {
        self.thread.take()
    }

    /// Ends the thread: calls `end`, which may block, on one of the threads that the runtime has for blocking work.
    pub(crate) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(T) -> Result<R, NetError> + Send + 'static,
    ) -> Result<R, NetError> {
        match self.take() {
            Some(thread) => blocking(move || end(thread)).await,
            // `take` never returns `None` here: only `take` and `drop` remove the thread, and both consume the value.
            None => Err(lost()),
        }
    }
}

impl<T: Send + 'static> Drop for Leaving<T> {
    fn drop(&mut self) {
        // Dropping the thread waits until it has ended. This takes some milliseconds and must not block an asynchronous
        // task.
        match (self.thread.take(), Handle::try_current()) {
            (Some(thread), Ok(runtime)) => _ = runtime.spawn_blocking(move || drop(thread)),
            (thread, _) => drop(thread),
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Leaving<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaving").finish_non_exhaustive()
    }
}

/// Runs `work`, which may block, on one of the threads that the runtime has for blocking work.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, NetError> + Send + 'static,
) -> Result<R, NetError> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(lost()))
}

/// Returns the error of a task that panicked or that the tokio runtime dropped.
fn lost() -> NetError {
    NetError::Panicked { name: "session".to_owned() }
}
