//! Builds the distributions, which users can install without a compiler: archives, Debian packages, container images
//! and the library for C. A separate command builds the wheels for Python.
//!
//! The programs are linked with this machine's C library (glibc), so they may not run on systems with an older version.
//! Therefore, build distributions on Debian 12, the oldest supported system.

mod container;
mod debian;
mod machine;
mod stage;
mod trial;

use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::error::Error;
use crate::library::{self, Build};
use crate::process::Process;
use crate::python;
use crate::workspace::Workspace;
pub(crate) use machine::{Machine, PROFILE};

/// The newest version of the C library (glibc) that a distributed program may need: that of Debian 12.
const NEWEST_GLIBC: (u32, u32) = (2, 36);

/// Maximum size of the command `equipoise` without debug symbols, in bytes.
const MOST: u64 = 15_000_000;

/// Name of the file with the checksums of all other files.
const SUMS: &str = "SHA256SUMS";

/// The folders and the metadata of a build of distributions.
#[derive(Debug)]
struct Dist<'a> {
    workspace: &'a Workspace,
    /// The architecture of this machine.
    here: Machine,
    /// Folder for the finished files.
    out: PathBuf,
    /// Folder for intermediate files, such as the contents of archives.
    work: PathBuf,
    version: String,
    /// Time of the last commit, in seconds since 1970. It is used as the date of every file in the archives, so that
    /// builds are reproducible (<https://reproducible-builds.org/specs/source-date-epoch/>).
    date: String,
}

/// Builds all files for both architectures, lists them with their sizes, writes their checksums, and tests them.
/// Returns the sizes of the commands as text.
pub(crate) fn run(workspace: &Workspace) -> Result<String, Error> {
    let dist = Dist::new(workspace)?;
    for folder in [&dist.out, &dist.work] {
        make_anew(folder)?;
    }
    // Build for this machine's architecture first, because the built command writes the manual pages for both
    // architectures.
    let others = Machine::ALL.into_iter().filter(|machine| *machine != dist.here);
    for machine in iter::once(dist.here).chain(others) {
        println!("\n== {}", machine.name());
        dist.make(machine)?;
    }
    dist.list()?;
    let sizes = Machine::ALL.iter().map(|machine| dist.size(*machine)).collect::<Result<Vec<_>, _>>()?;
    trial::run(&dist)?;
    Ok(sizes.join(", "))
}

/// Builds the Python wheels for both architectures into the folder of the distributions. Tests the wheel for this
/// machine in an empty virtual environment.
pub(crate) fn wheels(workspace: &Workspace) -> Result<(), Error> {
    let dist = Dist::new(workspace)?;
    fs::create_dir_all(&dist.out).map_err(|source| Error::File { verb: "create", path: dist.out.clone(), source })?;
    for machine in Machine::ALL {
        println!("\n== {}", machine.name());
        dist.wheel(machine)?;
    }
    dist.list()
}

impl<'a> Dist<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self, Error> {
        let here = Machine::here().ok_or(Error::OtherMachine { found: std::env::consts::ARCH })?;
        // The folder is not `target/dist`, because Cargo uses `target/dist` for the profile `dist`.
        let (out, work) = (workspace.target("distributions"), workspace.target("dist-work"));
        let date = workspace.program("git").arguments(["log", "-1", "--format=%ct"]).output()?.trim().to_owned();
        let version = library::version(workspace)?;
        Ok(Self { workspace, here, out, work, version, date })
    }

    /// Builds all files for one architecture.
    fn make(&self, machine: Machine) -> Result<(), Error> {
        let command =
            machine.build(self.workspace, "equipoise-cli", &["--bin", "equipoise", "--features", "static"])?;
        let stripped = self.program(machine);
        machine.strip(&command.join("equipoise"), &stripped)?;
        needs_nothing_newer(&stripped)?;
        let tree = stage::command(self, machine, &stripped)?;
        self.archive(&tree)?;
        debian::package(self, machine, &tree)?;
        container::image(self, machine, &tree)?;
        let library = self.work.join(format!("libequipoise-{}-{}", self.version, machine.name()));
        library::install(self.workspace, Build::For(machine), &library)?;
        self.archive(&library)
    }

    /// Builds the Python wheel for one architecture.
    fn wheel(&self, machine: Machine) -> Result<(), Error> {
        let wheel = python::distribute(self.workspace, machine, &self.work.join(format!("wheel-{}", machine.name())))?;
        let name = wheel.file_name().unwrap_or_default();
        match wheel_glibc(&name.to_string_lossy()) {
            Some(found) if found > NEWEST_GLIBC => return Err(too_new(&wheel, found)),
            _ => stage::place(&wheel, &self.out.join(name))?,
        }
        if machine.is_here() { python::try_alone(self.workspace, &wheel) } else { Ok(()) }
    }

    /// Returns the path of the command without debug symbols for an architecture.
    fn program(&self, machine: Machine) -> PathBuf {
        self.work.join(format!("equipoise-{}", machine.name()))
    }

    /// Returns the size of the command without debug symbols, as text, or an error if the size is above [`MOST`].
    fn size(&self, machine: Machine) -> Result<String, Error> {
        let file = self.program(machine);
        let size =
            fs::metadata(&file).map_err(|source| Error::File { verb: "read", path: file.clone(), source })?.len();
        let words = format!("{} {:.1} MB", machine.name(), size as f64 / 1e6);
        println!("  the command for {words}");
        if size > MOST { Err(Error::TooLarge { file, size, most: MOST }) } else { Ok(words) }
    }

    /// Packs a folder into a compressed archive with the folder's name. The bytes of the archive depend only on the
    /// content of the folder and on `date`.
    fn archive(&self, tree: &Path) -> Result<(), Error> {
        let name = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tar = Process::new("tar").arguments(["--create", "--use-compress-program=gzip -n9", "--sort=name"]);
        let tar = tar.arguments(["--owner=0", "--group=0", "--numeric-owner"]);
        let tar = tar.argument(format!("--mtime=@{}", self.date));
        tar.argument("--file")
            .argument(self.out.join(format!("{name}.tar.gz")))
            .argument("--directory")
            .argument(&self.work)
            .argument(name)
            .run()
    }

    /// Prints the name and the size of each finished file, and writes the file of checksums.
    fn list(&self) -> Result<(), Error> {
        let failed = |source| Error::File { verb: "read", path: self.out.clone(), source };
        let mut names = Vec::new();
        println!("\n== {}", self.out.display());
        for entry in fs::read_dir(&self.out).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == SUMS {
                continue;
            }
            let size = entry.metadata().map_err(failed)?.len();
            names.push((entry.file_name(), size));
        }
        names.sort();
        for (name, size) in &names {
            println!("  {:>6.2} MB  {}", *size as f64 / 1e6, name.to_string_lossy());
        }
        let sums =
            Process::new("sha256sum").arguments(names.iter().map(|(name, _)| name)).folder(&self.out).output()?;
        let path = self.out.join(SUMS);
        fs::write(&path, sums).map_err(|source| Error::File { verb: "write", path, source })
    }
}

/// Creates an empty folder. An existing folder is removed first, with its content.
fn make_anew(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|source| Error::File {
            verb: "remove",
            path: folder.to_path_buf(),
            source,
        })?;
    }
    fs::create_dir_all(folder).map_err(|source| Error::File { verb: "create", path: folder.to_path_buf(), source })
}

/// Returns an error if a program needs a newer version of the C library than [`NEWEST_GLIBC`].
fn needs_nothing_newer(program: &Path) -> Result<(), Error> {
    let symbols = Process::new("objdump").argument("-T").argument(program).output()?;
    match newest_glibc(&symbols) {
        Some(found) if found > NEWEST_GLIBC => Err(too_new(program, found)),
        _ => Ok(()),
    }
}

fn too_new(program: &Path, found: (u32, u32)) -> Error {
    let in_words = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    Error::TooNew { program: program.to_path_buf(), found: in_words(found), most: in_words(NEWEST_GLIBC) }
}

/// Returns the version of the C library that a wheel needs. The file name that maturin chose contains this version, for
/// example as `manylinux_2_34`.
fn wheel_glibc(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.split_once("manylinux_")?.1.split('_').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Returns the newest version of the C library in `symbols`, a table of dynamic symbols from objdump.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let mut numbers = rest.split(|other: char| !other.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_is_found() {
        let symbols =
            "0000 DF *UND* 0000 (GLIBC_2.2.5) read\n0000 DF *UND* 0000 (GLIBC_2.34) dlsym\n0000 (GCC_3.0) x\n";
        assert_eq!(newest_glibc(symbols), Some((2, 34)));
        assert_eq!(newest_glibc("nothing"), None);
        assert_eq!(wheel_glibc("equipoise-0.1.0-cp311-abi3-manylinux_2_34_aarch64.whl"), Some((2, 34)));
        assert_eq!(wheel_glibc("equipoise-0.1.0-cp311-abi3-linux_aarch64.whl"), None);
    }
}
