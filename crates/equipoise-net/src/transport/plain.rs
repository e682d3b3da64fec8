use std::net::SocketAddr;

use equipoise::session::Ignored;

use super::{Arrival, Transport};
use crate::socket::MAX_PAYLOAD;
use crate::{NetError, Socket};

/// Bare datagrams to and from one address.
pub(crate) struct Plain {
    socket: Socket,
    peer: SocketAddr,
    buffer: Vec<u8>,
    length: usize,
}

impl Plain {
    pub(crate) fn new(socket: Socket, peer: SocketAddr) -> Self {
        Self { socket, peer, buffer: vec![0; MAX_PAYLOAD], length: 0 }
    }
}

impl Transport for Plain {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn receive(&mut self) -> Result<Option<Arrival>, NetError> {
        let Some(received) = self.socket.recv(&mut self.buffer)? else { return Ok(None) };
        if received.from != self.peer {
            return Ok(Some(Arrival::Dropped { at: received.at, reason: Ignored::Foreign }));
        }
        self.length = received.len;
        Ok(Some(Arrival::Datagram { at: received.at }))
    }

    fn datagram(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn send(&mut self, head: &[u8], media: usize) -> Result<(), NetError> {
        self.socket.send_to(self.peer, head, media)
    }
}
