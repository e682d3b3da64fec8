//! Checks that code that does not need Linux compiles for other systems: the simulator, the papers, the report and the
//! command without the feature `live`.

use crate::error::Error;
use crate::workspace::Workspace;

/// A macOS target and a Windows target.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks all targets whose standard library can be installed; returns the targets that were skipped.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<&'static str>, Error> {
    let mut missing = Vec::new();
    for target in TARGETS {
        // This fails without rustup. It is fast if the target is already installed.
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
