//! The progress bar of a run, if standard error is a terminal.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar from 0 to 100 %.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

/// Number of steps into which the progress bar divides the run.
const STEPS: u64 = 1000;

impl Bar {
    /// Creates a progress bar with the label `what`. The bar is hidden if `quiet` is set, or if standard error is not a
    /// terminal.
    pub(crate) fn new(quiet: bool, what: &'static str) -> Self {
        let hidden = quiet || !io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg:>9} [{bar:40}] {percent:>3} %  {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// Shows that the share `share` of the run, from 0 to 1, is complete.
    pub(crate) fn progress(&self, share: f64) {
        self.0.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// Removes the bar from the terminal at the end of the run.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }

    /// Hides the bar while `print` prints.
    #[cfg(feature = "live")]
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}
