//! How a command ends that does not fail, by itself or by Ctrl-C.

#[cfg(feature = "live")]
use std::sync::Arc;
#[cfg(feature = "live")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "live")]
use crate::error::CliError;

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did all it was asked.
    Complete,
    /// Ctrl-C cut it short; what was run is written.
    #[cfg(feature = "live")]
    Interrupted,
}

/// A flag that Ctrl-C sets.
#[cfg(feature = "live")]
pub(crate) fn catch_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// How a command ended that this flag may have cut short.
#[cfg(feature = "live")]
pub(crate) fn outcome(stop: &AtomicBool) -> Outcome {
    if stop.load(Ordering::Relaxed) { Outcome::Interrupted } else { Outcome::Complete }
}
