//! An emulated bottleneck: packets between two hosts are delayed and dropped as links would.
//!
//! ```text
//!   sender ──▶ entrance ═ forward links ═ exit ──▶ receiver
//!          ◀──          ═ backward links ═     ◀──
//! ```
//!
//! On this host's loopback the entrance and the exit are UDP sockets, two for each route, and datagrams are relayed. In the
//! middle of a [`TestBed`] they are its two interfaces: the hosts address each other, and whatever IP packets they exchange,
//! UDP or TCP, go over the links of the route that has their ports.
//!
//! The times come from the kernel's receive timestamps and the links' own recursion, so that an emulator that is late now
//! does not make the next packet late. Lengths are those of IP packets.

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

/// What an emulator emulates.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// From then on the links' schedules of rates count, and their counters.
    pub origin: Time,
    /// The links.
    pub links: Vec<PipeConfig>,
    /// Of what happens by chance on them.
    pub seed: u64,
    /// The ways over them.
    pub routes: Vec<Route>,
    /// Time between two samples of the links' counters, if there are to be any.
    pub sample_interval: Option<Span>,
    /// Who is told of each packet that leaves, if anybody is.
    pub watcher: Option<Watcher>,
}

/// The way of one flow through the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Links from the sender to the receiver, by their position in the list of links, in the order of the way.
    pub forward: Vec<usize>,
    /// Links from the receiver to the sender; none for a way without delay.
    pub backward: Vec<usize>,
    /// What they speak; on the loopback only UDP.
    pub protocol: Protocol,
    /// The sender's address: nobody else may use the entrance. Between the hosts of a test bed port 0 stands for any, of one of both.
    pub sender: SocketAddr,
    /// The receiver's address: nobody else may use the exit.
    pub receiver: SocketAddr,
}

/// What the two ends of a route speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// A stream.
    Tcp {
        /// The size of its IP packets, to which segments are cut that the sender left together.
        packet: Size,
    },
}

/// What an emulator did.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatorReport {
    /// Each link's counters, in the order of the links.
    pub links: Vec<LinkStats>,
    /// The same over time, where samples were wanted.
    pub samples: Vec<LinkSample>,
    /// Packets from strangers, which were dropped.
    pub foreign: u64,
    /// Packets that were dropped for want of memory, not by a link.
    pub refused: u64,
    /// Packets that the kernel dropped at the emulator's own sockets, where it counts them, on the way in or out.
    pub lost_at_sockets: u64,
    /// Packets that were still under way at the end.
    pub in_flight: u64,
    /// How much later than ideal packets left; `None` where none did.
    pub lateness: Option<Lateness>,
    /// Where arrival times came from; user space if any of the sockets had to.
    pub timestamps: TimestampSource,
}

/// A running emulator. It ends, at the latest, when it is dropped.
#[derive(Debug)]
pub struct Emulator {
    worker: Worker<Result<EmulatorReport, NetError>>,
    routes: Vec<Route>,
    /// Addresses of the first route's entrance and exit, then of the second's, and so on.
    addresses: Vec<SocketAddr>,
    load: LoadProbe,
}

impl EmulatorConfig {
    /// An emulator of seed 1 that takes no samples and has no watcher.
    pub const fn new(origin: Time, links: Vec<PipeConfig>, routes: Vec<Route>) -> Self {
        Self { origin, links, seed: 1, routes, sample_interval: None, watcher: None }
    }
}

impl Emulator {
    /// Starts to relay datagrams between two sockets on free ports of 127.0.0.1 for each route.
    ///
    /// # Errors
    /// [`NetError::Link`] and [`NetError::UnknownLink`] for an impossible network, [`NetError::NoStream`] for a route that is
    /// none of datagrams; as [`Socket::bind`], and [`NetError::Spawn`] where the system has no thread to give.
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

    /// Starts to carry packets between the hosts of a test bed.
    ///
    /// # Errors
    /// [`NetError::Link`] and [`NetError::UnknownLink`] for an impossible network; [`NetError::PacketSocket`] and
    /// [`NetError::Spawn`] where the system refuses.
    pub fn start_in(bed: &TestBed, clock: &Clock, config: EmulatorConfig) -> Result<Self, NetError> {
        let traffic =
            Traffic::Known(config.routes.iter().zip(0..).map(|(route, number)| route.known(number)).collect());
        let ports = bed.inside(Place::Middle, || PacketPorts::new(clock, TestBed::MIDDLE, traffic))?;
        // The hosts send to each other.
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

    /// Where the sender of `route` sends to, and whence it gets its reports; `None` where there is no such route.
    pub fn entrance(&self, route: usize) -> Option<SocketAddr> {
        self.addresses.chunks(2).nth(route).and_then(|pair| pair.first()).copied()
    }

    /// Whence the receiver of `route` gets its datagrams, and where it reports to; `None` where there is no such route.
    pub fn exit(&self, route: usize) -> Option<SocketAddr> {
        self.addresses.chunks(2).nth(route).and_then(|pair| pair.last()).copied()
    }

    /// A probe of the load on the forward links of `route`, or on those back; `None` where there is no such route.
    pub fn load_probe(&self, route: usize, back: bool) -> Option<LoadProbe> {
        let route = self.routes.get(route)?;
        Some(self.load.along(if back { &route.backward } else { &route.forward }))
    }

    /// Whether it still runs: an emulator whose sockets failed does not.
    pub fn is_running(&self) -> bool {
        !self.worker.is_finished()
    }

    /// Stops it and closes the sockets; packets under way are dropped.
    ///
    /// # Errors
    /// What ended it before its time, if something did.
    pub fn stop(self) -> Result<EmulatorReport, NetError> {
        self.worker.request_stop();
        self.worker.join()?
    }
}

impl Route {
    /// How its packets are known, as route `number`.
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
