//! Experiments in real time.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise_lab::Progress;
use equipoise_lab::live::{self, LiveError, Stage};
use equipoise_lab::result::{Run, World};
use equipoise_lab::scenario::Scenario;

use super::{Found, Options};
use crate::Results;

/// Runs scenarios across network namespaces, in real time and one after another, and keeps count.
pub(crate) struct LiveLab<'a> {
    pub(crate) options: Options,
    stop: &'a AtomicBool,
    total: u32,
    done: Cell<u32>,
    progress: &'a dyn Fn(f64),
}

impl<'a> LiveLab<'a> {
    /// A lab that is going to do `total` runs, until `stop` is set, and tells `progress` the share that is done.
    pub(crate) const fn new(options: &Options, total: u32, stop: &'a AtomicBool, progress: &'a dyn Fn(f64)) -> Self {
        Self { options: *options, stop, total, done: Cell::new(0), progress }
    }

    /// A run of the scenario; the number makes its seed. `None` where it was interrupted: what was cut short says nothing of
    /// what it lacks.
    pub(crate) fn run(&self, scenario: &Scenario, number: u32) -> Result<Option<Run>, LiveError> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let before = f64::from(self.done.replace(self.done.get() + 1));
        let mut tell = |part: Progress| {
            if let Progress::Share(share) = part {
                (self.progress)((before + share) / f64::from(self.total.max(1)));
            }
        };
        let at = (self.options.seed.wrapping_add(number.into()), Stage::Namespaces);
        let run = live::run(scenario, at, self.stop, &mut tell)?;
        Ok(run.complete.then_some(run))
    }
}

impl Found {
    /// The same, of runs in the real world.
    pub(crate) fn live_results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        let mut results = self.results(paper, options, assumptions);
        results.world = World::Live;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        results.assumptions.push(format!("Linux {}.", release.trim()));
        results
    }
}
