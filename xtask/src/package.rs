//! Checks that the published crates can be packaged.

use std::path::Path;

use crate::error::Error;
use crate::workspace::{self, Workspace};

/// Packages every published crate. With `verify`, each package is also compiled on its own, which takes minutes.
pub(crate) fn check(workspace: &Workspace, verify: bool) -> Result<(), Error> {
    let cargo = workspace.cargo(["package", "--quiet", "--allow-dirty"]);
    let cargo = if verify { cargo } else { cargo.argument("--no-verify") };
    published(workspace)?.iter().fold(cargo, |cargo, name| cargo.argument("--package").argument(name)).run()
}

/// Names of the published crates; each crate's folder has its name.
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
