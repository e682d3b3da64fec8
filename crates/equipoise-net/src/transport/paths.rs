use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise_session::PathId;
use equipoise_session::multipath::MAX_PATHS;

use super::interfaces::Interfaces;
use crate::NetError;

/// By what a path leaves this host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// A network interface, by the first of its addresses that can reach the peer.
    Device(String),
    /// The interface that has this address.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = Infallible;

    /// What is no address is the name of an interface.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Device(text.to_owned()), Self::Address))
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// The paths that a running session has, to add some and to remove some. It can be cloned.
///
/// A path whose interface is down, gone, or without an address is part of the session all the same, and used as soon as
/// there is a way.
#[derive(Clone, Debug)]
pub struct Paths {
    wanted: Arc<Mutex<Wanted>>,
    peer: SocketAddr,
}

#[derive(Debug, Default)]
struct Wanted {
    list: Vec<(PathId, Via)>,
    /// The number of the next one; none comes twice.
    next: u16,
    changed: bool,
}

impl Paths {
    /// Paths to `peer`, numbered from 0.
    pub(crate) fn new(peer: SocketAddr, paths: &[Via]) -> Result<Self, NetError> {
        crate::driver::check_count(paths.len())?;
        let made = Self { wanted: Arc::default(), peer };
        for via in paths {
            made.add(via.clone())?;
        }
        Ok(made)
    }

    /// Adds a path, within a tenth of a second. Gives its number.
    ///
    /// # Errors
    /// [`NetError::NoInterface`], [`NetError::NoAddress`] and [`NetError::NotOurAddress`] where it leads nowhere,
    /// [`NetError::SamePath`] where the session has it already, [`NetError::Paths`] where it has as many as it may.
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

    /// Takes a path away, within a tenth of a second. False where there is none of that number.
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

    /// Whether there was a change since this was asked last.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.wanted().changed)
    }

    pub(super) fn list(&self) -> Vec<(PathId, Via)> {
        self.wanted().list.clone()
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // Nothing that holds the lock can panic.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
