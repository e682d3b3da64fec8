use std::net::SocketAddr;

use equipoise::units::Size;

use crate::datagram::MAX_PAYLOAD;
use crate::engine::{Arrival, Header, Manner, Medium, Packet, PortStats, Ports};
use crate::socket::wait;
use crate::{Clock, NetError, Socket, Time, TimestampSource};

/// One of the two relay sockets of a route.
#[derive(Debug)]
pub(super) struct Gate {
    /// The socket, which is used for both directions.
    pub(super) socket: Socket,
    /// The only source from which datagrams are accepted, and the destination of relayed datagrams.
    pub(super) peer: SocketAddr,
}

/// Two sockets for each route: one for the sender (the entrance) and one for the receiver (the exit).
#[derive(Debug)]
pub(super) struct Gates {
    /// The gates in pairs: entrance and exit of the first route, entrance and exit of the second route, and so on.
    pairs: Vec<Gate>,
    buffer: Vec<u8>,
    foreign: u64,
    unsent: u64,
}

impl Gates {
    /// `gates` contains the entrance and exit of the first route, the entrance and exit of the second route, and so on.
    pub(super) fn new(gates: Vec<Gate>) -> Self {
        Self { pairs: gates, buffer: vec![0; MAX_PAYLOAD], foreign: 0, unsent: 0 }
    }

    /// The addresses of all gates, in the same order as the gates.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.pairs.iter().map(|gate| gate.socket.address()).collect()
    }
}

impl Ports for Gates {
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        for (number, gate) in self.pairs.iter_mut().enumerate() {
            while let Some(received) = gate.socket.recv(&mut self.buffer)? {
                if received.from == gate.peer {
                    let payload = self.buffer.get(..received.len).unwrap_or_default();
                    let manner = Manner::Ip(Size::from_bytes(payload.len() as u64) + Size::IPV4_UDP);
                    let (client, header) = ((number / 2) as u64, Header::Apart(received.ecn));
                    let arrival = Arrival { at: received.at, manner, client, header };
                    medium.stage(number % 2, arrival, payload);
                } else {
                    self.foreign += 1;
                }
                // Later datagrams stay in the socket's receive buffer until the next call.
                if received.at > horizon {
                    break;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, direction: usize, packet: &mut Packet) {
        let gate =
            usize::try_from(packet.client).ok().and_then(|route| self.pairs.get_mut(2 * route + (direction ^ 1)));
        match gate {
            Some(gate) => gate.socket.answer(gate.peer, &packet.datagram()),
            None => self.unsent += 1,
        }
    }

    fn stamped(&self) -> bool {
        self.pairs.iter().all(|gate| gate.socket.timestamps() == TimestampSource::Kernel)
    }

    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError> {
        wait(self.pairs.iter().map(|gate| &gate.socket), clock, until)
    }

    fn stats(&self) -> PortStats {
        let sockets = || self.pairs.iter().map(|gate| gate.socket.stats());
        PortStats {
            unsent: self.unsent + sockets().map(|stats| stats.unsent).sum::<u64>(),
            overflowed: sockets().map(|stats| stats.overflowed).sum(),
            foreign: self.foreign + sockets().map(|stats| stats.unanswerable).sum::<u64>(),
            timestamps: if self.stamped() { TimestampSource::Kernel } else { TimestampSource::UserSpace },
            ..PortStats::default()
        }
    }
}
