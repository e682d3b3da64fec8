use std::sync::{Arc, Mutex, PoisonError};

use equipoise::control::{Beliefs, Snapshot};
use equipoise::units::{Rate, Size, Span};
use equipoise_session::feedback::FeedbackCounts;

/// What the congestion control of a peer connection has decided, for its application. Clones see the same.
#[derive(Clone, Debug)]
pub struct Monitor(Arc<Mutex<Status>>);

/// The state of congestion control at a moment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The rate of IP packets, with all headers.
    pub rate: Rate,
    /// What of it is for the encoders: without headers, retransmissions and repair, by what these took of late.
    pub media_rate: Rate,
    /// What waits at the pacer, as IP packets.
    pub waiting: Size,
    /// The last round trip; `None` before feedback came.
    pub round_trip: Option<Span>,
    /// Reports, and what was wrong with them.
    pub counts: FeedbackCounts,
    /// How often the far end has asked for a key frame (RFC 4585, Sec. 6.3.1; RFC 5104, Sec. 3.5.1).
    pub key_frame_requests: u64,
    /// What the controller says of its last decision.
    pub snapshot: Snapshot,
    /// What the controller believes of the path, if it says.
    pub beliefs: Option<Beliefs>,
}

impl Monitor {
    pub(crate) fn new(rate: Rate) -> Self {
        Self(Arc::new(Mutex::new(Status {
            rate,
            media_rate: rate,
            waiting: Size::ZERO,
            round_trip: None,
            counts: FeedbackCounts::default(),
            key_frame_requests: 0,
            snapshot: Snapshot::default(),
            beliefs: None,
        })))
    }

    /// The state as it is now.
    pub fn status(&self) -> Status {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
