//! The thread that passes packets through an emulated path: from the sockets or devices at one side to those at the
//! other side.
//!
//! ```text
//!   ports ──▶ medium ──▶ ports        a medium: the pipes of a bridge, or the network of an emulator
//! ```
//!
//! Departure times are computed from the kernel's receive timestamps and the state of the medium, not from the time at
//! which the thread reads a packet. Therefore, if the thread is late for one packet, it does not delay the next packet.
//! Only packets without timestamps, for example of TUN devices, count as arrived when they are read.

mod frame;
mod interface;
mod offload;
mod packet;

use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::{Size, Span};
use equipoise_path::link::{Ecn, Queued};
use equipoise_session::Transmit;

use frame::{ecn_of, flow_of, mark_congestion};
pub(crate) use frame::{ip_at, is_neighbour_discovery};
pub(crate) use offload::{TCP, UDP};
pub(crate) use packet::{Known, PacketPorts, Traffic};

use crate::thread::STOP_CHECK;
use crate::{Clock, NetError, Time, TimestampSource};

/// If `spin` is set, the thread wakes this long before a packet is due, and then spins. Our choice: almost all wake-ups
/// are late by less than this time.
const SPIN: Span = Span::from_micros(200);

/// The thread sleeps at most for the minimum delay of a packet minus this margin. If the thread wakes late by less than
/// this margin, no packet that arrived during the sleep is due yet. Our choice: almost all wake-ups are late by less.
const MARGIN: Span = Span::from_micros(200);

/// Maximum time of a sleep, because receive buffers are finite. Our choice: at 1 Gbit/s, 125 kB arrive in this
/// time, a small part of the buffer that is requested (4 MiB).
const LONGEST_SLEEP: Span = Span::from_millis(1);

/// Length of a UDP header in bytes (RFC 768).
const UDP_HEADER: usize = 8;

/// Numbers of the two directions of the path. They are also the numbers of the sides: direction 0 begins at side 0.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACK: usize = 1;

/// A frame or datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    /// The number of the packet's client in a UDP relay, or of its route in an emulator; otherwise 0.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// Where the IP header of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// The header is in the packet's bytes, at this offset.
    Inside(usize),
    /// The IP header is not in the packet's bytes: the kernel creates it, with this ECN field.
    Apart(Ecn),
}

impl Packet {
    /// The datagram to send over a socket. Only for packets with [`Header::Apart`].
    pub(crate) fn datagram(&self) -> Transmit<'_> {
        Transmit { ecn: self.ecn(), ..Transmit::datagram(&self.bytes) }
    }
}

impl Packet {
    /// The payload of a UDP datagram; `None` for other packets.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        let Header::Inside(start) = self.header else { return Some(&self.bytes) };
        let ip = ip_at(&self.bytes, start)?;
        (ip.protocol == Some(UDP)).then_some(())?;
        self.bytes.get(start + ip.header + UDP_HEADER..start + ip.len)
    }
}

impl Queued for Packet {
    fn ecn(&self) -> Ecn {
        match self.header {
            Header::Inside(start) => Ecn::from_bits(ecn_of(&self.bytes, start)),
            Header::Apart(ecn) => ecn,
        }
    }

    fn mark(&mut self) {
        match &mut self.header {
            Header::Inside(start) => mark_congestion(&mut self.bytes, *start),
            Header::Apart(ecn) => *ecn = Ecn::Marked,
        }
    }

    /// Returns the number of the packet's flow. Without an IP header, all packets of a client are one flow.
    fn flow(&self) -> u64 {
        match self.header {
            Header::Inside(start) => flow_of(&self.bytes, start),
            Header::Apart(_) => self.client,
        }
    }
}

/// How the emulated path treats a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As IP traffic: the packet has this length and uses the path's capacity.
    Ip(Size),
    /// The packet does not count as IP traffic and uses no capacity, for example ARP and neighbour discovery. A bridge
    /// delays it by the path's delay, an emulator does not delay it.
    Beside,
}

/// The arrival of a packet at the start of the emulated path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) manner: Manner,
    /// The number of the packet's client in a UDP relay, or of its route in an emulator; otherwise 0.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// A packet that leaves the emulated path.
#[derive(Debug)]
pub(crate) struct Departure {
    /// When the packet was due to leave.
    pub(crate) due: Time,
    pub(crate) direction: usize,
    pub(crate) packet: Packet,
}

/// Counters of the sockets or devices at both sides of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// Number of packets that the system did not accept for sending, or whose client's socket was closed.
    pub unsent: u64,
    /// Number of packets lost because a receive buffer was full; 0 if the system does not count these losses.
    pub overflowed: u64,
    /// Number of packets dropped because they belong to no flow that may use the path.
    pub foreign: u64,
    /// Number of clients that the UDP relay has accepted.
    pub clients: u64,
    /// Number of datagrams dropped because too many clients were active, or because no socket could be opened for a new
    /// client.
    pub turned_away: u64,
    /// Number of frames dropped because they are longer than the interface's MTU or the packet size of their flow, and
    /// cannot be segmented.
    pub oversize: u64,
    /// Number of received frames that this program split into segments in place of hardware offload.
    pub taken_apart: u64,
    /// Number of checksums that this program computed in place of hardware offload.
    pub checksums: u64,
    /// Source of arrival times; user space if at least one socket or device has no kernel timestamps.
    pub timestamps: TimestampSource,
}

impl Default for PortStats {
    fn default() -> Self {
        Self {
            unsent: 0,
            overflowed: 0,
            foreign: 0,
            clients: 0,
            turned_away: 0,
            oversize: 0,
            taken_apart: 0,
            checksums: 0,
            timestamps: TimestampSource::Kernel,
        }
    }
}

/// The sockets or devices at both sides of the path.
pub(crate) trait Ports {
    /// Reads waiting packets and passes them to the medium. Reads at least those with a kernel timestamp no later than
    /// `horizon`.
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError>;
    /// Sends a packet that has left the path. If this fails, the packet counts as lost.
    fn send(&mut self, direction: usize, packet: &mut Packet);
    /// Whether the kernel timestamps all arriving packets. If so, a late read does not change the departure times.
    fn stamped(&self) -> bool;
    /// Waits until a socket or device is readable, or until the time `until`. May return early.
    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError>;
    /// The counters of the sockets or devices.
    fn stats(&self) -> PortStats;
}

/// The emulated path in virtual time, without sockets.
pub(crate) trait Medium {
    /// Stores a packet that arrived at the start of `direction`. Packets need not be stored in the order of arrival.
    fn stage(&mut self, direction: usize, arrival: Arrival, bytes: &[u8]);
    /// Called when all packets that arrived no later than `horizon` are stored. These packets now enter the path.
    fn enter(&mut self, horizon: Time);
    /// The time of the next event on the path; `None` if no packet is in flight.
    fn next(&self) -> Option<Time>;
    /// Returns a packet that is due no later than `horizon`; `None` if there is none.
    fn leave(&mut self, horizon: Time) -> Option<Departure>;
    /// Records that the packet of `departure` was sent at the time `at`.
    fn left(&mut self, departure: Departure, at: Time);
    /// The minimum delay of a packet with [`Manner::Ip`].
    fn least_delay(&self) -> Span;
}

/// The thread that moves packets between the ports and the medium.
#[derive(Debug)]
pub(crate) struct Engine<P, M> {
    pub(crate) clock: Clock,
    pub(crate) ports: P,
    pub(crate) medium: M,
    pub(crate) spin: bool,
}

impl<P: Ports, M: Medium> Engine<P, M> {
    /// Moves packets until `stop` is true.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Self, NetError> {
        let sleep = self.sleep();
        while !stop.load(Ordering::Relaxed) {
            // `take_in` reads all packets that arrived until `horizon`. Later rounds read only packets that arrived
            // after `horizon`. Therefore the medium can now sort the packets that arrived until `horizon` by arrival
            // time.
            let horizon = self.clock.now();
            self.ports.take_in(horizon, &mut self.medium)?;
            self.medium.enter(horizon);
            while let Some(mut departure) = self.medium.leave(horizon) {
                let now = self.clock.now();
                self.ports.send(departure.direction, &mut departure.packet);
                self.medium.left(departure, now);
            }
            self.rest(horizon, sleep)?;
        }
        Ok(self)
    }

    /// How long the thread may sleep while packets arrive. The time is shorter than the path's minimum delay of IP
    /// packets, so an IP packet that arrives during the sleep is not due before the sleep ends. `None` if the minimum
    /// delay is too short, or if packets have no arrival timestamps.
    fn sleep(&self) -> Option<Span> {
        let sleep = (self.medium.least_delay() - MARGIN).min(LONGEST_SLEEP);
        (self.ports.stamped() && sleep > Span::ZERO).then_some(sleep)
    }

    /// Waits until the next packet is due or arrives. If packets are in flight and `sleep` is set, sleeps until the
    /// next packet is due, but at most until `horizon + sleep`, and does not wake for arrivals. The function may return
    /// earlier, for example to check the stop flag. The caller must have read all packets that arrived by `horizon`.
    fn rest(&mut self, horizon: Time, sleep: Option<Span>) -> Result<(), NetError> {
        let now = self.clock.now();
        let next = self.medium.next();
        let awake = if self.spin { SPIN } else { Span::ZERO };
        let until = next.map_or(Time::MAX, |next| next - awake).min(now + STOP_CHECK);
        match (next, sleep) {
            _ if until <= now => Ok(()),
            (Some(_), Some(sleep)) => {
                self.clock.sleep_until(until.min(horizon + sleep));
                Ok(())
            }
            _ => self.ports.wait(&self.clock, until),
        }
    }
}
