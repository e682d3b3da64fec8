//! Checks that code without a need for Linux compiles for other systems: the simulator, the papers, the report and the
//! command without `live`.

use crate::error::Error;
use crate::workspace::Workspace;

/// A target for macOS and one for Windows.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks all targets whose standard library can be installed; returns those that were skipped.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<&'static str>, Error> {
    let mut missing = Vec::new();
    for target in TARGETS {
        // Without rustup no target can be added; if it is installed already, this is fast.
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
