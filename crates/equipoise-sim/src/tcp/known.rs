use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::measure::BandwidthEstimate;

/// The bandwidth of a connection's path, computed by the simulator. The simulator writes this shared value, and the
/// sender reads it when its timer fires.
#[derive(Clone, Debug, Default)]
pub struct KnownBandwidth(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    written: Mutex<Option<BandwidthEstimate>>,
    discarded: AtomicBool,
}

impl KnownBandwidth {
    /// Sets the bandwidth, which the sender will read.
    pub fn set(&self, estimate: BandwidthEstimate) {
        *self.0.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(estimate);
    }

    /// Returns the bandwidth if a new one was written since the last call.
    pub fn take(&self) -> Option<BandwidthEstimate> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Called when the sender's retransmission timer expires. Discards the bandwidth, and asks the simulator to measure
    /// the bandwidth again.
    pub fn discard(&self) {
        self.take();
        self.0.discarded.store(true, Ordering::Relaxed);
    }

    /// Whether [`discard`](Self::discard) was called since the last call of this method.
    pub fn take_discarded(&self) -> bool {
        // A swap takes longer than a load, so the flag is swapped only if it is set. The flag is rarely set, and this
        // method is called after each action of the sender.
        self.0.discarded.load(Ordering::Relaxed) && self.0.discarded.swap(false, Ordering::Relaxed)
    }
}
