//! A bridge: traffic of other programs through a path each way.
//!
//! ```text
//!   clients ──▶ listening socket ═ forward ═ a socket for each client ──▶ target       a relay of UDP
//!           ◀──                  ═  back   ═                          ◀──
//!
//!   network ──▶ interface        ═ forward ═ interface                ──▶ network      frames, any traffic
//!           ◀──                  ═  back   ═                          ◀──
//!
//!   routes  ──▶ TUN device       ═ forward ═ TUN device               ──▶ host         IP packets, any traffic
//!           ◀──                  ═  back   ═                          ◀──
//! ```
//!
//! The times come from the kernel's receive timestamps and the paths' own recursion, so that a bridge that is late now
//! does not make the next packet late. TUN devices have no timestamps: their packets arrive when they are read. Lengths are those of IP packets.

mod direction;
mod punctuality;
mod tun;
mod udp;

use std::net::SocketAddr;
use std::sync::mpsc;

use equipoise::random::stream_seed;
use equipoise::units::Span;
use equipoise_path::link::{LinkStats, Pipe, PipeConfig};

pub use direction::BridgeSample;
pub use punctuality::Punctuality;

use crate::engine::{Engine, PacketPorts, PortStats, Ports, Traffic};
use crate::thread::Worker;
use crate::{Clock, NetError, Stalls, Time, Watchdog};
use direction::{Direction, Directions, Sampling};
use punctuality::PunctualityMeter;
use tun::TunPorts;
use udp::UdpPorts;

/// What a bridge does to the packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BridgeConfig {
    /// The path from the clients to the target, or from the first interface to the second.
    pub forward: PipeConfig,
    /// The path of the answers.
    pub back: PipeConfig,
    /// Seed of all that is left to chance; the directions draw apart.
    pub seed: u64,
    /// Stay awake shortly before a packet is due, for the price of a processor's time.
    pub spin: bool,
    /// Time between two samples of its counters ([`Bridge::samples`]); `None` or nothing for none.
    pub sample_interval: Option<Span>,
}

/// What a bridge did.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeReport {
    /// From the clients to the target, or from the first interface to the second.
    pub forward: DirectionReport,
    /// The other way.
    pub back: DirectionReport,
    /// What happened at the sockets.
    pub ports: PortStats,
    /// When it began.
    pub start: Time,
    /// How long it ran.
    pub lasted: Span,
    /// When the machine stalled.
    pub stalls: Stalls,
}

/// What happened in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionReport {
    /// The path's counters.
    pub path: LinkStats,
    /// How much later than the path had it packets left.
    pub punctuality: Punctuality,
    /// Packets that were dropped for want of memory, not by the path.
    pub refused: u64,
}

/// A running bridge. It ends, at the latest, when it is dropped.
#[derive(Debug)]
pub struct Bridge {
    worker: Worker<Result<Parts, NetError>>,
    watchdog: Watchdog,
    clock: Clock,
    start: Time,
    address: Option<SocketAddr>,
    samples: Option<mpsc::Receiver<BridgeSample>>,
}

/// What is left of an engine when its sockets are closed.
#[derive(Debug)]
struct Parts {
    directions: [Direction; 2],
    ports: PortStats,
}

impl Bridge {
    /// Relays the datagrams that come to `listen` to `target`, each client's from a socket of its own, and the answers
    /// back.
    ///
    /// # Errors
    /// [`NetError::Path`] for an impossible path; [`NetError::PortInUse`], [`NetError::Bind`] and [`NetError::Spawn`]
    /// where the system has no such socket or thread to give.
    pub fn relay(
        clock: &Clock,
        config: &BridgeConfig,
        listen: SocketAddr,
        target: SocketAddr,
    ) -> Result<Self, NetError> {
        let ports = UdpPorts::new(clock, listen, target)?;
        let address = Some(ports.address());
        Self::start(clock, config, ports, address)
    }

    /// Carries Ethernet frames between two interfaces, such as ends of veth pairs, which should have no addresses of their
    /// own. Needs the right `CAP_NET_RAW`.
    ///
    /// What is no IP packet, and what finds out addresses, takes the delay only. Segments and checksums that a sender's offload
    /// left to the interface are made here.
    ///
    /// # Errors
    /// [`NetError::Path`] for an impossible path; [`NetError::NoInterface`], [`NetError::SameInterface`],
    /// [`NetError::NotEthernet`], [`NetError::InterfaceDown`] and [`NetError::PacketSocket`] for interfaces that cannot be
    /// bridged; [`NetError::Spawn`].
    pub fn between(clock: &Clock, config: &BridgeConfig, first: &str, second: &str) -> Result<Self, NetError> {
        let ports = PacketPorts::new(clock, [first, second], Traffic::Any)?;
        Self::start(clock, config, ports, None)
    }

    /// Carries IP packets between two TUN devices: what the host routes into one comes out of the other. Addresses, routes
    /// and whether the devices are up are the host's; they may be moved into network namespaces. Needs the right
    /// `CAP_NET_ADMIN`, or devices that were made for this user; those that were not there before go with the bridge.
    ///
    /// Packets arrive when they are read, as devices have no timestamps.
    ///
    /// # Errors
    /// [`NetError::Path`] for an impossible path; [`NetError::SameInterface`], [`NetError::InterfaceName`],
    /// [`NetError::NoTun`], [`NetError::TunTaken`] and [`NetError::Tun`] where there are no such devices to be had;
    /// [`NetError::Spawn`].
    pub fn tun(clock: &Clock, config: &BridgeConfig, first: &str, second: &str) -> Result<Self, NetError> {
        let ports = TunPorts::new(first, second)?;
        Self::start(clock, config, ports, None)
    }

    fn start<P: Ports + Send + 'static>(
        clock: &Clock,
        config: &BridgeConfig,
        ports: P,
        address: Option<SocketAddr>,
    ) -> Result<Self, NetError> {
        let start = clock.now();
        let watchdog = Watchdog::start(clock)?;
        let direction = |name, path: &PipeConfig, stream| {
            let pipe = Pipe::new(path.clone(), start, stream_seed(config.seed, stream))
                .map_err(|source| NetError::Path { direction: name, source })?;
            Ok::<_, NetError>(Direction::new(pipe, PunctualityMeter::new(watchdog.log())))
        };
        let both = [direction("forward", &config.forward, 0)?, direction("back", &config.back, 1)?];
        let interval = config.sample_interval.filter(|interval| *interval > Span::ZERO);
        let (sampling, samples) = interval.map(|interval| Sampling::new(start, interval)).unzip();
        let medium = Directions { both, sampling };
        let engine = Engine { clock: clock.clone(), ports, medium, spin: config.spin };
        let worker = Worker::spawn("bridge", move |stop| {
            let Engine { ports, medium, .. } = engine.run(stop)?;
            Ok(Parts { ports: ports.stats(), directions: medium.both })
        })?;
        Ok(Self { worker, watchdog, clock: clock.clone(), start, address, samples })
    }

    /// Where a relay listens, with the port that was chosen; `None` between interfaces or devices.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// When it began: the first sample is an interval later.
    pub const fn start_time(&self) -> Time {
        self.start
    }

    /// The samples that have not been taken yet, the oldest first; it waits for none. Of a reader who stays away for long some
    /// are left out.
    pub fn samples(&self) -> impl Iterator<Item = BridgeSample> + '_ {
        self.samples.iter().flat_map(mpsc::Receiver::try_iter)
    }

    /// Whether it still runs: a bridge whose sockets failed does not.
    pub fn is_running(&self) -> bool {
        !self.worker.is_finished()
    }

    /// Ends the bridge; packets under way are dropped.
    ///
    /// # Errors
    /// What ended it before its time, if something did.
    pub fn stop(self) -> Result<BridgeReport, NetError> {
        self.worker.request_stop();
        let Parts { directions: [forward, back], ports } = self.worker.join()??;
        let now = self.clock.now();
        let stalls = self.watchdog.stop()?;
        let report = |mut direction: Direction| DirectionReport {
            path: direction.pipe().stats(now),
            punctuality: direction.punctuality.finish(),
            refused: direction.refused(),
        };
        let (forward, back) = (report(forward), report(back));
        Ok(BridgeReport { forward, back, ports, start: self.start, lasted: now - self.start, stalls })
    }
}
