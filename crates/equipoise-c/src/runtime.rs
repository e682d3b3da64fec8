//! The tasks of all handles, on one thread that lives as long as any of them.

use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::{Builder, Runtime};

use crate::error::Fault;
use crate::signal::locked;

/// The runtime of all handles that are open now. Nothing of a session's pacing hangs on it.
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
