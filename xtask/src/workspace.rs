use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::Process;

/// The root folder of the project, and the folder of its build results.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the workspace that contains this program's package.
    pub(crate) fn find() -> Result<Self, Error> {
        // At run time, Cargo sets `CARGO_MANIFEST_DIR` to the package's folder. The folder at compile time may be in
        // another checkout.
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let path = Path::new(&package).join("..");
        let root = fs::canonicalize(&path).map_err(|source| Error::File { verb: "find", path, source })?;
        // Make a relative `CARGO_TARGET_DIR` absolute. It is relative to the caller's folder, but child processes run
        // in the workspace's root.
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(target) => {
                let path = PathBuf::from(target);
                std::path::absolute(&path).map_err(|source| Error::File { verb: "find", path, source })?
            }
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// Returns the absolute path of a file or folder in the workspace.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the absolute path of a file or folder in the target folder.
    pub(crate) fn target(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.target.join(relative)
    }

    /// Returns the path relative to the root of the workspace.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// Returns a process that runs cargo in the workspace's root. Uses the cargo that started this program, if any.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Process {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        self.program(cargo).arguments(arguments)
    }

    /// Returns a process of any program. It runs in the workspace's root, with `CARGO_TARGET_DIR` set to the target
    /// folder.
    ///
    /// The environment variables that Cargo sets for the package `xtask` are removed. Some build scripts, such as that
    /// of the crate ring, run again when these variables change. Crates would then be compiled again whenever the user
    /// changes between `xtask` and cargo.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Process {
        let process = Process::new(program).folder(&self.root).variable("CARGO_TARGET_DIR", &self.target);
        let told = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let of_package = |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        told.filter(of_package).fold(process, |process, name| process.without(&name))
    }

    /// Builds the command `equipoise` with the profile of the tests, and returns its path.
    pub(crate) fn build_command(&self) -> Result<PathBuf, Error> {
        // Also build an example, because Cargo then enables the features of the dev-dependencies, as it does for
        // tests. Otherwise, Cargo would compile the libraries twice, with different features.
        self.cargo(["build", "--quiet", "--bin", "equipoise", "--example", "scenario"]).run()?;
        Ok(self.target.join("debug/equipoise"))
    }

    /// Builds an example of a default member, with the same features as in the tests, and returns its path.
    pub(crate) fn build_example(&self, name: &str) -> Result<PathBuf, Error> {
        self.cargo(["build", "--quiet", "--example", name]).run()?;
        Ok(self.target("debug/examples").join(name))
    }

    /// Returns all files below `folder` with this extension, sorted by path. Folders with build results or downloaded
    /// packages, and hidden folders, are skipped.
    pub(crate) fn files(&self, folder: &str, extension: &str) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        let mut folders = vec![self.path(folder)];
        while let Some(path) = folders.pop() {
            let unreadable = |source| Error::File { verb: "read", path: path.clone(), source };
            for entry in fs::read_dir(&path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                let is_foreign = ["target", "node_modules"].iter().any(|foreign| name == *foreign);
                if entry.path().is_dir() && !is_foreign && !name.to_string_lossy().starts_with('.') {
                    folders.push(entry.path());
                } else if entry.path().extension() == Some(OsStr::new(extension)) {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { verb: "read", path: path.to_path_buf(), source })
}
