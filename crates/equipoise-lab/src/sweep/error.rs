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
    /// The design has no scenario.
    #[error("a sweep takes a scenario or more")]
    NoScenario,
    /// A point has no runs, or there are no points.
    #[error("each point takes a run or more, and there must be a point or more")]
    NoRuns,
    /// There are random points, but no key is drawn.
    #[error("random points take a key whose value is drawn, and there is none")]
    NothingDrawn,
    /// There are too many runs.
    #[error("there are more than {most} runs; vary fewer values")]
    TooMany {
        /// The maximum.
        most: u64,
    },
    /// An override is not a key with a value.
    #[error("what is set, '{text}'")]
    Set {
        /// The given text.
        text: String,
        /// What is wrong with it and what would be valid.
        source: SetError,
    },
    /// A text to vary is not a key with values.
    #[error("what is varied, '{text}'")]
    Vary {
        /// The given text.
        text: String,
        /// What is wrong with it and what would be valid.
        source: AxisError,
    },
    /// A text to draw is not a key with a distribution.
    #[error("what is drawn, '{text}'")]
    Draw {
        /// The given text.
        text: String,
        /// What is wrong with it and what would be valid.
        source: Box<DrawError>,
    },
    /// The scenario of a point cannot be run.
    #[error("{}", in_words(file, values))]
    Point {
        /// The scenario's file.
        file: String,
        /// Its varied and drawn keys with their values.
        values: String,
        /// What is wrong with it.
        source: Box<PointError>,
    },
    /// A scenario has no flow with a row in the table: all flows are background traffic.
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
        /// The cause.
        source: io::Error,
    },
    /// The folder does not contain a sweep.
    #[error("{} has no sweep: there is no file {}", folder.display(), super::folder::MANIFEST)]
    NoSweep {
        /// The folder.
        folder: PathBuf,
    },
    /// The manifest of the folder cannot be parsed.
    #[error("{} is not the description of a sweep", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The folder contains another sweep.
    #[error("{} has another sweep: {difference}", folder.display())]
    OtherSweep {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        difference: String,
    },
    /// Another version, whose results may differ, began the folder's sweep.
    #[error("the sweep in {} was begun by version {found}, and this is version {}", folder.display(), crate::VERSION)]
    OtherVersion {
        /// The folder.
        folder: PathBuf,
        /// The version that began the sweep.
        found: String,
    },
    /// A part does not belong to this sweep, or contains other runs than its name says.
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
        /// Number of missing parts.
        missing: u64,
        /// Number of all parts.
        parts: u64,
        /// The first missing run.
        first: u64,
    },
    /// The cells of a row do not fit the columns of the table.
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
    /// Its scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
}

fn in_words(file: &str, values: &str) -> String {
    if values.is_empty() { file.to_owned() } else { format!("{file} with {values}") }
}
