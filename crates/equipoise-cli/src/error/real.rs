use std::io;
use std::path::PathBuf;

use equipoise::control::ConfigError;
#[cfg(feature = "kernel")]
use equipoise_kernel::KernelError;
use equipoise_lab::capacity::CapacityError;
use equipoise_lab::link::NetError;
use equipoise_lab::live::LiveError;
use equipoise_net::KeyError;
use thiserror::Error;

/// Errors of the commands that use real packets: sessions between hosts, live runs, emulated links, and the kernel's
/// congestion control.
#[derive(Debug, Error)]
pub(crate) enum RealError {
    /// The shared key is missing.
    #[error("no key: an encrypted session needs a key that both hosts have")]
    NoKey,
    /// The key's file cannot be read.
    #[error("cannot read the key from {}", path.display())]
    KeyFile {
        /// The path of the key's file.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The permission bits of the key's file allow the group or all other users to read, write or execute the file.
    #[error("others have access to the key in {} (its mode is {mode:o})", path.display())]
    KeyIsOpen {
        /// The path of the key's file.
        path: PathBuf,
        /// The permission bits of the key's file.
        mode: u32,
    },
    /// A new key cannot be written.
    #[error("cannot write a key to {}", path.display())]
    KeyNotWritten {
        /// The path of the key's file; `-` for standard output.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The secret is not a valid key.
    #[error("{from} contains no valid key")]
    Key {
        /// The file or environment variable that contains the secret.
        from: String,
        /// Why the secret is not a valid key.
        source: KeyError,
    },
    /// The host name has no address, or none of the address family that the user requested with `-4` or `-6`.
    #[error("cannot find {host}")]
    Host {
        /// The host name that the user gave.
        host: String,
        /// The error of the name lookup, or `AddrNotAvailable` if no address is of the requested family.
        source: io::Error,
    },
    /// The configuration of the controller is invalid.
    #[error("controller {name}")]
    Controller {
        /// The name of the controller.
        name: String,
        /// What is wrong with the configuration.
        source: ConfigError,
    },
    /// No controller has the requested name.
    #[error("there is no controller {name:?}; there are {known}")]
    UnknownController {
        /// The name that the user gave.
        name: String,
        /// The names of all controllers, as text.
        known: String,
    },
    /// The configuration of the scheduler is invalid.
    #[error("scheduler {name}")]
    Scheduler {
        /// The name of the scheduler.
        name: String,
        /// What is wrong with the configuration.
        source: ConfigError,
    },
    /// No scheduler has the requested name.
    #[error("there is no scheduler {name:?}; there are {known}")]
    UnknownScheduler {
        /// The name that the user gave.
        name: String,
        /// The names of all schedulers, as text.
        known: String,
    },
    /// The payload to send cannot be read.
    #[error("cannot read {what}")]
    Input {
        /// The input that cannot be read.
        what: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The session failed.
    #[error("the session failed")]
    Net(#[from] NetError),
    /// The file of a link's rates cannot be read, or contains invalid rates.
    #[error("{}", file.display())]
    Rates {
        /// The path of the file.
        file: PathBuf,
        /// What is wrong with the file.
        source: CapacityError,
    },
    /// An option that works with one session only was given together with several sessions.
    #[error("{option} works with one session only; --parallel N sends zeros in N sessions")]
    Parallel {
        /// The name of the option, for example `--file`.
        option: &'static str,
    },
    /// The two ends of an emulated path are not given.
    #[error("a path needs two ends: --listen and --to, --between, or --tun")]
    NoEnds,
    /// `--rate-burst` was given without a limited `--rate`.
    #[error("--rate-burst needs a --rate that is not unlimited")]
    BurstOfNoRate,
    /// Two outputs would go to standard output.
    #[error("two outputs would be mixed on standard output")]
    StdoutTwice,
    /// The server for the live page or for the metrics, or the thread of the live views, could not start.
    #[error("cannot serve at {place}")]
    Serve {
        /// The address at which the server should listen; `a thread` if the thread of the live views could not start.
        place: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The emulated path could not start, or failed.
    #[error("the link failed")]
    Link(#[source] NetError),
    /// An operation on the kernel's congestion control failed.
    #[cfg(feature = "kernel")]
    #[error("the kernel's congestion control failed")]
    Kernel(#[from] KernelError),
    /// The live run failed.
    #[error("the live run failed")]
    Live(#[from] LiveError),
}

impl RealError {
    /// Returns the exit code of the error's class.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Controller { .. }
            | Self::UnknownController { .. }
            | Self::Scheduler { .. }
            | Self::UnknownScheduler { .. }
            | Self::NoEnds
            | Self::StdoutTwice
            | Self::Parallel { .. }
            | Self::BurstOfNoRate
            | Self::Net(NetError::SamePath { .. } | NetError::Paths { .. } | NetError::Wanted(_))
            | Self::Link(NetError::Path { .. } | NetError::SameInterface { .. } | NetError::InterfaceName { .. }) => 2,
            Self::Rates { .. }
            | Self::NoKey
            | Self::KeyFile { .. }
            | Self::KeyIsOpen { .. }
            | Self::Key { .. }
            | Self::Input { .. }
            | Self::Live(LiveError::OverBudget(_)) => 3,
            #[cfg(feature = "kernel")]
            Self::Kernel(KernelError::Parameter { .. }) => 2,
            #[cfg(feature = "kernel")]
            Self::Kernel(_) => 4,
            Self::KeyNotWritten { .. } => 5,
            Self::Live(_) | Self::Link(_) | Self::Host { .. } | Self::Net(_) | Self::Serve { .. } => 4,
        }
    }

    /// Returns advice on what the user can do about the error, if there is any.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Live(LiveError::TcpOnLoopback { .. } | LiveError::Net(NetError::TestBed { .. })) => {
                Some("network namespaces need root and iproute2; `equipoise sim` needs neither")
            }
            #[cfg(feature = "kernel")]
            Self::Live(LiveError::Net(NetError::NoCongestionControl { name, .. }))
                if name == equipoise_kernel::NAME =>
            {
                Some("`equipoise kernel load` registers symbiosis with the kernel")
            }
            Self::Live(LiveError::Net(NetError::NoCongestionControl { .. })) => Some(
                "other congestion controls are modules of the kernel: `modprobe tcp_NAME` loads one if it was built",
            ),
            Self::Live(_) => Some("a live run needs only UDP on 127.0.0.1; `equipoise sim` needs no network"),
            Self::KeyIsOpen { .. } => {
                Some("run `chmod 600` on the file; others may have read this key: `equipoise keygen` makes a new one")
            }
            Self::KeyNotWritten { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("an existing key is overwritten only with --force: sessions that use it would end")
            }
            Self::NoKey | Self::Key { .. } => Some(
                "make one with `equipoise keygen FILE`, copy the file to the other host, and name it with --key; \
                 or use --insecure: then anyone on the path can read and forge the session",
            ),
            Self::UnknownController { .. } | Self::Controller { .. } => Some(
                "`equipoise controllers` lists all controllers and their parameters; --set NAME=VALUE sets a parameter",
            ),
            Self::UnknownScheduler { .. } | Self::Scheduler { .. } => Some(
                "`equipoise controllers` lists the schedulers and their parameters; --scheduler-set NAME=VALUE sets a parameter",
            ),
            Self::Rates { .. } => Some(
                "--rate-trace reads lines of milliseconds, one for each 1500 bytes; --rate-csv reads lines of time_s,rate_mbps",
            ),
            Self::Link(NetError::PacketSocket { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(
                    "it needs the capability CAP_NET_RAW: run it as root, or in a namespace of `unshare --user --map-root-user --net`",
                )
            }
            Self::Link(NetError::Tun { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Some(
                "it needs the capability CAP_NET_ADMIN: run it as root, or in a namespace of `unshare --user --map-root-user --net`, \
                 or let root create both devices for you with `ip tuntap add dev NAME mode tun user YOU`",
            ),
            Self::StdoutTwice => Some("name a file for one of them, such as --json-stream=FILE"),
            Self::Serve { .. } => Some("another program may use the port: name another port, or 0 for any free port"),
            #[cfg(feature = "kernel")]
            Self::Kernel(_) => None,
            Self::Link(_)
            | Self::NoEnds
            | Self::Parallel { .. }
            | Self::BurstOfNoRate
            | Self::KeyFile { .. }
            | Self::KeyNotWritten { .. }
            | Self::Input { .. }
            | Self::Host { .. }
            | Self::Net(_) => None,
        }
    }
}
