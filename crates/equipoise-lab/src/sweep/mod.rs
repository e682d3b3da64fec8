//! A sweep runs many variants of scenarios, each with several seeds, and writes the results of all runs into one table.
//!
//! ```text
//!   design ──▶ plan ──▶ runs on all cores ──▶ parts in a folder ──▶ one file
//! ```
//!
//! A [`Design`] contains the keys that take listed values, and the keys whose values are drawn at random. A [`Plan`]
//! derives each run from the number of the run. A [`Folder`] stores the rows in parts. Each part is an Apache Parquet
//! file with the rows of some runs, so that a sweep can continue after an interruption and can be distributed over
//! several machines as [`Shard`]s. [`Folder::merge`] joins the parts into one file, whose bytes do not depend on how
//! the sweep was run. [`Plan::simulate`] runs a sweep without files. The book's chapter on sweeps describes rows and
//! columns.

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
    /// Executes the runs whose indices, counted from 0, are in `runs`, on the given number of threads or on all cores.
    /// Returns the rows of the runs, in the order of the runs. `progress` is called after each run.
    ///
    /// # Errors
    /// The errors of [`Folder::run`], except those about files.
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
