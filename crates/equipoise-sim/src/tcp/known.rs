use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::measure::BandwidthEstimate;

/// The bandwidth of a connection's path as its world knows it: a cell that the world writes and the sender reads when its
/// timer fires.
#[derive(Clone, Debug, Default)]
pub struct KnownBandwidth(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    written: Mutex<Option<BandwidthEstimate>>,
    discarded: AtomicBool,
}

impl KnownBandwidth {
    /// The bandwidth is this now.
    pub fn set(&self, estimate: BandwidthEstimate) {
        *self.0.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(estimate);
    }

    /// The bandwidth, if it was written since it was last taken.
    pub fn take(&self) -> Option<BandwidthEstimate> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The sender has had a timeout: what is measured up to now counts no longer, and measuring starts anew.
    pub fn discard(&self) {
        self.take();
        self.0.discarded.store(true, Ordering::Relaxed);
    }

    /// Whether measurements were discarded since this was last asked.
    pub fn take_discarded(&self) -> bool {
        // The cell is read after each turn of the sender, and is hardly ever set.
        self.0.discarded.load(Ordering::Relaxed) && self.0.discarded.swap(false, Ordering::Relaxed)
    }
}
