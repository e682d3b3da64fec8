use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;
use thiserror::Error;

use super::axis::AxisError;
use super::draw::DrawError;
use crate::scenario::{ScenarioError, SetError};
use crate::sim::SimError;

/// Why a sweep cannot be run or merged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// There is no scenario.
    #[error("a sweep takes a scenario or more")]
    NoScenario,
    /// There are no runs of a point, or no points.
    #[error("each point takes a run or more, and there must be a point or more")]
    NoRuns,
    /// There are random points, and no key is drawn.
    #[error("random points take a key whose value is drawn, and there is none")]
    NothingDrawn,
    /// There are too many runs.
    #[error("there are more than {most} runs; vary fewer values")]
    TooMany {
        /// The most runs.
        most: u64,
    },
    /// What is set is no key with a value.
    #[error("what is set, '{text}'")]
    Set {
        /// What was given.
        text: String,
        /// What would be right.
        source: SetError,
    },
    /// What is varied is no key with values.
    #[error("what is varied, '{text}'")]
    Vary {
        /// What was given.
        text: String,
        /// What would be right.
        source: AxisError,
    },
    /// What is drawn is no key with a distribution.
    #[error("what is drawn, '{text}'")]
    Draw {
        /// What was given.
        text: String,
        /// What would be right.
        source: Box<DrawError>,
    },
    /// A point is no scenario that can be run.
    #[error("{}", in_words(file, values))]
    Point {
        /// The scenario's file.
        file: String,
        /// Its varied and drawn keys with their values.
        values: String,
        /// What is wrong with it.
        source: Box<PointError>,
    },
    /// A scenario has no flow that would have a row.
    #[error("{file} has no flow that sends media or data: all are background traffic")]
    NoFlow {
        /// The scenario's file.
        file: String,
    },
    /// A run failed.
    #[error("a simulated run failed")]
    Run(#[from] SimError),
    /// A file of the folder cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has no sweep.
    #[error("{} has no sweep: there is no file {}", folder.display(), super::folder::MANIFEST)]
    NoSweep {
        /// The folder.
        folder: PathBuf,
    },
    /// The file that says what the folder has cannot be understood.
    #[error("{} is not the description of a sweep", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The folder has another sweep.
    #[error("{} has another sweep: {difference}", folder.display())]
    OtherSweep {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        difference: String,
    },
    /// The folder's sweep was begun by another version, whose results may differ.
    #[error("the sweep in {} was begun by version {found}, and this is version {}", folder.display(), crate::VERSION)]
    OtherVersion {
        /// The folder.
        folder: PathBuf,
        /// The version that began it.
        found: String,
    },
    /// A part is not of this sweep, or holds other runs than its name says.
    #[error("{} is not part {part} of this sweep", path.display())]
    StrangePart {
        /// The file.
        path: PathBuf,
        /// The part's number.
        part: u64,
    },
    /// Parts are missing.
    #[error("{missing} of {parts} parts are missing, the first one of run {first} on")]
    Incomplete {
        /// Parts that are missing.
        missing: u64,
        /// All parts.
        parts: u64,
        /// The first run that is missing.
        first: u64,
    },
    /// A row has other cells than the table has columns.
    #[error("a row does not have what the column {column} takes")]
    Row {
        /// The first column that does not fit.
        column: String,
    },
    /// A table cannot be written or read.
    #[error("a table cannot be written or read as Parquet")]
    Parquet(#[from] ParquetError),
    /// The merged table cannot be written as Parquet.
    #[error("the merged table cannot be written")]
    Output(#[source] io::Error),
    /// The merged table cannot be written as CSV.
    #[error("the merged table cannot be written as CSV")]
    Csv(#[source] io::Error),
}

/// Why a point cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PointError {
    /// It is no scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
}

fn in_words(file: &str, values: &str) -> String {
    if values.is_empty() { file.to_owned() } else { format!("{file} with {values}") }
}
