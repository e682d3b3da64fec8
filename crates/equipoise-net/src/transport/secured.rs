use equipoise_session::{PathId, Transmit};

use super::{Arrival, Links, Transport};
use crate::datagram::MAX_PAYLOAD;
use crate::dtls_srtp::{self, DtlsSrtp};
use crate::{NetError, Socket, Time};

/// A transport to one peer. It encrypts datagrams with the keys of a DTLS handshake. If this endpoint is passive in the
/// handshake, the peer can repeat the handshake.
pub(crate) struct Secured {
    links: Links,
    association: DtlsSrtp,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    whole: Vec<u8>,
    wire: Vec<u8>,
}

/// The number of the only path.
const PATH: PathId = PathId(0);

impl Secured {
    pub(crate) fn new(socket: Socket, association: DtlsSrtp) -> Self {
        let mut links = Links::fixed(vec![socket]);
        links.up(PATH);
        Self {
            links,
            association,
            buffer: vec![0; MAX_PAYLOAD],
            plain: Vec::new(),
            whole: Vec::new(),
            wire: Vec::new(),
        }
    }

    pub(crate) const fn association(&self) -> &DtlsSrtp {
        &self.association
    }

    pub(crate) fn into_association(self) -> DtlsSrtp {
        self.association
    }

    /// Sends the waiting datagrams of the DTLS association.
    pub(crate) fn say(&mut self) -> Result<(), NetError> {
        while let Some((peer, datagram)) = self.association.poll() {
            if let Some(socket) = self.links.socket(PATH) {
                socket.send_to(peer, &Transmit::datagram(&datagram))?;
            }
        }
        Ok(())
    }
}

impl Transport for Secured {
    fn links(&self) -> &Links {
        &self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    fn receive(&mut self) -> Result<Option<Arrival>, NetError> {
        let Some((path, received)) = self.links.receive(&mut self.buffer)? else { return Ok(None) };
        let (at, datagram) = (received.at, &self.buffer[..received.len]);
        let arrival = self.association.handle(at, received.from, datagram, &mut self.plain);
        self.say()?;
        Ok(Some(match arrival {
            dtls_srtp::Arrival::Rtp | dtls_srtp::Arrival::Rtcp => Arrival::Datagram { path, at, ecn: received.ecn },
            dtls_srtp::Arrival::Handshake => Arrival::Own,
            dtls_srtp::Arrival::Ignored(reason) => Arrival::Dropped { at, reason },
        }))
    }

    fn datagram(&self) -> &[u8] {
        &self.plain
    }

    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError> {
        let Self { links, association, whole, wire, .. } = self;
        let Some(peer) = association.peer() else { return Ok(()) };
        whole.clear();
        whole.extend_from_slice(transmit.head);
        whole.resize(transmit.len(), 0);
        // If a packet cannot be encrypted, it is not sent. It is lost, as any packet on a network may be.
        match (association.protect(whole, wire), links.socket(path)) {
            (Ok(()), Some(socket)) => {
                socket.send_to(peer, &Transmit { head: wire.as_slice(), media: 0, ..*transmit }).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    fn wake(&self) -> Option<Time> {
        self.association.wake()
    }

    fn on_timer(&mut self, now: Time) -> Result<(), NetError> {
        self.association.on_timer(now);
        self.say()
    }

    /// Closes the association, after the endpoint has sent its BYE.
    fn farewell(&mut self) -> Result<(), NetError> {
        self.association.close(self.links.clock().now());
        self.say()
    }
}
