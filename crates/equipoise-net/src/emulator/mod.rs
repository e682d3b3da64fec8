//! An emulated bottleneck: a relay of UDP datagrams that delays and drops them as links would.
//!
//! ```text
//!   sender ──▶ entrance ═ forward links ═ exit ──▶ receiver
//!          ◀──          ═ backward links ═     ◀──
//! ```
//!
//! The times come from the kernel's receive timestamps and the links' own recursion, so that a relay that is late now
//! does not make the next packet late. Lengths are those of IP packets: payload plus [`Size::IPV4_UDP`].
//!
//! [`Size::IPV4_UDP`]: equipoise::units::Size::IPV4_UDP

mod load;
mod network;
mod relay;

use std::net::{Ipv4Addr, SocketAddr};

use equipoise::link::{FifoLink, LinkConfig, LinkStats};

pub use load::LoadProbe;

use crate::thread::Worker;
use crate::{Clock, HostClock, Lateness, NetError, Place, Socket, Time, TimestampSource};
use network::Network;
use relay::{Gate, Relay};

/// The way of one flow through the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Links from the sender to the receiver, by their position in the list of links, in the order of the way.
    pub forward: Vec<usize>,
    /// Links from the receiver to the sender; none for a way without delay.
    pub backward: Vec<usize>,
    /// The sender's address: nobody else may use the entrance.
    pub sender: SocketAddr,
    /// The receiver's address: nobody else may use the exit.
    pub receiver: SocketAddr,
}

/// What an emulator did.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatorReport {
    /// Each link's counters, in the order of the links.
    pub links: Vec<LinkStats>,
    /// Datagrams from strangers, which were dropped.
    pub foreign: u64,
    /// Datagrams that were dropped for want of memory, not by a link.
    pub refused: u64,
    /// Datagrams that the kernel dropped at the emulator's own sockets, where it counts them, on the way in or out.
    pub lost_at_sockets: u64,
    /// Datagrams that were still under way at the end.
    pub in_flight: u64,
    /// How much later than ideal datagrams left; `None` where none did.
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

impl Emulator {
    /// The same between sockets on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// As [`start_between`](Self::start_between).
    pub fn start(clock: &Clock, origin: Time, links: &[LinkConfig], routes: Vec<Route>) -> Result<Self, NetError> {
        let mut bind = |_: Place| Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), clock);
        Self::start_between(clock, origin, links, routes, &mut bind)
    }

    /// Starts to relay between two sockets for each route, which `bind` opens: where datagrams come in, and where they go
    /// out.
    ///
    /// The links' schedules of rates count from `origin`.
    ///
    /// # Errors
    /// [`NetError::Link`] and [`NetError::UnknownLink`] for an impossible network; what `bind` says, and
    /// [`NetError::Spawn`] where the system has no thread to give.
    pub fn start_between(
        clock: &Clock,
        origin: Time,
        links: &[LinkConfig],
        routes: Vec<Route>,
        bind: &mut dyn FnMut(Place) -> Result<Socket, NetError>,
    ) -> Result<Self, NetError> {
        let links = build(origin, links)?;
        check(&routes, links.len())?;
        // Gate 2n is the entrance of route n and gate 2n + 1 its exit; so are the ways that begin there.
        let known = routes.iter().flat_map(|route| {
            [(Place::Entrance, route.sender, &route.forward), (Place::Exit, route.receiver, &route.backward)]
        });
        let (mut gates, mut ways) = (Vec::new(), Vec::new());
        for (place, peer, way) in known {
            gates.push(Gate { socket: bind(place)?, peer });
            ways.push(way.clone());
        }
        let addresses = gates.iter().map(|gate| gate.socket.address()).collect();
        let load = LoadProbe::new(origin, links.clone());
        let network = Network::new(links, ways, load.offered());
        let relay = Relay::new(clock.clone(), gates, network);
        let worker = Worker::spawn("emulator", move |stop| relay.run(stop))?;
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

    /// A probe of the load on the forward links of `route`; `None` where there is no such route.
    pub fn load_probe(&self, route: usize) -> Option<LoadProbe> {
        self.routes.get(route).map(|route| self.load.along(&route.forward))
    }

    /// Whether it still relays: an emulator whose sockets failed does not.
    pub fn is_running(&self) -> bool {
        !self.worker.is_finished()
    }

    /// Stops relaying and closes the sockets; datagrams under way are dropped.
    ///
    /// # Errors
    /// What ended the relay before its time, if something did.
    pub fn stop(self) -> Result<EmulatorReport, NetError> {
        self.worker.request_stop();
        self.worker.join()?
    }
}

fn build(origin: Time, links: &[LinkConfig]) -> Result<Vec<FifoLink<HostClock>>, NetError> {
    let build = |(link, config): (usize, &LinkConfig)| {
        FifoLink::new(config.clone(), origin).map_err(|source| NetError::Link { link, source })
    };
    links.iter().enumerate().map(build).collect()
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
