//! Shows the progress of a sweep: a bar on a terminal, otherwise a line every ten seconds, which suits the logs of
//! batch jobs.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use equipoise_lab::sweep::Progress;

use crate::bar::Bar;
use crate::waiting::in_words;

/// Time between two progress lines.
const EVERY: Duration = Duration::from_secs(10);

pub(super) struct Meter {
    bar: Bar,
    /// The start of the sweep, and the time of the last progress line; `None` if no lines are printed.
    lines: Option<(Instant, Mutex<Instant>)>,
}

impl Meter {
    pub(super) fn new(quiet: bool) -> Self {
        let now = Instant::now();
        let lines = (!quiet && !io::stderr().is_terminal()).then(|| (now, Mutex::new(now)));
        Self { bar: Bar::new(quiet, "simulated"), lines }
    }

    pub(super) fn progress(&self, Progress { done, planned }: Progress) {
        self.bar.progress(done as f64 / planned.max(1) as f64);
        let Some((begun, last)) = &self.lines else { return };
        let now = Instant::now();
        {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if now - *last < EVERY || done == 0 {
                return;
            }
            *last = now;
        }
        let left = (now - *begun).mul_f64((planned - done) as f64 / done as f64);
        // If standard error is closed, the line cannot be printed; this error is ignored.
        let _ = writeln!(anstream::stderr(), "{done} of {planned} runs, {} left", in_words(left.as_secs_f64()));
    }

    pub(super) fn finish(self) {
        self.bar.finish();
    }
}
