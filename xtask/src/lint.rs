//! Static checks: format, clippy, documentation, cites and phrases.

use crate::cites;
use crate::error::Error;
use crate::workspace::Workspace;

/// Non-default features of `equipoise-quic`.
const BOTH_STACKS: &str = "equipoise-quic/quinn";

/// Runs all checks.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    workspace.cargo(["fmt", "--all", "--check"]).run()?;
    // This includes examples that are otherwise built only by name, and the fuzz targets without the fuzzer.
    let all = ["clippy", "--workspace", "--all-targets", "--features", BOTH_STACKS, "--", "-D", "warnings"];
    workspace.cargo(all).run()?;
    for features in ["papers", "live,papers"] {
        let bare = ["clippy", "-p", "equipoise-cli", "--bins", "--no-default-features", "--features", features];
        workspace.cargo(bare).arguments(["--", "-D", "warnings"]).run()?;
    }
    // Only Rust libraries: the command is documented by its help, and the C library by its header. Both have the same
    // name as the crate `equipoise`.
    let doc = ["doc", "--workspace", "--exclude", "equipoise-c", "--no-deps", "--lib", "--features", BOTH_STACKS];
    workspace.cargo(doc).variable("RUSTDOCFLAGS", "-D warnings").run()?;
    cites::run(workspace)
}
