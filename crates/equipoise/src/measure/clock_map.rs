use crate::units::{Instant, ReceiverClock, SenderClock, Span};

/// How the receiver's clock relates to the sender's.
///
/// A statement by whoever knows: the two agree, or one leads the other by a known span. Where nobody knows, see
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

    /// What the receiver's clock shows more than the sender's.
    pub const fn ahead(&self) -> Span {
        self.receiver_ahead
    }

    /// The time from `sent` to `arrived`; negative where the map is wrong.
    pub fn one_way_delay(&self, sent: Instant<SenderClock>, arrived: Instant<ReceiverClock>) -> Span {
        self.to_sender(arrived) - sent
    }

    /// What the sender's clock showed at a moment on the receiver's.
    pub fn to_sender(&self, at: Instant<ReceiverClock>) -> Instant<SenderClock> {
        (at - self.receiver_ahead).assume_clock()
    }
}
