use crate::units::{Instant, ReceiverClock, SenderClock, Span};

/// How the receiver's clock relates to the sender's.
///
/// The caller must know that the clocks agree, or by how much one is ahead of the other. If this is not known, use
/// [`PathClock`](super::PathClock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMap {
    receiver_ahead: Span,
}

impl ClockMap {
    /// The map for two clocks that agree: those of one host, of one simulator, or of hosts declared to be synchronised.
    pub const SYNCHRONISED: Self = Self { receiver_ahead: Span::ZERO };

    /// Returns the map for a receiver's clock that shows `span` more than the sender's clock at the same moment.
    pub const fn receiver_ahead(span: Span) -> Self {
        Self { receiver_ahead: span }
    }

    /// Returns by how much the receiver's clock is ahead of the sender's clock.
    pub const fn ahead(&self) -> Span {
        self.receiver_ahead
    }

    /// Returns the time from `sent` to `arrived`. A negative time means that the map is wrong.
    pub fn one_way_delay(&self, sent: Instant<SenderClock>, arrived: Instant<ReceiverClock>) -> Span {
        self.to_sender(arrived) - sent
    }

    /// Returns the reading of the sender's clock when the receiver's clock shows `at`.
    pub fn to_sender(&self, at: Instant<ReceiverClock>) -> Instant<SenderClock> {
        (at - self.receiver_ahead).assume_clock()
    }
}
