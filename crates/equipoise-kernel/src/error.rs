use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why the kernel cannot do it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A right is missing.
    #[error("{what} needs the rights CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; run it as root")]
    Rights {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: libbpf_rs::Error,
    },
    /// The kernel does not describe its types.
    #[error(
        "this kernel does not tell its types, for want of /sys/kernel/btf/vmlinux; take one built with CONFIG_DEBUG_INFO_BTF=y, as those of most distributions are"
    )]
    NoBtf {
        /// What the system says.
        source: io::Error,
    },
    /// The kernel has no congestion controls in BPF.
    #[error(
        "this kernel has no TCP congestion controls by BPF: its types lack `{missing}`; take Linux 6.4 or newer, built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_NET"
    )]
    NoStructOps {
        /// The type that is missing.
        missing: &'static str,
    },
    /// The hook has a form that no program here has.
    #[error(
        "this kernel calls a congestion control with {parameters} values, and the programs here take 4 or 2; a newer version of equipoise may know how"
    )]
    Hook {
        /// How many parameters the kernel's `cong_control` has.
        parameters: usize,
    },
    /// It is there already.
    #[error("the congestion control `symbiosis` is loaded already; `equipoise kernel unload` takes it away")]
    Loaded,
    /// It is not there.
    #[error("the congestion control `symbiosis` is not loaded; `equipoise kernel load` loads it")]
    NotLoaded,
    /// A process holds it.
    #[error(
        "the congestion control `symbiosis` is not pinned: a running `equipoise kernel load` holds it; end that with Ctrl-C"
    )]
    Held,
    /// There is nowhere to pin it.
    #[error("there is no BPF file system at {}; `mount -t bpf bpf {}` makes one", place.display(), place.display())]
    NoFileSystem {
        /// Where it should be.
        place: PathBuf,
    },
    /// A pin cannot be made or taken away.
    #[error("cannot change the pin {}", path.display())]
    Pin {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A parameter is out of range.
    #[error("`{name}` is {value}; it must lie between {least} and {most}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// What was given.
        value: f64,
        /// The smallest value.
        least: f64,
        /// The largest value.
        most: f64,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: libbpf_rs::Error,
    },
    /// What came from the kernel is not what this version's program writes.
    #[error("the loaded program is another version's; `equipoise kernel unload` and `load` replace it")]
    Version,
}

impl KernelError {
    /// The error of trying `what`.
    pub(crate) fn of(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |source| {
            if source.kind() == libbpf_rs::ErrorKind::PermissionDenied {
                Self::Rights { what, source }
            } else {
                Self::Refused { what, source }
            }
        }
    }
}
