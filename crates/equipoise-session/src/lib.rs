//! RTP sessions with a control loop, as state machines: their inputs are datagrams, payload and time, and their outputs
//! are datagrams, payload and events.
//!
//! A driver, such as the simulator or the code for real sockets, runs an [`Endpoint`]. The driver calls
//! [`handle`](Endpoint::handle) with an input and the time of the input, and then calls [`poll`](Endpoint::poll) until
//! `poll` returns `None`. Then the driver waits for the next datagram, but at most until the time that
//! [`wake`](Endpoint::wake) returns. Another order of the calls is allowed. A state machine never reads a clock and
//! never blocks.
//!
//! [`rtp`] is a session over one path, [`multipath`] a session over several paths. [`feedback`] contains the state of
//! sender and receiver for per-packet feedback, and [`guest`] embeds a controller in a foreign protocol stack.
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

/// One endpoint of a session over one path or several paths.
///
/// Paths have numbers. In a session over one path, the path has the number 0.
pub trait Endpoint {
    /// The clock that this endpoint uses.
    type Clock;

    /// Processes an input at `now`.
    fn handle(&mut self, now: Instant<Self::Clock>, input: Input<'_>);

    /// Returns the next output, in order; `None` if there is no more output.
    fn poll(&mut self) -> Option<Output<'_>>;

    /// Returns when to call [`handle`](Self::handle) with [`Input::Timer`] if no input arrives before; `None` for
    /// never.
    ///
    /// After `poll` has returned `None`, `wake` returns a time later than the last `now` passed to `handle`.
    fn wake(&self) -> Option<Wake<Self::Clock>>;

    /// Returns how many bytes of payload the endpoint would accept now ([`Input::Payload`]). The endpoint drops further
    /// bytes.
    fn room(&self) -> usize {
        0
    }

    /// Returns how many bytes of payload are queued.
    fn waiting(&self) -> usize {
        0
    }
}

/// The inputs of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A UDP payload arrived. It may be malformed, or not belong to this session.
    Datagram {
        /// The path on which the payload arrived.
        path: PathId,
        /// The payload.
        datagram: &'a [u8],
        /// ECN field of the datagram's IP header; [`Ecn::NotCapable`] if the field was not read.
        ecn: Ecn,
    },
    /// The time returned by `wake` has come; a call that is early or not needed does no harm.
    Timer,
    /// Payload from the application: the next bytes of the application's stream, or one RTP packet. The session's
    /// configuration determines which.
    Payload {
        /// The payload.
        payload: &'a [u8],
        /// Whether to send the payload on two paths, if the session has several. The copy is sent when the pacer of the
        /// second path allows it.
        twice: bool,
    },
    /// The state of a path changed. Of this crate's endpoints, only a [`multipath::Sender`] uses this input; the others
    /// ignore it.
    Path {
        /// The path.
        path: PathId,
        /// The path's new state.
        change: PathChange,
    },
    /// The network reports the destination as unreachable (ICMP: port, host or network unreachable). Anyone can forge
    /// such a message, so it is ignored while reports arrive.
    Unreachable {
        /// The path.
        path: PathId,
    },
    /// The application needs a key frame to show what it receives, and requests one from the encoder. Requests in quick
    /// succession are merged.
    KeyFrame(KeyFrameRequest),
    /// The application wants to end the session.
    Stop,
}

impl<'a> Input<'a> {
    /// Creates the input for a datagram on path 0. The ECN field is [`Ecn::NotCapable`], because it was not read.
    pub const fn datagram(datagram: &'a [u8]) -> Self {
        Self::Datagram { path: PathId(0), datagram, ecn: Ecn::NotCapable }
    }

    /// Creates the input for payload that is sent on only one path.
    pub const fn payload(payload: &'a [u8]) -> Self {
        Self::Payload { payload, twice: false }
    }
}

/// A change of a path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// The path exists, or is usable again.
    Up,
    /// The path is not usable: a [`multipath::Sender`] sends nothing on it until its state is `Up`.
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
        /// Number of packets that are missing before this payload.
        missing: u64,
        /// The next bytes of the application's stream, or one RTP packet.
        payload: &'a [u8],
    },
    /// An event, for logs and reports.
    Event {
        /// The path that the event concerns. `None` if the event concerns the whole session. In a session over one
        /// path, always `None`.
        path: Option<PathId>,
        /// The event.
        event: Event,
    },
}

/// A UDP payload to send, or a TCP segment in the simulator: `head`, followed by `media` zero bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The first bytes of the payload: the whole payload if it comes from an application, otherwise at most
    /// [`Transmit::MAX_HEAD`] bytes.
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
    /// TCP, for hosts of the simulator: [`Transmit::head`] is the TCP header.
    Tcp,
}

impl<'a> Transmit<'a> {
    /// Creates a UDP payload that contains no generated media. The payload is sent as Not-ECT.
    pub const fn datagram(payload: &'a [u8]) -> Self {
        Self { head: payload, media: 0, carrier: Carrier::Udp, ecn: Ecn::NotCapable }
    }
}

impl Transmit<'_> {
    /// Maximum length, in bytes, of a report, and of a head that precedes generated media.
    pub const MAX_HEAD: usize = 128;

    /// Returns the length of the UDP payload or TCP segment in bytes.
    pub const fn len(&self) -> usize {
        self.head.len().saturating_add(self.media)
    }

    /// Returns the size of the IPv4 packet that carries the payload.
    pub const fn packet_size(&self) -> Size {
        let headers = match self.carrier {
            Carrier::Udp => Size::IPV4_UDP,
            Carrier::Tcp => Size::IPV4,
        };
        Size::from_bytes(headers.as_bytes() + self.len() as u64)
    }

    /// Whether the payload is empty, which is never true for an output of a session.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// When an endpoint must be called next, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake<C> {
    /// When to call the endpoint.
    pub at: Instant<C>,
    /// Why to call the endpoint then.
    pub reason: WakeReason,
}

/// Why an endpoint must be called at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeReason {
    /// The pacer releases the next media packet. If the endpoint is called late, the packet leaves late.
    Media,
    /// A report, a request or another timer is due.
    Report,
}

impl<C> Wake<C> {
    /// Returns the earlier of a wake-up for media and a wake-up for a report.
    pub(crate) fn first(media: Instant<C>, report: Instant<C>) -> Self {
        if media <= report {
            Self { at: media, reason: WakeReason::Media }
        } else {
            Self { at: report, reason: WakeReason::Report }
        }
    }
}
