use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use equipoise::units::Size;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, send, setsockopt, socket, sockopt,
};

use super::direction::{Direction, Manner, Packet};
use super::engine::Ports;
use super::frame::{ip_in, is_neighbour_discovery};
use super::interface::Interface;
use super::offload::{complete_checksum, take_apart};
use super::{BACK, FORWARD, PortStats};
use crate::socket::{Message, RECEIVE_BUFFER, control_buffer, recv_stamped, wait_readable};
use crate::{Clock, NetError, Time, TimestampSource};

/// Bytes of the longest frame: twice what offloads make by default.
const MAX_FRAME: usize = 128 << 10;

/// Kinds of packets that this host sends itself (Linux's `PACKET_OUTGOING`, `PACKET_LOOPBACK`).
const OWN_KINDS: [u8; 2] = [4, 5];

/// The packet sockets of two interfaces: what comes in at one goes out at the other.
#[derive(Debug)]
pub(super) struct PacketPorts {
    sockets: [PacketSocket; 2],
    clock: Clock,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    stats: PortStats,
}

#[derive(Debug)]
struct PacketSocket {
    fd: OwnedFd,
    name: String,
    interface: Interface,
    control: Vec<u8>,
    overflowed: u64,
    kernel: bool,
}

impl PacketPorts {
    /// Opens a socket on each interface.
    pub(super) fn new(clock: &Clock, first: &str, second: &str) -> Result<Self, NetError> {
        if first == second {
            return Err(NetError::SameInterface { name: first.to_owned() });
        }
        let sockets = [PacketSocket::open(first)?, PacketSocket::open(second)?];
        let buffer = vec![0; MAX_FRAME];
        Ok(Self { sockets, clock: clock.clone(), buffer, scratch: Vec::new(), stats: PortStats::default() })
    }

    /// What it counted.
    pub(super) fn stats(&self) -> PortStats {
        PortStats {
            overflowed: self.sockets.iter().map(|socket| socket.overflowed).sum(),
            timestamps: if self.stamped() { TimestampSource::Kernel } else { TimestampSource::UserSpace },
            ..self.stats
        }
    }
}

impl PacketSocket {
    fn open(name: &str) -> Result<Self, NetError> {
        let failed = |errno: Errno| NetError::PacketSocket { name: name.to_owned(), source: errno.into() };
        let interface = Interface::find(name)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).map_err(failed)?;
        bind(fd.as_raw_fd(), &interface.address).map_err(failed)?;
        let kernel = setsockopt(&fd, sockopt::ReceiveTimestampns, &true).is_ok();
        // Refinements; a system without them still does.
        if setsockopt(&fd, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            let _ = setsockopt(&fd, sockopt::RcvBuf, &RECEIVE_BUFFER);
        }
        let _ = setsockopt(&fd, sockopt::RxqOvfl, &1);
        Ok(Self { fd, name: name.to_owned(), interface, control: control_buffer(), overflowed: 0, kernel })
    }

    /// Reads one frame that came in through this interface; `None` where there is none.
    fn recv(&mut self, buffer: &mut [u8], clock: &Clock) -> Result<Option<Message>, NetError> {
        loop {
            match recv_stamped(self.fd.as_raw_fd(), buffer, &mut self.control, clock) {
                Ok(message) => {
                    self.overflowed = message.overflowed.unwrap_or(self.overflowed);
                    let from = message.from.as_ref().and_then(|from| from.as_link_addr());
                    // Before it was bound the socket may have heard others.
                    let through_this = |index| index == self.interface.address.ifindex();
                    if from.is_some_and(|from| through_this(from.ifindex()) && !OWN_KINDS.contains(&from.pkttype())) {
                        return Ok(Some(message));
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => {
                    return Err(NetError::InterfaceGone { name: self.name.clone(), source: errno.into() });
                }
            }
        }
    }
}

impl PacketPorts {
    /// Reads what arrived at `side` until `horizon`.
    fn take_in_at(&mut self, side: usize, horizon: Time, direction: &mut Direction) -> Result<(), NetError> {
        let mtu = self.sockets[side ^ 1].interface.mtu;
        while let Some(message) = self.sockets[side].recv(&mut self.buffer, &self.clock)? {
            self.stage(&message, mtu, direction);
            if message.at > horizon {
                break;
            }
        }
        Ok(())
    }

    /// Makes of what is in the buffer a frame that can go on, or several.
    fn stage(&mut self, message: &Message, mtu: usize, direction: &mut Direction) {
        let Self { buffer, scratch, stats, .. } = self;
        let frame = buffer.get_mut(..message.len).unwrap_or_default();
        let traffic = ip_in(frame).filter(|ip| !is_neighbour_discovery(frame, *ip));
        let Some(ip) = traffic else {
            direction.stage(message.at, Manner::Beside, frame, 0);
            return;
        };
        let bytes = |len: usize| Manner::Ip(Size::from_bytes(len as u64));
        if message.cut {
            stats.oversize += 1;
        } else if ip.len <= mtu {
            stats.checksums += u64::from(complete_checksum(frame, ip));
            direction.stage(message.at, bytes(ip.len), frame, 0);
        } else if take_apart(frame, ip, mtu, scratch, |segment| {
            direction.stage(message.at, bytes(segment.len() - ip.start), segment, 0);
        }) {
            stats.taken_apart += 1;
        } else {
            stats.oversize += 1;
        }
    }
}

impl Ports for PacketPorts {
    fn take_in(&mut self, horizon: Time, directions: &mut [Direction; 2]) -> Result<(), NetError> {
        let [forward, back] = directions;
        self.take_in_at(FORWARD, horizon, forward)?;
        self.take_in_at(BACK, horizon, back)
    }

    fn send(&mut self, direction: usize, packet: &mut Packet) {
        let to = &self.sockets[direction ^ 1];
        loop {
            match send(to.fd.as_raw_fd(), &packet.bytes, MsgFlags::empty()) {
                Ok(_) => return,
                Err(Errno::EINTR) => {}
                Err(Errno::EMSGSIZE) => {
                    self.stats.oversize += 1;
                    return;
                }
                // Lack of room, or an interface that is down for the moment: loss like any other.
                Err(_) => {
                    self.stats.unsent += 1;
                    return;
                }
            }
        }
    }

    fn stamped(&self) -> bool {
        self.sockets.iter().all(|socket| socket.kernel)
    }

    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError> {
        let [first, second] = &self.sockets;
        let mut waiting = [first, second].map(|socket| PollFd::new(socket.fd.as_fd(), PollFlags::POLLIN));
        wait_readable(&mut waiting, clock, until)
    }
}
