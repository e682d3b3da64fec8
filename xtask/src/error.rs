use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

/// Errors of subcommands.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The subcommand or its arguments are unknown.
    #[error("`{found}` is not a command; `./x --help` lists them")]
    Usage {
        /// The given arguments.
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
        /// Its exit status.
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
    /// Cites are unknown or not in the standard form.
    #[error("{count} cites are unknown or malformed; the known ones are in xtask/src/cites/known.rs")]
    Cites {
        /// The number of these cites.
        count: usize,
    },
    /// Phrases are hard to read.
    #[error("{count} phrases are hard to read; the list is in xtask/src/cites/words.rs")]
    Phrases {
        /// The number of these phrases.
        count: usize,
    },
    /// Generated pages are not up to date.
    #[error("{} stale; run `cargo xtask generate`", pages.join(", "))]
    Stale {
        /// The pages.
        pages: Vec<String>,
    },
    /// A page lacks the markers for its results.
    #[error(
        "{page} has no place for its results; it begins with `<!-- results {name} -->` and ends with `<!-- end of results -->`"
    )]
    NoPlace {
        /// The page.
        page: String,
        /// The name of the results.
        name: String,
    },
    /// A folder contains nothing to check.
    #[error("`{folder}` contains no file to check")]
    NothingToCheck {
        /// The folder.
        folder: &'static str,
    },
    /// The report is not valid JSON.
    #[error("{} is not well-formed JSON", path.display())]
    Json {
        /// The report.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The report lacks required data.
    #[error("{}: {missing}", path.display())]
    Report {
        /// The report.
        path: PathBuf,
        /// The description of the missing data.
        missing: &'static str,
    },
    /// A test was skipped for a reason that is not permitted on this machine.
    #[error("skipped, and not on the list in {list}:\n  {}", skipped.join("\n  "))]
    Skipped {
        /// The list of permitted reasons.
        list: &'static str,
        /// The tests' messages.
        skipped: Vec<String>,
    },
    /// An example received different data than was sent.
    #[error("{sender} sent {} bytes, but {receiver} received {received} different bytes", sent)]
    Received {
        /// The sending example.
        sender: &'static str,
        /// The receiving example.
        receiver: &'static str,
        /// Bytes sent.
        sent: usize,
        /// Bytes received.
        received: usize,
    },
    /// The encoder example sent too little.
    #[error("{bytes} bytes of the encoder's video arrived; at least {least} bytes were expected")]
    Video {
        /// Bytes received.
        bytes: u64,
        /// The minimum amount for an encoder at its initial rate.
        least: u64,
    },
    /// An example does not listen for connections.
    #[error("the {receiver} example does not listen on port {port}")]
    Deaf {
        /// The example.
        receiver: &'static str,
        /// Its port.
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
    /// A file is too large.
    #[error("{} has {size} bytes, but at most {most} bytes are allowed", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The size of the file in bytes.
        size: u64,
        /// The maximum size in bytes.
        most: u64,
    },
    /// Distributions must be tested on the machine that builds them, and this machine has another architecture.
    #[error("distributions are for x86_64 and aarch64 and must be built on one of these; this machine is {found}")]
    OtherMachine {
        /// The architecture of this machine.
        found: &'static str,
    },
    /// The output of a distributed command differs from that on other machines.
    #[error("the command in {} prints different output than those of other machines", tree.display())]
    OtherBytes {
        /// The folder of the command.
        tree: PathBuf,
    },
    /// A tool is missing.
    #[error("{task} needs {tool}; install it with `{remedy}`")]
    Tool {
        /// The task that needs it.
        task: &'static str,
        /// The missing tool.
        tool: &'static str,
        /// The command that installs it.
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
    /// Another simulator printed something other than one row.
    #[error("{peer} with `{arguments}` printed `{found}`: want one row of values, `{columns}` but the last")]
    PeerRow {
        /// The simulator.
        peer: &'static str,
        /// The simulator's arguments.
        arguments: String,
        /// The simulator's output.
        found: String,
        /// The columns of the CSV.
        columns: &'static str,
    },
}
