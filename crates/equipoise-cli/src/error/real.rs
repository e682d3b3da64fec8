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

/// What can go wrong with real packets: sessions between hosts, live runs, emulated links, the kernel's part.
#[derive(Debug, Error)]
pub(crate) enum RealError {
    /// What both hosts know is missing or is none.
    #[error("no key: an encrypted session needs what both hosts know")]
    NoKey,
    /// The key's file cannot be read.
    #[error("cannot read the key from {}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read the key's file.
    #[error("others can read the key in {} (its mode is {mode:o})", path.display())]
    KeyIsOpen {
        /// The file.
        path: PathBuf,
        /// Its rights.
        mode: u32,
    },
    /// A new key cannot be written.
    #[error("cannot write a key to {}", path.display())]
    KeyNotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The secret is no key.
    #[error("{from} holds no key")]
    Key {
        /// Where it came from.
        from: String,
        /// Why.
        source: KeyError,
    },
    /// The host has no address.
    #[error("cannot find {host}")]
    Host {
        /// What was asked for.
        host: String,
        /// Why, where the system says.
        source: io::Error,
    },
    /// The controller cannot be made as asked.
    #[error("controller {name}")]
    Controller {
        /// Its name.
        name: String,
        /// Why.
        source: ConfigError,
    },
    /// There is no such controller.
    #[error("there is no controller {name:?}; there are {known}")]
    UnknownController {
        /// What was asked for.
        name: String,
        /// All there are.
        known: String,
    },
    /// What divides a rate cannot be made as asked.
    #[error("split {name}")]
    Scheduler {
        /// Its name.
        name: String,
        /// Why.
        source: ConfigError,
    },
    /// There is no such scheduler.
    #[error("nothing of the name {name:?} divides a rate among paths; there are {known}")]
    UnknownScheduler {
        /// What was asked for.
        name: String,
        /// All there are.
        known: String,
    },
    /// Payload cannot be read.
    #[error("cannot read {what}")]
    Input {
        /// What was read.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// The network refused.
    #[error("the session failed")]
    Net(#[from] NetError),
    /// The file gives no rates.
    #[error("{}", file.display())]
    Rates {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: CapacityError,
    },
    /// What several sessions cannot have together.
    #[error("{option} is for one session; --parallel N sends zeros in N")]
    Parallel {
        /// The option.
        option: &'static str,
    },
    /// There is nothing to carry between.
    #[error("a path needs two ends: --listen and --to, --between, or --tun")]
    NoEnds,
    /// Bursts are of a rate.
    #[error("--rate-burst goes with a --rate that is not unlimited")]
    BurstOfNoRate,
    /// Lines of two kinds would go to one place.
    #[error("two outputs would be mixed on standard output")]
    StdoutTwice,
    /// What watches the run cannot be served.
    #[error("cannot serve at {place}")]
    Serve {
        /// Where.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// There is no such path, or it broke.
    #[error("the link failed")]
    Link(#[source] NetError),
    /// The kernel's congestion control cannot be had.
    #[cfg(feature = "kernel")]
    #[error("the kernel's part failed")]
    Kernel(#[from] KernelError),
    /// The real world refused.
    #[error("the live run failed")]
    Live(#[from] LiveError),
}

impl RealError {
    /// The exit code of the error's class.
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

    /// What one could do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Live(LiveError::TcpOnLoopback { .. } | LiveError::Net(NetError::TestBed { .. })) => {
                Some("network namespaces take root and iproute2; `equipoise sim` needs neither")
            }
            #[cfg(feature = "kernel")]
            Self::Live(LiveError::Net(NetError::NoCongestionControl { name, .. }))
                if name == equipoise_kernel::NAME =>
            {
                Some("`equipoise kernel load` gives the kernel symbiosis")
            }
            Self::Live(LiveError::Net(NetError::NoCongestionControl { .. })) => {
                Some("those of the kernel's own are modules: `modprobe tcp_NAME`, where it was built")
            }
            Self::Live(_) => Some("a live run needs nothing but UDP on 127.0.0.1; `equipoise sim` needs no network"),
            Self::KeyIsOpen { .. } => Some(
                "`chmod 600` the file; a key that others had may be no secret any more: `equipoise keygen` makes one",
            ),
            Self::KeyNotWritten { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("a key that is there is not written over, unless --force says so: sessions by it would end")
            }
            Self::NoKey | Self::Key { .. } => Some(
                "make one with `equipoise keygen FILE`, copy the file to the other host, and name it with --key; \
                 or say --insecure: then anybody on the way may read and forge the session",
            ),
            Self::UnknownController { .. } | Self::Controller { .. } => {
                Some("`equipoise controllers` lists them with their parameters, which --set NAME=VALUE sets")
            }
            Self::UnknownScheduler { .. } | Self::Scheduler { .. } => Some(
                "`equipoise controllers` lists them at its end, with their parameters, which --scheduler-set NAME=VALUE sets",
            ),
            Self::Rates { .. } => Some(
                "--rate-trace reads lines of milliseconds, one for each 1500 bytes; --rate-csv reads lines of time_s,rate_mbps",
            ),
            Self::Link(NetError::PacketSocket { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(
                    "it takes the right CAP_NET_RAW: run it as root, or in a namespace of `unshare --user --map-root-user --net`",
                )
            }
            Self::Link(NetError::Tun { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Some(
                "it takes the right CAP_NET_ADMIN: run it as root, or in a namespace of `unshare --user --map-root-user --net`, \
                 or have root make both devices for you with `ip tuntap add dev NAME mode tun user YOU`",
            ),
            Self::StdoutTwice => Some("name a file for one of them, such as --json-stream=FILE"),
            Self::Serve { .. } => Some("another program may have the port: name another one, or 0 for any free one"),
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
