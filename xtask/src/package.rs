//! Checks that the crates that are published on crates.io can be packaged.

use std::path::Path;

use crate::error::Error;
use crate::workspace::{self, Workspace};

/// Packages every published crate. If `verify` is set, each package is also compiled by itself, which takes minutes.
pub(crate) fn check(workspace: &Workspace, verify: bool) -> Result<(), Error> {
    let cargo = workspace.cargo(["package", "--quiet", "--allow-dirty"]);
    let cargo = if verify { cargo } else { cargo.argument("--no-verify") };
    published(workspace)?.iter().fold(cargo, |cargo, name| cargo.argument("--package").argument(name)).run()
}

/// Returns the names of the published crates. The folder of each crate has the crate's name.
fn published(workspace: &Workspace) -> Result<Vec<String>, Error> {
    let folder = workspace.path("crates");
    let mut names = Vec::new();
    for manifest in workspace.files("crates", "toml")? {
        let of_crate =
            manifest.parent().filter(|path| path.parent() == Some(&folder) && manifest.ends_with("Cargo.toml"));
        let Some(name) = of_crate.and_then(Path::file_name) else { continue };
        if !workspace::read(&manifest)?.contains("publish = false") {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(names)
}
