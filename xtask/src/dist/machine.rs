//! The machine architectures for which distributions are built, and their compilers.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

/// The cargo profile with which distributions are built.
pub(crate) const PROFILE: &str = "dist";

/// A machine architecture for which distributions are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The architecture of PCs and most servers.
    X86_64,
    /// The architecture of 64-bit ARM boards, phones and servers.
    Aarch64,
}

impl Machine {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Returns the architecture of this machine; `None` if no distributions are built for it.
    pub(crate) fn here() -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.is_here())
    }

    /// The architecture's name in `uname -m`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The architecture's name in Debian and in container images.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Whether this machine has the architecture, so that it can run the built programs.
    pub(crate) fn is_here(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// The name of rustc's target for the architecture.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// The architecture's name in the names of Debian's compilers and library folders.
    fn triplet(self) -> String {
        format!("{}-linux-gnu", self.name())
    }

    /// Builds a cargo package for the architecture, and returns the folder with the built files.
    pub(crate) fn build(self, workspace: &Workspace, package: &str, arguments: &[&str]) -> Result<PathBuf, Error> {
        self.install_target(workspace)?;
        let target = self.target();
        let cargo =
            workspace.cargo(["build", "--profile", PROFILE, "--locked", "--package", package, "--target", &target]);
        self.compilers(cargo.arguments(arguments)).run()?;
        Ok(workspace.target(target).join(PROFILE))
    }

    /// Installs Rust's standard library for the architecture, unless this machine has the architecture.
    pub(crate) fn install_target(self, workspace: &Workspace) -> Result<(), Error> {
        if self.is_here() {
            return Ok(());
        }
        workspace.program("rustup").arguments(["target", "add", &self.target()]).run()
    }

    /// Sets the environment variables that make `program`, such as cargo, use the compilers and libraries for the
    /// architecture.
    pub(crate) fn compilers(self, program: Process) -> Process {
        let (target, triplet) = (self.target(), self.triplet());
        let upper = target.to_uppercase().replace('-', "_");
        // Use Debian's (cross) compiler for the architecture.
        let program = program.variable(&format!("CARGO_TARGET_{upper}_LINKER"), format!("{triplet}-gcc"));
        let program = program.variable(&format!("CC_{}", target.replace('-', "_")), format!("{triplet}-gcc"));
        // Set the folders of the libraries that libbpf needs, for both architectures. The built program needs libbpf,
        // and so do the build scripts, which run on this machine.
        Self::ALL.into_iter().fold(program, |program, machine| {
            let libraries = format!("/usr/lib/{}", machine.triplet());
            program.variable(&format!("LIBBPF_SYS_LIBRARY_PATH_{}", machine.target()), libraries)
        })
    }

    /// Copies a program or a shared library, and leaves out its debug symbols.
    pub(crate) fn strip(self, from: &Path, to: &Path) -> Result<(), Error> {
        Process::new(format!("{}-strip", self.triplet())).argument("-o").argument(to).argument(from).run()
    }
}
