//! The outcome of a command that did not fail: complete, interrupted by Ctrl-C, or complete with a target that was not
//! reached.

#[cfg(feature = "live")]
use std::sync::Arc;
#[cfg(feature = "live")]
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise_lab::result::Run;
use equipoise_lab::verdict::{self, FlowJudgement};

#[cfg(feature = "live")]
use crate::error::CliError;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command has done all of its work.
    Complete,
    /// With `--check`: a session did not hold its target delay, or `equipoise suite paths` had too many bad runs.
    NotHeld,
    /// Ctrl-C interrupted the command. The results up to the interruption are written.
    #[cfg(feature = "live")]
    Interrupted,
}

/// Returns the outcome of a command that completed `runs`. If `check` is set and a session missed its target, the
/// outcome is [`Outcome::NotHeld`].
pub(crate) fn checked(check: bool, runs: &[Run]) -> Outcome {
    let is_missed = |judged: &FlowJudgement| judged.judgement.is_held == Some(false);
    if check && verdict::judge(runs).iter().any(is_missed) { Outcome::NotHeld } else { Outcome::Complete }
}

/// The exit status after Ctrl-C, as in shells: 128 plus the number of the signal, 2.
#[cfg(feature = "live")]
pub(crate) const INTERRUPTED: i32 = 130;

/// Returns a flag that Ctrl-C sets. A second Ctrl-C ends the process immediately, because a stalled terminal or reader
/// may prevent an orderly end.
#[cfg(feature = "live")]
pub(crate) fn catch_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(stop)
}

/// Returns the outcome of a command that ends early when Ctrl-C sets the flag `stop`.
#[cfg(feature = "live")]
pub(crate) fn outcome(stop: &AtomicBool) -> Outcome {
    if stop.load(Ordering::Relaxed) { Outcome::Interrupted } else { Outcome::Complete }
}
