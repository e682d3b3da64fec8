//! What is found without running anything: format, clippy, documentation, sources.

use crate::cites;
use crate::error::Error;
use crate::workspace::Workspace;

/// What `equipoise-quic` leaves out by default.
const BOTH_STACKS: &str = "equipoise-quic/quinn";

/// Runs all of it.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    workspace.cargo(["fmt", "--all", "--check"]).run()?;
    // Examples that are built by name are among them, and the fuzz targets as they are without the fuzzer.
    let all = ["clippy", "--workspace", "--all-targets", "--features", BOTH_STACKS, "--", "-D", "warnings"];
    workspace.cargo(all).run()?;
    for features in ["papers", "live,papers"] {
        let bare = ["clippy", "-p", "equipoise-cli", "--bins", "--no-default-features", "--features", features];
        workspace.cargo(bare).arguments(["--", "-D", "warnings"]).run()?;
    }
    // Libraries for Rust only: the command's documentation is its help, C's its header, and both share their names with the core.
    let doc = ["doc", "--workspace", "--exclude", "equipoise-c", "--no-deps", "--lib", "--features", BOTH_STACKS];
    workspace.cargo(doc).variable("RUSTDOCFLAGS", "-D warnings").run()?;
    cites::run(workspace)
}
