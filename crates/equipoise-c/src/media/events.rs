//! Events of a sender's session. An event makes the session's descriptor readable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use equipoise::units::Rate;
use equipoise_net::media::Measurement;
use tokio::sync::{Notify, watch};

use super::sender::{EQ_EVENT_END, EQ_EVENT_KEY_FRAME, EQ_EVENT_RATE, EQ_EVENT_REPORT};
use crate::error::Fault;
use crate::signal::Signal;

/// The events of a sender since the last call of eq_sender_events, and the descriptor that signals them.
pub(super) struct Events {
    happened: AtomicU32,
    pub(super) signal: Arc<Signal>,
    stopped: AtomicBool,
    stop: Notify,
    /// Whether a task waits until the send queue has space for a payload.
    pub(super) waits: AtomicBool,
}

impl Events {
    /// Creates the events of a new session. The session's initial rate counts as the first event.
    pub(super) fn new() -> Result<Arc<Self>, Fault> {
        let events = Self {
            happened: AtomicU32::new(0),
            signal: Signal::new()?,
            stopped: AtomicBool::new(false),
            stop: Notify::new(),
            waits: AtomicBool::new(false),
        };
        events.add(EQ_EVENT_RATE);
        Ok(Arc::new(events))
    }

    /// Wakes every call that waits in `until_stopped`. Later calls return immediately.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(super) fn add(&self, event: u32) {
        self.happened.fetch_or(event, Ordering::SeqCst);
        self.signal.raise();
    }

    pub(super) fn take(&self) -> u32 {
        self.signal.lower();
        let happened = self.happened.swap(0, Ordering::SeqCst);
        // EQ_EVENT_END stays set, so that every later call returns it, too.
        if happened & EQ_EVENT_END != 0 {
            self.add(EQ_EVENT_END);
        }
        happened
    }

    pub(super) async fn until_stopped(&self) {
        let stop = self.stop.notified();
        if !self.is_stopped() {
            stop.await;
        }
    }
}

/// Records an event whenever the rate, the measurements or the number of key-frame requests changes, until the session
/// is over.
pub(super) async fn watch(
    (mut rate, mut measurement, mut key_frames_wanted): (
        watch::Receiver<Rate>,
        watch::Receiver<Measurement>,
        watch::Receiver<u64>,
    ),
    events: Arc<Events>,
) {
    loop {
        let (is_over, event) = tokio::select! {
            changed = rate.changed() => (changed.is_err(), EQ_EVENT_RATE),
            changed = measurement.changed() => (changed.is_err(), EQ_EVENT_REPORT),
            changed = key_frames_wanted.changed() => (changed.is_err(), EQ_EVENT_KEY_FRAME),
        };
        if is_over {
            break;
        }
        events.add(event);
    }
    events.add(EQ_EVENT_END);
}
