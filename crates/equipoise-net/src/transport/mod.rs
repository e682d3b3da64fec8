//! The layer between an endpoint and its sockets: it decides which datagrams are accepted, and protects packets.

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
    /// A datagram of the session; its content is in the transport's [`datagram`](Transport::datagram).
    Datagram {
        /// The path on which it arrived.
        path: PathId,
        /// When it arrived.
        at: Time,
        /// The ECN field of its IP header.
        ecn: Ecn,
    },
    /// A datagram that was dropped and has to be counted.
    Dropped {
        /// When it arrived.
        at: Time,
        /// Why it was dropped.
        reason: DropReason,
    },
    /// ICMP has reported on a path that the peer is unreachable.
    Unreachable {
        /// The path.
        path: PathId,
        /// When the report was read.
        at: Time,
    },
    /// A message for the transport itself.
    Own,
}

/// Carries an endpoint's datagrams to and from its peer, over one path or several.
pub(crate) trait Transport {
    /// Its sockets.
    fn links(&self) -> &Links;

    /// Its sockets, to wait for them and to use them.
    fn links_mut(&mut self) -> &mut Links;

    /// Reads the next datagram; `None` if no datagram waits.
    fn receive(&mut self) -> Result<Option<Arrival>, NetError>;

    /// The content of the last received datagram, without its protection.
    fn datagram(&self) -> &[u8];

    /// Sends a datagram on a path. If the path cannot be used, the datagram is lost.
    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError>;

    /// When to call [`on_timer`](Self::on_timer); `None` if no timer runs.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// Handles all expired timers.
    fn on_timer(&mut self, _now: Time) -> Result<(), NetError> {
        Ok(())
    }

    /// The endpoint emitted an event on a path.
    fn on_event(&mut self, _now: Time, _path: PathId, _event: &Event) {}

    /// The session is over. A transport may repeat the goodbye, in case it is lost.
    fn farewell(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}
