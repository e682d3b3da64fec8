//! For which machines there are distributions, and how they are built for each.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// As what is distributed is built.
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

    /// This machine, if there are distributions for its kind.
    pub(crate) fn here() -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.is_here())
    }

    /// As `uname -m` says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As Debian and container images say it.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Whether programs of it run here.
    pub(crate) fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// What rustc calls it.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// What Debian's compilers and library folders call it.
    fn triplet(self) -> String {
        format!("{}-linux-gnu", self.name())
    }

    /// Builds the release of a package, and returns the folder in which it is.
    pub(crate) fn build(self, workspace: &Workspace, package: &str, arguments: &[&str]) -> Result<PathBuf, Error> {
        let target = self.target();
        if !self.is_here() {
            workspace.program("rustup").arguments(["target", "add", &target]).run()?;
        }
        let cargo =
            workspace.cargo(["build", "--profile", PROFILE, "--locked", "--package", package, "--target", &target]);
        self.compilers(cargo.arguments(arguments)).run()?;
        Ok(workspace.target(target).join(PROFILE))
    }

    /// A program that builds for the machine, with the compilers for it.
    pub(crate) fn compilers(self, program: Process) -> Process {
        let (target, triplet) = (self.target(), self.triplet());
        let upper = target.to_uppercase().replace('-', "_");
        // Debian's cross compilers, and where its libraries for the other machine are.
        let program = program.variable(&format!("CARGO_TARGET_{upper}_LINKER"), format!("{triplet}-gcc"));
        let program = program.variable(&format!("CC_{}", target.replace('-', "_")), format!("{triplet}-gcc"));
        // libbpf is in what is built and in what builds it, which is for this machine.
        Self::ALL.into_iter().fold(program, |program, machine| {
            let libraries = format!("/usr/lib/{}", machine.triplet());
            program.variable(&format!("LIBBPF_SYS_LIBRARY_PATH_{}", machine.target()), libraries)
        })
    }

    /// A copy of a program or shared library without symbols and lines for debuggers.
    pub(crate) fn strip(self, from: &Path, to: &Path) -> Result<(), Error> {
        Process::new(format!("{}-strip", self.triplet())).argument("-o").argument(to).argument(from).run()
    }
}
