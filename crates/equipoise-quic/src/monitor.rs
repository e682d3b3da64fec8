use std::sync::{Arc, Mutex, PoisonError, Weak};

use equipoise::control::{Beliefs, Snapshot};
use equipoise::units::{Rate, Size, Span};

/// What the controllers of one [`Config`](crate::Config) have decided. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<Vec<Weak<Mutex<PathStatus>>>>>);

/// What a path may send.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathStatus {
    /// The rate of IP packets, for an encoder less what headers take; `None` under a window law.
    pub rate: Option<Rate>,
    /// What may be under way, in bytes of QUIC packets.
    pub window: Size,
    /// The last round trip; `None` before the first acknowledgement.
    pub round_trip: Option<Span>,
    /// What the controller says of its last decision; nothing under a window law.
    pub snapshot: Snapshot,
    /// What the controller believes of the path, if it says.
    pub beliefs: Option<Beliefs>,
}

impl Monitor {
    /// The paths that something was sent on and that still live, the oldest first. A client with one connection has one.
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
