//! The tasks of all handles, on one thread that lives as long as any handle.

use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::{Builder, Runtime};

use crate::error::Fault;
use crate::signal::locked;

/// The runtime of all open handles. Pacing does not run on it.
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
