//! Web traffic: TCP connections that on/off flows open for one fetch each (RFC 8868, Sec. 5.1).
//!
//! All connections form one flow of the simulation, and each place for a connection is a path of that flow, so that
//! per-flow queues separate the connections. The near host has the data and opens the connections; each starts without
//! knowledge of the path.

mod far;
mod near;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise::units::Size;
use equipoise_path::source::{WebConfig, WebError};
use thiserror::Error;

use crate::Time;
use crate::tcp::{Law, ReceiverConfig, SenderConfig, TcpError};

pub use far::WebFar;
pub use near::WebNear;

/// The configuration of web traffic.
pub struct WebParts {
    /// The sizes and times of fetches.
    pub web: WebConfig,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The near host of each connection, except for its start and supply. The traffic begins at `start`, and no burst
    /// begins after `stop`. Connections have a handshake, and neither measure their path nor get its bandwidth.
    pub near: SenderConfig,
    /// The far host of each connection.
    pub far: ReceiverConfig,
    /// Creates the control law of a connection from its number among all connections opened; `None` if there is no law.
    pub law: Box<dyn FnMut(u64) -> Option<Law> + Send>,
}

/// Why web traffic cannot be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebTrafficError {
    /// The fetches are invalid.
    #[error("the web traffic cannot be set up: its {}", source.field())]
    Web {
        /// The error in the fetches.
        #[from]
        source: WebError,
    },
    /// The hosts are invalid.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// Its connections have no congestion control.
    #[error("the web traffic has no law for its connections")]
    NoLaw,
}

/// A fetch that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// When its connection was opened.
    pub opened: Time,
    /// When its last data arrived at the far host.
    pub completed: Time,
    /// Its size.
    pub size: Size,
}

/// Both ends of web traffic, each an [`Endpoint`](equipoise_session::Endpoint).
///
/// # Errors
/// [`WebTrafficError`] if the fetches, the hosts or the law are invalid.
pub fn web(parts: WebParts) -> Result<(WebNear, WebFar), WebTrafficError> {
    let far = parts.far;
    let requests = Requests::default();
    let near = WebNear::new(parts, requests.clone())?;
    let far = WebFar::new(far, near.places(), requests)?;
    Ok((near, far))
}

/// The last fetch on a path.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Distinguishes its segments from those of earlier fetches.
    tag: u16,
    opened: Time,
    size: Size,
}

/// The last fetch on each path, shared by both ends, because the simulator's TCP carries only sizes.
#[derive(Clone, Debug, Default)]
struct Requests(Arc<Mutex<Vec<Option<Request>>>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Request>>> {
        // The list is consistent between any two changes, so a poisoned lock is harmless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, place: usize, request: Request) {
        let mut requests = self.lock();
        if requests.len() <= place {
            requests.resize(place + 1, None);
        }
        if let Some(found) = requests.get_mut(place) {
            *found = Some(request);
        }
    }

    fn get(&self, place: usize) -> Option<Request> {
        self.lock().get(place).copied().flatten()
    }
}
