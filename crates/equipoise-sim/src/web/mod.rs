//! Web traffic: web flows that are ON or OFF. For each fetch, a web flow opens a TCP connection (RFC 8868, Sec. 5.1).
//!
//! The simulator treats the traffic of all web flows as one [`Flow`](crate::Flow). Each open connection uses its own
//! path of this flow, so that per-flow queues separate the connections. The near host has the data and opens the
//! connections. A connection uses no knowledge from earlier connections.

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
    /// The sizes and times of the fetches.
    pub web: WebConfig,
    /// Seed of the random numbers for the fetches.
    pub seed: u64,
    /// The TCP configuration of the near host, for each connection. The traffic begins at the time in the
    /// configuration's field `start`, and no fetch starts after the time in the field `stop`. Connections always have a
    /// handshake. The fields `supply`, `measurement` and `bandwidth` are ignored.
    pub near: SenderConfig,
    /// The TCP configuration of the far host, for each connection.
    pub far: ReceiverConfig,
    /// Creates the congestion control of a connection. The argument is the number of connections opened before. If the
    /// function returns `None` while the traffic is created, the result is [`WebTrafficError::NoLaw`]. If it returns
    /// `None` for a later fetch, the traffic skips this fetch.
    pub law: Box<dyn FnMut(u64) -> Option<Law> + Send>,
}

/// Why web traffic cannot be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebTrafficError {
    /// The configuration of the fetches is invalid.
    #[error("the web traffic cannot be set up: its {}", source.field())]
    Web {
        /// The error in the configuration of the fetches.
        #[from]
        source: WebError,
    },
    /// The configuration of the TCP hosts is invalid.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The function `law` returned no congestion control.
    #[error("the web traffic has no law for its connections")]
    NoLaw,
}

/// A fetch that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// When the fetch's connection was opened.
    pub opened: Time,
    /// When the last data of the fetch arrived at the far host.
    pub completed: Time,
    /// The size of the fetched data.
    pub size: Size,
}

/// Creates the two endpoints of web traffic, each an [`Endpoint`](equipoise_session::Endpoint).
///
/// # Errors
/// [`WebTrafficError`] if the configuration of the fetches, the hosts or the congestion control is invalid.
pub fn web(parts: WebParts) -> Result<(WebNear, WebFar), WebTrafficError> {
    let far = parts.far;
    let requests = Requests::default();
    let near = WebNear::new(parts, requests.clone())?;
    let far = WebFar::new(far, near.places(), requests)?;
    Ok((near, far))
}

/// The last fetch that started on a path.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// A number in each segment, which distinguishes the segments of this fetch from those of earlier fetches on the
    /// path.
    tag: u16,
    opened: Time,
    size: Size,
}

/// The last fetch on each path. Both endpoints share this list, because the simulator's TCP segments have no content
/// and therefore cannot carry a request.
#[derive(Clone, Debug, Default)]
struct Requests(Arc<Mutex<Vec<Option<Request>>>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Request>>> {
        // The list is consistent after each change, so it can be used even if a thread panicked while holding the lock.
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
