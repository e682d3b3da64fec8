//! Playout buffers that several sessions share.

use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::{Instant, ReceiverClock, Size};
use equipoise_path::link::{FifoLink, LinkError, LinkStats};
use equipoise_session::rtp::PlayoutBuffer;

use crate::scenario::Scenario;

/// The queue of a playout link, which is a link that models a playout buffer at the receiver and is not part of the
/// network. All sessions with the same playout link share the buffer.
#[derive(Clone, Debug)]
pub(crate) struct SharedPlayout(Arc<Mutex<FifoLink<ReceiverClock>>>);

impl SharedPlayout {
    /// Returns one entry for each link of a scenario: the playout buffer that the link models, or `None` if the link
    /// models no playout buffer. The run begins at `origin`.
    pub(crate) fn of(scenario: &Scenario, origin: Instant<ReceiverClock>) -> Vec<Result<Option<Self>, LinkError>> {
        let is_playout = |link| scenario.flows.iter().any(|flow| flow.playout() == Some(link));
        let buffer = |(number, link): (usize, &crate::scenario::Link)| {
            if !is_playout(number) {
                return Ok(None);
            }
            // A link that models a playout buffer has a fixed behaviour without random loss or jitter, so it can be a
            // plain FIFO link.
            let Some(config) = link.forward.as_link() else { return Ok(None) };
            let fifo = FifoLink::new(config, origin)?;
            Ok(Some(Self(Arc::new(Mutex::new(fifo)))))
        };
        scenario.links.iter().enumerate().map(buffer).collect()
    }

    /// Returns the counters of the playout link at the time `now`.
    pub(crate) fn stats(&self, now: Instant<ReceiverClock>) -> LinkStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stats(now)
    }
}

impl PlayoutBuffer for SharedPlayout {
    fn offer(&mut self, now: Instant<ReceiverClock>, size: Size) -> Option<Instant<ReceiverClock>> {
        PlayoutBuffer::offer(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), now, size)
    }
}
