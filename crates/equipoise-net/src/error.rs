use std::io;
use std::net::SocketAddr;

use equipoise::link::{LinkError, PipeError};
use equipoise::session::rtp::SessionError;
use equipoise::units::Span;
use thiserror::Error;

use crate::Refusal;

/// Why the real world could not do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket holds the port.
    #[error("UDP address {address} is in use; choose another port, or port 0 for any free one")]
    PortInUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The socket could not be had for another reason.
    #[error("cannot open a UDP socket at {address}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A datagram can never be sent so.
    #[error("cannot send a datagram of {length} bytes to {peer}")]
    Send {
        /// Where it was to go.
        peer: SocketAddr,
        /// Length of the UDP payload in bytes.
        length: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The socket can receive no more.
    #[error("cannot receive at {address}")]
    Receive {
        /// The socket's own address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Waiting for a socket failed.
    #[error("cannot wait for {sockets} UDP sockets")]
    Wait {
        /// How many sockets were waited for.
        sockets: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The system gives no more threads.
    #[error("cannot start thread {name:?}")]
    Spawn {
        /// The thread's name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody answered who knows the key.
    #[error(
        "no answer from {peer} within {waited}; is `equipoise receive` running there, reachable over UDP, and with the same key?"
    )]
    NoAnswer {
        /// Who was asked.
        peer: SocketAddr,
        /// How long the answer was waited for.
        waited: Span,
    },
    /// The receiver wants no session.
    #[error("{peer} refuses: {}", reason.words())]
    Refused {
        /// Who was asked.
        peer: SocketAddr,
        /// Why.
        reason: Refusal,
    },
    /// A network namespace cannot be made or entered.
    #[error("`{command}` failed ({said}); a test bed of network namespaces needs root and iproute2")]
    TestBed {
        /// What was tried.
        command: String,
        /// What the system says.
        said: String,
    },
    /// Media that is generated takes no payload.
    #[error(
        "a session of generated media takes no payload; set it up for a stream (Payload::Stream) or RTP packets (Payload::Rtp)"
    )]
    NothingToCarry,
    /// A session cannot be set up.
    #[error("the session cannot be set up")]
    Session(#[from] SessionError),
    /// A thread panicked, so that its results are lost.
    #[error("thread {name:?} panicked; its results are lost")]
    Panicked {
        /// The thread's name.
        name: String,
    },
    /// A link of the emulator cannot be built.
    #[error("link {link} of the emulator cannot be built")]
    Link {
        /// Its position in the list of links, from 0.
        link: usize,
        /// Why not.
        source: LinkError,
    },
    /// A route leads over a link that the emulator does not have.
    #[error("route {route} uses link {link}, but the emulator has {links} links, numbered from 0")]
    UnknownLink {
        /// The route's position in the list of routes, from 0.
        route: usize,
        /// The link it asks for.
        link: usize,
        /// How many links there are.
        links: usize,
    },
    /// A direction of a bridge cannot be built.
    #[error("the path {direction} cannot be built")]
    Path {
        /// Which direction: "forward" or "back".
        direction: &'static str,
        /// Why not.
        source: PipeError,
    },
    /// There is no such network interface here.
    #[error("there is no network interface {name:?} here; there are {}", known.join(", "))]
    NoInterface {
        /// The name that was asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// Both ends of a bridge are the same interface.
    #[error("{name:?} cannot be bridged with itself; name two interfaces")]
    SameInterface {
        /// The name that was given twice.
        name: String,
    },
    /// The interface has no Ethernet frames.
    #[error("interface {name:?} carries no Ethernet frames; bridge veth or Ethernet interfaces")]
    NotEthernet {
        /// Its name.
        name: String,
    },
    /// The interface is down.
    #[error("interface {name:?} is down; bring it up with `ip link set {name} up`")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// No frames can be read from or written to the interface.
    #[error("cannot open a packet socket on interface {name:?}")]
    PacketSocket {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// An interface cannot have this name.
    #[error("{name:?} is no name for an interface; take 1 to 15 characters, none of them a space, '/', ':' or '%'")]
    InterfaceName {
        /// The name that was asked for.
        name: String,
    },
    /// The system has no TUN devices.
    #[error(
        "there are no TUN devices here, for want of /dev/net/tun; `modprobe tun` gives them to a host, `--device /dev/net/tun` to a container"
    )]
    NoTun {
        /// What the system says.
        source: io::Error,
    },
    /// The name of a TUN device is taken.
    #[error(
        "{name:?} is taken: another program has this TUN device, or it is another kind of interface; choose another name"
    )]
    TunTaken {
        /// The name that was asked for.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A TUN device cannot be made or taken for another reason.
    #[error("cannot open the TUN device {name:?}")]
    Tun {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The interface gives no more frames.
    #[error("cannot receive from interface {name:?}")]
    InterfaceGone {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
}
