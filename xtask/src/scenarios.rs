//! Checks every scenario file in `scenarios/` with the command `equipoise check`.

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// Checks all scenario files in `scenarios/`.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let command = workspace.build_command()?;
    let files = workspace.files("scenarios", "toml")?;
    if files.is_empty() {
        return Err(Error::NothingToCheck { folder: "scenarios" });
    }
    for file in &files {
        Process::new(&command).argument("check").argument(file).run()?;
    }
    println!("{} scenarios are well formed", files.len());
    Ok(())
}
