//! Builds the Python package as a wheel, and tests the installed wheel.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dist::{Machine, PROFILE};
use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// Package and version range of the tool that builds wheels.
const MATURIN: &str = "maturin>=1.16,<2";
/// Folder of the crate that becomes the Python package.
const PACKAGE: &str = "crates/equipoise-py";

/// The cargo profile with which the wheel is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Profile {
    /// The optimised profile, for users.
    Release,
    /// The profile of the tests, for CI, which has already built most crates with this profile.
    Dev,
}

/// Builds the wheel into `target/wheels`. Runs the README's code in a virtual environment with only the wheel, pytest
/// and matplotlib. Then checks types and runs all tests and notebooks in a second virtual environment, which is kept
/// for later runs. Each line that the tests print is passed to `take`.
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
    // The installation of Ray may fail, because Ray has no wheels for some versions of Python. Tests that need Ray are
    // then skipped.
    let _ = whole.pip(["install", "--quiet"]).argument(format!("{}[ray]", wheel.display())).succeeds();
    // Force the installation of the new wheel, because pip keeps an installed wheel with the same version.
    whole.pip(["install", "--quiet", "--force-reinstall", "--no-deps"]).argument(&wheel).run()?;
    let checked = ["-m", "mypy", "-p", "equipoise"];
    whole.program("python").arguments(checked).folder(workspace.path(PACKAGE)).run()?;
    whole.program("python").arguments(["-m", "mypy", "tests"]).folder(workspace.path(PACKAGE)).run()?;
    // Do not run stubtest in the folder of the sources, because there it would import the sources instead of the wheel.
    whole.program("python").arguments(["-m", "mypy.stubtest", "equipoise"]).folder(workspace.target("python")).run()?;
    // The tests compare the JSON of the Python package with the JSON of the command `equipoise`.
    let command = workspace.build_command()?;
    whole.tests(&[]).variable("EQUIPOISE_COMMAND", command).run_lines(take)
}

/// Empties the folder `out`, and then builds the wheel for an architecture into it. Uses the build profile for
/// distributions.
pub(crate) fn distribute(workspace: &Workspace, machine: Machine, out: &Path) -> Result<PathBuf, Error> {
    machine.install_target(workspace)?;
    let tools = Environment::kept(workspace, &found(workspace)?, "tools")?;
    tools.pip(["install", "--quiet", MATURIN]).run()?;
    let maturin = tools.program("maturin").arguments(["build", "--profile", PROFILE, "--target", &machine.target()]);
    built(workspace, out, machine.compilers(maturin))
}

/// Checks that a wheel can be installed in an empty virtual environment and that the package runs.
pub(crate) fn try_alone(workspace: &Workspace, wheel: &Path) -> Result<(), Error> {
    let fresh = Environment::fresh(workspace, &found(workspace)?, "alone")?;
    fresh.pip(["install", "--quiet"]).argument(wheel).run()?;
    let code = "import equipoise; print(equipoise.run(equipoise.DEMO).flows['settled_delay_s'][0])";
    fresh.program("python").arguments(["-c", code]).run()
}

/// Builds a wheel into the folder `out`, which is emptied first. Returns the path of the wheel.
fn built(workspace: &Workspace, out: &Path, maturin: Process) -> Result<PathBuf, Error> {
    let _ = fs::remove_dir_all(out);
    maturin.arguments(["--quiet", "--locked", "--out"]).argument(out).folder(workspace.path(PACKAGE)).run()?;
    let failed = |source| Error::File { verb: "read", path: out.to_path_buf(), source };
    let mut wheels = fs::read_dir(out).map_err(failed)?;
    let wheel = wheels.next().transpose().map_err(failed)?.map(|entry| entry.path());
    wheel.ok_or(Error::NothingToCheck { folder: "target/wheels" })
}

/// Finds a Python interpreter that is new enough and can create virtual environments.
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

/// A virtual environment of Python in `target/python`.
#[derive(Debug)]
struct Environment<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

impl<'a> Environment<'a> {
    /// Opens a virtual environment that is kept between runs. Creates it if it does not exist.
    fn kept(workspace: &'a Workspace, python: &Path, name: &str) -> Result<Self, Error> {
        let folder = workspace.target("python").join(name);
        if !folder.join("bin/pip").exists() {
            workspace.program(python).arguments(["-m", "venv"]).argument(&folder).run()?;
        }
        Ok(Self { workspace, folder })
    }

    /// Creates an empty virtual environment. An existing one with the same name is cleared.
    fn fresh(workspace: &'a Workspace, python: &Path, name: &str) -> Result<Self, Error> {
        let folder = workspace.target("python").join(name);
        workspace.program(python).arguments(["-m", "venv", "--clear"]).argument(&folder).run()?;
        Ok(Self { workspace, folder })
    }

    fn program(&self, name: &str) -> Process {
        // Without `PYTHONPATH`, Python does not use packages from outside of the virtual environment.
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
