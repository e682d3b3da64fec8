//! The progress bar of a run, if standard error is a terminal.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar from 0 to 100 %.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

/// Number of steps of the bar.
const STEPS: u64 = 1000;

impl Bar {
    /// A bar that is hidden if `quiet`; `what` is its label.
    pub(crate) fn new(quiet: bool, what: &'static str) -> Self {
        let hidden = quiet || !io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg:>9} [{bar:40}] {percent:>3} %  {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// Sets the bar to this share of the run, 0 to 1.
    pub(crate) fn progress(&self, share: f64) {
        self.0.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// Removes the bar at the end of the run.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }

    /// Hides the bar while `print` prints.
    #[cfg(feature = "live")]
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}
