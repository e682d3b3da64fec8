//! An emulated network: it delays and drops packets between two hosts like real links.
//!
//! ```text
//!   sender ──▶ entrance ═ forward links ═ exit ──▶ receiver
//!          ◀──          ═ backward links ═     ◀──
//! ```
//!
//! On the loopback interface, the entrance and the exit are UDP sockets, two for each route, and the emulator relays
//! datagrams. In a [`TestBed`], the entrance and the exit are the two interfaces of the middle namespace. The hosts
//! send UDP and TCP packets to each other. The ports of a packet determine its route.
//!
//! Departure times are computed from the kernel's receive timestamps and the state of the links, not from the time at
//! which the emulator reads a packet. Therefore, if the emulator is late for one packet, it does not delay the next
//! packet. Packet sizes include the IP header.

mod gates;
mod load;
mod network;
mod watcher;

use std::net::{Ipv4Addr, SocketAddr};

use equipoise::units::{Size, Span};
use equipoise_path::link::{LinkStats, Pipe, PipeConfig, PipeError, link_seed};

pub use load::LoadProbe;
pub use network::LinkSample;
pub use watcher::{Passed, Watcher};

use crate::engine::{Engine, Known, PacketPorts, Ports, TCP, Traffic, UDP};
use crate::thread::Worker;
use crate::{Clock, HostClock, Lateness, NetError, Place, Socket, TestBed, Time, TimestampSource};
use gates::{Gate, Gates};
use network::{Hop, Network};

/// Configuration of an emulator.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// When the links' capacity schedules and counters start.
    pub origin: Time,
    /// The links, numbered from 0.
    pub links: Vec<PipeConfig>,
    /// Seed of all random numbers for the links.
    pub seed: u64,
    /// The routes over the links.
    pub routes: Vec<Route>,
    /// Time between two samples of the links' counters; `None` for no samples.
    pub sample_interval: Option<Span>,
    /// Called for each packet that has passed all links of its route; `None` for no watcher.
    pub watcher: Option<Watcher>,
}

/// The path of one flow through the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Numbers of the links from the sender to the receiver, in the order in which packets pass them.
    pub forward: Vec<usize>,
    /// Numbers of the links from the receiver to the sender, in the order in which packets pass them. If the list is
    /// empty, the emulator forwards packets from the receiver without delay.
    pub backward: Vec<usize>,
    /// Protocol of the flow. On the loopback interface, only UDP is possible.
    pub protocol: Protocol,
    /// The sender's address. On the loopback interface, the forward links carry only packets from this address. In a
    /// test bed, only the port of this address counts, and port 0 in `sender` or in `receiver` means any port.
    pub sender: SocketAddr,
    /// The receiver's address. On the loopback interface, the reverse links carry only packets from this address.
    pub receiver: SocketAddr,
}

/// Transport protocol of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP datagrams.
    Udp,
    /// A TCP stream.
    Tcp {
        /// The maximum size of the flow's IP packets. If offload has joined segments, they are split to this size.
        packet: Size,
    },
}

/// Results of an emulator.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatorReport {
    /// The counters of each link, in the order of the links.
    pub links: Vec<LinkStats>,
    /// Samples of the links' counters, if samples were requested.
    pub samples: Vec<LinkSample>,
    /// Number of packets dropped because they belong to no route.
    pub foreign: u64,
    /// Number of packets that the emulator dropped for lack of memory; the links' own drops are not included.
    pub refused: u64,
    /// Number of packets lost at the emulator's sockets: a receive buffer was full, the kernel did not accept the
    /// packet for sending, or the packet was too long for the interface or its route.
    pub lost_at_sockets: u64,
    /// Number of packets that were still in flight at the end.
    pub in_flight: u64,
    /// How late packets left, compared with their computed departure times; `None` if no packet left.
    pub lateness: Option<Lateness>,
    /// Source of arrival times; user space if at least one socket has no kernel timestamps.
    pub timestamps: TimestampSource,
}

/// A running emulator. If it is still running when this value is dropped, it is stopped.
#[derive(Debug)]
pub struct Emulator {
    worker: Worker<Result<EmulatorReport, NetError>>,
    routes: Vec<Route>,
    /// Addresses of the entrance and exit of the first route, then of the second route, and so on.
    addresses: Vec<SocketAddr>,
    load: LoadProbe,
}

impl EmulatorConfig {
    /// An emulator with seed 1, without samples and without a watcher.
    pub const fn new(origin: Time, links: Vec<PipeConfig>, routes: Vec<Route>) -> Self {
        Self { origin, links, seed: 1, routes, sample_interval: None, watcher: None }
    }
}

impl Emulator {
    /// Starts to relay datagrams. Each route gets two sockets on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// [`NetError::Link`] and [`NetError::UnknownLink`] if the network is invalid, [`NetError::NoStream`] if a route
    /// does not use UDP, the errors of [`Socket::bind`], and [`NetError::Spawn`] if no thread can be started.
    pub fn start(clock: &Clock, config: EmulatorConfig) -> Result<Self, NetError> {
        if let Some(route) = config.routes.iter().position(|route| route.protocol != Protocol::Udp) {
            return Err(NetError::NoStream { route });
        }
        let mut gates = Vec::new();
        for peer in config.routes.iter().flat_map(|route| [route.sender, route.receiver]) {
            gates.push(Gate { socket: Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), clock)?, peer });
        }
        let gates = Gates::new(gates);
        let addresses = gates.addresses();
        Self::carry(clock, config, addresses, gates)
    }

    /// Starts to forward packets between the hosts of a test bed.
    ///
    /// # Errors
    /// [`NetError::Link`] and [`NetError::UnknownLink`] if the network is invalid; [`NetError::TestBed`],
    /// [`NetError::NoInterface`] and [`NetError::InterfaceDown`] if the test bed is damaged; [`NetError::PacketSocket`]
    /// and [`NetError::Spawn`] if the system refuses a socket or a thread.
    pub fn start_in(bed: &TestBed, clock: &Clock, config: EmulatorConfig) -> Result<Self, NetError> {
        let traffic =
            Traffic::Known(config.routes.iter().zip(0..).map(|(route, number)| route.known(number)).collect());
        let ports = bed.inside(Place::Middle, || PacketPorts::new(clock, TestBed::MIDDLE, traffic))?;
        // In a test bed, the hosts send packets to each other's addresses, not to the emulator.
        let addresses = config.routes.iter().flat_map(|route| [route.receiver, route.sender]).collect();
        Self::carry(clock, config, addresses, ports)
    }

    fn carry<P: Ports + Send + 'static>(
        clock: &Clock,
        config: EmulatorConfig,
        addresses: Vec<SocketAddr>,
        ports: P,
    ) -> Result<Self, NetError> {
        let EmulatorConfig { origin, links, seed, routes, sample_interval, watcher } = config;
        check(&routes, links.len())?;
        let load = LoadProbe::new(origin, links.iter().map(|link| link.capacity.clone()).collect());
        let links = build(origin, links, seed)?;
        let ways = routes.iter().map(|route| [route.forward.clone(), route.backward.clone()]).collect();
        let mut network = Network::new(links, ways, load.offered());
        if let Some(interval) = sample_interval.filter(|interval| *interval > Span::ZERO) {
            network.sample(origin, interval);
        }
        if let Some(watcher) = watcher {
            network.watch(watcher);
        }
        let engine = Engine { clock: clock.clone(), ports, medium: network, spin: false };
        let worker = Worker::spawn("emulator", move |stop| engine.run(stop).map(report))?;
        Ok(Self { worker, routes, addresses, load })
    }

    /// The address to which the sender of `route` sends, and from which the sender receives reports; `None` if there is
    /// no such route.
    pub fn entrance(&self, route: usize) -> Option<SocketAddr> {
        self.addresses.chunks(2).nth(route).and_then(|pair| pair.first()).copied()
    }

    /// The address from which the receiver of `route` receives datagrams, and to which the receiver sends reports;
    /// `None` if there is no such route.
    pub fn exit(&self, route: usize) -> Option<SocketAddr> {
        self.addresses.chunks(2).nth(route).and_then(|pair| pair.last()).copied()
    }

    /// A probe of the load on the forward links of `route` or, if `back`, on its backward links; `None` if there is no
    /// such route.
    pub fn load_probe(&self, route: usize, back: bool) -> Option<LoadProbe> {
        let route = self.routes.get(route)?;
        Some(self.load.along(if back { &route.backward } else { &route.forward }))
    }

    /// Whether the emulator is still running. It ends by itself if a socket fails.
    pub fn is_running(&self) -> bool {
        !self.worker.is_finished()
    }

    /// Stops the emulator and closes its sockets. Packets in flight are dropped.
    ///
    /// # Errors
    /// The error that ended the emulator early, if any.
    pub fn stop(self) -> Result<EmulatorReport, NetError> {
        self.worker.request_stop();
        self.worker.join()?
    }
}

impl Route {
    /// The protocol and ports by which packets of this route are recognised. `number` is the index of this route in the
    /// list of routes.
    fn known(&self, number: u64) -> (Known, (u64, Size)) {
        let (protocol, longest) = match self.protocol {
            Protocol::Udp => (UDP, Size::from_bytes(u64::MAX)),
            Protocol::Tcp { packet } => (TCP, packet),
        };
        (Known { protocol, ports: [self.sender.port(), self.receiver.port()] }, (number, longest))
    }
}

fn report<P: Ports>(engine: Engine<P, Network>) -> EmulatorReport {
    let Engine { clock, ports, medium: mut network, .. } = engine;
    let ports = ports.stats();
    EmulatorReport {
        links: network.stats(clock.now()),
        samples: network.take_samples(),
        foreign: ports.foreign,
        refused: network.refused(),
        lost_at_sockets: ports.unsent + ports.overflowed + ports.oversize,
        in_flight: network.in_flight(),
        lateness: network.lateness().summary(),
        timestamps: ports.timestamps,
    }
}

fn build(origin: Time, links: Vec<PipeConfig>, seed: u64) -> Result<Vec<Pipe<HostClock, Hop>>, NetError> {
    let build = |(link, config): (usize, PipeConfig)| {
        let pipe = Pipe::new(config, origin, link_seed(seed, link));
        pipe.map_err(|source: PipeError| NetError::Link { link, source })
    };
    links.into_iter().enumerate().map(build).collect()
}

fn check(routes: &[Route], links: usize) -> Result<(), NetError> {
    for (number, route) in routes.iter().enumerate() {
        let unknown = route.forward.iter().chain(&route.backward).find(|&&link| link >= links);
        if let Some(&link) = unknown {
            return Err(NetError::UnknownLink { route: number, link, links });
        }
    }
    Ok(())
}
