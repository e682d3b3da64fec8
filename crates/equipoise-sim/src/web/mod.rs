//! Web traffic: TCP connections that are each opened for one fetch, by on/off flows (RFC 8868, Sec. 5.1).
//!
//! All connections of a traffic are one flow of the world, and each place for a connection is a path of that flow, so that queues
//! that tell flows apart tell connections apart. The near host has the data and opens the connections; each begins with nothing
//! known of the path.

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

/// What web traffic is made of.
pub struct WebParts {
    /// Who fetches how much, and when.
    pub web: WebConfig,
    /// Of its random numbers.
    pub seed: u64,
    /// The near host of each connection, but for its start and its supply; the traffic begins at its start, and after its stop no
    /// burst begins. Connections begin with a handshake, and neither measure their path nor are told of it.
    pub near: SenderConfig,
    /// The far host of each connection.
    pub far: ReceiverConfig,
    /// Makes the law of the connection with this number, of all that were opened; `None` if there can be none.
    pub law: Box<dyn FnMut(u64) -> Option<Law> + Send>,
}

/// Why there can be no such web traffic.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebTrafficError {
    /// The fetches cannot be like that.
    #[error("the web traffic cannot be set up: its {}", source.field())]
    Web {
        /// What is wrong with them.
        #[from]
        source: WebError,
    },
    /// The hosts cannot be like that.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// There is no law for its connections.
    #[error("no law for its connections can be made")]
    NoLaw,
}

/// A fetch that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// When its connection was opened.
    pub opened: Time,
    /// When its last data had come to the far host.
    pub completed: Time,
    /// Its data.
    pub size: Size,
}

/// Both ends of web traffic, each an [`Endpoint`](equipoise_session::Endpoint).
///
/// # Errors
/// [`WebTrafficError`] if the fetches, the hosts or the law cannot be like that.
pub fn web(parts: WebParts) -> Result<(WebNear, WebFar), WebTrafficError> {
    let far = parts.far;
    let requests = Requests::default();
    let near = WebNear::new(parts, requests.clone())?;
    let far = WebFar::new(far, near.places(), requests)?;
    Ok((near, far))
}

/// The last fetch of a place for a connection.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Tells its segments from those of the fetches before it.
    tag: u16,
    opened: Time,
    size: Size,
}

/// The last fetch of each place, which both ends hold: TCP of this world moves sizes only.
#[derive(Clone, Debug, Default)]
struct Requests(Arc<Mutex<Vec<Option<Request>>>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Request>>> {
        // The list is whole between any two of its changes.
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
