use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::capacity::CapacityError;
use crate::scenario::ScenarioError;
use crate::sim::SimError;

/// Why a suite cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// There is no such case.
    #[error("there is no case `{name}`{similar}; there are: {known}")]
    UnknownCase {
        /// The name.
        name: String,
        /// The existing cases.
        known: String,
        /// Text about the most similar case; empty if none is similar.
        similar: String,
    },
    /// A case has no such variant.
    #[error("case {case} has no variant `{name}`{similar}; it has: {known}")]
    UnknownVariant {
        /// The case.
        case: String,
        /// The name.
        name: String,
        /// The variants that it has.
        known: String,
        /// Text about the most similar variant; empty if none is similar.
        similar: String,
    },
    /// The catalogue has no such controller.
    #[error("there is no controller `{name}`{similar}; there are: {known}")]
    UnknownController {
        /// The name.
        name: String,
        /// The existing controllers.
        known: String,
        /// Text about the most similar controller; empty if none is similar.
        similar: String,
    },
    /// No controller is given.
    #[error("no controller is named; name one or more, such as ap,tfrc")]
    NoController,
    /// The scenario of an item is invalid.
    #[error("{case}, {variant}")]
    Scenario {
        /// The case.
        case: String,
        /// The variant.
        variant: String,
        /// What is wrong with it.
        source: Box<ScenarioError>,
    },
    /// No controller can run any of the items.
    #[error("none of the controllers can run any of this: {reason}")]
    NothingRuns {
        /// The reason for the first one.
        reason: String,
    },
    /// A folder cannot be read.
    #[error("cannot read the folder {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A folder has no traces.
    #[error(
        "there is no trace in {}: no file in Mahimahi's format, and none named `.csv` with lines of time_s,rate_mbps",
        folder.display()
    )]
    NoTraces {
        /// The folder.
        folder: PathBuf,
    },
    /// A file is not a trace.
    #[error("{} is no trace", file.display())]
    Trace {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: CapacityError,
    },
    /// A scenario cannot refer to a file of this name.
    #[error("{} has a name that is not UTF-8; give it another one", file.display())]
    FileName {
        /// The file.
        file: PathBuf,
    },
    /// A run failed.
    #[error("a simulated run failed")]
    Run(#[from] SimError),
    /// Live runs are not possible.
    #[cfg(feature = "live")]
    #[error("there can be no live runs")]
    Live(#[from] crate::live::LiveError),
}
