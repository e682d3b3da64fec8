use std::sync::{Arc, Mutex, PoisonError};

use equipoise::control::{Beliefs, Snapshot};
use equipoise::units::{Rate, Size, Span};
use equipoise_session::feedback::FeedbackCounts;

/// Access to the state of a peer connection's congestion control, for the application. Clones share the state.
#[derive(Clone, Debug)]
pub struct Monitor(Arc<Mutex<Status>>);

/// The state of congestion control at a given time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The rate, counting whole IP packets with all headers.
    pub rate: Rate,
    /// The part of `rate` that remains for the encoders after headers, retransmissions and forward error correction. It
    /// is estimated from the data sent recently, and is at least half of `rate`.
    pub media_rate: Rate,
    /// Amount of data that waits for the pacer, in bytes of IP packets.
    pub waiting: Size,
    /// The last round-trip time; `None` before the first feedback.
    pub round_trip: Option<Span>,
    /// Numbers of feedback reports and of errors in them.
    pub counts: FeedbackCounts,
    /// Number of key frame requests from the receiver so far (RFC 4585, Sec. 6.3.1; RFC 5104, Sec. 3.5.1).
    pub key_frame_requests: u64,
    /// The controller's explanation of its last decision.
    pub snapshot: Snapshot,
    /// The controller's estimates of the path, if it has any.
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

    /// Returns the present state.
    pub fn status(&self) -> Status {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
