//! Everything that touches the operating system: clocks, UDP sockets, threads, and an emulated bottleneck.
//!
//! All decisions are made in the core, [`equipoise`], and in its sessions, [`equipoise_session`]. This crate passes
//! them events with their times and carries out the actions they return:
//!
//! - [`Clock`]: one time base for the whole host, which never steps.
//! - [`Socket`]: UDP with the kernel's receive timestamps, so that a late reader does not lengthen a measured delay.
//! - [`run_endpoint`]: a thread that drives one end of a session over a socket.
//! - [`send()`] and [`Server`]: sessions between hosts, opened by a handshake and protected by SRTP;
//!   [`send_multipath()`]: over several interfaces at once; [`fetch()`]: with the server as the sender.
//! - [`TestBed`]: hosts in network namespaces; [`TcpEnds`]: kernel TCP between them; [`WebEnds`]: web traffic.
//! - [`Emulator`]: a bottleneck made of [`equipoise_path::link::Pipe`]s between two sockets, or between the hosts of a
//!   test bed for UDP and TCP, for runs on one machine.
//! - [`Bridge`]: an emulated path, one [`equipoise_path::link::Pipe`] for each direction, between UDP clients and a
//!   server, or between two network interfaces or TUN devices for any traffic.
//! - [`Watchdog`]: records when the machine itself stalled.
//! - [`media`]: sessions between hosts for applications on tokio.
//! - [`dtls_srtp`]: key exchange and media protection with other implementations, as in WebRTC.
//! - [`flow_pair`]: application data units sent alternately over TCP and RTP, between hosts.
//!
//! It uses threads and blocking calls, and no asynchronous runtime: common runtimes have timers of one millisecond, and
//! a gap between media packets is often shorter than that. [`media`] offers an asynchronous interface to these threads;
//! no session work runs on the runtime.
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

/// The README's code, so that it is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
