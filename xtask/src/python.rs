//! The Python package: built as a wheel, and tried as people have it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dist::{Machine, PROFILE};
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// What builds wheels.
const MATURIN: &str = "maturin>=1.16,<2";
/// The crate, which is the package.
const PACKAGE: &str = "crates/equipoise-py";

/// How the wheel is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Profile {
    /// For people.
    Release,
    /// For CI, which has most of it built like that.
    Dev,
}

/// Builds the wheel into `target/wheels`; runs the README's code in an environment that has nothing but the wheel and what draws; then types,
/// tests and notebooks in one that is kept. `take` is given each line that the tests print.
pub(crate) fn run(workspace: &Workspace, profile: Profile, take: impl FnMut(&str)) -> Result<(), Error> {
    let python = found(workspace)?;
    let tools = Environment::kept(workspace, &python, "tools")?;
    tools.pip(["install", "--quiet", MATURIN]).run()?;
    let profile = match profile {
        Profile::Release => "release",
        Profile::Dev => "dev",
    };
    let out = workspace.target("wheels");
    let wheel = built(workspace, &out, tools.program("maturin").arguments(["build", "--profile", profile]))?;

    let fresh = Environment::fresh(workspace, &python, "fresh")?;
    fresh.pip(["install", "--quiet", "pytest", "matplotlib"]).argument(&wheel).run()?;
    fresh.tests(&["tests/test_readme.py"]).run()?;

    let whole = Environment::kept(workspace, &python, "tests")?;
    whole.pip(["install", "--quiet"]).argument(format!("{}[test]", wheel.display())).run()?;
    // There are not wheels of it for every Python; the tests say so where it is missing.
    let _ = whole.pip(["install", "--quiet"]).argument(format!("{}[ray]", wheel.display())).succeeds();
    // The version is the same after a change.
    whole.pip(["install", "--quiet", "--force-reinstall", "--no-deps"]).argument(&wheel).run()?;
    let checked = ["-m", "mypy", "-p", "equipoise"];
    whole.program("python").arguments(checked).folder(workspace.path(PACKAGE)).run()?;
    whole.program("python").arguments(["-m", "mypy", "tests"]).folder(workspace.path(PACKAGE)).run()?;
    // Beside the sources it would look at those.
    whole.program("python").arguments(["-m", "mypy.stubtest", "equipoise"]).folder(workspace.target("python")).run()?;
    // Its JSON is compared with that of the command.
    let command = workspace.build_command()?;
    whole.tests(&[]).variable("EQUIPOISE_COMMAND", command).run_lines(take)
}

/// Builds the wheel of a machine, for which Rust's target has been added, as all that is distributed; into a folder that is removed first.
pub(crate) fn distribute(workspace: &Workspace, machine: Machine, out: &Path) -> Result<PathBuf, Error> {
    let tools = Environment::kept(workspace, &found(workspace)?, "tools")?;
    tools.pip(["install", "--quiet", MATURIN]).run()?;
    let maturin = tools.program("maturin").arguments(["build", "--profile", PROFILE, "--target", &machine.target()]);
    built(workspace, out, machine.compilers(maturin))
}

/// Whether a wheel can be installed where there is nothing else, and runs.
pub(crate) fn try_alone(workspace: &Workspace, wheel: &Path) -> Result<(), Error> {
    let fresh = Environment::fresh(workspace, &found(workspace)?, "alone")?;
    fresh.pip(["install", "--quiet"]).argument(wheel).run()?;
    let code = "import equipoise; print(equipoise.run(equipoise.DEMO).flows['settled_delay_s'][0])";
    fresh.program("python").arguments(["-c", code]).run()
}

/// The only wheel that a build puts into a folder, which is removed first.
fn built(workspace: &Workspace, out: &Path, maturin: Process) -> Result<PathBuf, Error> {
    let _ = fs::remove_dir_all(out);
    maturin.arguments(["--quiet", "--locked", "--out"]).argument(out).folder(workspace.path(PACKAGE)).run()?;
    let failed = |source| Error::File { verb: "read", path: out.to_path_buf(), source };
    let mut wheels = fs::read_dir(out).map_err(failed)?;
    let wheel = wheels.next().transpose().map_err(failed)?.map(|entry| entry.path());
    wheel.ok_or(Error::NothingToCheck { folder: "target/wheels" })
}

/// A Python that is new enough and makes environments.
fn found(workspace: &Workspace) -> Result<PathBuf, Error> {
    let is_fit = |name: &&str| {
        let tried = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
        workspace.program(name).arguments(["-c", tried]).succeeds()
    };
    let names = ["python3", "python3.11", "python3.12", "python3.13", "python3.14"];
    names.into_iter().find(is_fit).map(PathBuf::from).ok_or(Error::Tool {
        task: "the Python package",
        tool: "Python 3.11 or newer with venv",
        remedy: "apt-get install python3 python3-venv",
    })
}

/// A virtual environment below `target/python`.
#[derive(Debug)]
struct Environment<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

impl<'a> Environment<'a> {
    /// One that is made if it is not there.
    fn kept(workspace: &'a Workspace, python: &Path, name: &str) -> Result<Self, Error> {
        let folder = workspace.target("python").join(name);
        if !folder.join("bin/pip").exists() {
            workspace.program(python).arguments(["-m", "venv"]).argument(&folder).run()?;
        }
        Ok(Self { workspace, folder })
    }

    /// Creates an empty environment.
    fn fresh(workspace: &'a Workspace, python: &Path, name: &str) -> Result<Self, Error> {
        let folder = workspace.target("python").join(name);
        workspace.program(python).arguments(["-m", "venv", "--clear"]).argument(&folder).run()?;
        Ok(Self { workspace, folder })
    }

    fn program(&self, name: &str) -> Process {
        // Nothing of the caller's own packages.
        self.workspace.program(self.folder.join("bin").join(name)).without("PYTHONPATH")
    }

    fn pip<const N: usize>(&self, words: [&str; N]) -> Process {
        self.program("python").arguments(["-m", "pip", "--disable-pip-version-check"]).arguments(words)
    }

    fn tests(&self, files: &[&str]) -> Process {
        let tests = self.program("python").arguments(["-m", "pytest"]).arguments(files);
        tests.folder(self.workspace.path(PACKAGE))
    }
}
