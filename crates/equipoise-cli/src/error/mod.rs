//! Errors of the command, in classes. Each class has an exit code, which `--help` lists.

#[cfg(any(feature = "live", feature = "papers"))]
mod from;
#[cfg(feature = "papers")]
mod paper;
#[cfg(feature = "live")]
mod real;

use std::io;
use std::path::PathBuf;

use equipoise_lab::compare::CompareError;
use equipoise_lab::scenario::{OverrideProblem, ScenarioError, SwapError};
use equipoise_lab::sim::SimError;
use equipoise_lab::suite::SuiteError;
use equipoise_lab::sweep::{PointError, SweepError};
use thiserror::Error;

#[cfg(feature = "papers")]
pub(crate) use paper::PaperError;
#[cfg(feature = "live")]
pub(crate) use real::RealError;

/// Why the command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// The scenario cannot be read, or is invalid.
    #[error("{}", file.display())]
    Scenario {
        /// The scenario's file.
        file: PathBuf,
        /// What is wrong with the scenario.
        source: ScenarioError,
    },
    /// A value of `--set` is not valid in the scenario.
    #[error("{}\n  --set '{set}': {problem}", file.display())]
    Set {
        /// The scenario's file.
        file: PathBuf,
        /// The value of `--set`, as the user wrote it.
        set: String,
        /// What is wrong with the value, and which values are valid.
        problem: Box<OverrideProblem>,
    },
    /// `compare` cannot replace the controller in the scenario.
    #[error("{}", file.display())]
    Swap {
        /// The scenario's file.
        file: PathBuf,
        /// Why the controller cannot be replaced.
        source: SwapError,
    },
    /// The arguments of `compare` are neither several files nor one file with several controllers.
    #[error("compare either several files, or one file with several controllers, but not {files} and {controllers}")]
    Variants {
        /// The number of files that were given, as text, for example `2 files`.
        files: String,
        /// The number of controllers that were given, as text, for example `1 controller`.
        controllers: String,
    },
    /// The variants of a comparison cannot be compared.
    #[error("the variants cannot be compared")]
    Compare(#[source] CompareError),
    /// A suite cannot be run.
    #[error("the suite cannot be run")]
    Suite(#[source] SuiteError),
    /// A sweep cannot be run or merged.
    #[error("the sweep cannot be run")]
    Sweep(#[source] SweepError),
    /// An output that can record only one run was requested, but several scenario files are given.
    #[error("--trace, --log, --packets-csv, --qlog and --pcapng need a single run, but several files are given")]
    TraceOfSeveral,
    /// `--check` was given, but no session of the scenario has a target delay.
    #[error("--check has nothing to check: no session of {} has a target", file.display())]
    NothingToCheck {
        /// The scenario's file.
        file: PathBuf,
    },
    /// The simulator refused the scenario.
    #[error("the simulated run failed")]
    Sim(#[from] SimError),
    /// An output file, an output folder or the socket of `--rate-socket` cannot be created. This is detected before the
    /// first run or session.
    #[error("cannot write {}", path.display())]
    Output {
        /// The path of the output file.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// An output file was created, but an error occurred while it was written.
    #[error("cannot write {}", path.display())]
    Lost {
        /// The path of the output file; `-` for standard output.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// A paper's experiment or a capture failed.
    #[cfg(feature = "papers")]
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// An operation with real packets failed.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Real(#[from] RealError),
    /// The program cannot install its handler for Ctrl-C.
    #[cfg(feature = "live")]
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
}

impl CliError {
    /// Whether the only error is that the reader of standard output closed the pipe, as `head` does. For this error, no
    /// message is printed.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        match self {
            Self::Lost { path, source } => path.as_os_str() == "-" && source.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }

    /// Returns the exit code of the error's class.
    pub(crate) fn exit_code(&self) -> u8 {
        /// The exit status that shells report for a process that SIGPIPE ended: 128 plus the signal's number, 13.
        const CLOSED_PIPE: u8 = 141;
        match self {
            closed if closed.is_closed_pipe() => CLOSED_PIPE,
            Self::NothingToCheck { .. } | Self::TraceOfSeveral | Self::Variants { .. } => 2,
            Self::Sim(error) | Self::Compare(CompareError::Run(error)) | Self::Suite(SuiteError::Run(error)) => {
                of_sim(error)
            }
            Self::Suite(
                SuiteError::UnknownCase { .. }
                | SuiteError::UnknownVariant { .. }
                | SuiteError::UnknownController { .. }
                | SuiteError::NoController,
            ) => 2,
            Self::Compare(CompareError::Sim { source, .. }) => of_sim(source),
            Self::Sweep(error) => of_sweep(error),
            Self::Scenario { .. } | Self::Set { .. } | Self::Swap { .. } | Self::Compare(_) | Self::Suite(_) => 3,
            Self::Output { .. } | Self::Lost { .. } => 5,
            #[cfg(feature = "papers")]
            Self::Paper(error) => error.exit_code(),
            #[cfg(feature = "live")]
            Self::Real(error) => error.exit_code(),
            #[cfg(feature = "live")]
            Self::Signal(_) => 1,
        }
    }

    /// Returns advice on what the user can do about the error, if there is any.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Scenario { source: ScenarioError::Read(_), .. } => {
                Some("name the path of a scenario file, such as scenarios/demo.toml")
            }
            Self::Scenario { .. } => Some("`equipoise check FILE` explains a scenario without running it"),
            Self::Output { .. } => Some("nothing was run; name a file in a folder that exists and is writable"),
            Self::NothingToCheck { .. } => {
                Some("a session has a target if its controller takes one: `equipoise controllers` lists them")
            }
            Self::Lost { .. } => {
                Some("the run took place, but this file lacks its results; make room for them and run it again")
            }
            Self::Set { .. } => Some(
                "KEY is the path of a key in the file, such as duration, link.NAME.rate or flow.NAME.controller.PARAMETER",
            ),
            Self::Swap { source: SwapError::WhichFlow { .. }, .. } | Self::Compare(CompareError::WhichFlow { .. }) => {
                Some("name the flow with --flow NAME")
            }
            Self::Swap { .. } => Some("`equipoise controllers` lists all controllers with their parameters"),
            Self::Suite(SuiteError::UnknownCase { .. } | SuiteError::UnknownVariant { .. }) => {
                Some("`equipoise suite rfc8867 --help` lists all cases with their variants")
            }
            Self::Suite(SuiteError::UnknownController { .. } | SuiteError::NothingRuns { .. }) => {
                Some("`equipoise controllers` lists all controllers with their parameters")
            }
            Self::Suite(_) => None,
            Self::Sweep(error) => hint_of_sweep(error),
            Self::Variants { .. } => Some("for example: equipoise compare scenarios/demo.toml --controller ap,aimd"),
            Self::Sim(_) | Self::Compare(_) | Self::TraceOfSeveral => None,
            #[cfg(feature = "papers")]
            Self::Paper(error) => error.hint(),
            #[cfg(feature = "live")]
            Self::Real(error) => error.hint(),
            #[cfg(feature = "live")]
            Self::Signal(_) => None,
        }
    }
}

/// Returns the exit code for an error of the simulator.
const fn of_sim(error: &SimError) -> u8 {
    if matches!(error, SimError::OverBudget(_)) { 3 } else { 1 }
}

/// Returns the exit code for an error of a sweep.
fn of_sweep(error: &SweepError) -> u8 {
    match error {
        SweepError::Run(error) => of_sim(error),
        SweepError::Incomplete { .. } => 1,
        SweepError::File { .. } | SweepError::Output(_) | SweepError::Csv(_) | SweepError::Parquet(_) => 5,
        SweepError::Point { source, .. } => match source.as_ref() {
            PointError::Sim(error) => of_sim(error),
            _ => 3,
        },
        SweepError::NoFlow { .. }
        | SweepError::Manifest { .. }
        | SweepError::OtherVersion { .. }
        | SweepError::StrangePart { .. } => 3,
        _ => 2,
    }
}

const fn hint_of_sweep(error: &SweepError) -> Option<&'static str> {
    match error {
        SweepError::OtherSweep { .. } | SweepError::OtherVersion { .. } | SweepError::StrangePart { .. } => {
            Some("name another folder for another sweep; repeat the same command to continue a sweep")
        }
        SweepError::NoSweep { .. } => Some("name the scenario files to start a sweep"),
        SweepError::Incomplete { .. } => {
            Some("`equipoise sweep --out DIR`, without --merge and --csv, runs what is missing")
        }
        SweepError::Point { .. } => Some(
            "KEY is the path of a key in the file, such as duration, link.NAME.rate or flow.NAME.controller.PARAMETER",
        ),
        _ => None,
    }
}
