//! Static checks: formatting, clippy, documentation, citations, and phrases that are hard to read.

use crate::cites;
use crate::error::Error;
use crate::workspace::Workspace;

/// Feature that enables the second QUIC stack of `equipoise-quic`, in addition to the default one.
const BOTH_STACKS: &str = "equipoise-quic/quinn";

/// Runs all static checks.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    workspace.cargo(["fmt", "--all", "--check"]).run()?;
    // Check all packages, including those that are not default members. The fuzz targets compile here without
    // libFuzzer.
    let all = ["clippy", "--workspace", "--all-targets", "--features", BOTH_STACKS, "--", "-D", "warnings"];
    workspace.cargo(all).run()?;
    for features in ["papers", "live,papers"] {
        let bare = ["clippy", "-p", "equipoise-cli", "--bins", "--no-default-features", "--features", features];
        workspace.cargo(bare).arguments(["--", "-D", "warnings"]).run()?;
    }
    // `--lib` excludes the command `equipoise`, and `--exclude` the C library. Their documentation would have the same
    // path as that of the crate `equipoise`.
    let doc = ["doc", "--workspace", "--exclude", "equipoise-c", "--no-deps", "--lib", "--features", BOTH_STACKS];
    workspace.cargo(doc).variable("RUSTDOCFLAGS", "-D warnings").run()?;
    cites::run(workspace)
}
