//! The machines that distributions are built for, and how.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// The cargo profile of distributions.
pub(crate) const PROFILE: &str = "dist";

/// A kind of machine that a distribution is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// A PC or server.
    X86_64,
    /// A 64-bit ARM board, phone or server.
    Aarch64,
}

impl Machine {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The kind of this machine, if there are distributions for it.
    pub(crate) fn here() -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.is_here())
    }

    /// Its name in `uname -m`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Its name in Debian and in container images.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Whether its programs run on this machine.
    pub(crate) fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// Its name in rustc.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Its name in Debian's compilers and library folders.
    fn triplet(self) -> String {
        format!("{}-linux-gnu", self.name())
    }

    /// Builds the release of a package, and returns its folder.
    pub(crate) fn build(self, workspace: &Workspace, package: &str, arguments: &[&str]) -> Result<PathBuf, Error> {
        self.install_target(workspace)?;
        let target = self.target();
        let cargo =
            workspace.cargo(["build", "--profile", PROFILE, "--locked", "--package", package, "--target", &target]);
        self.compilers(cargo.arguments(arguments)).run()?;
        Ok(workspace.target(target).join(PROFILE))
    }

    /// Installs Rust's standard library for another machine than this one.
    pub(crate) fn install_target(self, workspace: &Workspace) -> Result<(), Error> {
        if self.is_here() {
            return Ok(());
        }
        workspace.program("rustup").arguments(["target", "add", &self.target()]).run()
    }

    /// A program that builds for the machine, configured with its compilers.
    pub(crate) fn compilers(self, program: Process) -> Process {
        let (target, triplet) = (self.target(), self.triplet());
        let upper = target.to_uppercase().replace('-', "_");
        // Debian's cross compilers, and where its libraries for the other machine are.
        let program = program.variable(&format!("CARGO_TARGET_{upper}_LINKER"), format!("{triplet}-gcc"));
        let program = program.variable(&format!("CC_{}", target.replace('-', "_")), format!("{triplet}-gcc"));
        // libbpf is needed both by the build and by the result, and the build runs on this machine.
        Self::ALL.into_iter().fold(program, |program, machine| {
            let libraries = format!("/usr/lib/{}", machine.triplet());
            program.variable(&format!("LIBBPF_SYS_LIBRARY_PATH_{}", machine.target()), libraries)
        })
    }

    /// Makes a copy of a program or shared library without debug symbols.
    pub(crate) fn strip(self, from: &Path, to: &Path) -> Result<(), Error> {
        Process::new(format!("{}-strip", self.triplet())).argument("-o").argument(to).argument(from).run()
    }
}
