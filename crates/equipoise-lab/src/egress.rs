//! Egress buffers that several sessions share.

use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::{Instant, ReceiverClock, Size};
use equipoise_path::link::{FifoLink, LinkError, LinkStats};
use equipoise_session::rtp::Egress;

use crate::scenario::Scenario;

/// The buffer in front of a link at which sessions leave the network: one for all whose egress it is.
#[derive(Clone, Debug)]
pub(crate) struct SharedEgress(Arc<Mutex<FifoLink<ReceiverClock>>>);

impl SharedEgress {
    /// For each link of a scenario its buffer, where any flow has its egress there; the run begins at `origin`.
    pub(crate) fn of(scenario: &Scenario, origin: Instant<ReceiverClock>) -> Vec<Result<Option<Self>, LinkError>> {
        let is_egress = |link| scenario.flows.iter().any(|flow| flow.egress() == Some(link));
        let buffer = |(number, link): (usize, &crate::scenario::Link)| {
            if !is_egress(number) {
                return Ok(None);
            }
            let fifo = FifoLink::new(link.config.clone(), origin)?;
            Ok(Some(Self(Arc::new(Mutex::new(fifo)))))
        };
        scenario.links.iter().enumerate().map(buffer).collect()
    }

    /// The link's counters at `now`.
    pub(crate) fn stats(&self, now: Instant<ReceiverClock>) -> LinkStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stats(now)
    }
}

impl Egress for SharedEgress {
    fn offer(&mut self, now: Instant<ReceiverClock>, size: Size) -> Option<Instant<ReceiverClock>> {
        Egress::offer(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), now, size)
    }
}
