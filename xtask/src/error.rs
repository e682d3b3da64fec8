use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

/// Why a subcommand failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// There is no such subcommand, or not with these arguments.
    #[error("`{found}` is not a command; `./x --help` lists them")]
    Usage {
        /// What was asked for.
        found: String,
    },
    /// A program cannot be started.
    #[error("cannot start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {status}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// What was to be done.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Some cites are not known or not in the one form.
    #[error("{count} cites are strangers or malformed; the known ones stand in xtask/src/cites/known.rs")]
    Cites {
        /// How many.
        count: usize,
    },
    /// Generated pages differ from what would be generated.
    #[error("{} stale; run `cargo xtask generate`", pages.join(", "))]
    Stale {
        /// The pages.
        pages: Vec<String>,
    },
    /// A page says nowhere where its results stand.
    #[error(
        "{page} has no place for its results; it begins with `<!-- results {name} -->` and ends with `<!-- end of results -->`"
    )]
    NoPlace {
        /// The page.
        page: String,
        /// The name of the results.
        name: String,
    },
    /// A folder holds nothing that could be checked.
    #[error("`{folder}` holds no file to check")]
    NothingToCheck {
        /// The folder.
        folder: &'static str,
    },
    /// The report is no JSON.
    #[error("{} is not well-formed JSON", path.display())]
    Json {
        /// The report.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The report lacks something.
    #[error("{}: {missing}", path.display())]
    Report {
        /// The report.
        path: PathBuf,
        /// What it lacks.
        missing: &'static str,
    },
    /// A test was skipped that has to run there.
    #[error("skipped, and not on the list in {list}:\n  {}", skipped.join("\n  "))]
    Skipped {
        /// The list of those that may be skipped.
        list: &'static str,
        /// What the tests said.
        skipped: Vec<String>,
    },
    /// What an example received is not what the other sent.
    #[error("{sender} sent {} bytes, and {receiver} received {received} others", sent)]
    Received {
        /// Which example sent.
        sender: &'static str,
        /// Which example received.
        receiver: &'static str,
        /// Bytes that were sent.
        sent: usize,
        /// Bytes that came.
        received: usize,
    },
    /// The encoder's example sent too little.
    #[error("{bytes} bytes of the encoder's video arrived; {least} at least should have")]
    Video {
        /// What arrived.
        bytes: u64,
        /// What an encoder at its first rate gives.
        least: u64,
    },
    /// An example does not listen.
    #[error("the {receiver} example does not listen at port {port}")]
    Deaf {
        /// Which example.
        receiver: &'static str,
        /// Where it should.
        port: u16,
    },
    /// Something of the nightly run failed.
    #[error("failed: {}", failed.join(", "))]
    Nightly {
        /// The parts.
        failed: Vec<String>,
    },
    /// A program needs a newer C library than the oldest system that it is for has.
    #[error("{} needs version {found} of the C library, and {most} is the newest that it may need; build it on Debian 12", program.display())]
    TooNew {
        /// The program.
        program: PathBuf,
        /// The version that it needs.
        found: String,
        /// The newest version that it may need.
        most: String,
    },
    /// A file is larger than it may be.
    #[error("{} has {size} bytes, and {most} are the most that it may have", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The most that it may have.
        most: u64,
    },
    /// Distributions are tried where they are made, and this machine is of another kind.
    #[error("distributions are for x86_64 and aarch64, and are made on a machine of either; this one is {found}")]
    OtherMachine {
        /// Its kind.
        found: &'static str,
    },
    /// A distributed command prints something else than that of another machine.
    #[error("the command in {} does not print what those of other machines print", tree.display())]
    OtherBytes {
        /// The tree of the command.
        tree: PathBuf,
    },
    /// Something wants a tool.
    #[error("{task} wants {tool}; install it with `{remedy}`")]
    Tool {
        /// What wants it.
        task: &'static str,
        /// What is missing.
        tool: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// An option is not known, or has no value or a wrong one.
    #[error("`{}`: want {want}", format!("{option} {found}").trim_end())]
    Option {
        /// The option.
        option: String,
        /// Its value.
        found: String,
        /// What would be right.
        want: &'static str,
    },
    /// A peer printed something else than its one row.
    #[error("{peer} with `{arguments}` printed `{found}`: want one row of values, `{columns}` but the last")]
    PeerRow {
        /// Which peer.
        peer: &'static str,
        /// With which arguments.
        arguments: String,
        /// What it printed.
        found: String,
        /// The columns of the CSV.
        columns: &'static str,
    },
}
