use std::sync::{Arc, Mutex, PoisonError, Weak};

use equipoise::control::{Beliefs, Snapshot};
use equipoise::units::{Rate, Size, Span};

/// Access to the state of all paths whose controllers were created by one [`Config`](crate::Config). Clones share the
/// state.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<Vec<Weak<Mutex<PathStatus>>>>>);

/// The state of one path.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathStatus {
    /// The rate, counting whole IP packets. To set the rate of an encoder, subtract the headers. `None` with a window
    /// controller, and before the first acknowledgement.
    pub rate: Option<Rate>,
    /// Maximum number of bytes of QUIC packets in flight.
    pub window: Size,
    /// The last round-trip time; `None` before the first acknowledgement.
    pub round_trip: Option<Span>,
    /// The controller's explanation of its last decision; empty with a window controller.
    pub snapshot: Snapshot,
    /// The controller's estimates of the path, if it has any.
    pub beliefs: Option<Beliefs>,
}

impl Monitor {
    /// Returns the state of all paths that exist and have sent packets, oldest first. A client with one connection has
    /// one path, unless the connection uses multipath.
    pub fn paths(&self) -> Vec<PathStatus> {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.retain(|path| path.strong_count() > 0);
        let status = |path: Arc<Mutex<PathStatus>>| *path.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().filter_map(Weak::upgrade).map(status).collect()
    }

    pub(crate) fn add(&self, path: &Arc<Mutex<PathStatus>>) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.retain(|path| path.strong_count() > 0);
        paths.push(Arc::downgrade(path));
    }
}
