//! Checks that the simulator, the papers, the reports and the command without the feature `live` compile for other
//! operating systems, because they do not need Linux.

use crate::error::Error;
use crate::workspace::Workspace;

/// The Rust targets for macOS and Windows that are checked.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks all targets whose standard library can be installed. Returns the other targets, which were skipped.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<&'static str>, Error> {
    let mut missing = Vec::new();
    for target in TARGETS {
        // This call fails if rustup is not installed, and takes little time if the target is already installed.
        if !workspace.program("rustup").arguments(["target", "add", target]).succeeds() {
            missing.push(target);
            continue;
        }
        let check =
            ["check", "--package", "equipoise-cli", "--no-default-features", "--features", "papers", "--target"];
        workspace.cargo(check).argument(target).run()?;
    }
    Ok(missing)
}
