//! The thread between the outside and an emulated path: what comes in at a side takes the path and goes out at the other.
//!
//! ```text
//!   ports ──▶ medium ──▶ ports        a medium: the pipes of a bridge, or the network of an emulator
//! ```
//!
//! The times come from the kernel's receive timestamps and the medium's own recursion, so that a thread that is late now
//! does not make the next packet late.

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

/// With `spin`, how long before a packet is due the thread stays awake. Ours: above what nearly every wake-up takes.
const SPIN: Span = Span::from_micros(200);

/// Shorter than the shortest delay by this is a sleep that nothing can be due in. Ours: above what nearly every wake-up takes.
const MARGIN: Span = Span::from_micros(200);

/// And no sleep is longer than this: receive buffers are finite. Ours: 125 kB at 1 Gbit/s.
const LONGEST_SLEEP: Span = Span::from_millis(1);

/// Length of a header (RFC 768).
const UDP_HEADER: usize = 8;

/// The sides, and the directions that begin there.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACK: usize = 1;

/// A frame or datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    /// Whose it is, where that matters.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// Where a packet's IP header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// In its bytes, of which so many come before.
    Inside(usize),
    /// With the kernel, if there is one: of congestion it says this.
    Apart(Ecn),
}

impl Packet {
    /// What a socket is to send, where the header is the kernel's.
    pub(crate) fn datagram(&self) -> Transmit<'_> {
        Transmit { ecn: self.ecn(), ..Transmit::datagram(&self.bytes) }
    }
}

impl Packet {
    /// What a datagram carries; `None` for packets that are not UDP.
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

    /// Without headers each client is a flow.
    fn flow(&self) -> u64 {
        match self.header {
            Header::Inside(start) => flow_of(&self.bytes, start),
            Header::Apart(_) => self.client,
        }
    }
}

/// How a packet takes the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As traffic, of so many IP bytes.
    Ip(Size),
    /// Beside the traffic, which it does not hold up.
    Beside,
}

/// A packet at the beginning of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) manner: Manner,
    /// Whose it is, where that matters.
    pub(crate) client: u64,
    pub(crate) header: Header,
}

/// A packet at the end of its path.
#[derive(Debug)]
pub(crate) struct Departure {
    /// When it was to leave.
    pub(crate) due: Time,
    pub(crate) direction: usize,
    pub(crate) packet: Packet,
}

/// What happened at the sockets or devices of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// Packets that the system could not take for sending.
    pub unsent: u64,
    /// Packets that found a receive buffer full, where the system counts them.
    pub overflowed: u64,
    /// Packets from or for strangers, where not everybody may use the path; dropped.
    pub foreign: u64,
    /// Clients that there were.
    pub clients: u64,
    /// Datagrams of clients for which there was no socket.
    pub turned_away: u64,
    /// Frames longer than the interface may send, which could not be taken apart; dropped.
    pub oversize: u64,
    /// Frames of several segments that the sender's offload had left together, and that were taken apart.
    pub taken_apart: u64,
    /// Checksums that the sender's offload had left open, and that were filled in.
    pub checksums: u64,
    /// Where arrival times came from; user space if any of the sockets had to.
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
    /// Reads what arrived until `horizon` into the medium.
    fn take_in(&mut self, horizon: Time, medium: &mut impl Medium) -> Result<(), NetError>;
    /// Sends a packet that comes out of a direction, or loses and counts it.
    fn send(&mut self, direction: usize, packet: &mut Packet);
    /// Whether packets come with the time of their arrival, so that they may wait to be read.
    fn stamped(&self) -> bool;
    /// Waits until there is something to read or the time is `until`; may return early.
    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError>;
    /// What they counted.
    fn stats(&self) -> PortStats;
}

/// The path in virtual time: it knows no socket.
pub(crate) trait Medium {
    /// A packet arrived at the side where `direction` begins; sides may be read one after the other.
    fn stage(&mut self, direction: usize, arrival: Arrival, bytes: &[u8]);
    /// All that arrived until `horizon` has been staged.
    fn enter(&mut self, horizon: Time);
    /// When something happens next; `None` while nothing is under way.
    fn next(&self) -> Option<Time>;
    /// The next packet that is due no later than `horizon`.
    fn leave(&mut self, horizon: Time) -> Option<Departure>;
    /// A packet was let go at `at`.
    fn left(&mut self, departure: Departure, at: Time);
    /// No packet takes less.
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
    /// Carries packets until `stop` is set.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Self, NetError> {
        let sleep = self.sleep();
        while !stop.load(Ordering::Relaxed) {
            // What came in until now, and nothing that comes in later, has a place in the order of arrivals.
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

    /// How long nothing that has not been read can be due: what arrives in that time can wait in the sockets, and nobody
    /// is woken for each packet. `None` where there is no such time, or where waiting would change when they arrived.
    fn sleep(&self) -> Option<Span> {
        let sleep = (self.medium.least_delay() - MARGIN).min(LONGEST_SLEEP);
        (self.ports.stamped() && sleep > Span::ZERO).then_some(sleep)
    }

    /// Waits until there is something to do, where all that came until `horizon` has been read.
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
