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

/// Errors of sockets, threads, network interfaces and sessions.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket uses the requested UDP address.
    #[error("UDP address {address} is in use; choose another port, or port 0 for any free one")]
    PortInUse {
        /// The requested local address of the socket.
        address: SocketAddr,
    },
    /// The UDP socket could not be opened. If the port is in use, the error is [`NetError::PortInUse`].
    #[error("cannot open a UDP socket at {address}")]
    Bind {
        /// The requested local address of the socket.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A datagram cannot be sent. The datagram is too long, its destination address is not possible, or the datagram is
    /// a request to open a session and the system refused to send it.
    #[error("cannot send a datagram of {length} bytes to {peer}")]
    Send {
        /// The destination of the datagram.
        peer: SocketAddr,
        /// Length of the UDP payload in bytes.
        length: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The socket can no longer receive.
    #[error("cannot receive at {address}")]
    Receive {
        /// The local address of the socket.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system call that waits for sockets failed, or the descriptor that wakes a waiting thread could not be
    /// created.
    #[error("cannot wait for {sockets} UDP sockets")]
    Wait {
        /// The number of sockets that were waited for.
        sockets: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The system cannot start another thread.
    #[error("cannot start thread {name:?}")]
    Spawn {
        /// The name of the thread.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The peer sent no valid answer. If there is a key, an answer is valid only if the key authenticates it.
    #[error(
        "no answer from {peer} within {waited}; is `equipoise receive` running there, reachable over UDP, and with the same key?"
    )]
    NoAnswer {
        /// The address of the peer.
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
    /// The peer uses another version of the protocol that opens sessions.
    #[error(
        "{peer} opens sessions by version {theirs} of their messages, and this by {ours}; the same release of Equipoise has to run at both ends"
    )]
    OtherVersion {
        /// The address of the peer.
        peer: SocketAddr,
        /// The protocol version of the peer.
        theirs: u8,
        /// The protocol version of this host.
        ours: u8,
    },
    /// The peer refuses the session.
    #[error("{peer} refuses: {}", reason.words())]
    Refused {
        /// The address of the peer.
        peer: SocketAddr,
        /// The reason that the peer sent.
        reason: Refusal,
    },
    /// The caller's request for media from the peer is invalid.
    #[error("this cannot be requested from the peer")]
    Wanted(#[from] WantedError),
    /// The sending peer sent nothing for too long.
    #[error("{peer} sent nothing for {waited}; the session has ended")]
    Silent {
        /// The address of the peer.
        peer: SocketAddr,
        /// How long this host waited for a packet.
        waited: Span,
    },
    /// The sending peer was restarted, so it no longer has the session.
    #[error("{peer} was restarted; the session is over")]
    StartedAgain {
        /// The address of the peer.
        peer: SocketAddr,
    },
    /// A network namespace could not be created, entered or configured.
    #[error("`{command}` failed ({said}); a test bed of network namespaces needs root and iproute2")]
    TestBed {
        /// The command or other operation that failed.
        command: String,
        /// The system's error, or the error output of the command.
        said: String,
    },
    /// The kernel has no congestion control with the requested name, or does not permit its use.
    #[error("the kernel has no congestion control {name:?}; there are {}", known.join(", "))]
    NoCongestionControl {
        /// The requested name of a congestion control.
        name: String,
        /// The names of the available congestion controls.
        known: Vec<String>,
        /// The system's error.
        source: io::Error,
    },
    /// An operation on a kernel TCP socket failed.
    #[error("cannot {what} a TCP socket")]
    Tcp {
        /// The operation that failed, as a verb.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Payload was passed to a session that generates its media itself.
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
    /// The peer accepts no TCP connection, or closes the connection without an answer, or does not send the first
    /// message of a flow pair.
    #[error("{peer} is not a receiver of flow pairs: {said}")]
    NoPair {
        /// The address of the peer.
        peer: SocketAddr,
        /// The system's error, or what is wrong with the peer's message.
        said: String,
    },
    /// A thread panicked; its results are lost.
    #[error("thread {name:?} panicked; its results are lost")]
    Panicked {
        /// The name of the thread.
        name: String,
    },
    /// A link of the emulator has an invalid configuration.
    #[error("link {link} of the emulator cannot be built")]
    Link {
        /// The index of the link in the list of links, from 0.
        link: usize,
        /// Why the configuration is invalid.
        source: PipeError,
    },
    /// A route uses a link that the emulator does not have.
    #[error("route {route} uses link {link}, but the emulator has {links} links, numbered from 0")]
    UnknownLink {
        /// The index of the route in the list of routes, from 0.
        route: usize,
        /// The index of the missing link.
        link: usize,
        /// The number of links of the emulator.
        links: usize,
    },
    /// A route uses TCP, but on the loopback interface the emulator relays only UDP datagrams.
    #[error("route {route} uses TCP, but a relay on loopback carries UDP only; use a test bed of network namespaces")]
    NoStream {
        /// The index of the route in the list of routes, from 0.
        route: usize,
    },
    /// One direction of a bridge has an invalid configuration.
    #[error("the path {direction} cannot be built")]
    Path {
        /// The direction of the bridge: "forward" or "back".
        direction: &'static str,
        /// Why the configuration is invalid.
        source: PipeError,
    },
    /// No network interface has the requested name.
    #[error("there is no network interface {name:?} here; there are {}", known.join(", "))]
    NoInterface {
        /// The requested name of a network interface.
        name: String,
        /// The names of the existing interfaces.
        known: Vec<String>,
    },
    /// The network interface has no address of the peer's address family.
    #[error("interface {name:?} has no {family} address; `ip addr add` gives it one")]
    NoAddress {
        /// The name of the interface.
        name: String,
        /// The address family: "IPv4" or "IPv6".
        family: &'static str,
    },
    /// No network interface has the address that was requested for a path, or the address is not of the peer's address
    /// family.
    #[error("no interface here has the {family} address {address}; there are {}", known.join(", "))]
    NotOurAddress {
        /// The requested local address of the path.
        address: IpAddr,
        /// The peer's address family: "IPv4" or "IPv6".
        family: &'static str,
        /// The existing addresses of the interfaces.
        known: Vec<String>,
    },
    /// The session already has a path with this interface or address.
    #[error("path {path} is path {other}; name each path once")]
    SamePath {
        /// The path that was requested.
        path: Via,
        /// The existing path with the same interface or address.
        other: Via,
    },
    /// The number of paths of a session is zero or too large.
    #[error("a session has 1 to {most} paths, not {found}")]
    Paths {
        /// The requested number of paths.
        found: usize,
        /// The maximum number of paths.
        most: usize,
    },
    /// The system's list of network interfaces, or its notifications of interface changes, are not available.
    #[error("cannot watch the network interfaces")]
    Interfaces {
        /// The system's error.
        source: io::Error,
    },
    /// Both interfaces of a bridge are the same.
    #[error("{name:?} cannot be bridged with itself; name two interfaces")]
    SameInterface {
        /// The name of the interface.
        name: String,
    },
    /// The network interface does not transmit Ethernet frames.
    #[error("interface {name:?} carries no Ethernet frames; bridge veth or Ethernet interfaces")]
    NotEthernet {
        /// The name of the interface.
        name: String,
    },
    /// The network interface is down.
    #[error("interface {name:?} is down; bring it up with `ip link set {name} up`")]
    InterfaceDown {
        /// The name of the interface.
        name: String,
    },
    /// A packet socket cannot be opened on the network interface.
    #[error("cannot open a packet socket on interface {name:?}")]
    PacketSocket {
        /// The name of the interface.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The name cannot be the name of a network interface.
    #[error("{name:?} is not a valid interface name; use 1 to 15 characters without spaces, '/', ':' and '%'")]
    InterfaceName {
        /// The requested name of a network interface.
        name: String,
    },
    /// The system does not support TUN devices.
    #[error(
        "there are no TUN devices here, because /dev/net/tun is missing; use `modprobe tun` on a host, `--device /dev/net/tun` with a container"
    )]
    NoTun {
        /// The system's error.
        source: io::Error,
    },
    /// The requested name of the TUN device is in use.
    #[error(
        "{name:?} is taken: another program has this TUN device, or it is another kind of interface; choose another name"
    )]
    TunTaken {
        /// The requested name of the TUN device.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The TUN device cannot be created or opened. If its name is in use, the error is [`NetError::TunTaken`].
    #[error("cannot open the TUN device {name:?}")]
    Tun {
        /// The name of the device.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The network interface can no longer be read.
    #[error("cannot receive from interface {name:?}")]
    InterfaceGone {
        /// The name of the interface.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}
