//! Executes runs on several threads, and collects their rows into complete parts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use thiserror::Error;

use super::error::SweepError;
use super::plan::Plan;
use super::table::{Row, Table};
use crate::scenario::Scenario;
use crate::sim::{Execution, SimError, Stop};

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of runs that the current call of [`Folder::run`](super::Folder::run) or [`Plan::simulate`] has completed.
    pub done: u64,
    /// Number of runs that the current call must complete in total.
    pub planned: u64,
}

/// A shard of a sweep. The shard consists of every `of`-th part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The shard's first part. The shard also contains every `of`-th part after the first.
    number: u64,
    of: u64,
}

/// Why a text is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("write I/N, the I-th of N shares, counted from 1 or from 0, such as 3/16")]
pub struct ShardError;

impl Shard {
    /// The shard that contains all parts.
    pub const ALL: Self = Self { number: 0, of: 1 };

    /// Returns the numbers of the shard's parts in a sweep with `all` parts.
    pub(super) fn parts(self, all: u64) -> impl Iterator<Item = u64> {
        // If `of` does not fit into `usize`, the shard has at most one part.
        (self.number..all).step_by(usize::try_from(self.of).unwrap_or(usize::MAX))
    }
}

/// Parses a text such as `3/16`: shard 3 of 16. Shards can be numbered from 1 or from 0, because `0/16` means the same
/// as `16/16`.
impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (number, of) = text.split_once('/').ok_or(ShardError)?;
        let read = |text: &str| text.trim().parse::<u64>().map_err(|_| ShardError);
        let (number, of) = (read(number)?, read(of)?);
        let last = of.checked_sub(1).ok_or(ShardError)?;
        let number = number.checked_sub(1).unwrap_or(last);
        if number <= last { Ok(Self { number, of }) } else { Err(ShardError) }
    }
}

/// A part of a sweep (a range of its runs) of which some runs have been completed.
struct Open {
    /// The rows of each run; `None` for a run that is not complete.
    runs: Vec<Option<Vec<Row>>>,
    left: usize,
}

/// The runs that remain to be started, and the parts in progress.
struct Work<'a> {
    parts: &'a [Range<u64>],
    /// The next run to start: the index of its part, and the number of the run.
    next: Option<(usize, u64)>,
    open: BTreeMap<usize, Open>,
    progress: Progress,
    failed: Option<SweepError>,
}

impl<'a> Work<'a> {
    fn new(parts: &'a [Range<u64>]) -> Self {
        let planned = parts.iter().map(|runs| runs.end - runs.start).sum();
        let mut work =
            Self { parts, next: None, open: BTreeMap::new(), progress: Progress { done: 0, planned }, failed: None };
        work.next = work.first_of(0);
        work
    }

    /// Returns the first run of the first non-empty part from index `place` on.
    fn first_of(&self, place: usize) -> Option<(usize, u64)> {
        let mut parts = self.parts.iter().enumerate().skip(place);
        parts.find(|(_, runs)| !runs.is_empty()).map(|(place, runs)| (place, runs.start))
    }

    /// Takes the next run to start. Runs are started in order, so few parts are in progress at a time.
    fn take(&mut self) -> Option<(usize, u64)> {
        if self.failed.is_some() {
            return None;
        }
        let (place, run) = self.next?;
        let is_last = self.parts.get(place).is_none_or(|runs| run + 1 >= runs.end);
        self.next = if is_last { self.first_of(place + 1) } else { Some((place, run + 1)) };
        Some((place, run))
    }

    /// Stores the rows of a completed run. If this completes the part, returns the rows of the whole part.
    fn put(&mut self, (place, run): (usize, u64), rows: Vec<Row>) -> Option<Vec<Row>> {
        let runs = self.parts.get(place)?;
        let length = usize::try_from(runs.end - runs.start).ok()?;
        let open = self.open.entry(place).or_insert_with(|| Open { runs: vec![None; length], left: length });
        let slot = open.runs.get_mut(usize::try_from(run - runs.start).ok()?)?;
        open.left -= usize::from(slot.is_none());
        *slot = Some(rows);
        if open.left > 0 {
            return None;
        }
        self.open.remove(&place).map(|whole| whole.runs.into_iter().flatten().flatten().collect())
    }
}

/// Executes the runs of `parts` on the given number of threads or on all cores. `keep` is called with the index and the
/// rows of each completed part. `progress` is called after each run. Returns the last progress.
///
/// # Errors
/// The first error of a run or of `keep`, or [`SimError::Stopped`]. Parts that were completed before the error are
/// kept.
pub(super) fn each(
    plan: &Plan,
    parts: &[Range<u64>],
    execution: &Execution,
    keep: &(dyn Fn(usize, Table) -> Result<(), SweepError> + Sync),
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Progress, SweepError> {
    let work = Mutex::new(Work::new(parts));
    let number = execution.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let one = |(place, run), scenario: &mut Option<(u64, Scenario)>| -> Result<(), SweepError> {
        let rows = rows(plan, run, scenario, &execution.stop)?;
        let whole = lock(&work).put((place, run), rows);
        if let Some(rows) = whole {
            let mut table = Table::new(plan.columns());
            for row in rows {
                table.push(row)?;
            }
            keep(place, table)?;
        }
        let now = {
            let mut work = lock(&work);
            work.progress.done += 1;
            work.progress
        };
        progress(now);
        Ok(())
    };
    let worker = || {
        let mut scenario = None;
        loop {
            let next = lock(&work).take();
            let Some(next) = next.filter(|_| !execution.stop.is_stopped()) else { break };
            if let Err(error) = one(next, &mut scenario) {
                lock(&work).failed.get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..number.max(1) {
            scope.spawn(worker);
        }
    });
    let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    match work.failed {
        Some(error) => Err(error),
        None if work.progress.done < work.progress.planned => Err(SimError::Stopped.into()),
        None => Ok(work.progress),
    }
}

/// Returns the rows of a run. The scenario of the previous run is reused if both runs belong to the same point.
fn rows(plan: &Plan, run: u64, last: &mut Option<(u64, Scenario)>, stop: &Stop) -> Result<Vec<Row>, SweepError> {
    let Some(planned) = plan.run(run) else { return Ok(Vec::new()) };
    let (_, scenario) = match last.take() {
        Some(found) if found.0 == planned.point => last.insert(found),
        _ => last.insert((planned.point, plan.scenario(&planned)?)),
    };
    plan.rows(&planned, scenario, stop)
}

fn lock<'a, 'w>(work: &'a Mutex<Work<'w>>) -> MutexGuard<'a, Work<'w>> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}
