//! Observers of the events in a simulation, with place and time.

use equipoise::units::{Instant, Size, Span};
use equipoise_session::{Carrier, Ecn, Event, PathId};

use crate::network::Packet;

/// The only clock of a simulation; all hosts read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimClock {}

/// A time in the simulation, which starts at zero.
pub type Time = Instant<SimClock>;

/// A flow of a [`World`](crate::World).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) usize);

impl FlowId {
    /// Index of the flow, in the order in which flows were added.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that sends media.
    Near,
    /// The end that receives media.
    Far,
}

/// A datagram as it is sent or received at one end of a flow. Packets of streams have no datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The flow; for a duplex session, the flow of the near end's media.
    pub flow: FlowId,
    /// The end.
    pub side: Side,
    /// Whether it was sent or received.
    pub way: Way,
    /// The path.
    pub path: PathId,
    /// The protocol that carries it.
    pub carrier: Carrier,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// The first bytes of its payload.
    pub head: &'a [u8],
    /// Number of bytes that follow, all zeros.
    pub media: usize,
}

/// Whether a datagram was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was sent.
    Sent,
    /// It was received.
    Received,
}

/// Observes the events at the ends of flows.
///
/// The events of one end are in time order, and so are those of all sessions together. A stream's events are reported
/// when the network computes them, which may be ahead of the sessions' time. When [`World::run`](crate::World::run)
/// returns, all events up to its end were reported. Any closure over time, flow, side and event is an observer.
pub trait Observer {
    /// An event at one end of a flow.
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event);

    /// An event on one path of a session over several paths. By default it is reported like any other event.
    fn on_path_event(&mut self, now: Time, flow: FlowId, side: Side, _path: PathId, event: &Event) {
        self.on_event(now, flow, side, event);
    }

    /// A packet, or a copy of a packet, has arrived at one end of a flow: media, data or feedback. The end's own events
    /// follow.
    fn on_arrival(&mut self, _now: Time, _flow: FlowId, _side: Side, _arrival: Arrival) {}

    /// A datagram was sent or received at one end of a flow. The end's own events follow. Each copy made by the network
    /// is reported.
    fn on_datagram(&mut self, _now: Time, _datagram: &Datagram<'_>) {}

    /// Packets of a stream were sent, in time order. By default, each is reported as an event.
    fn on_departures(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_event(packet.sent, flow, Side::Near, &packet.departure());
        }
    }

    /// Packets of a stream arrived at the end of its route, in time order. By default, each is reported as an arrival
    /// and an event.
    fn on_arrivals(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_arrival(packet.at, flow, Side::Far, packet.arrival());
            self.on_event(packet.at, flow, Side::Far, &packet.reception());
        }
    }
}

/// The network's data about a packet that has arrived at the end of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Size of the IP packet.
    pub size: Size,
    /// Total waiting time in the queues of its route, without propagation delay, jitter and transmission times.
    pub waited: Span,
}

impl<F: FnMut(Time, FlowId, Side, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        self(now, flow, side, event);
    }
}
