use super::PathId;
use crate::{Event, Output, Transmit, Wake};
use equipoise::units::Instant;

/// One end of a session over several paths: an [`Endpoint`](crate::Endpoint) with a path beside what happens.
pub trait MultipathEndpoint {
    /// The clock this end lives by.
    type Clock;

    /// Something happened at `now`.
    fn handle(&mut self, now: Instant<Self::Clock>, input: MultipathInput<'_>);

    /// The next thing to do or to know, in order; `None` when all is said.
    fn poll(&mut self) -> Option<MultipathOutput<'_>>;

    /// When to call [`handle`](Self::handle) with [`MultipathInput::Timer`] if nothing happens before; `None` for never.
    ///
    /// Once `poll` has given `None`, it lies after the `now` that was handled last.
    fn wake(&self) -> Option<Wake<Self::Clock>>;

    /// Bytes of payload that it would take now ([`MultipathInput::Payload`]); what does not fit is dropped.
    fn room(&self) -> usize {
        0
    }

    /// Bytes of payload that wait to be sent.
    fn waiting(&self) -> usize {
        0
    }
}

/// What can happen to an end of a session over several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathInput<'a> {
    /// A whole UDP payload arrived; it need not be ours, nor well formed.
    Datagram {
        /// On which path.
        path: PathId,
        /// The payload.
        datagram: &'a [u8],
    },
    /// The time asked for has come; too early or without need does no harm.
    Timer,
    /// Payload from the application: the next bytes of its stream, or one RTP packet, as the session was set up for.
    Payload {
        /// The payload.
        payload: &'a [u8],
        /// It is worth being sent on two paths: the copy leaves when the other path's turn comes.
        twice: bool,
    },
    /// Something became of a path.
    Path {
        /// Of which one.
        path: PathId,
        /// What.
        change: PathChange,
    },
    /// The application wants to end the session.
    Stop,
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

/// What an end of a session over several paths asks of its world or tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MultipathOutput<'a> {
    /// Send this datagram to the peer now.
    Transmit {
        /// On this path.
        path: PathId,
        /// The datagram.
        transmit: Transmit<'a>,
    },
    /// Payload for the application.
    Payload {
        /// Packets that are missing before it.
        missing: u64,
        /// Bytes of the stream, or one RTP packet.
        payload: &'a [u8],
    },
    /// Something a person or a report may want to know.
    Event {
        /// Of which path; none for the session as a whole.
        path: Option<PathId>,
        /// What.
        event: Event,
    },
}

impl<'a> MultipathOutput<'a> {
    /// An output with its path beside. What is transmitted always has one.
    pub(super) fn of(path: Option<PathId>, output: Output<'a>) -> Self {
        match output {
            Output::Transmit(transmit) => Self::Transmit { path: path.unwrap_or_default(), transmit },
            Output::Payload { missing, payload } => Self::Payload { missing, payload },
            Output::Event(event) => Self::Event { path, event },
        }
    }
}
