//! Observers of the events in a simulation. Each event is reported with its time, its flow and the endpoint at
//! which it occurs.

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

/// The two endpoints of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The endpoint that sends media.
    Near,
    /// The endpoint that receives media.
    Far,
}

/// A datagram that is sent or received at one endpoint of a flow. Packets of streams have no datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The flow; for a duplex session, the flow of the media that the near endpoint sends.
    pub flow: FlowId,
    /// The endpoint that sent or received the datagram.
    pub side: Side,
    /// Whether the datagram was sent or received.
    pub way: Way,
    /// The path on which the datagram was sent or received.
    pub path: PathId,
    /// The protocol that carries the datagram.
    pub carrier: Carrier,
    /// ECN field of the datagram's IP header.
    pub ecn: Ecn,
    /// The first bytes of the datagram's payload.
    pub head: &'a [u8],
    /// Number of payload bytes after `head`; these are all zeros.
    pub media: usize,
}

/// Whether a datagram was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The datagram was sent.
    Sent,
    /// The datagram was received.
    Received,
}

/// Observes the events at the endpoints of flows.
///
/// The events of all sessions are reported in time order. The events of each endpoint of a [`Stream`](crate::Stream)
/// are also in time order, but may be reported before earlier events of other flows. When
/// [`World::run`](crate::World::run) returns, all events up to the end of the run have been reported. A closure with
/// the arguments time, flow, endpoint and event is also an observer.
pub trait Observer {
    /// Called for an event at one endpoint of a flow.
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event);

    /// Called for an event on one path of a multipath session. By default, calls [`on_event`](Self::on_event).
    fn on_path_event(&mut self, now: Time, flow: FlowId, side: Side, _path: PathId, event: &Event) {
        self.on_event(now, flow, side, event);
    }

    /// Called when a packet with media, data or feedback has arrived at one endpoint of a flow. If the network
    /// duplicates a packet of a session, each copy is reported. If the network duplicates a packet of a stream, only
    /// the first copy is reported. This call precedes the events that the endpoint reports for the packet.
    fn on_arrival(&mut self, _now: Time, _flow: FlowId, _side: Side, _arrival: Arrival) {}

    /// Called when a datagram was sent or received at one endpoint of a flow. This call precedes the events that the
    /// endpoint reports for the datagram. If the network duplicates a datagram, the arrival of each copy is reported.
    fn on_datagram(&mut self, _now: Time, _datagram: &Datagram<'_>) {}

    /// Called when packets of a stream were sent. `packets` is in time order. By default, calls
    /// [`on_event`](Self::on_event) for each packet.
    fn on_departures(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_event(packet.sent, flow, Side::Near, &packet.departure());
        }
    }

    /// Called when packets of a stream arrived at the end of the stream's route. `packets` is in time order. By
    /// default, calls [`on_arrival`](Self::on_arrival) and [`on_event`](Self::on_event) for each packet.
    fn on_arrivals(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_arrival(packet.at, flow, Side::Far, packet.arrival());
            self.on_event(packet.at, flow, Side::Far, &packet.reception());
        }
    }
}

/// A packet that has arrived at the end of its route: its size, and how long it waited in queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Size of the IP packet.
    pub size: Size,
    /// Total time that the packet waited in the queues of its route, without propagation delay, jitter and transmission
    /// times.
    pub waited: Span,
}

impl<F: FnMut(Time, FlowId, Side, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        self(now, flow, side, event);
    }
}
