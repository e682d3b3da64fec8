//! What needs no Linux compiles for other systems: the simulator, the papers, the report and the command without `live`.

use crate::error::Error;
use crate::workspace::Workspace;

/// A desk with macOS and one with Windows.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks all targets whose standard library is installed or can be had; returns those that were passed over.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<&'static str>, Error> {
    let mut missing = Vec::new();
    for target in TARGETS {
        // Without rustup nothing can be added, and with it an installed target is a moment's work.
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
