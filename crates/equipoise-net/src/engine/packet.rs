use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use equipoise::units::Size;
use equipoise_path::link::Ecn;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, send, setsockopt, socket, sockopt,
};

use super::frame::{Ip, ip_in, is_neighbour_discovery, quoted_in, u16_at};
use super::interface::Interface;
use super::offload::{complete_checksum, take_apart};
use super::{Arrival, BACK, FORWARD, Header, Manner, Medium, Packet, PortStats, Ports};
use crate::socket::{Message, RECEIVE_BUFFER, control_buffer, recv_stamped, wait_readable};
use crate::{Clock, NetError, Time, TimestampSource};

/// Maximum length of a frame in bytes. Our choice: twice the default limit of segmentation offload.
const MAX_FRAME: usize = 128 << 10;

/// The types of packets that this host itself has sent (`PACKET_OUTGOING` and `PACKET_LOOPBACK` in Linux).
const OWN_KINDS: [u8; 2] = [4, 5];

/// Which packets may use the emulated path.
#[derive(Debug)]
pub(crate) enum Traffic {
    /// All packets may use the path, if they are not longer than the MTU of the interfaces.
    Any,
    /// Only the packets of these flows may use the path. Packets of other flows are counted as foreign. Each value of
    /// the map has the flow's number and the maximum size of the flow's IP packets.
    Known(BTreeMap<Known, (u64, Size)>),
}

/// The protocol and ports that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Known {
    /// The number of the protocol above IP.
    pub(crate) protocol: u8,
    /// The ports of the hosts at the first and at the second side. One of the two ports may be 0, which means any port.
    pub(crate) ports: [u16; 2],
}

/// The packet sockets of two interfaces: a frame that arrives at one interface is sent at the other interface.
#[derive(Debug)]
pub(crate) struct PacketPorts {
    sockets: [PacketSocket; 2],
    traffic: Traffic,
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
    /// Opens a packet socket on each of the two interfaces.
    pub(crate) fn new(clock: &Clock, [first, second]: [&str; 2], traffic: Traffic) -> Result<Self, NetError> {
        if first == second {
            return Err(NetError::SameInterface { name: first.to_owned() });
        }
        let sockets = [PacketSocket::open(first)?, PacketSocket::open(second)?];
        let buffer = vec![0; MAX_FRAME];
        Ok(Self { sockets, traffic, clock: clock.clone(), buffer, scratch: Vec::new(), stats: PortStats::default() })
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
        // The following options are not required: if they fail, the socket still works.
        if setsockopt(&fd, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            let _ = setsockopt(&fd, sockopt::RcvBuf, &RECEIVE_BUFFER);
        }
        let _ = setsockopt(&fd, sockopt::RxqOvfl, &1);
        Ok(Self { fd, name: name.to_owned(), interface, control: control_buffer(), overflowed: 0, kernel })
    }

    /// Reads one frame that arrived at this interface; `None` if no frame is waiting.
    fn recv(&mut self, buffer: &mut [u8], clock: &Clock) -> Result<Option<Message>, NetError> {
        loop {
            match recv_stamped(self.fd.as_raw_fd(), buffer, &mut self.control, clock) {
                Ok(message) => {
                    self.overflowed = message.overflowed.unwrap_or(self.overflowed);
                    let from = message.from.as_ref().and_then(|from| from.as_link_addr());
                    // Before the socket was bound, it may have received frames of other interfaces.
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

impl Traffic {
    /// The number of the flow to which a packet from `side` belongs, and the length of the flow's longest packets, at
    /// most `mtu`; `None` if no flow matches.
    ///
    /// An ICMP error belongs to the flow of the packet that it quotes. The quoted packet had the opposite direction.
    /// For example, the kernel sends an ICMP error if a datagram arrives at a closed port.
    fn flow(&self, side: usize, frame: &[u8], ip: Ip, mtu: usize) -> Option<(u64, usize)> {
        let known = match self {
            Self::Any => return Some((0, mtu)),
            Self::Known(known) => known,
        };
        let (side, ip) = quoted_in(frame, ip).map_or((side, ip), |quoted| (side ^ 1, quoted));
        let header = ip.start + ip.header;
        let mut ports = [u16_at(frame, header)?, u16_at(frame, header + 2)?];
        if side == BACK {
            ports.reverse();
        }
        let protocol = ip.protocol?;
        let of = |ports| known.get(&Known { protocol, ports });
        let [first, second] = ports;
        let (number, longest) = of(ports).or_else(|| of([0, second])).or_else(|| of([first, 0]))?;
        Some((*number, mtu.min(usize::try_from(longest.as_bytes()).unwrap_or(mtu))))
    }
}

impl PacketPorts {
    /// Reads the frames that arrived at `side`, up to and including the first that arrived later than `horizon`.
    fn take_in_at(&mut self, side: usize, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        while let Some(message) = self.sockets[side].recv(&mut self.buffer, &self.clock)? {
            self.stage(&message, side, medium);
            if message.at > horizon {
                break;
            }
        }
        Ok(())
    }

    /// Converts the received frame in the buffer into one or more frames that can be sent, and passes them to the
    /// medium.
    fn stage(&mut self, message: &Message, side: usize, medium: &mut impl Medium) {
        let mtu = self.sockets[side ^ 1].interface.mtu;
        let Self { buffer, scratch, stats, traffic, .. } = self;
        let frame = buffer.get_mut(..message.len).unwrap_or_default();
        let Some(ip) = ip_in(frame).filter(|ip| !is_neighbour_discovery(frame, *ip)) else {
            let header = Header::Apart(Ecn::NotCapable);
            medium.stage(side, Arrival { at: message.at, manner: Manner::Beside, client: 0, header }, frame);
            return;
        };
        let Some((client, longest)) = traffic.flow(side, frame, ip, mtu) else {
            stats.foreign += 1;
            return;
        };
        let arrival = |len: usize| {
            let manner = Manner::Ip(Size::from_bytes(len as u64));
            Arrival { at: message.at, manner, client, header: Header::Inside(ip.start) }
        };
        if message.cut {
            stats.oversize += 1;
        } else if ip.len <= longest {
            stats.checksums += u64::from(complete_checksum(frame, ip));
            medium.stage(side, arrival(ip.len), frame);
        } else if take_apart(frame, ip, longest, scratch, |segment| {
            medium.stage(side, arrival(segment.len() - ip.start), segment);
        }) {
            stats.taken_apart += 1;
        } else {
            stats.oversize += 1;
        }
    }
}

impl Ports for PacketPorts {
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError> {
        self.take_in_at(FORWARD, horizon, medium)?;
        self.take_in_at(BACK, horizon, medium)
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
                // The kernel has no buffer space, or the interface is down for a short time: the packet counts as lost.
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
    fn stats(&self) -> PortStats {
        PortStats {
            overflowed: self.sockets.iter().map(|socket| socket.overflowed).sum(),
            timestamps: if self.stamped() { TimestampSource::Kernel } else { TimestampSource::UserSpace },
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TCP, UDP};
    use super::*;

    /// A frame with these protocol and port numbers, without payload.
    fn frame(protocol: u8, from: u16, to: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        frame.extend(from.to_be_bytes());
        frame.extend(to.to_be_bytes());
        frame.resize(54, 0);
        frame
    }

    /// If this test fails, a flow uses the links of another flow, or a foreign packet uses the links of a flow.
    #[test]
    fn a_flow_is_known_by_its_ports_in_both_directions_and_nobody_else_is() {
        let known = |protocol| Known { protocol, ports: [1000, 2000] };
        let (size, unlimited) = (Size::from_bytes(700), Size::from_bytes(u64::MAX));
        let any = |ports| Known { protocol: TCP, ports };
        let traffic = Traffic::Known(
            [
                (known(TCP), (3, size)),
                (known(UDP), (4, unlimited)),
                (any([0, 3000]), (5, size)),
                (any([4000, 0]), (6, size)),
            ]
            .into(),
        );
        let flow = |side, protocol, from, to| {
            let frame = frame(protocol, from, to);
            traffic.flow(side, &frame, ip_in(&frame).unwrap(), 1500)
        };
        assert_eq!(flow(FORWARD, TCP, 1000, 2000), Some((3, 700)));
        assert_eq!(flow(BACK, TCP, 2000, 1000), Some((3, 700)));
        assert_eq!(flow(FORWARD, UDP, 1000, 2000), Some((4, 1500)));
        assert_eq!(flow(BACK, TCP, 1000, 2000), None);
        assert_eq!(flow(FORWARD, TCP, 1000, 2001), None);
        assert_eq!(flow(FORWARD, 1, 1000, 2000), None);
        assert_eq!([flow(FORWARD, TCP, 7, 3000), flow(BACK, TCP, 3000, 8)], [Some((5, 700)); 2], "of any port");
        assert_eq!(
            [flow(FORWARD, TCP, 4000, 7), flow(BACK, TCP, 8, 4000)],
            [Some((6, 700)); 2],
            "and at the other side"
        );
        assert_eq!(flow(FORWARD, UDP, 7, 3000), None);
        let refused = |side, from, to| {
            let mut packet = frame(1, 0x0303, 0);
            packet.truncate(42);
            packet.extend(&frame(UDP, from, to)[14..]);
            packet[17] = 68;
            traffic.flow(side, &packet, ip_in(&packet).unwrap(), 1500)
        };
        assert_eq!(refused(BACK, 1000, 2000), Some((4, 1500)), "an error belongs to whom it tells");
        assert_eq!(refused(FORWARD, 1000, 2000), None);
        let frame = frame(TCP, 7, 7);
        assert_eq!(Traffic::Any.flow(BACK, &frame, ip_in(&frame).unwrap(), 1500), Some((0, 1500)));
    }
}
