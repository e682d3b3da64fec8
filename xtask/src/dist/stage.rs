//! Collects the files of the command `equipoise` in a folder with the layout of an installation prefix, such as `/usr`.

use std::fs;
use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::{Dist, make_anew};
use crate::error::Error;
use crate::process::Process;

/// Shells, each with the path of its completion script below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/equipoise"),
    ("zsh", "share/zsh/vendor-completions/_equipoise"),
    ("fish", "share/fish/vendor_completions.d/equipoise.fish"),
];
/// The documents that are installed, as paths in the repository.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "SECURITY.md"];

/// Copies the command `program` into a folder, with its manual pages, shell completions, documents and example
/// scenarios. Returns the folder.
pub(super) fn command(dist: &Dist<'_>, machine: Machine, program: &Path) -> Result<PathBuf, Error> {
    let tree = dist.work.join(format!("equipoise-{}-{}", dist.version, machine.name()));
    make_anew(&tree)?;
    place(program, &tree.join("bin/equipoise"))?;
    for name in DOCUMENTS {
        place(&dist.workspace.path(name), &tree.join("share/doc/equipoise").join(name))?;
    }
    for scenario in dist.workspace.files("scenarios", "toml")? {
        let name = scenario.strip_prefix(dist.workspace.path("scenarios")).unwrap_or(&scenario).to_path_buf();
        place(&scenario, &tree.join("share/equipoise/scenarios").join(name))?;
    }
    // Manual pages and completions are the same for all architectures, so the command for this machine writes them.
    let here = dist.program(dist.here);
    let pages = tree.join("share/man/man1");
    Process::new(&here).argument("man").argument(&pages).run()?;
    Process::new("gzip").arguments(["-n9", "--recursive"]).argument(&pages).run()?;
    for (shell, path) in COMPLETIONS {
        let script = Process::new(&here).arguments(["completions", shell]).output()?;
        write(&tree.join(path), &script)?;
    }
    Ok(tree)
}

/// Copies a file, and creates the destination folder if it is missing.
pub(super) fn place(from: &Path, to: &Path) -> Result<(), Error> {
    make_parent(to)?;
    fs::copy(from, to).map_err(|source| Error::File { verb: "copy", path: from.to_path_buf(), source })?;
    Ok(())
}

/// Writes a file, and creates its folder if it is missing.
pub(super) fn write(to: &Path, content: &str) -> Result<(), Error> {
    make_parent(to)?;
    fs::write(to, content).map_err(|source| Error::File { verb: "write", path: to.to_path_buf(), source })
}

fn make_parent(path: &Path) -> Result<(), Error> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(|source| Error::File { verb: "create", path: parent.to_path_buf(), source })
}
