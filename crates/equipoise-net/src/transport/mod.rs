//! Between an endpoint and its socket: whom it hears, and in what form it speaks.

mod client;
mod plain;

use equipoise::session::{Event, Ignored};

use crate::{NetError, Socket, Time};

pub(crate) use client::{Client, Opening};
pub(crate) use plain::Plain;

/// What has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    /// A datagram of the session; it stands in the transport's [`datagram`](Transport::datagram).
    Datagram {
        /// When it arrived.
        at: Time,
    },
    /// One that was counted and dropped.
    Dropped {
        /// When it arrived.
        at: Time,
        /// Why.
        reason: Ignored,
    },
    /// One of the transport's own.
    Own,
}

/// The way of an endpoint's datagrams to and from its peer.
pub(crate) trait Transport {
    /// What it talks through.
    fn socket(&self) -> &Socket;

    /// Reads the next datagram; `None` where none is there.
    fn receive(&mut self) -> Result<Option<Arrival>, NetError>;

    /// The datagram that was received last, as the peer meant it.
    fn datagram(&self) -> &[u8];

    /// Sends `head` and `media` zeros behind it.
    fn send(&mut self, head: &[u8], media: usize) -> Result<(), NetError>;

    /// When it wants [`on_timer`](Self::on_timer) to be called, if ever.
    fn wake(&self) -> Option<Time> {
        None
    }

    /// Does what is due.
    fn on_timer(&mut self, _now: Time) -> Result<(), NetError> {
        Ok(())
    }

    /// The endpoint did or saw something.
    fn on_event(&mut self, _now: Time, _event: &Event) {}

    /// The session is over; the last word may be said again, in case it is lost.
    fn farewell(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}
