use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Errors of loading and using the kernel's congestion controls.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The process lacks a privilege that BPF requires.
    #[error(
        "{what} needs the rights CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN and, to find loaded programs, CAP_SYS_ADMIN; \
         run it as root"
    )]
    Rights {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: libbpf_rs::Error,
    },
    /// The kernel does not provide its type information (BTF).
    #[error(
        "this kernel provides no type information, because /sys/kernel/btf/vmlinux is missing; use one built with CONFIG_DEBUG_INFO_BTF=y, as in most distributions"
    )]
    NoBtf {
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not support congestion controls in BPF.
    #[error(
        "this kernel does not support TCP congestion controls in BPF: its types lack `{missing}`; use Linux 6.4 or newer, built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_NET"
    )]
    NoStructOps {
        /// The type that is missing.
        missing: &'static str,
    },
    /// The kernel calls congestion controls with a number of parameters that this crate does not support.
    #[error(
        "this kernel calls a congestion control with {parameters} parameters, but the programs here take 4 or 2; a newer version of equipoise may support it"
    )]
    Hook {
        /// How many parameters the kernel's `cong_control` has.
        parameters: usize,
    },
    /// The congestion control is already loaded.
    #[error("the congestion control `symbiosis` is loaded already; `equipoise kernel unload` takes it away")]
    Loaded,
    /// The congestion control is not loaded.
    #[error("the congestion control `symbiosis` is not loaded; `equipoise kernel load` loads it")]
    NotLoaded,
    /// A running process keeps the congestion control loaded.
    #[error(
        "the congestion control `symbiosis` is not pinned: a running `equipoise kernel load` holds it; end that with Ctrl-C"
    )]
    Held,
    /// The BPF file system, which [`Loaded::pin`](crate::Loaded::pin) needs, is not mounted.
    #[error("there is no BPF file system at {}; `mount -t bpf bpf {}` makes one", place.display(), place.display())]
    NoFileSystem {
        /// The path at which the BPF file system should be mounted.
        place: PathBuf,
    },
    /// The pin, a file that keeps the congestion control loaded, cannot be created or removed.
    #[error("cannot change the pin {}", path.display())]
    Pin {
        /// The path of the pin.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A parameter is out of range.
    #[error("`{name}` is {value}; it must lie between {least} and {most}")]
    Parameter {
        /// The name of the parameter.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The smallest valid value.
        least: f64,
        /// The largest valid value.
        most: f64,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what}")]
    Refused {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: libbpf_rs::Error,
    },
    /// The loaded program is from another version of this crate, and its data has another format.
    #[error("the loaded program belongs to another version; `equipoise kernel unload` and `load` replace it")]
    Version,
}

impl KernelError {
    /// Wraps the error of the operation `what`.
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
