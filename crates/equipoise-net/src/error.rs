use std::io;
use std::net::{IpAddr, SocketAddr};

use equipoise::units::Span;
use equipoise_pair::PairError;
use equipoise_path::link::PipeError;
use equipoise_path::source::WebError;
use equipoise_session::rtp::SessionError;
use thiserror::Error;

use crate::dtls_srtp::HandshakeError;
use crate::{Refusal, Via, WantedError};

/// Errors of sockets, threads, interfaces and sessions.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket holds the port.
    #[error("UDP address {address} is in use; choose another port, or port 0 for any free one")]
    PortInUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// The socket could not be opened for another reason.
    #[error("cannot open a UDP socket at {address}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A datagram of this length or to this peer can never be sent.
    #[error("cannot send a datagram of {length} bytes to {peer}")]
    Send {
        /// The destination.
        peer: SocketAddr,
        /// Length of the UDP payload in bytes.
        length: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The socket can no longer receive.
    #[error("cannot receive at {address}")]
    Receive {
        /// The socket's own address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Waiting for a socket failed.
    #[error("cannot wait for {sockets} UDP sockets")]
    Wait {
        /// The number of sockets.
        sockets: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The system cannot start another thread.
    #[error("cannot start thread {name:?}")]
    Spawn {
        /// The thread's name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The peer sent no valid answer. With a key, an answer is valid only if the key authenticates it.
    #[error(
        "no answer from {peer} within {waited}; is `equipoise receive` running there, reachable over UDP, and with the same key?"
    )]
    NoAnswer {
        /// The peer.
        peer: SocketAddr,
        /// How long the caller waited for the answer.
        waited: Span,
    },
    /// The DTLS-SRTP handshake did not yield keys.
    #[error("the DTLS-SRTP handshake with the peer failed")]
    NotOpened {
        /// Why the handshake failed.
        #[from]
        source: HandshakeError,
    },
    /// The receiver uses another protocol version.
    #[error(
        "{peer} opens sessions by version {theirs} of their messages, and this by {ours}; the same release of Equipoise has to run at both ends"
    )]
    OtherVersion {
        /// The peer.
        peer: SocketAddr,
        /// The receiver's version.
        theirs: u8,
        /// The version of this end.
        ours: u8,
    },
    /// The receiver refuses the session.
    #[error("{peer} refuses: {}", reason.words())]
    Refused {
        /// The peer.
        peer: SocketAddr,
        /// The peer's reason.
        reason: Refusal,
    },
    /// The session requested from the peer is not possible.
    #[error("this cannot be requested from the peer")]
    Wanted(#[from] WantedError),
    /// The sending peer fell silent.
    #[error("{peer} sent nothing for {waited}; the session has ended")]
    Silent {
        /// The peer.
        peer: SocketAddr,
        /// How long the receiver waited.
        waited: Span,
    },
    /// The sending peer was restarted and no longer knows the session.
    #[error("{peer} was restarted; the session is over")]
    StartedAgain {
        /// The peer.
        peer: SocketAddr,
    },
    /// A network namespace cannot be made or entered.
    #[error("`{command}` failed ({said}); a test bed of network namespaces needs root and iproute2")]
    TestBed {
        /// The command that failed.
        command: String,
        /// The system's error.
        said: String,
    },
    /// The kernel has no congestion control of this name.
    #[error("the kernel has no congestion control {name:?}; there are {}", known.join(", "))]
    NoCongestionControl {
        /// The requested name.
        name: String,
        /// The available congestion controls.
        known: Vec<String>,
        /// The system's error.
        source: io::Error,
    },
    /// An operation on a kernel TCP socket failed.
    #[error("cannot {what} a TCP socket")]
    Tcp {
        /// The operation, as a verb.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Payload was passed to a session of generated media.
    #[error(
        "a session of generated media takes no payload; set it up for a stream (Payload::Stream) or RTP packets (Payload::Rtp)"
    )]
    NothingToCarry,
    /// A session cannot be set up.
    #[error("the session cannot be set up")]
    Session(#[from] SessionError),
    /// A flow pair cannot be set up.
    #[error("the flow pair cannot be set up")]
    Pair(#[from] PairError),
    /// The settings of the web traffic are invalid.
    #[error("the web traffic cannot be set up: its {}", source.field())]
    Web {
        /// The invalid setting.
        #[from]
        source: WebError,
    },
    /// The peer answers over TCP, but is not the receiver of a flow pair, or accepts no flow now.
    #[error("{peer} is not a receiver of flow pairs: {said}")]
    NoPair {
        /// The peer.
        peer: SocketAddr,
        /// The peer's answer, or a note that there was no answer.
        said: String,
    },
    /// A thread panicked; its results are lost.
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
        /// Why it cannot be built.
        source: PipeError,
    },
    /// A route leads over a link that the emulator does not have.
    #[error("route {route} uses link {link}, but the emulator has {links} links, numbered from 0")]
    UnknownLink {
        /// The route's position in the list of routes, from 0.
        route: usize,
        /// The missing link.
        link: usize,
        /// How many links there are.
        links: usize,
    },
    /// A TCP route was given to a relay of UDP datagrams, which cannot carry TCP.
    #[error("route {route} uses TCP, but a relay on loopback carries UDP only; use a test bed of network namespaces")]
    NoStream {
        /// The route's position in the list of routes, from 0.
        route: usize,
    },
    /// A direction of a bridge cannot be built.
    #[error("the path {direction} cannot be built")]
    Path {
        /// The direction: "forward" or "back".
        direction: &'static str,
        /// Why it cannot be built.
        source: PipeError,
    },
    /// No network interface has this name.
    #[error("there is no network interface {name:?} here; there are {}", known.join(", "))]
    NoInterface {
        /// The requested name.
        name: String,
        /// The existing interfaces.
        known: Vec<String>,
    },
    /// The interface has no address of the peer's address family.
    #[error("interface {name:?} has no {family} address; `ip addr add` gives it one")]
    NoAddress {
        /// Its name.
        name: String,
        /// "IPv4" or "IPv6".
        family: &'static str,
    },
    /// No interface has the address that was requested for a path, or the address is not of the peer's address family.
    #[error("no interface here has the {family} address {address}; there are {}", known.join(", "))]
    NotOurAddress {
        /// The requested address.
        address: IpAddr,
        /// The peer's address family: "IPv4" or "IPv6".
        family: &'static str,
        /// The existing addresses.
        known: Vec<String>,
    },
    /// The session already has this path.
    #[error("path {path} is path {other}; name each path once")]
    SamePath {
        /// The path that was given.
        path: Via,
        /// The existing path.
        other: Via,
    },
    /// The number of paths is out of range.
    #[error("a session has 1 to {most} paths, not {found}")]
    Paths {
        /// The requested number.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// The system's notifications of interface changes are not available.
    #[error("cannot watch the network interfaces")]
    Interfaces {
        /// The system's error.
        source: io::Error,
    },
    /// Both ends of a bridge name the same interface.
    #[error("{name:?} cannot be bridged with itself; name two interfaces")]
    SameInterface {
        /// The name that was given twice.
        name: String,
    },
    /// The interface does not carry Ethernet frames.
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
    /// Frames cannot be read from or written to the interface.
    #[error("cannot open a packet socket on interface {name:?}")]
    PacketSocket {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The name is not valid for an interface.
    #[error("{name:?} is not a valid interface name; use 1 to 15 characters without spaces, '/', ':' and '%'")]
    InterfaceName {
        /// The requested name.
        name: String,
    },
    /// The system has no TUN devices.
    #[error(
        "there are no TUN devices here, because /dev/net/tun is missing; use `modprobe tun` on a host, `--device /dev/net/tun` with a container"
    )]
    NoTun {
        /// The system's error.
        source: io::Error,
    },
    /// The name of the TUN device is in use.
    #[error(
        "{name:?} is taken: another program has this TUN device, or it is another kind of interface; choose another name"
    )]
    TunTaken {
        /// The requested name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The TUN device cannot be created or opened for another reason.
    #[error("cannot open the TUN device {name:?}")]
    Tun {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The interface can no longer be read.
    #[error("cannot receive from interface {name:?}")]
    InterfaceGone {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}
