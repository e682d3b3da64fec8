//! All parts of Equipoise that use the operating system: clocks, UDP and TCP sockets, threads, and emulated networks.
//!
//! All decisions are made in the core, [`equipoise`], and in its sessions, [`equipoise_session`]. This crate passes
//! events and their times to the sessions, and performs the actions that the sessions return:
//!
//! - [`Clock`]: the time of the host, which never steps. All clones of a clock show the same time.
//! - [`Socket`]: UDP with the kernel's receive timestamps, so that a late read does not lengthen a measured delay.
//! - [`run_endpoint`]: a thread that runs one endpoint of a session over a socket.
//! - [`send()`] and [`Server`]: sessions between hosts, opened by a handshake and, with a key, protected by SRTP.
//!   [`send_multipath()`]: a session over several network interfaces at once. [`fetch()`]: a session in which the
//!   server sends.
//! - [`TestBed`]: hosts in network namespaces. [`TcpEnds`]: the kernel's TCP between these hosts. [`WebEnds`]: web
//!   traffic.
//! - [`Emulator`]: an emulated network of [`equipoise_path::link::Pipe`]s, for runs on one machine. It connects
//!   UDP sockets on the loopback interface, or the hosts of a test bed (UDP and TCP).
//! - [`Bridge`]: an emulated path with one [`equipoise_path::link::Pipe`] for each direction. It connects UDP clients
//!   with a server, or two network interfaces or TUN devices for any traffic.
//! - [`Watchdog`]: records when the machine itself stalled.
//! - [`media`]: sessions between hosts, for applications that use tokio.
//! - [`dtls_srtp`]: key exchange and protection of media as in WebRTC, for sessions with other implementations.
//! - [`flow_pair`]: application data units that are sent alternately over TCP and RTP between hosts.
//!
//! Sessions run on threads with blocking calls, not on an asynchronous runtime. The timers of common runtimes have a
//! resolution of one millisecond, but the gaps between media packets are often shorter. [`media`] is an asynchronous
//! interface to these threads.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("equipoise-net needs Linux: it relies on SO_TIMESTAMPNS, ppoll and absolute clock_nanosleep");

mod batch;
mod bridge;
mod channel;
mod clock;
mod datagram;
mod driver;
mod dscp;
pub mod dtls_srtp;
mod ecn;
mod emulator;
mod engine;
mod error;
mod fetch;
pub mod flow_pair;
mod icmp;
mod lateness;
mod leaving;
pub mod media;
mod secure;
mod send;
mod server;
mod socket;
mod tcp;
mod testbed;
mod thread;
mod transport;
mod watchdog;

pub use bridge::{Bridge, BridgeConfig, BridgeReport, BridgeSample, DirectionReport, Punctuality};
pub use channel::{Closed, PayloadSender};
pub use clock::{Clock, HostClock, Time};
pub use datagram::Received;
pub use driver::{Finished, Host, HostStats, Observer, Running, run_endpoint};
pub use dscp::{Dscp, DscpError};
pub use emulator::{Emulator, EmulatorConfig, EmulatorReport, LinkSample, LoadProbe, Passed, Protocol, Route, Watcher};
pub use engine::PortStats;
pub use error::NetError;
pub use fetch::{FetchConfig, fetch};
pub use lateness::Lateness;
pub use secure::{Key, KeyError, Refusal, Wanted, WantedError};
pub use send::{Multipath, MultipathSession, SendConfig, send, send_multipath};
#[cfg(feature = "fuzz")]
pub use server::ServerBench;
pub use server::{End, KeyFrames, Server, ServerConfig, Session, SessionObserver};
pub use socket::{Sent, Socket, SocketStats, TimestampSource};
pub use tcp::{RunningTcp, TcpEnds, TcpHosts, TcpPlan, TcpState, TcpSupply, WebEnds, WebFetched, WebLook, WebPlan};
pub use testbed::{Place, TestBed, TestHost};
pub use transport::{Paths, Via};
pub use watchdog::{Stall, Stalls, Watchdog};

/// The code in the README, which is compiled and tested with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
