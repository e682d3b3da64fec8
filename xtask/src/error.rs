use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

/// Errors of the subcommands of `xtask`.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The subcommand or its arguments are unknown.
    #[error("`{found}` is not a command; `./x --help` lists them")]
    Usage {
        /// The arguments from the command line.
        found: String,
    },
    /// A program cannot be started.
    #[error("cannot start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {status}")]
    Failed {
        /// The command line.
        command: String,
        /// The exit status of the program.
        status: ExitStatus,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// The operation.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Cites name an unknown source or are not in the standard form.
    #[error("{count} cites are unknown or malformed; the known ones are in xtask/src/cites/known.rs")]
    Cites {
        /// The number of wrong cites.
        count: usize,
    },
    /// The text contains phrases from the list of phrases that are hard to read.
    #[error("{count} phrases are hard to read; the list is in xtask/src/cites/words.rs")]
    Phrases {
        /// The number of phrases found.
        count: usize,
    },
    /// Generated files differ from the content that would be generated now.
    #[error("{} stale; run `cargo xtask generate`", pages.join(", "))]
    Stale {
        /// The paths of the outdated files.
        pages: Vec<String>,
    },
    /// A page lacks the markers between which generated results are inserted.
    #[error(
        "{page} has no place for its results; it begins with `<!-- results {name} -->` and ends with `<!-- end of results -->`"
    )]
    NoPlace {
        /// The page.
        page: String,
        /// The name in the page's comment `<!-- results NAME -->`, after which generated results are inserted.
        name: String,
    },
    /// A folder contains no file that can be checked.
    #[error("`{folder}` contains no file to check")]
    NothingToCheck {
        /// The folder.
        folder: &'static str,
    },
    /// A file is not valid JSON.
    #[error("{} is not well-formed JSON", path.display())]
    Json {
        /// The path of the file.
        path: PathBuf,
        /// The JSON parser's error.
        source: serde_json::Error,
    },
    /// A report that the command `equipoise` wrote lacks required data.
    #[error("{}: {missing}", path.display())]
    Report {
        /// The path of the report.
        path: PathBuf,
        /// A description of the missing data.
        missing: &'static str,
    },
    /// A test was skipped for a reason that is not in the list of permitted reasons.
    #[error("skipped, and not on the list in {list}:\n  {}", skipped.join("\n  "))]
    Skipped {
        /// The file with the permitted reasons.
        list: &'static str,
        /// The messages of the skipped tests.
        skipped: Vec<String>,
    },
    /// An example program received other data than was sent.
    #[error("{sender} sent {} bytes, but {receiver} received {received} different bytes", sent)]
    Received {
        /// The name of the sending program.
        sender: &'static str,
        /// The name of the receiving program.
        receiver: &'static str,
        /// Number of bytes sent.
        sent: usize,
        /// Bytes received.
        received: usize,
    },
    /// The encoder example sent less data than expected.
    #[error("{bytes} bytes of the encoder's video arrived; at least {least} bytes were expected")]
    Video {
        /// Bytes received.
        bytes: u64,
        /// The minimum number of bytes expected: the encoder's initial rate, multiplied by the duration.
        least: u64,
    },
    /// An example program does not listen for connections.
    #[error("the {receiver} example does not listen on port {port}")]
    Deaf {
        /// The name of the program.
        receiver: &'static str,
        /// The port at which the program should listen.
        port: u16,
    },
    /// A part of the nightly run failed.
    #[error("failed: {}", failed.join(", "))]
    Nightly {
        /// The failed parts.
        failed: Vec<String>,
    },
    /// A program needs a newer C library than the oldest supported system has.
    #[error("{} needs version {found} of the C library, but {most} is the newest permitted one; build it on Debian 12", program.display())]
    TooNew {
        /// The program.
        program: PathBuf,
        /// The version that the program needs.
        found: String,
        /// The newest permitted version.
        most: String,
    },
    /// A built file is larger than allowed.
    #[error("{} has {size} bytes, but at most {most} bytes are allowed", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The size of the file in bytes.
        size: u64,
        /// The maximum size in bytes.
        most: u64,
    },
    /// Distributions cannot be built on this machine, because none exists for the machine's architecture.
    #[error("distributions are for x86_64 and aarch64 and must be built on one of these; this machine is {found}")]
    OtherMachine {
        /// The architecture of this machine.
        found: &'static str,
    },
    /// The distributed command for one architecture prints different output than the one for this machine.
    #[error("the command in {} prints different output than those of other machines", tree.display())]
    OtherBytes {
        /// The folder with the distribution whose command prints different output.
        tree: PathBuf,
    },
    /// A tool is missing.
    #[error("{task} needs {tool}; install it with `{remedy}`")]
    Tool {
        /// The task that needs the tool.
        task: &'static str,
        /// The missing tool.
        tool: &'static str,
        /// The command that installs the tool.
        remedy: &'static str,
    },
    /// An option is unknown, or its value is missing or invalid.
    #[error("`{}` is invalid; use {want}", format!("{option} {found}").trim_end())]
    Option {
        /// The option.
        option: String,
        /// The value of the option.
        found: String,
        /// The valid values.
        want: &'static str,
    },
    /// Another simulator did not print exactly one valid row of results.
    #[error("{peer} with `{arguments}` printed `{found}`: want one row of values, `{columns}` but the last")]
    PeerRow {
        /// The simulator.
        peer: &'static str,
        /// The simulator's arguments.
        arguments: String,
        /// The simulator's output.
        found: String,
        /// The columns of the CSV file.
        columns: &'static str,
    },
}
