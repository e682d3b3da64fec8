//! A bridge: passes the traffic of other programs through an emulated path, with separate settings for each direction.
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
//! Departure times are computed from the kernel's receive timestamps and the state of the path, not from the time at
//! which the bridge reads a packet. Therefore, if the bridge reads one packet late, the next packet is not delayed. TUN
//! devices have no timestamps, so their packets count as arrived when they are read. The length of a packet includes
//! its IP header, but no Ethernet header.

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

/// Configuration of a bridge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BridgeConfig {
    /// The path from the clients to the target, or from the first interface to the second.
    pub forward: PipeConfig,
    /// The path in the other direction.
    pub back: PipeConfig,
    /// Seed of all random numbers. Each direction has its own random numbers.
    pub seed: u64,
    /// Whether to busy-wait shortly before a packet is due, at the cost of processor time.
    pub spin: bool,
    /// Time between two samples of the bridge's counters ([`Bridge::samples`]); `None` or zero for no samples.
    pub sample_interval: Option<Span>,
}

/// The results of a bridge that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeReport {
    /// Results of the direction from the clients to the target, or from the first interface to the second.
    pub forward: DirectionReport,
    /// Results of the opposite direction.
    pub back: DirectionReport,
    /// Counters of the sockets or devices.
    pub ports: PortStats,
    /// When the bridge started.
    pub start: Time,
    /// How long the bridge ran.
    pub lasted: Span,
    /// When the machine stalled, and for how long.
    pub stalls: Stalls,
}

/// Results of one direction of a bridge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionReport {
    /// The counters of the emulated path.
    pub path: LinkStats,
    /// How late packets left, compared with their departure times in the emulated path.
    pub punctuality: Punctuality,
    /// Number of packets that the bridge dropped for lack of memory; the path's own drops are not included.
    pub refused: u64,
}

/// A running bridge. If it is still running when this value is dropped, it is stopped.
#[derive(Debug)]
pub struct Bridge {
    worker: Worker<Result<Parts, NetError>>,
    watchdog: Watchdog,
    clock: Clock,
    start: Time,
    address: Option<SocketAddr>,
    samples: Option<mpsc::Receiver<BridgeSample>>,
}

/// The results of a bridge's thread, which remain after the sockets are closed.
#[derive(Debug)]
struct Parts {
    directions: [Direction; 2],
    ports: PortStats,
}

impl Bridge {
    /// Relays datagrams that arrive at `listen` to `target`, with a separate socket for each client. Answers from
    /// `target` are relayed back to the client.
    ///
    /// # Errors
    /// [`NetError::Path`] if a path configuration is invalid; [`NetError::PortInUse`] and [`NetError::Bind`] if the
    /// socket cannot be opened; [`NetError::Spawn`] if a thread cannot be started.
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

    /// Forwards Ethernet frames between two interfaces, such as ends of veth pairs. The interfaces should have no IP
    /// addresses. Needs the capability `CAP_NET_RAW`.
    ///
    /// Frames without an IP packet, and neighbour discovery, get the path's delay, but use no capacity. If the sender
    /// left segmentation or checksums to hardware offload, the bridge performs them in software.
    ///
    /// # Errors
    /// [`NetError::Path`] if a path configuration is invalid; [`NetError::NoInterface`], [`NetError::SameInterface`],
    /// [`NetError::NotEthernet`], [`NetError::InterfaceDown`] and [`NetError::PacketSocket`] if the interfaces cannot
    /// be bridged; [`NetError::Spawn`] if a thread cannot be started.
    pub fn between(clock: &Clock, config: &BridgeConfig, first: &str, second: &str) -> Result<Self, NetError> {
        let ports = PacketPorts::new(clock, [first, second], Traffic::Any)?;
        Self::start(clock, config, ports, None)
    }

    /// Forwards IP packets between two TUN devices: packets that the host routes into one device leave from the other
    /// device. The host has to set addresses and routes, and to bring the devices up. The devices can be moved into
    /// network namespaces. Needs the capability `CAP_NET_ADMIN`, or devices that were created for this user. Devices
    /// that the bridge created are removed when it ends.
    ///
    /// TUN devices provide no timestamps, so packets count as arrived when they are read.
    ///
    /// # Errors
    /// [`NetError::Path`] if a path configuration is invalid; [`NetError::SameInterface`], [`NetError::InterfaceName`],
    /// [`NetError::NoTun`], [`NetError::TunTaken`] and [`NetError::Tun`] if the devices are not available;
    /// [`NetError::Spawn`] if a thread cannot be started.
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

    /// The address at which a relay listens, with the actual port; `None` for a bridge between interfaces or TUN
    /// devices.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// When the bridge started. The first sample is taken one sample interval later.
    pub const fn start_time(&self) -> Time {
        self.start
    }

    /// Returns the samples that were not returned before, oldest first, without waiting. At most 64 samples are stored;
    /// further samples are dropped.
    pub fn samples(&self) -> impl Iterator<Item = BridgeSample> + '_ {
        self.samples.iter().flat_map(mpsc::Receiver::try_iter)
    }

    /// Whether the bridge is still running. It ends by itself if a socket or device fails.
    pub fn is_running(&self) -> bool {
        !self.worker.is_finished()
    }

    /// Ends the bridge. Packets in flight are dropped.
    ///
    /// # Errors
    /// The error that ended the bridge early, if any.
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
