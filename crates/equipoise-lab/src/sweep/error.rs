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
    /// The design contains no scenario.
    #[error("a sweep takes a scenario or more")]
    NoScenario,
    /// The number of runs of a point, or the number of points, is zero.
    #[error("each point takes a run or more, and there must be a point or more")]
    NoRuns,
    /// The sweep has random points, but no key whose value is drawn at random.
    #[error("random points take a key whose value is drawn, and there is none")]
    NothingDrawn,
    /// The design has too many runs.
    #[error("there are more than {most} runs; vary fewer values")]
    TooMany {
        /// The maximum number of runs.
        most: u64,
    },
    /// An item of [`Design::set`](super::Design::set) is not a key with a value.
    #[error("what is set, '{text}'")]
    Set {
        /// The text of the item.
        text: String,
        /// What is wrong with the text, and what would be valid.
        source: SetError,
    },
    /// An item of [`Design::vary`](super::Design::vary) is not a key with values, its column would have the name of
    /// another column, or a key is varied or drawn twice.
    #[error("what is varied, '{text}'")]
    Vary {
        /// The text of the item, or the key that appears twice.
        text: String,
        /// What is wrong with the text, and what would be valid.
        source: AxisError,
    },
    /// An item of [`Design::draw`](super::Design::draw) is not a key with a distribution, or its column would have the
    /// name of another column.
    #[error("what is drawn, '{text}'")]
    Draw {
        /// The text of the item.
        text: String,
        /// What is wrong with the text, and what would be valid.
        source: Box<DrawError>,
    },
    /// The scenario of a point cannot be run.
    #[error("{}", in_words(file, values))]
    Point {
        /// The file name of the scenario.
        file: String,
        /// The varied and drawn keys of the point with their values.
        values: String,
        /// Why the scenario cannot be run.
        source: Box<PointError>,
    },
    /// A scenario has no flow that gets a row in the table, because all its flows are background traffic.
    #[error("{file} has no flow that sends media or data: all are background traffic")]
    NoFlow {
        /// The file name of the scenario.
        file: String,
    },
    /// A simulated run failed.
    #[error("a simulated run failed")]
    Run(#[from] SimError),
    /// A file in the sweep's folder cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// Why the file cannot be read or written.
        source: io::Error,
    },
    /// The folder does not contain a sweep.
    #[error("{} has no sweep: there is no file {}", folder.display(), super::folder::MANIFEST)]
    NoSweep {
        /// The path of the folder.
        folder: PathBuf,
    },
    /// The folder's manifest file cannot be parsed.
    #[error("{} is not the description of a sweep", path.display())]
    Manifest {
        /// The path of the manifest file.
        path: PathBuf,
        /// Why the file cannot be parsed.
        source: serde_json::Error,
    },
    /// The folder contains a different sweep.
    #[error("{} has another sweep: {difference}", folder.display())]
    OtherSweep {
        /// The path of the folder.
        folder: PathBuf,
        /// How the sweep in the folder differs.
        difference: String,
    },
    /// The folder's sweep was started by another version of Equipoise, whose results may differ.
    #[error("the sweep in {} was begun by version {found}, and this is version {}", folder.display(), crate::VERSION)]
    OtherVersion {
        /// The path of the folder.
        folder: PathBuf,
        /// The version that started the sweep.
        found: String,
    },
    /// A file of a part does not belong to this sweep, or contains other runs than the part should.
    #[error("{} is not part {part} of this sweep", path.display())]
    StrangePart {
        /// The path of the file.
        path: PathBuf,
        /// The number of the part.
        part: u64,
    },
    /// Some parts of the sweep are missing.
    #[error("{missing} of {parts} parts are missing, the first one of run {first} on")]
    Incomplete {
        /// Number of parts that are missing.
        missing: u64,
        /// Number of all parts.
        parts: u64,
        /// The number of the first run that is missing.
        first: u64,
    },
    /// The cells of a row do not match the columns of the table.
    #[error("a row does not have what the column {column} takes")]
    Row {
        /// The name of the first column whose cell is missing or has the wrong type. If the row has too many cells,
        /// this is "number n", where n is the number of cells.
        column: String,
    },
    /// A table cannot be written to or read from a Parquet file.
    #[error("a table cannot be written or read as Parquet")]
    Parquet(#[from] ParquetError),
    /// The merged Parquet file cannot be written.
    #[error("the merged table cannot be written")]
    Output(#[source] io::Error),
    /// The merged CSV file cannot be written.
    #[error("the merged table cannot be written as CSV")]
    Csv(#[source] io::Error),
}

/// Why a point of a sweep cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PointError {
    /// The scenario of the point is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario of the point cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
}

fn in_words(file: &str, values: &str) -> String {
    if values.is_empty() { file.to_owned() } else { format!("{file} with {values}") }
}
