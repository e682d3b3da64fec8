use std::sync::{Arc, Mutex, PoisonError};

use equipoise::measure::BandwidthEstimate;

/// The bandwidth of a connection's path as its world knows it: a cell that the world writes and the sender reads when its
/// timer fires.
#[derive(Clone, Debug, Default)]
pub struct KnownBandwidth(Arc<Mutex<Option<BandwidthEstimate>>>);

impl KnownBandwidth {
    /// The bandwidth is this now.
    pub fn set(&self, estimate: BandwidthEstimate) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(estimate);
    }

    /// The bandwidth, if it was written since it was last taken.
    pub fn take(&self) -> Option<BandwidthEstimate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
