mod order;

use std::collections::VecDeque;

use equipoise::measure::{Novelty, ReplayWindow};
use equipoise::units::{Size, Span};
use equipoise_path::link::{Capacity, Ecn, LinkStats, PipeConfig, PipeError, Queued};
use equipoise_path::source::Source;
use equipoise_session::Event;

use crate::carrier::{Carried, Carrier};
use crate::event_queue::EventQueue;
use crate::observer::{FlowId, Observer, Side, SimClock, Time};
use crate::packets::{PacketId, Packets};
use crate::world::TICK;

/// A link of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) usize);

/// The links, what is under way between them, and the streams that feed them.
///
/// No event is made for a packet's arrival at a link. The network stands still until it is told that all is known that
/// the sessions send before some moment; then each link, behind those that feed it, takes what has come in until the
/// moment that its feeders are known to, merged by time. What comes out at the end of a session's route waits there.
#[derive(Default)]
pub(crate) struct Network {
    links: Vec<Link>,
    routes: Vec<Route>,
    streams: Vec<StreamState>,
    /// Links behind their feeders, as far as rings allow.
    order: Vec<usize>,
    /// For each link how far behind what is known of the sessions' packets all that comes to it is known.
    ahead: Vec<Span>,
    has_ring: bool,
    /// What the sessions send before this is known.
    known: Time,
    /// Nothing is taken from this moment on: somebody is going to look at the counters then.
    pub(crate) horizon: Time,
}

struct Link {
    carrier: Carrier,
    capacity: Capacity,
    feeders: Vec<Feeder>,
    /// The time of each feeder's first packet.
    heads: EventQueue,
    /// What came in before this is taken.
    known: Time,
}

struct Feeder {
    from: From,
    inbox: VecDeque<Packet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// All sessions that send into this link first.
    Sessions,
    Stream(usize),
    Link(usize),
}

/// A list of links, each with the number of the feeder by which one enters it.
struct Route {
    hops: Vec<(usize, usize)>,
    flow: FlowId,
    arrived: VecDeque<Packet>,
    /// Bytes offered so far to each hop, where somebody wants to know.
    own: Vec<Size>,
    /// What waits in `arrived` is one entry in the events of the world; streams' packets wait for nobody.
    thing: Option<usize>,
    /// Which packets of a stream have arrived, where links on the way make copies: sessions see to that themselves.
    arrivals: Option<ReplayWindow>,
}

struct StreamState {
    source: Source<SimClock>,
    route: usize,
    sent: u64,
    stopped: bool,
}

impl StreamState {
    /// When the next packet leaves.
    fn next_departure(&self) -> Option<Time> {
        self.source.next_departure().filter(|_| !self.stopped)
    }

    /// The stream's next packet, where it leaves before `until` and the stream has not been stopped.
    fn send_before(&mut self, until: Time, routes: &[Route], observer: &mut impl Observer) -> Option<Packet> {
        let at = self.next_departure().filter(|at| *at < until)?;
        self.source.advance();
        let (number, size, route) = (self.sent, self.source.packet_size(), self.route);
        self.sent += 1;
        observer.on_event(
            at,
            routes[route].flow,
            Side::Near,
            &Event::MediaSent { sequence: number, size, waited: Span::ZERO, fragment: None },
        );
        let ecn = Ecn::NotCapable;
        Some(Packet { at, sent: at, number, size, route: route as u32, hop: 0, ecn })
    }
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When it arrives at its next link, or at its end.
    pub(crate) at: Time,
    pub(crate) sent: Time,
    /// Of a stream's packet its sequence number, of a session's where its datagram is kept.
    pub(crate) number: u64,
    pub(crate) size: Size,
    pub(crate) route: u32,
    /// How many links lie behind it.
    pub(crate) hop: u16,
    /// What queues may tell its ends, and have told.
    pub(crate) ecn: Ecn,
}

impl Queued for Packet {
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Marked;
    }

    fn flow(&self) -> u64 {
        self.route.into()
    }
}

/// What packets meet where they leave the network.
pub(crate) struct Outside<'a, O> {
    /// Tells sessions of arrivals.
    pub(crate) events: &'a mut EventQueue,
    /// Gets lost datagrams back.
    pub(crate) packets: &'a mut Packets,
    /// Sees the streams' packets.
    pub(crate) observer: &'a mut O,
}

impl Network {
    pub(crate) fn add_link(&mut self, config: PipeConfig, seed: u64) -> Result<LinkId, PipeError> {
        let (capacity, carrier) = (config.capacity.clone(), Carrier::new(config, seed)?);
        let (feeders, heads) = (Vec::new(), EventQueue::default());
        self.links.push(Link { carrier, capacity, feeders, heads, known: Time::ZERO });
        Ok(LinkId(self.links.len() - 1))
    }

    pub(crate) const fn len(&self) -> usize {
        self.links.len()
    }

    /// A route for a session's packets over links that are known; arrivals are number `thing` of the world's events.
    pub(crate) fn add_route(&mut self, path: &[LinkId], flow: FlowId, thing: usize) -> usize {
        self.lay(path, flow, From::Sessions, Some(thing))
    }

    /// A stream over links that are known, one at least.
    pub(crate) fn add_stream(&mut self, source: Source<SimClock>, path: &[LinkId], flow: FlowId) {
        let stream = self.streams.len();
        let next = source.next_departure();
        let route = self.lay(path, flow, From::Stream(stream), None);
        self.streams.push(StreamState { source, route, sent: 0, stopped: false });
        if let Some(&(link, feeder)) = self.routes[route].hops.first() {
            self.links[link].heads.set(feeder, next);
        }
    }

    fn lay(&mut self, path: &[LinkId], flow: FlowId, first: From, thing: Option<usize>) -> usize {
        let mut from = first;
        let mut hops = Vec::new();
        for &LinkId(link) in path {
            hops.push((link, self.links[link].feeder(from)));
            from = From::Link(link);
        }
        let copies = thing.is_none() && path.iter().any(|link| self.links[link.0].carrier.makes_copies());
        let arrivals = copies.then(ReplayWindow::default);
        self.routes.push(Route { hops, flow, arrived: VecDeque::new(), own: Vec::new(), thing, arrivals });
        self.routes.len() - 1
    }

    /// The moment before which all is known that the sessions send.
    pub(crate) const fn known(&self) -> Time {
        self.known
    }

    /// Up to where all must be known for the next packet to be taken on, of those that are known; before that none arrives anywhere.
    pub(crate) fn next_known(&self) -> Option<Time> {
        let heads = self.links.iter().filter_map(|link| link.heads.next()).map(|(at, _)| at + TICK);
        heads.chain(self.links.iter().filter_map(|link| link.carrier.next_known())).min()
    }

    /// A session sends a packet, at [`Packet::at`]. Returns it where its route has no link: it has arrived.
    pub(crate) fn send(&mut self, packet: Packet) -> Option<Packet> {
        // A run knows all up to and including its last moment, at which the sessions may still be told to stop.
        let past = self.known - packet.at > Span::from_nanos(1);
        debug_assert!(
            !past,
            "a packet is sent at {}, after {} was taken for known",
            packet.at - Time::ZERO,
            self.known - Time::ZERO
        );
        let Some(&(link, feeder)) = self.routes[packet.route as usize].hops.first() else { return Some(packet) };
        self.links[link].put(feeder, packet);
        None
    }

    /// The next packet that has arrived at the end of a session's route.
    pub(crate) fn take(&mut self, route: usize, events: &mut EventQueue) -> Option<Packet> {
        let Route { arrived, thing, .. } = &mut self.routes[route];
        let packet = arrived.pop_front();
        if let Some(thing) = *thing {
            events.set(thing, arrived.front().map(|next| next.at));
        }
        packet
    }

    /// All is known that the sessions send before `to`: takes it through the links.
    pub(crate) fn advance(&mut self, to: Time, outside: &mut Outside<'_, impl Observer>) {
        self.known = self.known.max(to);
        loop {
            let mut moved = false;
            // A ring with hardly any delay would otherwise be known a little further with each round.
            let idle = if self.has_ring { self.next_known().map_or(Time::MAX, |next| next - TICK) } else { Time::ZERO };
            for place in 0..self.order.len() {
                let link = self.order[place];
                let known = self.feeders_known(link, idle).min(self.horizon);
                if known > self.links[link].known {
                    self.links[link].known = known;
                    self.take_until(link, known, outside);
                    moved = true;
                }
            }
            // In a ring, what one link gives out may have to pass another that had its turn.
            if !(self.has_ring && moved) {
                return;
            }
        }
    }

    /// Serves what has come to a link before `known`.
    fn take_until(&mut self, link: usize, known: Time, outside: &mut Outside<'_, impl Observer>) {
        self.take_in(link, known, outside);
        while let Some(packet) = self.links[link].carrier.leave_before(known) {
            if let Some(next) = self.onward(packet, outside) {
                self.pass(packet, next, outside);
            }
        }
        self.discard_lost(link, outside);
    }

    fn take_in(&mut self, link: usize, known: Time, outside: &mut Outside<'_, impl Observer>) {
        if let [Feeder { from: From::Stream(stream), .. }] = self.links[link].feeders.as_slice() {
            return self.stream_until(link, *stream, known, outside);
        }
        while let Some((_, feeder)) = self.links[link].heads.next().filter(|(at, _)| *at < known) {
            if let Some(packet) = self.pull(link, feeder, outside.observer) {
                self.pass(packet, link, outside);
            }
        }
    }

    /// The same for a link that one stream has to itself: there is nothing to merge.
    fn stream_until(&mut self, link: usize, stream: usize, known: Time, outside: &mut Outside<'_, impl Observer>) {
        while let Some(packet) = self.streams[stream].send_before(known, &self.routes, outside.observer) {
            self.pass(packet, link, outside);
        }
        let next = self.streams[stream].next_departure();
        self.links[link].heads.set(0, next);
    }

    /// Takes a packet over a link, and over those behind it whose turn it must be.
    fn pass(&mut self, mut packet: Packet, mut link: usize, outside: &mut Outside<'_, impl Observer>) {
        loop {
            if let Some(own) = self.routes[packet.route as usize].own.get_mut(packet.hop as usize) {
                *own = *own + packet.size;
            }
            match self.links[link].carrier.offer(packet) {
                Carried::To(at) => packet.at = at,
                Carried::Dropped => return self.discard(&packet, outside.packets),
                Carried::Kept { copied } => {
                    if copied && self.is_of_session(&packet) {
                        outside.packets.copy(packet.number as PacketId);
                    }
                    return self.discard_lost(link, outside);
                }
            }
            packet.hop += 1;
            let Some(next) = self.onward(packet, outside) else { return };
            link = next;
        }
    }

    /// Takes a packet that has left a link to the next or to its end. Gives the next link where it is that link's turn already.
    fn onward(&mut self, packet: Packet, outside: &mut Outside<'_, impl Observer>) -> Option<usize> {
        let Some(&(next, feeder)) = self.routes[packet.route as usize].hops.get(packet.hop as usize) else {
            self.arrive(packet, outside);
            return None;
        };
        if packet.at >= self.horizon || !self.links[next].waits_for_nothing() {
            self.links[next].put(feeder, packet);
            return None;
        }
        Some(next)
    }

    /// Gives up what a link has lost or dropped.
    fn discard_lost(&mut self, link: usize, outside: &mut Outside<'_, impl Observer>) {
        while let Some(lost) = self.links[link].carrier.discarded() {
            self.discard(&lost, outside.packets);
        }
    }

    fn discard(&self, packet: &Packet, packets: &mut Packets) {
        if self.is_of_session(packet) {
            packets.discard(packet.number as PacketId);
        }
    }

    /// Whether a packet has a datagram, which streams' packets do not.
    fn is_of_session(&self, packet: &Packet) -> bool {
        self.routes[packet.route as usize].thing.is_some()
    }

    /// The first packet of a link's feeder.
    fn pull(&mut self, link: usize, feeder: usize, observer: &mut impl Observer) -> Option<Packet> {
        let Link { feeders, heads, .. } = &mut self.links[link];
        let Feeder { from, inbox } = &mut feeders[feeder];
        let From::Stream(stream) = *from else {
            let packet = inbox.pop_front();
            heads.set(feeder, inbox.front().map(|next| next.at));
            return packet;
        };
        let stream = &mut self.streams[stream];
        let packet = stream.send_before(Time::MAX, &self.routes, observer);
        heads.set(feeder, stream.next_departure());
        packet
    }

    /// A packet's arrival at the end of its route is known.
    fn arrive(&mut self, packet: Packet, outside: &mut Outside<'_, impl Observer>) {
        let route = &mut self.routes[packet.route as usize];
        let Some(thing) = route.thing else {
            let Packet { at, sent, number: sequence, size, ecn, .. } = packet;
            if let Some(arrivals) = &mut route.arrivals {
                if arrivals.novelty(sequence as u16) != Novelty::New {
                    return;
                }
                arrivals.mark(sequence as u16);
            }
            let event = Event::MediaReceived { sequence, sent: sent.assume_clock(), delay: at - sent, size, ecn };
            return outside.observer.on_event(at, route.flow, Side::Far, &event);
        };
        if route.arrived.is_empty() {
            outside.events.set(thing, Some(packet.at));
        }
        route.arrived.push_back(packet);
    }

    /// The streams send no more; returns their flows.
    pub(crate) fn stop_streams(&mut self) -> Vec<FlowId> {
        for stream in &mut self.streams {
            stream.stopped = true;
            if let Some(&(link, _)) = self.routes[stream.route].hops.first() {
                let Link { feeders, heads, .. } = &mut self.links[link];
                let streams = feeders.iter().enumerate().filter(|(_, feeder)| matches!(feeder.from, From::Stream(_)));
                streams.for_each(|(feeder, _)| heads.set(feeder, None));
            }
        }
        self.streams.iter().map(|stream| self.routes[stream.route].flow).collect()
    }

    pub(crate) fn stats(&self, link: LinkId, now: Time) -> Option<LinkStats> {
        self.links.get(link.0).map(|state| state.carrier.stats(now))
    }

    /// Bytes that were offered so far to each link of a route.
    pub(crate) fn offered(&self, route: usize) -> impl Iterator<Item = (LinkId, Size)> {
        self.routes[route].hops.iter().map(|&(link, _)| (LinkId(link), self.links[link].carrier.offered()))
    }

    /// From now on counts what a route's own packets bring to each of its links.
    pub(crate) fn count_own(&mut self, route: usize) {
        let Route { hops, own, .. } = &mut self.routes[route];
        own.resize(hops.len(), Size::ZERO);
    }

    /// For each link of a route, what was offered to it so far by all and by the route's own packets.
    pub(crate) fn offered_by(&self, route: usize) -> impl Iterator<Item = (LinkId, Size, Size)> {
        self.offered(route).zip(&self.routes[route].own).map(|((link, all), own)| (link, all, *own))
    }

    /// What a link carries over time.
    pub(crate) fn capacity(&self, link: LinkId) -> &Capacity {
        &self.links[link.0].capacity
    }
}

impl Link {
    /// The number of a feeder, which may be new.
    fn feeder(&mut self, from: From) -> usize {
        if let Some(known) = self.feeders.iter().position(|feeder| feeder.from == from) {
            return known;
        }
        self.feeders.push(Feeder { from, inbox: VecDeque::new() });
        self.heads.reserve(self.feeders.len());
        self.feeders.len() - 1
    }

    /// Whether nothing can come before what its only feeder gives it now.
    fn waits_for_nothing(&self) -> bool {
        matches!(self.feeders.as_slice(), [only] if only.inbox.is_empty())
    }

    #[inline]
    fn put(&mut self, feeder: usize, packet: Packet) {
        let inbox = &mut self.feeders[feeder].inbox;
        if inbox.is_empty() {
            self.heads.set(feeder, Some(packet.at));
        }
        inbox.push_back(packet);
    }
}
