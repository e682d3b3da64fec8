//! Many variants of a scenario, many times: every run of a design into one table.
//!
//! ```text
//!   design ──▶ plan ──▶ runs on all cores ──▶ parts in a folder ──▶ one file
//! ```
//!
//! A [`Design`] says what is varied and drawn, and a [`Plan`] what run number `n` is. A [`Folder`] keeps the rows in parts, each a file
//! of Apache Parquet with the rows of some runs, so that a sweep goes on after an interruption and can be spread over machines as
//! [`Shard`]s; [`Folder::merge`] makes one file of them, with the same bytes however it was run. [`Plan::simulate`] does without files.
//! Rows and columns are described in the book, in its chapter on sweeps.

mod axis;
mod draw;
mod error;
mod folder;
mod part;
mod plan;
mod quantity;
mod run;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::slice;
use std::sync::{Mutex, PoisonError};

use crate::sim::Execution;
pub use axis::AxisError;
pub use draw::DrawError;
pub use error::{PointError, SweepError};
pub use folder::Folder;
pub use plan::{Design, NamedText, Plan, PlannedRun};
pub use run::{Progress, Shard, ShardError};
pub use table::{Column, ColumnKind, Table};

impl Plan {
    /// Does these runs on so many threads or all cores, and returns their rows, in the order of the runs. `progress` is told after each
    /// run.
    ///
    /// # Errors
    /// As [`Folder::run`], but for files.
    pub fn simulate(
        &self,
        runs: Range<u64>,
        execution: impl Into<Execution>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Table, SweepError> {
        let runs = runs.start.min(self.runs())..runs.end.min(self.runs());
        let runs = slice::from_ref(&runs);
        let execution = execution.into();
        self.check(runs, execution.threads)?;
        let found = Mutex::new(Table::new(self.columns()));
        let keep = |_, table| found.lock().unwrap_or_else(PoisonError::into_inner).append(table);
        run::each(self, runs, &execution, &keep, progress)?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
