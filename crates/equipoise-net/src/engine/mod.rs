//! The thread that moves packets into an emulated path at one side and out at the other.
//!
//! ```text
//!   ports ──▶ medium ──▶ ports        a medium: the pipes of a bridge, or the network of an emulator
//! ```
//!
//! Departure times are computed from the kernel's receive timestamps and the medium's state, not from the time when the
//! thread runs. So a thread that is late for one packet does not delay the next.

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

/// If `spin` is set, the thread stops sleeping this long before a packet is due. Our choice: longer than almost every
/// wake-up takes.
const SPIN: Span = Span::from_micros(200);

/// A sleep is shorter than the shortest delay by this time, so that no packet becomes due during it. Our choice: longer
/// than almost every wake-up takes.
const MARGIN: Span = Span::from_micros(200);

/// The longest sleep, because receive buffers are finite. Our choice: in this time 125 kB arrive at 1 Gbit/s.
const LONGEST_SLEEP: Span = Span::from_millis(1);

/// Length of a UDP header in bytes (RFC 768).
const UDP_HEADER: usize = 8;

/// The two sides, and the directions that begin at these sides.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACK: usize = 1;

/// A frame or datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    /// Its client's number, if the medium needs it.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// Location of a packet's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// In the packet's bytes, at this offset.
    Inside(usize),
    /// Not in the bytes: the kernel makes the header, with this ECN field.
    Apart(Ecn),
}

impl Packet {
    /// The datagram for a socket, if the kernel makes the header.
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

    /// A number for the packet's flow. Without headers, each client is one flow.
    fn flow(&self) -> u64 {
        match self.header {
            Header::Inside(start) => flow_of(&self.bytes, start),
            Header::Apart(_) => self.client,
        }
    }
}

/// How the path treats a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As traffic of this IP length.
    Ip(Size),
    /// Out of band: with the path's delay, but without using its capacity.
    Beside,
}

/// A packet that enters its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) manner: Manner,
    /// Its client's number, if the medium needs it.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// A packet that leaves its path.
#[derive(Debug)]
pub(crate) struct Departure {
    /// When it was due to leave.
    pub(crate) due: Time,
    pub(crate) direction: usize,
    pub(crate) packet: Packet,
}

/// Counters of an engine's sockets or devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// Packets that the system did not accept for sending.
    pub unsent: u64,
    /// Packets lost because a receive buffer was full, if the system counts them.
    pub overflowed: u64,
    /// Packets dropped because they belong to no flow that may use the path.
    pub foreign: u64,
    /// Number of clients so far.
    pub clients: u64,
    /// Datagrams dropped because too many clients were active.
    pub turned_away: u64,
    /// Frames dropped because they are longer than the interface's MTU and cannot be segmented.
    pub oversize: u64,
    /// Frames of several segments, left whole for hardware offload, that were segmented here.
    pub taken_apart: u64,
    /// Checksums left to hardware offload that were computed here.
    pub checksums: u64,
    /// Source of arrival times; user space if any of the sockets has no kernel timestamps.
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

/// The sockets or devices at both sides.
pub(crate) trait Ports {
    /// Reads the packets that arrived until `horizon` and stages them in the medium.
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError>;
    /// Sends a packet that left the path; a failure is counted as loss.
    fn send(&mut self, direction: usize, packet: &mut Packet);
    /// Whether packets carry their arrival time. If so, they can wait to be read.
    fn stamped(&self) -> bool;
    /// Waits until something is readable or until the time `until`; may return early.
    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError>;
    /// Their counters.
    fn stats(&self) -> PortStats;
}

/// The path in virtual time, without sockets.
pub(crate) trait Medium {
    /// Stages a packet that arrived at the start of `direction`. Packets need not be staged in the order of arrival.
    fn stage(&mut self, direction: usize, arrival: Arrival, bytes: &[u8]);
    /// Called when all packets that arrived until `horizon` are staged: they now enter the path.
    fn enter(&mut self, horizon: Time);
    /// The time of the next event; `None` if no packet is in flight.
    fn next(&self) -> Option<Time>;
    /// Returns the next packet that is due no later than `horizon`.
    fn leave(&mut self, horizon: Time) -> Option<Departure>;
    /// Records that a packet was sent at `at`.
    fn left(&mut self, departure: Departure, at: Time);
    /// The shortest possible delay of a packet.
    fn least_delay(&self) -> Span;
}

/// The thread between the ports and the medium.
#[derive(Debug)]
pub(crate) struct Engine<P, M> {
    pub(crate) clock: Clock,
    pub(crate) ports: P,
    pub(crate) medium: M,
    pub(crate) spin: bool,
}

impl<P: Ports, M: Medium> Engine<P, M> {
    /// Moves packets until `stop` is set.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Self, NetError> {
        let sleep = self.sleep();
        while !stop.load(Ordering::Relaxed) {
            // All packets that arrived until now can be ordered; later arrivals cannot come before them.
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

    /// How long arrivals may wait unread in the sockets, because none of them can become due in this time. The thread
    /// then need not wake for each packet. `None` if there is no such time, or if packets have no arrival timestamps.
    fn sleep(&self) -> Option<Span> {
        let sleep = (self.medium.least_delay() - MARGIN).min(LONGEST_SLEEP);
        (self.ports.stamped() && sleep > Span::ZERO).then_some(sleep)
    }

    /// Waits until there is something to do, after all arrivals until `horizon` have been read.
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
