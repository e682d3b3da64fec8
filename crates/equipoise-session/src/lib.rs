//! The loop closed over a protocol: state machines that take datagrams and time, and give datagrams and events.
//!
//! A world drives an [`Endpoint`]: it calls [`handle`](Endpoint::handle) with what happened and when, then
//! [`poll`](Endpoint::poll) until that returns `None`, then waits for the next datagram or for [`wake`](Endpoint::wake).
//! Calls may come in any order; a state machine never reads a clock and never blocks.
//!
//! [`rtp`] is a session over one path, [`multipath`] one over several; [`feedback`] is what both ends of one keep for feedback by
//! packet, and [`guest`] a controller in the stack of somebody else.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod event;
pub mod feedback;
pub mod guest;
#[cfg(test)]
mod harm;
pub mod multipath;
pub mod rtp;
pub mod wire;

use equipoise::units::{Instant, Size};
use wire::key_frames::KeyFrameRequest;

pub use equipoise_path::link::Ecn;
pub use event::{DropReason, Event, Fragment, Half, Medium, Transport};

pub use equipoise::control::scheduler::PathId;

/// One end of a session, over one path or several.
///
/// Paths have numbers. A session over one path has path 0 from beginning to end.
pub trait Endpoint {
    /// The clock this end lives by.
    type Clock;

    /// Something happened at `now`.
    fn handle(&mut self, now: Instant<Self::Clock>, input: Input<'_>);

    /// The next thing to do or to know, in order; `None` when all is said.
    fn poll(&mut self) -> Option<Output<'_>>;

    /// When to call [`handle`](Self::handle) with [`Input::Timer`] if nothing arrives before; `None` for never.
    ///
    /// Once `poll` has returned `None`, it lies after the `now` that was handled last.
    fn wake(&self) -> Option<Wake<Self::Clock>>;

    /// Bytes of payload that it would take now ([`Input::Payload`]); what does not fit is dropped.
    fn room(&self) -> usize {
        0
    }

    /// Bytes of payload that wait to be sent.
    fn waiting(&self) -> usize {
        0
    }
}

/// What can happen to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A whole UDP payload arrived; it need not be ours, nor well formed.
    Datagram {
        /// On which path.
        path: PathId,
        /// The payload.
        datagram: &'a [u8],
        /// What the IP header said of congestion; [`Ecn::NotCapable`] too where nobody looked.
        ecn: Ecn,
    },
    /// The time asked for has come; too early or without need does no harm.
    Timer,
    /// Payload from the application: the next bytes of its stream, or one RTP packet, as the session was set up for.
    Payload {
        /// The payload.
        payload: &'a [u8],
        /// It is worth being sent on two paths, if there are several: the copy leaves when the other path's turn comes.
        twice: bool,
    },
    /// Something became of a path.
    Path {
        /// Of which one.
        path: PathId,
        /// What.
        change: PathChange,
    },
    /// The network says that nobody takes what is sent (ICMP: port, host or network unreachable). Anybody may say so: it
    /// counts for as long as no report comes.
    Unreachable {
        /// On which path.
        path: PathId,
    },
    /// The application cannot show what it receives without a key frame, and wants one of the encoder. Requests that follow each other
    /// closely are one.
    KeyFrame(KeyFrameRequest),
    /// The application wants to end the session.
    Stop,
}

impl<'a> Input<'a> {
    /// A datagram on path 0, of whose IP header nothing is known.
    pub const fn datagram(datagram: &'a [u8]) -> Self {
        Self::Datagram { path: PathId(0), datagram, ecn: Ecn::NotCapable }
    }

    /// Payload that is sent once.
    pub const fn payload(payload: &'a [u8]) -> Self {
        Self::Payload { payload, twice: false }
    }
}

/// What may become of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// There is one, or it can be used again.
    Up,
    /// It cannot be used for the time being: nothing is sent on it until it is up.
    Down,
    /// There is none of that number any more.
    Removed,
}

/// What an endpoint asks of its world or tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a> {
    /// Send this datagram to the peer now.
    Transmit {
        /// On this path.
        path: PathId,
        /// The datagram.
        transmit: Transmit<'a>,
    },
    /// Payload for the application, in the order in which it was sent.
    Payload {
        /// Packets that are missing before it.
        missing: u64,
        /// Bytes of the stream, or one RTP packet.
        payload: &'a [u8],
    },
    /// Something a person or a report may want to know.
    Event {
        /// Of which path; `None` for the session as a whole, and always in a session over one path.
        path: Option<PathId>,
        /// What.
        event: Event,
    },
}

/// A UDP payload to send: the encoded part, followed by generated media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The first bytes of the payload: all of it where it carries what an application gave, and otherwise never more than
    /// [`Transmit::MAX_HEAD`].
    pub head: &'a [u8],
    /// How many bytes of generated media follow, which are zeros.
    pub media: usize,
    /// What carries it.
    pub carrier: Carrier,
    /// What its IP header is to say of congestion.
    pub ecn: Ecn,
}

/// The protocol below a datagram's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, as for every session.
    #[default]
    Udp,
    /// TCP, for the hosts of a simulator: the head is the TCP header.
    Tcp,
}

impl<'a> Transmit<'a> {
    /// A whole UDP payload, which no queue may mark.
    pub const fn datagram(payload: &'a [u8]) -> Self {
        Self { head: payload, media: 0, carrier: Carrier::Udp, ecn: Ecn::NotCapable }
    }
}

impl Transmit<'_> {
    /// The longest head before generated media and of a report, in bytes.
    pub const MAX_HEAD: usize = 128;

    /// Length of the UDP payload in bytes.
    pub const fn len(&self) -> usize {
        self.head.len().saturating_add(self.media)
    }

    /// Size of the IPv4 packet.
    pub const fn packet_size(&self) -> Size {
        let headers = match self.carrier {
            Carrier::Udp => Size::IPV4_UDP,
            Carrier::Tcp => Size::IPV4,
        };
        Size::from_bytes(headers.as_bytes() + self.len() as u64)
    }

    /// Whether there is nothing to send; never so for what a session gives out.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A moment to be woken at, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake<C> {
    /// When.
    pub at: Instant<C>,
    /// What for.
    pub reason: WakeReason,
}

/// What an endpoint waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeReason {
    /// The pacer lets the next media packet go; worth being punctual.
    Media,
    /// A report is due.
    Report,
}

impl<C> Wake<C> {
    /// For media or for a report, whichever is due first.
    pub(crate) fn first(media: Instant<C>, report: Instant<C>) -> Self {
        if media <= report {
            Self { at: media, reason: WakeReason::Media }
        } else {
            Self { at: report, reason: WakeReason::Report }
        }
    }
}
