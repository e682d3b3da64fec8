use std::fmt;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::NetError;

/// A session's thread, which ends when this is dropped; a task does not wait for that, whoever is no task does.
pub(crate) struct Leaving<T: Send + 'static> {
    /// `None` once it is taken.
    thread: Option<T>,
}

impl<T: Send + 'static> Leaving<T> {
    pub(crate) const fn new(thread: T) -> Self {
        Self { thread: Some(thread) }
    }

    /// The thread, whose end the caller waits for.
    pub(crate) fn take(mut self) -> Option<T> {
        self.thread.take()
    }

    /// Ends it by `end`, which may block.
    pub(crate) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(T) -> Result<R, NetError> + Send + 'static,
    ) -> Result<R, NetError> {
        match self.take() {
            Some(thread) => blocking(move || end(thread)).await,
            // Nobody but this function takes it, and nobody can call it twice.
            None => Err(lost()),
        }
    }
}

impl<T: Send + 'static> Drop for Leaving<T> {
    fn drop(&mut self) {
        // To drop the thread is to wait for its end, some milliseconds.
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

/// Does `work` where waiting holds up no task.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, NetError> + Send + 'static,
) -> Result<R, NetError> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(lost()))
}

/// The runtime gives no more of what it was to do.
fn lost() -> NetError {
    NetError::Panicked { name: "session".to_owned() }
}
