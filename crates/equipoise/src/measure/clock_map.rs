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
    /// The two clocks agree: one host, one simulator, or hosts declared to be synchronised.
    pub const SYNCHRONISED: Self = Self { receiver_ahead: Span::ZERO };

    /// The receiver's clock shows `span` more than the sender's at the same moment.
    pub const fn receiver_ahead(span: Span) -> Self {
        Self { receiver_ahead: span }
    }

    /// How far the receiver's clock is ahead of the sender's.
    pub const fn ahead(&self) -> Span {
        self.receiver_ahead
    }

    /// The time from `sent` to `arrived`; negative if the map is wrong.
    pub fn one_way_delay(&self, sent: Instant<SenderClock>, arrived: Instant<ReceiverClock>) -> Span {
        self.to_sender(arrived) - sent
    }

    /// The sender's clock reading at a moment of the receiver's clock.
    pub fn to_sender(&self, at: Instant<ReceiverClock>) -> Instant<SenderClock> {
        (at - self.receiver_ahead).assume_clock()
    }
}
