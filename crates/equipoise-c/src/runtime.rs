//! The Tokio runtime that runs the tasks of all media sessions and flow pairs. The single thread of the runtime ends
//! when the last handle of a session or flow pair is closed.

use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::{Builder, Runtime};

use crate::error::Fault;
use crate::signal::locked;

/// Returns the Tokio runtime that all open handles share. Packets are paced on other threads.
pub(crate) fn shared() -> Result<Arc<Runtime>, Fault> {
    static SHARED: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());
    let mut shared = locked(&SHARED);
    if let Some(runtime) = shared.upgrade() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("equipoise").enable_time().build()?;
    let runtime = Arc::new(runtime);
    *shared = Arc::downgrade(&runtime);
    Ok(runtime)
}
