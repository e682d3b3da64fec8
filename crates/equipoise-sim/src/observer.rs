//! Who sees what happens in a world, where and when.

use equipoise::units::{Instant, Size, Span};
use equipoise_session::{Carrier, Ecn, Event, PathId};

use crate::network::Packet;

/// The one clock of a simulated world; all hosts read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimClock {}

/// A moment of simulated time; the world begins at zero.
pub type Time = Instant<SimClock>;

/// A flow of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) usize);

impl FlowId {
    /// The flow's place in the order in which flows were added.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// One of a flow's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that sends media.
    Near,
    /// The end that receives it.
    Far,
}

/// A datagram as it leaves one end of a flow or comes to one. Packets of streams have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The flow; of a session with media both ways, the one of the near end's media.
    pub flow: FlowId,
    /// The end.
    pub side: Side,
    /// Whether it leaves or comes.
    pub way: Way,
    /// On which path.
    pub path: PathId,
    /// What carries it.
    pub carrier: Carrier,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// The first bytes of its payload.
    pub head: &'a [u8],
    /// How many bytes follow, which are zeros.
    pub media: usize,
}

/// Whether a datagram leaves or comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It leaves.
    Sent,
    /// It comes.
    Received,
}

/// Sees what happens at the ends of the flows.
///
/// The events of one end come in the order of their times, and those of all sessions together do, too. A stream's events
/// come when the network knows of them, which may be ahead of the sessions' time; all up to a moment have come when
/// [`World::run`](crate::World::run) has returned from there. Any closure over time, flow, side and event is an observer.
pub trait Observer {
    /// One end did or saw something.
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event);

    /// One end of a session over several paths did or saw something on one of them. Where nobody asks which one, it is an
    /// event like any other.
    fn on_path_event(&mut self, now: Time, flow: FlowId, side: Side, _path: PathId, event: &Event) {
        self.on_event(now, flow, side, event);
    }

    /// A packet has come to one end of a flow: media, data or what answers them, copies among them. What the end makes of it follows
    /// in its events.
    fn on_arrival(&mut self, _now: Time, _flow: FlowId, _side: Side, _arrival: Arrival) {}

    /// A datagram leaves one end of a flow or comes to one. What the end makes of it follows in its events; copies that the network has
    /// made come each.
    fn on_datagram(&mut self, _now: Time, _datagram: &Datagram<'_>) {}

    /// Packets of a stream left one after the other. Where nobody takes them together, each is an event.
    fn on_departures(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_event(packet.sent, flow, Side::Near, &packet.departure());
        }
    }

    /// Packets of a stream came to its end one after the other. Where nobody takes them together, each is an arrival and an event.
    fn on_arrivals(&mut self, flow: FlowId, packets: &[Packet]) {
        for packet in packets {
            self.on_arrival(packet.at, flow, Side::Far, packet.arrival());
            self.on_event(packet.at, flow, Side::Far, &packet.reception());
        }
    }
}

/// What the network knows of a packet that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Of the IP packet.
    pub size: Size,
    /// How long it waited in the queues of its way, all of them together: no propagation, no jitter, and not its own transmissions.
    pub waited: Span,
}

impl<F: FnMut(Time, FlowId, Side, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        self(now, flow, side, event);
    }
}
