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
    /// There is no case with this name.
    #[error("there is no case `{name}`{similar}; there are: {known}")]
    UnknownCase {
        /// The name that does not exist.
        name: String,
        /// The names of the existing cases.
        known: String,
        /// Text that suggests the most similar case; empty if none is similar.
        similar: String,
    },
    /// The case has no variant with this name.
    #[error("case {case} has no variant `{name}`{similar}; it has: {known}")]
    UnknownVariant {
        /// The name of the case.
        case: String,
        /// The name of the variant that does not exist.
        name: String,
        /// The names of the variants that the case has.
        known: String,
        /// Text that suggests the most similar variant; empty if none is similar.
        similar: String,
    },
    /// The catalogue has no controller with this name.
    #[error("there is no controller `{name}`{similar}; there are: {known}")]
    UnknownController {
        /// The name that is not in the catalogue.
        name: String,
        /// The names of the existing controllers.
        known: String,
        /// Text that suggests the most similar controller; empty if none is similar.
        similar: String,
    },
    /// The caller named no controller.
    #[error("no controller is named; name one or more, such as ap,tfrc")]
    NoController,
    /// The scenario of an item is invalid.
    #[error("{case}, {variant}")]
    Scenario {
        /// The name of the case.
        case: String,
        /// The name of the variant.
        variant: String,
        /// What is wrong with the scenario.
        source: Box<ScenarioError>,
    },
    /// No controller can run any of the suite's items.
    #[error("none of the controllers can run any of this: {reason}")]
    NothingRuns {
        /// The reason why the first controller cannot run the first item.
        reason: String,
    },
    /// A folder cannot be read.
    #[error("cannot read the folder {}", folder.display())]
    Folder {
        /// The path of the folder.
        folder: PathBuf,
        /// Why the folder cannot be read.
        source: io::Error,
    },
    /// The folder contains no traces.
    #[error(
        "there is no trace in {}: no file in Mahimahi's format, and none named `.csv` with lines of time_s,rate_mbps",
        folder.display()
    )]
    NoTraces {
        /// The path of the folder.
        folder: PathBuf,
    },
    /// A file in the folder is not a trace.
    #[error("{} is no trace", file.display())]
    Trace {
        /// The path of the file.
        file: PathBuf,
        /// Why the file is not a trace.
        source: CapacityError,
    },
    /// The name of a file is not UTF-8, so a scenario cannot refer to the file.
    #[error("{} has a name that is not UTF-8; give it another one", file.display())]
    FileName {
        /// The path of the file.
        file: PathBuf,
    },
    /// A simulated run failed.
    #[error("a simulated run failed")]
    Run(#[from] SimError),
    /// Live runs are not possible on this machine.
    #[cfg(feature = "live")]
    #[error("there can be no live runs")]
    Live(#[from] crate::live::LiveError),
}
