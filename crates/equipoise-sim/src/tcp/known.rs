use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::measure::BandwidthEstimate;

/// The bandwidth of a connection's path, as known to the simulator: a cell that the simulator writes and the sender
/// reads when its timer fires.
#[derive(Clone, Debug, Default)]
pub struct KnownBandwidth(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    written: Mutex<Option<BandwidthEstimate>>,
    discarded: AtomicBool,
}

impl KnownBandwidth {
    /// Sets the bandwidth.
    pub fn set(&self, estimate: BandwidthEstimate) {
        *self.0.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(estimate);
    }

    /// Takes the bandwidth, if it was written since the last call.
    pub fn take(&self) -> Option<BandwidthEstimate> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records that the sender had a timeout: earlier measurements are invalid, and measuring restarts.
    pub fn discard(&self) {
        self.take();
        self.0.discarded.store(true, Ordering::Relaxed);
    }

    /// Whether measurements were discarded since the last call.
    pub fn take_discarded(&self) -> bool {
        // Loads before swapping, because this is called after each turn of the sender and the flag is rarely set.
        self.0.discarded.load(Ordering::Relaxed) && self.0.discarded.swap(false, Ordering::Relaxed)
    }
}
