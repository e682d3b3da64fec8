mod lot;
mod order;
mod packet;
mod stream;

use std::collections::VecDeque;

use equipoise::measure::{Novelty, ReplayWindow};
use equipoise::units::{Size, Span};
use equipoise_path::link::{Capacity, FifoLink, LinkStats, Passage, PipeConfig, PipeError};
use equipoise_path::source::Source;

use self::lot::Lot;
pub use self::packet::Packet;
use self::stream::StreamState;
use crate::carrier::Carrier;
use crate::event_queue::EventQueue;
use crate::observer::{FlowId, Observer, SimClock, Time};
use crate::packets::{PacketId, Packets};
use crate::world::TICK;

/// A link of a [`World`](crate::World).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) usize);

/// The network: links, the packets in flight between them, and the streams that send packets into links.
///
/// A packet's arrival at a link is not an event of the simulator. Once all packets that sessions send before a time are
/// known, the network [advances](Self::advance) to this time. Then the links are computed in order, each link after its
/// feeders. The feeders of a link are the sessions, streams and links that send packets into the link. A link processes
/// all packets that arrive before the earliest time at which a feeder may still send another packet. These packets are
/// merged by time into one batch, so that each step handles many packets.
///
/// Packets that arrive at the end of a session's route wait until the session takes them.
#[derive(Default)]
pub(crate) struct Network {
    links: Vec<Link>,
    /// One inbox for each feeder of each link: the packets that the feeder has sent to the link, in time order. The
    /// inbox of a stream of background traffic stays empty, because the link creates the stream's packets when it
    /// processes them.
    inboxes: Vec<VecDeque<Packet>>,
    routes: Vec<Route>,
    streams: Vec<StreamState>,
    /// The order in which links are computed: each link after the links that send packets into it, as far as cycles of
    /// links allow this.
    order: Vec<usize>,
    /// For each link, a time span d: if all packets that sessions send before a time t are known, all arrivals at the
    /// link before t + d are known.
    ahead: Vec<Span>,
    has_ring: bool,
    /// Buffer, reused to avoid allocations: for each link in a network with cycles, the time up to which all arrivals
    /// are known.
    known_of: Vec<Time>,
    lot: Lot,
    /// All packets that sessions send before this time are known to the network.
    known: Time,
    /// Packets that arrive at or after this time are not processed yet, because the caller reads counters at this time.
    pub(crate) horizon: Time,
}

struct Link {
    carrier: Carrier,
    capacity: Capacity,
    feeders: Vec<Feeder>,
    /// All arrivals before this time were processed; not used in networks with cycles of links.
    known: Time,
    /// Whether the link carries no packets of sessions, and is in a cycle of links or behind such a cycle. Nothing
    /// limits how far ahead such a link can be computed. Therefore it is computed only up to the time `Network::known`.
    is_adrift: bool,
    /// Whether the link counts the bytes of each route separately.
    counts_own: bool,
    /// Number of route hops over this link. If this number is 1, all packets of the link belong to one route.
    hops: usize,
}

struct Feeder {
    from: From,
    inbox: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// All sessions whose routes begin with this link.
    Sessions,
    Stream(usize),
    Link(usize),
}

/// A route: the links that packets pass in sequence.
struct Route {
    hops: Vec<Hop>,
    flow: FlowId,
    arrived: VecDeque<Packet>,
    /// Number of the event at which a session takes the packets waiting in `arrived`; `None` for streams.
    thing: Option<usize>,
    /// For a stream over links that duplicate packets: the packets that have arrived, to ignore further copies.
    /// Sessions detect duplicates themselves.
    arrivals: Option<ReplayWindow>,
}

/// A link on a route.
struct Hop {
    link: usize,
    /// The index of the inbox of this link for packets of this route.
    inbox: usize,
    /// Bytes of this route's packets that have arrived at the link; `None` if they are not counted.
    own: Option<Size>,
}

/// References to the parts of the simulator outside of the network.
pub(crate) struct Outside<'a, O> {
    /// Schedules the arrivals at sessions.
    pub(crate) events: &'a mut EventQueue,
    /// The datagrams in the network. Lost datagrams are removed.
    pub(crate) packets: &'a mut Packets,
    /// Observes the packets of the streams.
    pub(crate) observer: &'a mut O,
}

impl Network {
    pub(crate) fn add_link(&mut self, config: PipeConfig, seed: u64) -> Result<LinkId, PipeError> {
        let (capacity, carrier) = (config.capacity.clone(), Carrier::new(config, seed)?);
        let feeders = Vec::new();
        self.links.push(Link {
            carrier,
            capacity,
            feeders,
            known: Time::ZERO,
            is_adrift: false,
            counts_own: false,
            hops: 0,
        });
        Ok(LinkId(self.links.len() - 1))
    }

    pub(crate) const fn len(&self) -> usize {
        self.links.len()
    }

    /// Adds a route for a session's packets over existing links. `thing` is the number of the event that an arrival at
    /// the end of the route triggers.
    pub(crate) fn add_route(&mut self, path: &[LinkId], flow: FlowId, thing: usize) -> usize {
        self.lay(path, flow, From::Sessions, Some(thing))
    }

    /// Adds a stream over existing links. The path must have at least one link.
    pub(crate) fn add_stream(&mut self, source: Source<SimClock>, path: &[LinkId], flow: FlowId) {
        let route = self.lay(path, flow, From::Stream(self.streams.len()), None);
        self.streams.push(StreamState::new(source, route));
    }

    fn lay(&mut self, path: &[LinkId], flow: FlowId, first: From, thing: Option<usize>) -> usize {
        let mut from = first;
        let mut hops = Vec::new();
        for &LinkId(link) in path {
            hops.push(Hop { link, inbox: self.inbox(link, from), own: None });
            self.links[link].hops += 1;
            from = From::Link(link);
        }
        let copies = thing.is_none() && path.iter().any(|link| self.links[link.0].carrier.makes_copies());
        let arrivals = copies.then(ReplayWindow::default);
        self.routes.push(Route { hops, flow, arrived: VecDeque::new(), thing, arrivals });
        self.routes.len() - 1
    }

    /// Returns the index of the inbox of a link for packets from a feeder. Creates the inbox if the feeder is new.
    fn inbox(&mut self, link: usize, from: From) -> usize {
        let feeders = &mut self.links[link].feeders;
        if let Some(known) = feeders.iter().find(|feeder| feeder.from == from) {
            return known.inbox;
        }
        let inbox = self.inboxes.len();
        self.inboxes.push(VecDeque::new());
        feeders.push(Feeder { from, inbox });
        inbox
    }

    /// The time before which all packets that sessions send are known to the network.
    pub(crate) const fn known(&self) -> Time {
        self.known
    }

    /// Returns the time up to which the network must know all packets that sessions send, before it can process its
    /// next packet. `None` if the network has no packets.
    pub(crate) fn next_known(&self) -> Option<Time> {
        (0..self.links.len()).filter_map(|link| self.next_known_at(link)).min()
    }

    /// Returns the time up to which the arriving packets of this link must be known, so that the link can process its
    /// next packet. `None` if the link has no packets.
    fn next_known_at(&self, link: usize) -> Option<Time> {
        let Link { carrier, feeders, .. } = &self.links[link];
        let heads = feeders.iter().filter_map(|feeder| match feeder.from {
            From::Stream(stream) => self.streams[stream].next_departure(),
            From::Sessions | From::Link(_) => self.inboxes[feeder.inbox].front().map(|next| next.at),
        });
        heads.map(|at| at + TICK).chain(carrier.next_known()).min()
    }

    /// Sends a session's packet at [`Packet::at`]. If the route has no link, the packet has arrived, and the function
    /// returns it.
    pub(crate) fn send(&mut self, packet: Packet) -> Option<Packet> {
        // After a run, `known` is 1 ns after the end of the run. A session that is stopped then may still send packets,
        // whose sending time is the end of the run.
        let past = self.known - packet.at > Span::from_nanos(1);
        debug_assert!(
            !past,
            "a packet is sent at {}, after {} was taken for known",
            packet.at - Time::ZERO,
            self.known - Time::ZERO
        );
        let Some(&Hop { inbox, .. }) = self.routes[packet.route as usize].hops.first() else {
            return Some(packet);
        };
        put(&mut self.inboxes[inbox], &packet);
        None
    }

    /// Returns the next packet that has arrived at the end of a session's route, and removes it from the network.
    pub(crate) fn take(&mut self, route: usize, events: &mut EventQueue) -> Option<Packet> {
        let Route { arrived, thing, .. } = &mut self.routes[route];
        let packet = arrived.pop_front();
        if let Some(thing) = *thing {
            events.set(thing, arrived.front().map(|next| next.at));
        }
        packet
    }

    /// Computes the passage of packets over the links as far as possible. All packets that sessions send before `to`
    /// must be known.
    pub(crate) fn advance(&mut self, to: Time, outside: &mut Outside<'_, impl Observer>) {
        self.known = self.known.max(to);
        if self.has_ring {
            return self.go_round(outside);
        }
        for place in 0..self.order.len() {
            let link = self.order[place];
            let known = self.feeders_known(link).min(self.horizon);
            if known > self.links[link].known {
                self.links[link].known = known;
                self.take_until(link, known, outside);
            }
        }
    }

    /// Like `advance`, for networks in which links form cycles. In such a network, a packet that leaves a link may next
    /// pass a link that was already processed, so the links are processed repeatedly.
    fn go_round(&mut self, outside: &mut Outside<'_, impl Observer>) {
        let mut known = std::mem::take(&mut self.known_of);
        loop {
            self.all_known(&mut known);
            let mut moved = false;
            for place in 0..self.order.len() {
                let link = self.order[place];
                let known = known[link].min(self.horizon);
                if self.next_known_at(link).is_some_and(|next| next <= known) {
                    self.take_until(link, known, outside);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        self.known_of = known;
    }

    /// Processes the packets that arrive at a link before `known`.
    fn take_until(&mut self, link: usize, known: Time, outside: &mut Outside<'_, impl Observer>) {
        let mut lot = std::mem::take(&mut self.lot);
        self.take_in(link, known, &mut lot, outside.observer);
        if self.links[link].counts_own {
            self.count_own_of(&lot.packets);
        }
        let Self { links, inboxes, routes, .. } = self;
        let mut onward = Onward { is_one_way: links[link].hops == 1, inboxes, routes, outside };
        match &mut links[link].carrier {
            Carrier::Fifo(fifo) => {
                let mut rest = lot.packets.as_mut_slice();
                while !rest.is_empty() {
                    let first_dropped = rest.iter_mut().position(|packet| !pass(fifo, packet)).unwrap_or(rest.len());
                    let (served, dropped) = rest.split_at_mut(first_dropped);
                    onward.pass_on(served);
                    rest = match dropped {
                        [dropped, behind @ ..] => {
                            onward.discard(dropped);
                            behind
                        }
                        [] => dropped,
                    };
                }
            }
            Carrier::Pipe { pipe, offered, .. } => {
                for packet in &lot.packets {
                    *offered = *offered + packet.size;
                    if pipe.enter(packet.at, packet.size, *packet) {
                        onward.copy(packet);
                    }
                }
                while let Some((at, packet)) = pipe.leave_before(known) {
                    onward.pass_on(&[Packet { at, hop: packet.hop + 1, ..packet }]);
                }
                while let Some(lost) = pipe.discarded() {
                    onward.discard(&lost);
                }
            }
        }
        lot.clear();
        self.lot = lot;
    }

    /// Collects the packets that arrive at a link before `known`, in time order. Packets with the same arrival time are
    /// in the order of the link's feeders.
    fn take_in(&mut self, link: usize, known: Time, lot: &mut Lot, observer: &mut impl Observer) {
        for &Feeder { from, inbox } in &self.links[link].feeders {
            let run = lot.begin_run();
            if let From::Stream(stream) = from {
                let stream = &mut self.streams[stream];
                stream.send_before(known, &mut lot.packets);
                observer.on_departures(self.routes[stream.route].flow, &lot.packets[run..]);
            } else {
                let inbox = &mut self.inboxes[inbox];
                let before = inbox.partition_point(|packet| packet.at < known);
                let (front, back) = inbox.as_slices();
                let in_front = before.min(front.len());
                lot.packets.extend_from_slice(&front[..in_front]);
                lot.packets.extend_from_slice(&back[..before - in_front]);
                inbox.drain(..before);
            }
        }
        lot.merge_runs();
    }

    /// Counts the bytes of packets that arrive at a link, separately for each route that [`count_own`](Self::count_own)
    /// was called for.
    fn count_own_of(&mut self, packets: &[Packet]) {
        for packet in packets {
            let hop = &mut self.routes[packet.route as usize].hops[usize::from(packet.hop)];
            hop.own = hop.own.map(|own| own + packet.size);
        }
    }

    /// Stops all streams. Returns the flows of the streams.
    pub(crate) fn stop_streams(&mut self) -> Vec<FlowId> {
        for stream in &mut self.streams {
            stream.stopped = true;
        }
        self.streams.iter().map(|stream| self.routes[stream.route].flow).collect()
    }

    pub(crate) fn stats(&self, link: LinkId, now: Time) -> Option<LinkStats> {
        self.links.get(link.0).map(|state| state.carrier.stats(now))
    }

    /// For each link of a route, the bytes of all packets that have arrived at the link.
    pub(crate) fn offered(&self, route: usize) -> impl Iterator<Item = (LinkId, Size)> {
        self.routes[route].hops.iter().map(|hop| (LinkId(hop.link), self.links[hop.link].carrier.offered()))
    }

    /// Starts to count, for each link of a route, the bytes of the route's own packets that arrive at the link.
    pub(crate) fn count_own(&mut self, route: usize) {
        for hop in &mut self.routes[route].hops {
            hop.own = Some(hop.own.unwrap_or(Size::ZERO));
            self.links[hop.link].counts_own = true;
        }
    }

    /// For each link of a route, the bytes that have arrived at the link: of all packets, and of the route's own
    /// packets. Empty if [`count_own`](Self::count_own) was not called.
    pub(crate) fn offered_by(&self, route: usize) -> impl Iterator<Item = (LinkId, Size, Size)> {
        let own = self.routes[route].hops.iter().filter_map(|hop| hop.own);
        self.offered(route).zip(own).map(|((link, all), own)| (link, all, own))
    }

    /// The capacity of a link over time.
    pub(crate) fn capacity(&self, link: LinkId) -> &Capacity {
        &self.links[link.0].capacity
    }
}

impl Route {
    /// Whether the route belongs to a session, so that its packets have datagrams. The packets of streams have no
    /// datagrams.
    const fn is_of_session(&self) -> bool {
        self.thing.is_some()
    }

    /// Records the arrival of packets at the end of the route.
    fn arrive(&mut self, packets: &[Packet], outside: &mut Outside<'_, impl Observer>) {
        let Some(thing) = self.thing else {
            return self.arrive_of_stream(packets, outside.observer);
        };
        if let (true, Some(first)) = (self.arrived.is_empty(), packets.first()) {
            outside.events.set(thing, Some(first.at));
        }
        self.arrived.extend(packets);
    }

    fn arrive_of_stream(&mut self, packets: &[Packet], observer: &mut impl Observer) {
        let Some(arrivals) = &mut self.arrivals else { return observer.on_arrivals(self.flow, packets) };
        for packet in packets {
            let sequence = packet.number as u16;
            if arrivals.novelty(sequence) == Novelty::New {
                arrivals.mark(sequence);
                observer.on_arrivals(self.flow, std::slice::from_ref(packet));
            }
        }
    }
}

/// Computes the passage of a packet over a link. Returns false if the link drops the packet.
#[expect(clippy::inline_always, reason = "the inner loop: a call takes a sixth of its time")]
#[inline(always)]
fn pass(fifo: &mut FifoLink<SimClock>, packet: &mut Packet) -> bool {
    let Some(Passage { arrives_at, wait }) = fifo.offer(packet.at, packet.size) else { return false };
    if wait > Span::ZERO {
        packet.waited = packet.waited + wait;
    }
    (packet.at, packet.hop) = (arrives_at, packet.hop + 1);
    true
}

/// The possible destinations of packets that leave a link.
struct Onward<'a, 'b, O> {
    /// Whether all packets continue to the same destination.
    is_one_way: bool,
    inboxes: &'a mut [VecDeque<Packet>],
    routes: &'a mut [Route],
    outside: &'a mut Outside<'b, O>,
}

impl<O: Observer> Onward<'_, '_, O> {
    /// Passes on packets that have left a link. Each packet goes to the next link on its route, or to the end of its
    /// route.
    fn pass_on(&mut self, mut packets: &[Packet]) {
        while let [packet, behind @ ..] = packets {
            let route = &mut self.routes[packet.route as usize];
            let Some(hop) = route.hops.get(usize::from(packet.hop)) else {
                let alike = behind.iter().take_while(|next| self.is_one_way || next.route == packet.route).count();
                let (ended, behind) = packets.split_at(alike + 1);
                route.arrive(ended, self.outside);
                packets = behind;
                continue;
            };
            let inbox = &mut self.inboxes[hop.inbox];
            if self.is_one_way {
                return inbox.extend(packets);
            }
            // The destination of the next packet is unpredictable. A search for consecutive packets with the same
            // destination would take longer than moving the packets one by one.
            put(inbox, packet);
            packets = behind;
        }
    }

    /// Records that a link has duplicated a packet.
    fn copy(&mut self, packet: &Packet) {
        if self.routes[packet.route as usize].is_of_session() {
            self.outside.packets.copy(packet.number as PacketId);
        }
    }

    /// Records that a link has lost or dropped a packet, so that the packet's datagram can be removed.
    fn discard(&mut self, packet: &Packet) {
        if self.routes[packet.route as usize].is_of_session() {
            self.outside.packets.discard(packet.number as PacketId);
        }
    }
}

/// Appends a packet to the inbox of a link.
#[inline]
fn put(inbox: &mut VecDeque<Packet>, packet: &Packet) {
    debug_assert!(inbox.back().is_none_or(|last| last.at <= packet.at));
    inbox.push_back(*packet);
}
