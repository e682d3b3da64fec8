//! Derives the values and the seed of each run from the design and the number of the run alone, so that any process can
//! execute any part.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::axis::{Axis, AxisError};
use super::draw::Draw;
use super::error::SweepError;
use super::table::{self, Column, Key, Row};
use crate::scenario::{Override, Scenario, SetError};
use crate::sim;

/// A request for a sweep, which [`Plan::new`] checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The scenarios of the sweep.
    pub scenarios: Vec<NamedText>,
    /// Overrides for all scenarios, each `KEY=VALUE`. They are applied before the varied and drawn values.
    pub set: Vec<String>,
    /// Varied keys with their values, each `KEY=V1,V2,…`. A point of the sweep is a combination of a scenario, one
    /// value of each varied key, and one set of drawn values.
    pub vary: Vec<String>,
    /// Keys with random values, each in the form `KEY=DISTRIBUTION(A, B)`, such as `link.l.rate=uniform(5 Mbit/s, 15
    /// Mbit/s)`.
    pub draw: Vec<String>,
    /// Number of random points. At each of them, every key of [`draw`](Self::draw) has a newly drawn value. Must be 1
    /// if no key is drawn.
    pub random_points: u32,
    /// Seed of the first run of each point. The drawn values also depend on this seed.
    pub seed: u64,
    /// Number of runs of each point; run n, counted from 0, uses `seed + n`.
    pub runs: u32,
}

/// The text and the file name of a scenario. If several scenarios have the same `name`, the table shows the file name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedText {
    /// The file name of the scenario, or another unique name.
    pub file: String,
    /// The scenario's text.
    pub text: String,
}

/// A design that has been checked and can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    design: Design,
    /// The name of each scenario as it appears in the table.
    names: Vec<String>,
    set: Vec<Override>,
    axes: Vec<Axis>,
    draws: Vec<Draw>,
    columns: Vec<Column>,
    /// Number of combinations of the varied values.
    combinations: u64,
    runs: u64,
    runs_per_part: u64,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// Number of the run, counted from 0.
    pub run: u64,
    /// Index of the run's point, counted from 0. The runs of one point differ only in the seed.
    pub point: u64,
    /// Index of the run's scenario in [`Design::scenarios`].
    pub scenario: usize,
    /// Seed of the run.
    pub seed: u64,
    /// The varied and drawn keys with their values in this run, in the order of the table's columns. They are applied
    /// after [`Design::set`].
    pub changes: Vec<Override>,
}

/// Maximum number of runs. No practical sweep has more runs, and a double represents each run number up to this maximum
/// exactly.
const MOST_RUNS: u64 = 1 << 40;
/// Approximate number of parts of a sweep. Each part has its own file. An interruption loses only the runs of
/// unfinished parts, which with this number of parts is a small share of all runs. A sweep with fewer runs than this
/// has one part per run. If the parts would be larger than allowed, the sweep has more parts.
const PARTS: u64 = 500;
/// Maximum number of runs in a part.
const MOST_RUNS_PER_PART: u64 = 1000;
/// Maximum number of rows in a part of a sweep. It limits the memory that a part needs.
const MOST_ROWS_PER_PART: u64 = 5000;

impl Plan {
    /// Checks a design: its keys, each varied value separately, and the smallest and largest drawn values (for
    /// `choice`, the first and the last value). Whether the values of a point are valid together is checked by
    /// [`check`](Self::check).
    ///
    /// # Errors
    /// [`SweepError`] for the first error that is found.
    pub fn new(design: Design) -> Result<Self, SweepError> {
        let set = design
            .set
            .iter()
            .map(|text| text.parse().map_err(|source: SetError| SweepError::Set { text: text.clone(), source }));
        let set: Vec<Override> = set.collect::<Result<_, _>>()?;
        let axes = design
            .vary
            .iter()
            .map(|text| text.parse().map_err(|source| SweepError::Vary { text: text.clone(), source }));
        let axes: Vec<Axis> = axes.collect::<Result<_, _>>()?;
        let draws = design.draw.iter().map(|text| {
            text.parse().map_err(|source| SweepError::Draw { text: text.clone(), source: Box::new(source) })
        });
        let draws: Vec<Draw> = draws.collect::<Result<_, _>>()?;
        check_keys(&axes, &draws)?;
        check_counts(&design)?;
        let columns = table::columns(&axes, &draws).map_err(|(place, source)| clash(&design, place, source))?;
        let combinations = axes.iter().try_fold(1_u64, |all, axis| all.checked_mul(axis.values.len() as u64));
        let points = combinations
            .and_then(|grid| grid.checked_mul(u64::from(design.random_points)))
            .and_then(|points| points.checked_mul(design.scenarios.len() as u64));
        let runs = points.and_then(|points| points.checked_mul(u64::from(design.runs)));
        let (Some(combinations), Some(runs)) = (combinations, runs.filter(|runs| *runs <= MOST_RUNS)) else {
            return Err(SweepError::TooMany { most: MOST_RUNS });
        };
        let mut plan =
            Self { design, names: Vec::new(), set, axes, draws, columns, combinations, runs, runs_per_part: 1 };
        let flows = plan.check_values()?;
        let by_rows = (MOST_ROWS_PER_PART / flows.max(1)).clamp(1, MOST_RUNS_PER_PART);
        plan.runs_per_part = (runs / PARTS).clamp(1, by_rows);
        Ok(plan)
    }

    /// Returns the design of the sweep.
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// Returns the columns of the sweep's table.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the number of all runs.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the number of points, each of which has [`Design::runs`] runs.
    pub const fn points(&self) -> u64 {
        self.runs / self.runs_per_point()
    }

    const fn runs_per_point(&self) -> u64 {
        if self.design.runs == 0 { 1 } else { self.design.runs as u64 }
    }

    /// Returns the number of parts in which the runs are stored.
    pub const fn parts(&self) -> u64 {
        self.runs.div_ceil(self.runs_per_part)
    }

    /// Returns the numbers of the runs in a part; empty if the part does not exist.
    pub fn part(&self, part: u64) -> Range<u64> {
        let begin = part.saturating_mul(self.runs_per_part).min(self.runs);
        begin..begin.saturating_add(self.runs_per_part).min(self.runs)
    }

    /// Returns run number `run`, counted from 0; `None` if the sweep has fewer runs.
    pub fn run(&self, run: u64) -> Option<PlannedRun> {
        let point = run / self.runs_per_point();
        let (scenario, changes) = self.point(point).filter(|_| run < self.runs)?;
        let seed = self.design.seed.wrapping_add(run % self.runs_per_point());
        Some(PlannedRun { run, point, scenario, seed, changes })
    }

    /// Returns the index of a point's scenario, and the overrides of the point.
    ///
    /// In the order of points, the random points vary fastest, then the values of the last varied key. The scenarios
    /// vary slowest. The n-th random point has the same drawn values in every combination of varied values.
    fn point(&self, point: u64) -> Option<(usize, Vec<Override>)> {
        let random_points = u64::from(self.design.random_points.max(1));
        let (outer, random) = (point / random_points, point % random_points);
        let (scenario, mut combination) = (outer / self.combinations, outer % self.combinations);
        let mut changes = Vec::with_capacity(self.axes.len() + self.draws.len());
        for axis in self.axes.iter().rev() {
            let values = axis.values.len() as u64;
            changes.push(axis.change(combination % values)?);
            combination /= values;
        }
        changes.reverse();
        let drawn = (0..).zip(&self.draws);
        changes.extend(drawn.map(|(place, draw)| draw.change(self.design.seed, place, random)));
        let scenario = usize::try_from(scenario).ok().filter(|scenario| *scenario < self.design.scenarios.len())?;
        Some((scenario, changes))
    }

    /// Returns the scenario of a run, ready to run.
    ///
    /// # Errors
    /// [`SweepError::Point`] if the scenario is invalid with the values of the run.
    pub fn scenario(&self, run: &PlannedRun) -> Result<Scenario, SweepError> {
        self.parse(run.scenario, &run.changes)
    }

    fn parse(&self, scenario: usize, changes: &[Override]) -> Result<Scenario, SweepError> {
        let text = self.design.scenarios.get(scenario).map_or("", |found| found.text.as_str());
        let all: Vec<_> = self.set.iter().chain(changes).cloned().collect();
        Scenario::parse_with(text, &all).map_err(|source| self.wrong(scenario, changes, source.into()))
    }

    fn wrong(&self, scenario: usize, changes: &[Override], source: super::error::PointError) -> SweepError {
        let file = self.design.scenarios.get(scenario).map_or("", |found| found.file.as_str());
        let values = changes.iter().map(|change| format!("{change}")).collect::<Vec<_>>().join(", ");
        SweepError::Point { file: file.to_owned(), values, source: Box::new(source) }
    }

    /// Checks all points that have a run in `runs`: the values of each point must be valid together. `threads` is the
    /// number of threads; `None` uses all cores.
    ///
    /// # Errors
    /// [`SweepError::Point`] for a point that cannot be run, not necessarily the first one. [`SweepError::Run`] if the
    /// threads cannot be started.
    pub fn check(&self, runs: &[Range<u64>], threads: Option<usize>) -> Result<(), SweepError> {
        let per_point = self.runs_per_point();
        let points = |runs: &Range<u64>| runs.start / per_point..runs.end.div_ceil(per_point);
        let check = |point: u64| {
            let Some((scenario, changes)) = self.point(point) else { return Ok(()) };
            let parsed = self.parse(scenario, &changes)?;
            sim::check(&parsed).map_err(|source| self.wrong(scenario, &changes, source.into()))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
        let pool = pool.map_err(sim::SimError::Threads)?;
        pool.install(|| runs.par_iter().flat_map_iter(points).try_for_each(check))
    }

    /// Gives each scenario a name. Tries each varied value once, and the two limits of each drawn value once. Returns
    /// the largest number of table rows for one run.
    fn check_values(&mut self) -> Result<u64, SweepError> {
        let axes = self.axes.iter().filter_map(|axis| axis.change(0));
        let first: Vec<_> = axes.chain(self.draws.iter().map(|draw| draw.at(0.0))).collect();
        let (mut flows, mut names) = (0, Vec::new());
        for scenario in 0..self.design.scenarios.len() {
            let parsed = self.parse(scenario, &first)?;
            let rows = parsed.flows.iter().filter(|flow| table::has_row(flow)).count() as u64;
            if rows == 0 {
                return Err(SweepError::NoFlow { file: self.design.scenarios[scenario].file.clone() });
            }
            flows = flows.max(rows);
            names.push(parsed.name);
            for (place, axis) in self.axes.iter().enumerate() {
                for value in 1..axis.values.len() as u64 {
                    let mut changes = first.clone();
                    if let (Some(change), Some(other)) = (changes.get_mut(place), axis.change(value)) {
                        *change = other;
                    }
                    self.parse(scenario, &changes)?;
                }
            }
            for (place, draw) in self.draws.iter().enumerate() {
                let mut changes = first.clone();
                if let Some(change) = changes.get_mut(self.axes.len() + place) {
                    *change = draw.at(1.0);
                }
                self.parse(scenario, &changes)?;
            }
        }
        let is_shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
        let files = self.design.scenarios.iter().map(|found| &found.file);
        self.names =
            names.iter().zip(files).map(|(name, file)| if is_shared(name) { file } else { name }.clone()).collect();
        Ok(flows)
    }

    /// Simulates a run of this scenario, and returns the run's table rows.
    pub(super) fn rows(
        &self,
        planned: &PlannedRun,
        scenario: &Scenario,
        stop: &sim::Stop,
    ) -> Result<Vec<Row>, SweepError> {
        let name = self.names.get(planned.scenario).map_or("", String::as_str);
        let key = Key { run: planned.run, point: planned.point, seed: planned.seed, scenario: name };
        let run = sim::simulate_silently(scenario, planned.seed, stop)?;
        Ok(table::rows(key, &table::key_cells(&self.columns, &planned.changes), scenario, &run))
    }
}

/// Checks that no key is varied or drawn more than once.
fn check_keys(axes: &[Axis], draws: &[Draw]) -> Result<(), SweepError> {
    let keys: Vec<_> = axes.iter().map(|axis| &axis.path).chain(draws.iter().map(|draw| &draw.path)).collect();
    let twice = keys.iter().enumerate().find(|(place, key)| keys.iter().take(*place).any(|other| other == *key));
    twice.map_or(Ok(()), |(_, key)| {
        Err(SweepError::Vary { text: (*key).clone(), source: AxisError::Twice { key: (*key).clone() } })
    })
}

/// Returns the error for a key whose column would have the name of another column. `place` is the index of the key in
/// the list that has first the varied keys and then the drawn keys.
fn clash(design: &Design, place: usize, source: AxisError) -> SweepError {
    let text = design.vary.iter().chain(&design.draw).nth(place).cloned().unwrap_or_default();
    if place < design.vary.len() {
        SweepError::Vary { text, source }
    } else {
        SweepError::Draw { text, source: Box::new(source.into()) }
    }
}

fn check_counts(design: &Design) -> Result<(), SweepError> {
    let Design { scenarios, draw, random_points, runs, .. } = design;
    if scenarios.is_empty() {
        return Err(SweepError::NoScenario);
    }
    if *runs == 0 || *random_points == 0 {
        return Err(SweepError::NoRuns);
    }
    if draw.is_empty() && *random_points > 1 { Err(SweepError::NothingDrawn) } else { Ok(()) }
}
