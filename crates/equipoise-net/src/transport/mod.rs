//! Between an endpoint and its socket: whom it hears, and in what form it speaks.

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

/// What has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    /// A datagram of the session; it stands in the transport's [`datagram`](Transport::datagram).
    Datagram {
        /// On which path.
        path: PathId,
        /// When it arrived.
        at: Time,
        /// What its IP header said of congestion.
        ecn: Ecn,
    },
    /// One that was counted and dropped.
    Dropped {
        /// When it arrived.
        at: Time,
        /// Why.
        reason: DropReason,
    },
    /// Word from a path, at this time, that nobody takes what is sent.
    Unreachable {
        /// On which path.
        path: PathId,
        /// When it was read.
        at: Time,
    },
    /// One of the transport's own.
    Own,
}

/// The way of an endpoint's datagrams to and from its peer, over one path or several.
pub(crate) trait Transport {
    /// Its sockets.
    fn links(&self) -> &Links;

    /// The same, to be waited for and used.
    fn links_mut(&mut self) -> &mut Links;

    /// Reads the next datagram; `None` if none is there.
    fn receive(&mut self) -> Result<Option<Arrival>, NetError>;

    /// The datagram that was received last, as the peer meant it.
    fn datagram(&self) -> &[u8];

    /// Sends a datagram on a path, or loses it where that cannot be used.
    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError>;

    /// When it wants [`on_timer`](Self::on_timer) to be called, if ever.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// Does what is due.
    fn on_timer(&mut self, _now: Time) -> Result<(), NetError> {
        Ok(())
    }

    /// The endpoint did or saw something on a path.
    fn on_event(&mut self, _now: Time, _path: PathId, _event: &Event) {}

    /// The session is over; the last word may be said again, in case it is lost.
    fn farewell(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}
