use std::net::SocketAddr;

use equipoise_session::{DropReason, PathId, Transmit};

use super::{Arrival, Links, Transport};
use crate::datagram::MAX_PAYLOAD;
use crate::{NetError, Socket};

/// A transport without encryption. On each path, datagrams are sent to one address and accepted only from this address.
pub(crate) struct Plain {
    links: Links,
    /// The address of the peer on each path, by path number.
    peers: Vec<SocketAddr>,
    buffer: Vec<u8>,
    length: usize,
}

impl Plain {
    /// A transport over paths with these sockets and peer addresses. There must be at least one path.
    pub(crate) fn new(paths: Vec<(Socket, SocketAddr)>) -> Self {
        let (sockets, peers): (Vec<_>, Vec<_>) = paths.into_iter().unzip();
        let mut links = Links::fixed(sockets);
        (0..peers.len() as u16).for_each(|number| links.up(PathId(number)));
        Self { links, peers, buffer: vec![0; MAX_PAYLOAD], length: 0 }
    }

    fn peer(&self, path: PathId) -> Option<SocketAddr> {
        self.peers.get(usize::from(path.0)).copied()
    }
}

impl Transport for Plain {
    fn links(&self) -> &Links {
        &self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    fn receive(&mut self) -> Result<Option<Arrival>, NetError> {
        let Some((path, received)) = self.links.receive(&mut self.buffer)? else { return Ok(None) };
        if self.peer(path) != Some(received.from) {
            return Ok(Some(Arrival::Dropped { at: received.at, reason: DropReason::Foreign }));
        }
        self.length = received.len;
        Ok(Some(Arrival::Datagram { path, at: received.at, ecn: received.ecn }))
    }

    fn datagram(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError> {
        let (Some(peer), Some(socket)) = (self.peer(path), self.links.socket(path)) else { return Ok(()) };
        socket.send_to(peer, transmit).map(|_| ())
    }
}
