//! The machines for which distributions are built, and their compilers.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// The cargo profile of distributions.
pub(crate) const PROFILE: &str = "dist";

/// A kind of machine for which distributions are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// A PC or server.
    X86_64,
    /// A 64-bit ARM board, phone or server.
    Aarch64,
}

impl Machine {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The kind of this machine; `None` if no distributions are built for it.
    pub(crate) fn here() -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.is_here())
    }

    /// The name in `uname -m`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian and in container images.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Whether this machine is of this kind, so that it can run the programs.
    pub(crate) fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// The target name in rustc.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// The name in Debian's compilers and library folders.
    fn triplet(self) -> String {
        format!("{}-linux-gnu", self.name())
    }

    /// Builds a package for the machine, and returns the folder of the results.
    pub(crate) fn build(self, workspace: &Workspace, package: &str, arguments: &[&str]) -> Result<PathBuf, Error> {
        self.install_target(workspace)?;
        let target = self.target();
        let cargo =
            workspace.cargo(["build", "--profile", PROFILE, "--locked", "--package", package, "--target", &target]);
        self.compilers(cargo.arguments(arguments)).run()?;
        Ok(workspace.target(target).join(PROFILE))
    }

    /// Installs Rust's standard library for the machine, if it is not this machine.
    pub(crate) fn install_target(self, workspace: &Workspace) -> Result<(), Error> {
        if self.is_here() {
            return Ok(());
        }
        workspace.program("rustup").arguments(["target", "add", &self.target()]).run()
    }

    /// Configures a program that builds for the machine with its compilers.
    pub(crate) fn compilers(self, program: Process) -> Process {
        let (target, triplet) = (self.target(), self.triplet());
        let upper = target.to_uppercase().replace('-', "_");
        // Debian's cross compilers, and its library folders for the other machine.
        let program = program.variable(&format!("CARGO_TARGET_{upper}_LINKER"), format!("{triplet}-gcc"));
        let program = program.variable(&format!("CC_{}", target.replace('-', "_")), format!("{triplet}-gcc"));
        // Both the build, which runs on this machine, and the result need libbpf.
        Self::ALL.into_iter().fold(program, |program, machine| {
            let libraries = format!("/usr/lib/{}", machine.triplet());
            program.variable(&format!("LIBBPF_SYS_LIBRARY_PATH_{}", machine.target()), libraries)
        })
    }

    /// Copies a program or shared library without debug symbols.
    pub(crate) fn strip(self, from: &Path, to: &Path) -> Result<(), Error> {
        Process::new(format!("{}-strip", self.triplet())).argument("-o").argument(to).argument(from).run()
    }
}
