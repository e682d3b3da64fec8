use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise_session::PathId;
use equipoise_session::multipath::MAX_PATHS;

use super::interfaces::Interfaces;
use super::via::Via;
use crate::NetError;

/// A handle for adding and removing paths of a running session. It can be cloned.
///
/// If the network interface of a path is down, has disappeared or has lost its address, the path still belongs to the
/// session. The path is used as soon as its interface can reach the peer.
#[derive(Clone, Debug)]
pub struct Paths {
    wanted: Arc<Mutex<Wanted>>,
    peer: SocketAddr,
}

#[derive(Debug, Default)]
struct Wanted {
    list: Vec<(PathId, Via)>,
    /// The number of the next path. Numbers are never reused.
    next: u16,
    changed: bool,
}

impl Paths {
    /// A handle with paths to `peer`, numbered from 0.
    pub(crate) fn new(peer: SocketAddr, paths: &[Via]) -> Result<Self, NetError> {
        check_count(paths.len())?;
        let made = Self { wanted: Arc::default(), peer };
        for via in paths {
            made.add(via.clone())?;
        }
        Ok(made)
    }

    /// Adds a path. Returns the number of the path. Within a tenth of a second, a request to join the session is sent
    /// on the path. The path is used after the peer has answered on it.
    ///
    /// # Errors
    /// [`NetError::Interfaces`] if the interfaces cannot be read, [`NetError::NoInterface`], [`NetError::NoAddress`]
    /// and [`NetError::NotOurAddress`] if no interface or address matches the path, [`NetError::SamePath`] if the
    /// session already has this path, [`NetError::Paths`] if the session already has the maximum number of paths or no
    /// path number is left.
    pub fn add(&self, via: Via) -> Result<PathId, NetError> {
        let interfaces = Interfaces::read()?;
        let place = |via: &Via| interfaces.place(via, self.peer, None);
        let here = place(&via)?;
        let mut wanted = self.wanted();
        let same = |(_, other): &(PathId, Via)| {
            *other == via
                || place(other).is_ok_and(|other| (other.device, other.address) == (here.device.clone(), here.address))
        };
        if let Some((_, other)) = wanted.list.iter().find(|other| same(other)) {
            return Err(NetError::SamePath { path: via, other: other.clone() });
        }
        let found = wanted.list.len() + 1;
        if found > MAX_PATHS || wanted.next == u16::MAX {
            return Err(NetError::Paths { found, most: MAX_PATHS });
        }
        let id = PathId(wanted.next);
        wanted.next += 1;
        wanted.list.push((id, via));
        wanted.changed = true;
        Ok(id)
    }

    /// Removes a path. The session stops using it within a tenth of a second. Returns false if there is no path with
    /// this number.
    pub fn remove(&self, path: PathId) -> bool {
        let mut wanted = self.wanted();
        let before = wanted.list.len();
        wanted.list.retain(|(id, _)| *id != path);
        wanted.changed |= wanted.list.len() != before;
        wanted.list.len() != before
    }

    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the list of paths has changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.wanted().changed)
    }

    pub(super) fn list(&self) -> Vec<(PathId, Via)> {
        self.wanted().list.clone()
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // No code panics while it has the lock, so a poisoned lock is harmless.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that `found` is a valid number of paths for a session.
pub(crate) const fn check_count(found: usize) -> Result<(), NetError> {
    if found == 0 || found > MAX_PATHS { Err(NetError::Paths { found, most: MAX_PATHS }) } else { Ok(()) }
}
