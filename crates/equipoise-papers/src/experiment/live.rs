//! Runs experiments in real time on the network stack of Linux.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise_lab::Progress;
use equipoise_lab::live::{self, LiveError, Setup, Stage, WindowControl};
use equipoise_lab::result::{Run, World};
use equipoise_lab::scenario::Scenario;

use super::{Found, Options};
use crate::Results;

/// Runs scenarios between network namespaces, in real time and one after another, and reports the progress.
pub(crate) struct LiveLab<'a> {
    pub(crate) options: Options,
    stop: &'a AtomicBool,
    total: u32,
    done: Cell<u32>,
    progress: &'a dyn Fn(f64),
    window_control: &'a dyn Fn(&str) -> Option<WindowControl>,
}

/// The completed runs of a scenario. If they are fewer than requested, `missing` is the reason.
#[derive(Debug, Default)]
pub(crate) struct LiveRuns {
    pub(crate) runs: Vec<Run>,
    pub(crate) missing: Option<String>,
}

impl<'a> LiveLab<'a> {
    /// Creates a lab for `total` runs. The lab stops when `stop` is set, and calls `progress` with the share of the
    /// runs that are done.
    pub(crate) const fn new(options: &Options, total: u32, stop: &'a AtomicBool, progress: &'a dyn Fn(f64)) -> Self {
        Self { options: *options, stop, total, done: Cell::new(0), progress, window_control: &|_| None }
    }

    /// Sets `window_control`. For the name of a congestion control, this function returns the [`WindowControl`] that
    /// sets the congestion window of a flow pair's TCP connection; `None` if the window cannot be set.
    pub(crate) const fn with_windows(self, window_control: &'a dyn Fn(&str) -> Option<WindowControl>) -> Self {
        Self { window_control, ..self }
    }

    /// Runs a scenario `runs` times. The result has fewer runs after an interruption, and no runs if the kernel lacks
    /// the scenario's congestion control.
    pub(crate) fn runs(&self, scenario: impl Fn(u32) -> Scenario, runs: u32) -> Result<LiveRuns, LiveError> {
        let mut found = LiveRuns::default();
        for number in 0..runs {
            match self.run(&scenario(number), number) {
                Ok(Some(run)) => {
                    found.runs.push(run);
                    continue;
                }
                Ok(None) => found.missing = Some("interrupted".to_owned()),
                Err(error) => found.missing = Some(error.lacking().ok_or(error)?),
            }
            break;
        }
        Ok(found)
    }

    /// Runs the scenario once, with a seed that is computed from `number`. Returns `None` if the run was interrupted,
    /// because an incomplete run cannot be evaluated.
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
        let setup = Setup {
            seed: self.options.seed.wrapping_add(number.into()),
            stage: Stage::Namespaces,
            window_control: self.window_control,
        };
        let run = live::run(scenario, &setup, self.stop, &mut tell)?;
        Ok(run.complete.then_some(run))
    }
}

impl Found {
    /// Returns all results of a paper, as `results` does, and marks them as results of live runs.
    pub(crate) fn live_results(self, paper: &str, options: &Options, assumptions: &[&str]) -> Results {
        let mut results = self.results(paper, options, assumptions);
        results.world = World::Live;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        results.assumptions.push(format!("Linux {}.", release.trim()));
        results
    }
}
