use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use equipoise::units::{Size, Span};

use crate::datagram::MAX_PAYLOAD;
use crate::engine::{Arrival, BACK, FORWARD, Header, Manner, Medium, Packet, PortStats, Ports};
use crate::socket::wait;
use crate::{Clock, NetError, Socket, SocketStats, Time, TimestampSource};

/// Maximum number of clients with an open socket. Our choice: many more than in any experiment, and much fewer than the
/// limit of open files.
const CLIENTS: usize = 256;

/// If no packet to or from a client has passed for this long, the client's socket may be closed. Our choice: twice the
/// time after which middleboxes usually forget a silent UDP flow.
const IDLE: Span = Span::from_secs(60);

/// The sockets of a UDP relay: one that listens for clients, and one per client for the exchange with the target.
#[derive(Debug)]
pub(super) struct UdpPorts {
    listener: Socket,
    target: SocketAddr,
    /// Size of the IP and UDP headers of a datagram.
    headers: Size,
    clock: Clock,
    /// Clients by number. A number is never reused, so that an answer in flight never arrives at another client.
    clients: BTreeMap<u64, Client>,
    numbers: BTreeMap<SocketAddr, u64>,
    next_number: u64,
    buffer: Vec<u8>,
    /// Counters of the closed sockets. `unsent` includes the packets that were in flight when their client's socket was
    /// closed.
    closed: SocketStats,
    foreign: u64,
    turned_away: u64,
    kernel: bool,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    socket: Socket,
    /// Time of the last datagram from the client or to the client.
    active: Time,
}

impl UdpPorts {
    /// Opens a socket at `listen`, for datagrams that are relayed to `target`.
    pub(super) fn new(clock: &Clock, listen: SocketAddr, target: SocketAddr) -> Result<Self, NetError> {
        let listener = Socket::bind(listen, clock)?;
        let kernel = listener.timestamps() == TimestampSource::Kernel;
        Ok(Self {
            listener,
            target,
            headers: if target.is_ipv4() { Size::IPV4_UDP } else { Size::IPV6_UDP },
            clock: clock.clone(),
            clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 0,
            buffer: vec![0; MAX_PAYLOAD],
            closed: SocketStats::default(),
            foreign: 0,
            turned_away: 0,
            kernel,
        })
    }

    /// The address of the listening socket, with the actual port.
    pub(super) const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn take_in_forward(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        while let Some(received) = self.listener.recv(&mut self.buffer)? {
            if let Some(number) = self.client_at(received.from, received.at) {
                let payload = self.buffer.get(..received.len).unwrap_or_default();
                let manner = Manner::Ip(Size::from_bytes(payload.len() as u64) + self.headers);
                let header = Header::Apart(received.ecn);
                medium.stage(FORWARD, Arrival { at: received.at, manner, client: number, header }, payload);
            } else {
                self.turned_away += 1;
            }
            if received.at > horizon {
                break;
            }
        }
        Ok(())
    }

    fn take_in_back(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        for (&number, client) in &mut self.clients {
            while let Some(received) = client.socket.recv(&mut self.buffer)? {
                if received.from == self.target {
                    client.active = client.active.max(received.at);
                    let payload = self.buffer.get(..received.len).unwrap_or_default();
                    let manner = Manner::Ip(Size::from_bytes(payload.len() as u64) + self.headers);
                    let header = Header::Apart(received.ecn);
                    medium.stage(BACK, Arrival { at: received.at, manner, client: number, header }, payload);
                } else {
                    self.foreign += 1;
                }
                if received.at > horizon {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of the client at `address`. A new client is added. `None` if there are too many clients and
    /// none of them is idle, or if the client's socket cannot be opened.
    fn client_at(&mut self, address: SocketAddr, at: Time) -> Option<u64> {
        if let Some(&number) = self.numbers.get(&address) {
            if let Some(client) = self.clients.get_mut(&number) {
                client.active = client.active.max(at);
            }
            return Some(number);
        }
        if self.clients.len() >= CLIENTS && !self.close_idle(at) {
            return None;
        }
        let any = if self.target.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Socket::bind((any, 0).into(), &self.clock).ok()?;
        self.kernel &= socket.timestamps() == TimestampSource::Kernel;
        let number = self.next_number;
        self.next_number += 1;
        self.clients.insert(number, Client { address, socket, active: at });
        self.numbers.insert(address, number);
        Some(number)
    }

    /// Closes the sockets of idle clients. Returns whether any socket was closed.
    fn close_idle(&mut self, now: Time) -> bool {
        let before = self.clients.len();
        let (numbers, closed) = (&mut self.numbers, &mut self.closed);
        self.clients.retain(|_, client| {
            let keep = now - client.active < IDLE;
            if !keep {
                numbers.remove(&client.address);
                *closed = closed.and(client.socket.stats());
            }
            keep
        });
        self.clients.len() < before
    }
}

impl Ports for UdpPorts {
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        self.take_in_forward(horizon, medium)?;
        self.take_in_back(horizon, medium)
    }

    fn send(&mut self, direction: usize, packet: &mut Packet) {
        // A packet in flight is lost if its client's socket was closed, or if sending fails.
        match (direction, self.clients.get_mut(&packet.client)) {
            (FORWARD, Some(client)) => client.socket.answer(self.target, &packet.datagram()),
            (BACK, Some(client)) => self.listener.answer(client.address, &packet.datagram()),
            _ => self.closed.unsent += 1,
        }
    }

    fn stamped(&self) -> bool {
        self.kernel
    }

    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError> {
        wait(self.clients.values().map(|client| &client.socket).chain([&self.listener]), clock, until)
    }
    fn stats(&self) -> PortStats {
        let sockets = self.clients.values().map(|client| client.socket.stats());
        let lost = sockets.chain([self.listener.stats()]).fold(self.closed, SocketStats::and);
        PortStats {
            unsent: lost.unsent,
            overflowed: lost.overflowed,
            foreign: self.foreign + lost.unanswerable,
            clients: self.next_number,
            turned_away: self.turned_away,
            timestamps: if self.kernel { TimestampSource::Kernel } else { TimestampSource::UserSpace },
            ..PortStats::default()
        }
    }
}
