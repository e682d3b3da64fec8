//! The control loop over a protocol: state machines with datagrams and time as input, and datagrams and events as
//! output.
//!
//! A driver, such as the simulator or the code for real sockets, runs an [`Endpoint`]. It calls
//! [`handle`](Endpoint::handle) with each input and its time, then [`poll`](Endpoint::poll) until that returns `None`.
//! Then it waits for the next datagram or until [`wake`](Endpoint::wake). Calls may come in any order; a state machine
//! never reads a clock and never blocks.
//!
//! [`rtp`] is a session over one path, [`multipath`] a session over several paths. [`feedback`] holds the state of both
//! ends for per-packet feedback, and [`guest`] embeds a controller in a foreign protocol stack.
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
/// Paths have numbers. A session over one path always has path 0.
pub trait Endpoint {
    /// The clock of this end.
    type Clock;

    /// Processes an input at `now`.
    fn handle(&mut self, now: Instant<Self::Clock>, input: Input<'_>);

    /// The next output, in order; `None` when there are no more.
    fn poll(&mut self) -> Option<Output<'_>>;

    /// When to call [`handle`](Self::handle) with [`Input::Timer`] if no input arrives before; `None` for never.
    ///
    /// After `poll` has returned `None`, it is later than the last `now` passed to `handle`.
    fn wake(&self) -> Option<Wake<Self::Clock>>;

    /// Bytes of payload that the endpoint would accept now ([`Input::Payload`]); further bytes are dropped.
    fn room(&self) -> usize {
        0
    }

    /// Bytes of payload that are queued.
    fn waiting(&self) -> usize {
        0
    }
}

/// The inputs of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A whole UDP payload arrived; it may be foreign or malformed.
    Datagram {
        /// The path on which it arrived.
        path: PathId,
        /// The payload.
        datagram: &'a [u8],
        /// ECN field of the IP header; [`Ecn::NotCapable`] also if it was not read.
        ecn: Ecn,
    },
    /// The time returned by `wake` has come; a call that is early or not needed does no harm.
    Timer,
    /// Payload from the application: the next bytes of its stream, or one RTP packet, depending on the session's
    /// configuration.
    Payload {
        /// The payload.
        payload: &'a [u8],
        /// Whether to send it on two paths, if there are several. The copy is sent when the pacer of the second path
        /// allows it.
        twice: bool,
    },
    /// The state of a path changed.
    Path {
        /// The path.
        path: PathId,
        /// The change.
        change: PathChange,
    },
    /// The network reports the destination as unreachable (ICMP: port, host or network unreachable). Anyone can forge
    /// this, so it only counts while no report arrives.
    Unreachable {
        /// The path.
        path: PathId,
    },
    /// The application cannot show what it receives without a key frame, and requests one from the encoder. Requests in
    /// quick succession are merged.
    KeyFrame(KeyFrameRequest),
    /// The application wants to end the session.
    Stop,
}

impl<'a> Input<'a> {
    /// A datagram on path 0, without information from its IP header.
    pub const fn datagram(datagram: &'a [u8]) -> Self {
        Self::Datagram { path: PathId(0), datagram, ecn: Ecn::NotCapable }
    }

    /// Payload that is sent once.
    pub const fn payload(payload: &'a [u8]) -> Self {
        Self::Payload { payload, twice: false }
    }
}

/// A change of a path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// The path exists, or is usable again.
    Up,
    /// The path is not usable: nothing is sent on it until it is up.
    Down,
    /// The path no longer exists.
    Removed,
}

/// The outputs of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a> {
    /// Send this datagram to the peer now.
    Transmit {
        /// The path to send on.
        path: PathId,
        /// The datagram.
        transmit: Transmit<'a>,
    },
    /// Payload for the application, in sending order.
    Payload {
        /// Number of missing packets before it.
        missing: u64,
        /// Bytes of the stream, or one RTP packet.
        payload: &'a [u8],
    },
    /// An event, for logs and reports.
    Event {
        /// The path of the event; `None` for the session as a whole, and always in a session over one path.
        path: Option<PathId>,
        /// The event.
        event: Event,
    },
}

/// A UDP payload to send: encoded bytes, followed by generated media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The first bytes of the payload: the whole payload if it comes from an application, otherwise at most
    /// [`Transmit::MAX_HEAD`].
    pub head: &'a [u8],
    /// Number of bytes of generated media that follow, all zeros.
    pub media: usize,
    /// The protocol that carries the payload.
    pub carrier: Carrier,
    /// ECN field for the IP header.
    pub ecn: Ecn,
}

/// The protocol below a datagram's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, for all sessions.
    #[default]
    Udp,
    /// TCP, for hosts of the simulator: the head is the TCP header.
    Tcp,
}

impl<'a> Transmit<'a> {
    /// A whole UDP payload that is sent as Not-ECT.
    pub const fn datagram(payload: &'a [u8]) -> Self {
        Self { head: payload, media: 0, carrier: Carrier::Udp, ecn: Ecn::NotCapable }
    }
}

impl Transmit<'_> {
    /// Maximum length in bytes of the head before generated media, and of a report.
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

    /// Whether there is nothing to send; never true for an output of a session.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A time to wake up, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake<C> {
    /// The time.
    pub at: Instant<C>,
    /// The reason.
    pub reason: WakeReason,
}

/// What an endpoint waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeReason {
    /// The pacer releases the next media packet; punctuality matters.
    Media,
    /// A report is due.
    Report,
}

impl<C> Wake<C> {
    /// A wake-up for media or a report, whichever is due first.
    pub(crate) fn first(media: Instant<C>, report: Instant<C>) -> Self {
        if media <= report {
            Self { at: media, reason: WakeReason::Media }
        } else {
            Self { at: report, reason: WakeReason::Report }
        }
    }
}
