use std::io;
use std::net::SocketAddr;

use equipoise::link::LinkError;
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
}
