use std::io;
use std::os::fd::{AsFd, OwnedFd};

use equipoise::units::Size;
use equipoise_path::link::Ecn;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::unistd::{read, write};
use tun_rs::DeviceBuilder;

use crate::engine::{
    Arrival, BACK, FORWARD, Header, Manner, Medium, Packet, PortStats, Ports, ip_at, is_neighbour_discovery,
};
use crate::socket::wait_readable;
use crate::{Clock, NetError, Time, TimestampSource};

/// Maximum length of an IP packet in bytes, rounded up: 65 535 for IPv4 (RFC 791, Sec. 3.1), and 65 575 for IPv6, whose
/// length field does not count the header of 40 bytes (RFC 8200, Sec. 3).
const MAX_PACKET: usize = 66_000;

/// Maximum length of an interface name in bytes (Linux's `IFNAMSIZ` minus the final zero).
const MAX_NAME: usize = 15;

/// Maximum number of packets that wait in a device until they are read. Our choice: at 100 000 packets per second, this
/// number arrives while the bridge stalls for 100 ms.
const READ_QUEUE: u32 = 10_000;

/// Maximum number of packets read from one device before the other device is read. Our choice: the other device waits
/// for only some 50 µs.
const BATCH: usize = 64;

/// Two TUN devices: packets that the host routes into one device leave from the other device.
///
/// Unlike with Ethernet interfaces, nothing is left to hardware offload: packets are no longer than the MTU, and their
/// checksums are complete.
#[derive(Debug)]
pub(super) struct TunPorts {
    devices: [Tun; 2],
    buffer: Vec<u8>,
    unsent: u64,
}

#[derive(Debug)]
struct Tun {
    fd: OwnedFd,
    name: String,
}

impl TunPorts {
    /// Creates two devices with these names, or opens them if they already exist.
    pub(super) fn new(first: &str, second: &str) -> Result<Self, NetError> {
        if first == second {
            return Err(NetError::SameInterface { name: first.to_owned() });
        }
        let devices = [Tun::open(first)?, Tun::open(second)?];
        Ok(Self { devices, buffer: vec![0; MAX_PACKET], unsent: 0 })
    }

    /// Reads the packets that the host routed into the device with index `side`. They count as arrived at `horizon`,
    /// because TUN devices provide no timestamps.
    fn take_in_at(&mut self, side: usize, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        for _ in 0..BATCH {
            let Some(len) = self.devices[side].recv(&mut self.buffer)? else { break };
            let packet = self.buffer.get(..len).unwrap_or_default();
            let traffic = ip_at(packet, 0).filter(|ip| !is_neighbour_discovery(packet, *ip));
            let manner = traffic.map_or(Manner::Beside, |ip| Manner::Ip(Size::from_bytes(ip.len as u64)));
            let header = traffic.map_or(Header::Apart(Ecn::NotCapable), |ip| Header::Inside(ip.start));
            medium.stage(side, Arrival { at: horizon, manner, client: 0, header }, packet);
        }
        Ok(())
    }
}

impl Tun {
    fn open(name: &str) -> Result<Self, NetError> {
        let odd = |byte: u8| !byte.is_ascii_graphic() || b"/:%".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || [".", ".."].contains(&name) || name.bytes().any(odd) {
            return Err(NetError::InterfaceName { name: name.to_owned() });
        }
        let failed = |source| refusal(name, source);
        // This program sets no addresses and no routes, and does not bring the device up. The user must do this.
        let device = DeviceBuilder::new().name(name).inherit_enable_state().build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        // An error is ignored: a user without `CAP_NET_ADMIN` may own a device, but cannot change it.
        let _ = device.set_tx_queue_len(READ_QUEUE);
        let fd = device.as_fd().try_clone_to_owned().map_err(failed)?;
        Ok(Self { fd, name: name.to_owned() })
    }

    /// Reads one packet. Returns its length, or `None` if no packet is waiting.
    fn recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, NetError> {
        loop {
            match read(&self.fd, buffer) {
                Ok(len) => return Ok(Some(len)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => {
                    return Err(NetError::InterfaceGone { name: self.name.clone(), source: errno.into() });
                }
            }
        }
    }
}

/// Converts the system's error on opening a device.
fn refusal(name: &str, source: io::Error) -> NetError {
    let name = name.to_owned();
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => NetError::NoTun { source },
        // Another program uses the device, or the name belongs to an interface of another kind.
        Some(Errno::EBUSY | Errno::EINVAL | Errno::EEXIST) => NetError::TunTaken { name, source },
        _ => NetError::Tun { name, source },
    }
}

impl Ports for TunPorts {
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        self.take_in_at(FORWARD, horizon, medium)?;
        self.take_in_at(BACK, horizon, medium)
    }

    fn send(&mut self, direction: usize, packet: &mut Packet) {
        loop {
            match write(&self.devices[direction ^ 1].fd, &packet.bytes) {
                Ok(_) => return,
                Err(Errno::EINTR) => {}
                // The kernel has no buffer space, or the device is down for a short time: the packet counts as lost.
                Err(_) => {
                    self.unsent += 1;
                    return;
                }
            }
        }
    }

    fn stamped(&self) -> bool {
        false
    }

    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError> {
        let [first, second] = &self.devices;
        let mut waiting = [first, second].map(|device| PollFd::new(device.fd.as_fd(), PollFlags::POLLIN));
        wait_readable(&mut waiting, clock, until)
    }
    fn stats(&self) -> PortStats {
        PortStats { unsent: self.unsent, timestamps: TimestampSource::UserSpace, ..PortStats::default() }
    }
}
