//! The layer between an endpoint and its sockets: it decides which datagrams are accepted, and encrypts and decrypts
//! packets.

mod client;
mod interfaces;
mod links;
mod paths;
mod plain;
mod secured;
mod via;

use equipoise_session::{DropReason, Ecn, Event, PathId, Transmit};

use crate::{NetError, Time};

pub(crate) use client::Client;
pub(crate) use links::Links;
pub use paths::Paths;
pub(crate) use paths::check_count;
pub(crate) use plain::Plain;
pub(crate) use secured::Secured;
pub use via::Via;

/// What a transport has received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    /// A datagram of the session. Its content is returned by [`Transport::datagram`].
    Datagram {
        /// The path on which the datagram arrived.
        path: PathId,
        /// When the datagram arrived.
        at: Time,
        /// The ECN field of the datagram's IP header.
        ecn: Ecn,
    },
    /// A datagram that was dropped and must be counted.
    Dropped {
        /// When the datagram arrived.
        at: Time,
        /// Why the datagram was dropped.
        reason: DropReason,
    },
    /// An ICMP error says that the peer is unreachable on a path.
    Unreachable {
        /// The path on which the error was received.
        path: PathId,
        /// When the error was read.
        at: Time,
    },
    /// A message for the transport itself, which the endpoint does not need.
    Own,
}

/// Exchanges datagrams between an endpoint and its peer, over one path or several paths.
pub(crate) trait Transport {
    /// The sockets of the transport.
    fn links(&self) -> &Links;

    /// Mutable access to the sockets of the transport, for waiting for datagrams and for reading changes of the paths.
    fn links_mut(&mut self) -> &mut Links;

    /// Reads the next datagram or ICMP error; `None` if neither is waiting.
    fn receive(&mut self) -> Result<Option<Arrival>, NetError>;

    /// The content of the last received datagram, decrypted.
    fn datagram(&self) -> &[u8];

    /// Sends a datagram on a path. If the path cannot be used, the datagram may be lost.
    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError>;

    /// When to call [`on_timer`](Self::on_timer); `None` if no timer is set.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// Handles all timers that have expired.
    fn on_timer(&mut self, _now: Time) -> Result<(), NetError> {
        Ok(())
    }

    /// Called when the endpoint has emitted an event on a path.
    fn on_event(&mut self, _now: Time, _path: PathId, _event: &Event) {}

    /// Called at the end of the session. A transport may send the BYE again, in case the first BYE is lost.
    fn farewell(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}
