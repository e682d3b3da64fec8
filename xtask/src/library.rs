//! Generates the headers of the C library, and installs the library.

mod check;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::dist::Machine;
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

pub(crate) use check::check;

/// Path of the library's crate in the workspace.
const PACKAGE: &str = "crates/equipoise-c";
/// For each C header: its file name, the configuration file of cbindgen, and the Rust modules whose functions the
/// header declares.
const HEADERS: [(&str, &str, &[&str]); 2] = [
    (
        "equipoise.h",
        "cbindgen.toml",
        &["version", "error", "time", "catalogue", "controller/mod", "pacer", "media/mod"],
    ),
    ("equipoise_pair.h", "cbindgen_pair.toml", &["pair/mod"]),
];
/// The soname of the shared library. The library's build script sets it.
const SONAME: &str = "libequipoise.so.0";
/// System libraries that programs with the static library must also link (`rustc --print native-static-libs`).
const SYSTEM_LIBRARIES: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl";

/// How the library is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// With the profile of the tests.
    Debug,
    /// Optimised, for this machine.
    Release,
    /// Optimised for an architecture, without debug symbols.
    For(Machine),
}

/// Generates the headers. Returns, for each header, the path of the file in the workspace and the content.
pub(crate) fn headers(workspace: &Workspace) -> Result<Vec<(String, String)>, Error> {
    let header = |(name, settings, modules): (&str, &str, &[&str])| {
        let path = |name: &str| workspace.path(format!("{PACKAGE}/{name}"));
        let run = workspace.cargo(["run", "--quiet", "--package", "header", "--"]).argument(path(settings));
        let sources = modules.iter().map(|module| path(&format!("src/{module}.rs")));
        Ok((format!("{PACKAGE}/include/{name}"), run.arguments(sources).output()?))
    };
    HEADERS.into_iter().map(header).collect()
}

/// Builds the library. Installs the library, its headers and its pkg-config file below `prefix`.
pub(crate) fn install(workspace: &Workspace, build: Build, prefix: &Path) -> Result<(), Error> {
    let folder = match build {
        // Also build an example, because Cargo then enables the features of the dev-dependencies, as it does for
        // tests. Otherwise, Cargo would compile the dependencies twice, with different features.
        Build::Debug => {
            workspace.cargo(["build", "--lib", "--example", "scenario"]).run()?;
            workspace.target("debug")
        }
        Build::Release => {
            workspace.cargo(["build", "--release", "--package", "equipoise-c"]).run()?;
            workspace.target("release")
        }
        Build::For(machine) => machine.build(workspace, "equipoise-c", &[])?,
    };
    let version = version(workspace)?;
    for folder in ["include", "lib/pkgconfig"] {
        let path = prefix.join(folder);
        fs::create_dir_all(&path).map_err(|source| Error::File { verb: "make", path, source })?;
    }
    for (name, ..) in HEADERS {
        copy(&workspace.path(format!("{PACKAGE}/include/{name}")), &prefix.join("include").join(name))?;
    }
    let (lib, real) = (prefix.join("lib"), format!("libequipoise.so.{version}"));
    copy(&folder.join("libequipoise.a"), &lib.join("libequipoise.a"))?;
    copy(&folder.join("libequipoise.so"), &lib.join(&real))?;
    if let Build::For(machine) = build {
        machine.strip(&folder.join("libequipoise.so"), &lib.join(&real))?;
    }
    // The first symbolic link is for the dynamic linker, and the second is for the linker of a compiler.
    link(&real, &lib.join(SONAME))?;
    link(SONAME, &lib.join("libequipoise.so"))?;
    let path = lib.join("pkgconfig/equipoise.pc");
    fs::write(&path, package_config(&version)).map_err(|source| Error::File {
        verb: "write",
        path: path.clone(),
        source,
    })?;
    println!("{}", path.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    // Remove the old file first. If an existing library were overwritten, it would also change in running programs that
    // use it.
    remove_if_there(to)?;
    fs::copy(from, to).map_err(|source| Error::File { verb: "copy", path: from.to_path_buf(), source })?;
    println!("{}", to.display());
    Ok(())
}

fn link(target: &str, at: &Path) -> Result<(), Error> {
    remove_if_there(at)?;
    symlink(target, at).map_err(|source| Error::File { verb: "link", path: at.to_path_buf(), source })?;
    println!("{} -> {target}", at.display());
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::File { verb: "remove", path: path.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

/// Returns the version of the workspace.
pub(crate) fn version(workspace: &Workspace) -> Result<String, Error> {
    let package = workspace.cargo(["pkgid", "--package", "equipoise-c"]).output()?;
    // The output is, for example, `path+file:///…/crates/equipoise-c#0.1.0`.
    Ok(package.trim().rsplit(['#', '@']).next().unwrap_or_default().to_owned())
}

/// Returns the text of a pkg-config file. The file stays valid if the installation folder is moved.
fn package_config(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\n\
         Name: libequipoise\n\
         Description: End-to-end rate control for real-time media\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lequipoise\n\
         Libs.private: {SYSTEM_LIBRARIES}\n"
    )
}

/// Returns the flags that pkg-config prints for `packages`. One of the packages is the library installed below
/// `prefix`.
fn flags(prefix: &Path, asked: &[&str], packages: &[&str]) -> Result<Vec<String>, Error> {
    let run = Process::new("pkg-config").variable("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let said = run.arguments(asked).arguments(packages).output()?;
    Ok(said.split_whitespace().map(str::to_owned).collect())
}
