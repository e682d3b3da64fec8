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
    /// An association of DTLS-SRTP came to no keys.
    #[error("the peer was not to be had by DTLS-SRTP")]
    NotOpened {
        /// Why.
        #[from]
        source: HandshakeError,
    },
    /// The receiver is of another version.
    #[error(
        "{peer} opens sessions by version {theirs} of their messages, and this by {ours}; the same release of Equipoise has to run at both ends"
    )]
    OtherVersion {
        /// Who was asked.
        peer: SocketAddr,
        /// Its version.
        theirs: u8,
        /// Ours.
        ours: u8,
    },
    /// The receiver wants no session.
    #[error("{peer} refuses: {}", reason.words())]
    Refused {
        /// Who was asked.
        peer: SocketAddr,
        /// Why.
        reason: Refusal,
    },
    /// What the peer is to send cannot be.
    #[error("the peer cannot be asked for this")]
    Wanted(#[from] WantedError),
    /// The peer that sends fell silent.
    #[error("{peer} sent nothing for {waited}; the session is given up")]
    Silent {
        /// Who was to send.
        peer: SocketAddr,
        /// How long it was waited for.
        waited: Span,
    },
    /// The peer that sends knows nothing of the session any more.
    #[error("{peer} was started again; what it sent is over")]
    StartedAgain {
        /// Who was to send.
        peer: SocketAddr,
    },
    /// A network namespace cannot be made or entered.
    #[error("`{command}` failed ({said}); a test bed of network namespaces needs root and iproute2")]
    TestBed {
        /// What was tried.
        command: String,
        /// What the system says.
        said: String,
    },
    /// The kernel has no congestion control of this name.
    #[error("the kernel has no congestion control {name:?}; there are {}", known.join(", "))]
    NoCongestionControl {
        /// The name that was asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
        /// What the system says.
        source: io::Error,
    },
    /// A TCP socket of the kernel does not do what it should.
    #[error("cannot {what} a TCP socket")]
    Tcp {
        /// What it should do.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Media that is generated takes no payload.
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
    /// Web traffic cannot be like that.
    #[error("the web traffic cannot be set up: its {}", source.field())]
    Web {
        /// What is wrong with it.
        #[from]
        source: WebError,
    },
    /// Who answers over TCP is no end of a flow pair, or takes no flow now.
    #[error("{peer} is no receiver of flow pairs: {said}")]
    NoPair {
        /// Who was asked.
        peer: SocketAddr,
        /// What it said instead, or did not.
        said: String,
    },
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
        source: PipeError,
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
    /// Streams are the kernel's, which a relay of datagrams cannot carry.
    #[error("route {route} is of TCP, but a relay on loopback carries UDP only; use a test bed of network namespaces")]
    NoStream {
        /// The route's position in the list of routes, from 0.
        route: usize,
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
    /// The interface has no address of the peer's kind.
    #[error("interface {name:?} has no {family} address; `ip addr add` gives it one")]
    NoAddress {
        /// Its name.
        name: String,
        /// "IPv4" or "IPv6".
        family: &'static str,
    },
    /// A path is to leave from an address that no interface here has, or that is of another kind than the peer's.
    #[error("no interface here has the {family} address {address}; there are {}", known.join(", "))]
    NotOurAddress {
        /// The address that was asked for.
        address: IpAddr,
        /// What it is to be, as the peer's: "IPv4" or "IPv6".
        family: &'static str,
        /// Those that are there.
        known: Vec<String>,
    },
    /// A session has a path already.
    #[error("path {path} is path {other}; name each path once")]
    SamePath {
        /// The one that was given.
        path: Via,
        /// The one that is there.
        other: Via,
    },
    /// A session cannot have so many paths, or so few.
    #[error("a session has 1 to {most} paths, not {found}")]
    Paths {
        /// How many were asked for.
        found: usize,
        /// The most.
        most: usize,
    },
    /// The system does not tell of its interfaces.
    #[error("cannot watch the network interfaces")]
    Interfaces {
        /// What the system says.
        source: io::Error,
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
