use std::any::Any;

use equipoise::units::{ReceiverClock, SenderClock, Size, Span};
use equipoise_session::wire::is_rtcp;
use equipoise_session::{Carrier, Endpoint, Half, Input, Output, PathChange, PathId, Transmit};

use super::FlowError;
use super::{EventKind, FlowId, Observer, Side, Time, World};
use crate::network::{LinkId, Packet};
use crate::observer::{Arrival, Datagram, Way};
use crate::packets::PacketId;

/// The endpoint of a flow that sends media or data: any [`Endpoint`] that uses the sender's clock.
pub trait NearEnd: Endpoint<Clock = SenderClock> + Any + Send {}

impl<E: Endpoint<Clock = SenderClock> + Any + Send> NearEnd for E {}

/// The endpoint of a flow that receives media or data: any [`Endpoint`] that uses the receiver's clock.
pub trait FarEnd: Endpoint<Clock = ReceiverClock> + Any + Send {}

impl<E: Endpoint<Clock = ReceiverClock> + Any + Send> FarEnd for E {}

/// A flow: two endpoints and the paths between the endpoints. The paths are numbered from 0.
pub struct Flow {
    /// The sending endpoint.
    pub near: Box<dyn NearEnd>,
    /// The receiving endpoint.
    pub far: Box<dyn FarEnd>,
    /// The paths between the endpoints. All paths exist from the start.
    pub paths: Vec<PathLinks>,
}

impl Flow {
    /// A flow over one path. `forward` has the links that the packets of `near` pass, in this order. `backward` has the
    /// links that the packets of `far` pass.
    pub fn new(near: impl NearEnd, far: impl FarEnd, forward: Vec<LinkId>, backward: Vec<LinkId>) -> Self {
        Self { near: Box::new(near), far: Box::new(far), paths: vec![PathLinks::new(forward, backward)] }
    }
}

/// The links of one path.
#[derive(Clone, Debug, Default)]
pub struct PathLinks {
    /// Links for the packets of the near endpoint, in order; empty for a route without delay.
    pub forward: Vec<LinkId>,
    /// Links for the packets of the far endpoint, in order; empty for a route without delay.
    pub backward: Vec<LinkId>,
    /// Changes of the path's state, with their times: for example, a network interface goes down. The near host is
    /// informed of each change. Packets in flight still arrive.
    pub changes: Vec<(Time, PathChange)>,
}

impl PathLinks {
    /// A path without changes.
    pub const fn new(forward: Vec<LinkId>, backward: Vec<LinkId>) -> Self {
        Self { forward, backward, changes: Vec::new() }
    }
}

/// The state of a flow.
pub(super) struct FlowState {
    pub(super) near: Box<dyn NearEnd>,
    pub(super) far: Box<dyn FarEnd>,
    /// For each path, the numbers of the routes from the near and from the far endpoint.
    pub(super) routes: Vec<[usize; 2]>,
    /// The event numbers of the timers of the near and of the far endpoint.
    pub(super) timers: [usize; 2],
    /// When the timers of the near and of the far endpoint expire; `None` for no timer.
    pub(super) wakes: [Option<Time>; 2],
    /// The number of the flow with the media that the far endpoint sends; `None` if only the near endpoint sends media.
    pub(super) back: Option<usize>,
    /// Index in `World::oracles` of the entry that measures the load of the flow's first path, if there is one.
    pub(super) oracle: Option<usize>,
    /// The index of the flow's bandwidth oracle, if it has one.
    pub(super) bandwidth: Option<usize>,
}

impl World {
    /// Adds a flow. While a link of a path has rate zero, the path delivers nothing, and the endpoints are not
    /// notified.
    ///
    /// # Errors
    /// [`FlowError`] if a path has an unknown link or no links, if links form a cycle without delay, or if the
    /// simulation has started.
    pub fn add_flow(&mut self, flow: Flow) -> Result<FlowId, FlowError> {
        let Flow { mut near, far, paths } = flow;
        for path in &paths {
            self.check(&path.forward)?;
            self.check(&path.backward)?;
            // On a path without links, the endpoints could answer each other endlessly without time passing.
            if path.forward.is_empty() && path.backward.is_empty() {
                return Err(FlowError::NoLink);
            }
        }
        let flow = self.flows.len();
        let mut routes = Vec::new();
        for (path, links) in paths.iter().enumerate() {
            let forward = self.route(&links.forward, flow, Side::Far, path);
            let backward = self.route(&links.backward, flow, Side::Near, path);
            routes.push([forward, backward]);
        }
        let timers = [Side::Near, Side::Far].map(|side| self.add_event(EventKind::Timer { flow, side }));
        for path in (0..paths.len()).map(path_id) {
            near.handle(self.now.assume_clock(), Input::Path { path, change: PathChange::Up });
        }
        for (path, links) in paths.iter().enumerate() {
            for (at, change) in &links.changes {
                let event = self.add_event(EventKind::PathChange { flow, path: path_id(path), change: *change });
                self.events.set(event, Some(*at));
            }
        }
        let (wakes, back, oracle, bandwidth) = ([None; 2], None, None, None);
        self.flows.push(Some(FlowState { near, far, routes, timers, wakes, back, oracle, bandwidth }));
        self.arrange()?;
        Ok(FlowId(flow))
    }

    /// Adds a session whose endpoints both send and receive media, such as [`Duplex`](equipoise_session::rtp::Duplex).
    /// The session consists of two flows, each with its own number: the flow with the media of the near endpoint, and
    /// the flow with the media of the far endpoint. In the second flow, the sides are swapped: the far endpoint of the
    /// session sends, so it is the near side.
    ///
    /// # Errors
    /// [`FlowError`] as for [`World::add_flow`].
    pub fn add_duplex(&mut self, flow: Flow) -> Result<[FlowId; 2], FlowError> {
        let there = self.add_flow(flow)?;
        let back = self.flows.len();
        if let Some(Some(state)) = self.flows.get_mut(there.0) {
            state.back = Some(back);
        }
        self.flows.push(None);
        Ok([there, FlowId(back)])
    }

    /// Creates the route for one direction of a path. The route leads to `side`.
    fn route(&mut self, links: &[LinkId], flow: usize, side: Side, path: usize) -> usize {
        let event = self.add_event(EventKind::Arrival { route: 0, flow, side, path });
        let route = self.network.add_route(links, FlowId(flow), event);
        self.kinds[event] = EventKind::Arrival { route, flow, side, path };
        route
    }

    /// The sending endpoint of a flow, if its type is `E`.
    pub fn near<E: 'static>(&self, flow: FlowId) -> Option<&E> {
        let near: &dyn Any = self.flows.get(flow.0)?.as_ref()?.near.as_ref();
        near.downcast_ref()
    }

    /// The receiving endpoint of a flow, if its type is `E`.
    pub fn far<E: 'static>(&self, flow: FlowId) -> Option<&E> {
        let far: &dyn Any = self.flows.get(flow.0)?.as_ref()?.far.as_ref();
        far.downcast_ref()
    }

    /// Mutable access to the receiving endpoint of a flow, if its type is `E`. Used to take data that the endpoint
    /// stores for the caller. Output that the caller's changes cause is sent only at the endpoint's next event.
    pub fn far_mut<E: 'static>(&mut self, flow: FlowId) -> Option<&mut E> {
        let far: &mut dyn Any = self.flows.get_mut(flow.0)?.as_mut()?.far.as_mut();
        far.downcast_mut()
    }

    /// Delivers a packet to the endpoint at one side of a flow.
    pub(super) fn deliver(
        &mut self,
        packet: &Packet,
        flow: usize,
        side: Side,
        path: usize,
        observer: &mut impl Observer,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let datagram = self.packets.remove(packet.number as PacketId, &mut scratch);
        let back = self.flows.get(flow).and_then(Option::as_ref).and_then(|state| state.back);
        // In a duplex session, a received RTCP packet belongs to the media that the endpoint sends. Any other packet
        // belongs to the media that the endpoint receives.
        let half = if back.is_some() && is_rtcp(datagram) { Half::Sending } else { Half::Receiving };
        let (of, seen) = back.map_or((flow, side), |back| direction([flow, back], side, half));
        observer.on_arrival(self.now, FlowId(of), seen, Arrival { size: packet.size, waited: packet.waited });
        let header = packet.size.as_bytes().saturating_sub(datagram.len() as u64);
        let carrier = if header == Size::IPV4.as_bytes() { Carrier::Tcp } else { Carrier::Udp };
        let came = Datagram {
            flow: FlowId(flow),
            side,
            way: Way::Received,
            path: path_id(path),
            carrier,
            ecn: packet.ecn,
            head: datagram,
            media: 0,
        };
        observer.on_datagram(self.now, &came);
        self.turn(flow, side, Some(Input::Datagram { path: path_id(path), datagram, ecn: packet.ecn }), observer);
        self.scratch = scratch;
    }

    /// Passes an input, if any, to an endpoint of a flow. Then performs all outputs of the endpoint and sets its timer.
    pub(super) fn turn(&mut self, flow: usize, side: Side, input: Option<Input<'_>>, observer: &mut impl Observer) {
        let now = self.now;
        let Self { flows, packets, outgoing, .. } = self;
        let Some(Some(state)) = flows.get_mut(flow) else { return };
        let back = state.back;
        let mut requested = false;
        let take = |output: Output<'_>| match output {
            Output::Transmit { path, transmit } => {
                let Transmit { head, media, carrier, ecn } = transmit;
                let left = Datagram { flow: FlowId(flow), side, way: Way::Sent, path, carrier, ecn, head, media };
                observer.on_datagram(now, &left);
                outgoing.push((path, packets.insert(&transmit)));
            }
            Output::Event { path, event } => {
                requested |= matches!(event, equipoise_session::Event::ReportRequested { .. });
                let (of, seen) = back.map_or((flow, side), |back| direction([flow, back], side, event.half()));
                match path {
                    None => observer.on_event(now, FlowId(of), seen, &event),
                    Some(path) => observer.on_path_event(now, FlowId(of), seen, path, &event),
                }
            }
            // The payload of media is generated and has no content, so it is discarded.
            Output::Payload { .. } => {}
        };
        let wake = match side {
            Side::Near => turn(state.near.as_mut(), now, input, take),
            Side::Far => turn(state.far.as_mut(), now, input, take),
        };
        let oracle = state.oracle.filter(|_| side == Side::Near);
        let bandwidth = state.bandwidth.filter(|_| side == Side::Near);
        self.set_timer(flow, side, wake);
        if let Some(bandwidth) = bandwidth {
            self.restart_measuring(bandwidth, observer);
        }
        if let Some(oracle) = oracle {
            if requested {
                self.write_load(oracle, observer);
            }
            self.set_horizon(observer);
        }
        self.send(flow, side, observer);
    }

    /// Sends the datagrams that an endpoint has just output.
    fn send(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        if self.outgoing.is_empty() {
            return;
        }
        // If a route has no links, this loop delivers a datagram at once, and the peer may add datagrams to
        // `self.outgoing` during the loop. Therefore the loop does not iterate over `self.outgoing`.
        let mut outgoing = std::mem::take(&mut self.outgoing);
        for (PathId(path), id) in outgoing.drain(..) {
            let path = usize::from(path);
            let routes = self.flows.get(flow).and_then(Option::as_ref).and_then(|state| state.routes.get(path));
            let Some(routes) = routes else {
                self.packets.discard(id);
                continue;
            };
            let (at, number, size, ecn) = (self.now, u64::from(id), self.packets.size(id), self.packets.ecn(id));
            let (route, waited) = (routes[side as usize] as u32, Span::ZERO);
            let packet = Packet { at, sent: at, number, size, route, hop: 0, ecn, waited };
            if let Some(arrived) = self.network.send(packet) {
                let peer = if side == Side::Near { Side::Far } else { Side::Near };
                self.deliver(&arrived, flow, peer, path, observer);
            }
        }
        self.outgoing = outgoing;
    }

    fn set_timer(&mut self, flow: usize, side: Side, asked: Option<Time>) {
        let Some(Some(state)) = self.flows.get_mut(flow) else { return };
        // If an endpoint requests a wake-up time in the past, it is called at the current time.
        let asked = asked.map(|at| at.max(self.now));
        if asked != std::mem::replace(&mut state.wakes[side as usize], asked) {
            self.events.set(state.timers[side as usize], asked);
        }
    }

    /// Calls an endpoint of a flow because its timer has expired.
    pub(super) fn wake(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        if let Some(Some(state)) = self.flows.get_mut(flow) {
            state.wakes[side as usize] = None;
            self.events.set(state.timers[side as usize], None);
        }
        self.turn(flow, side, Some(Input::Timer), observer);
    }
}

/// Each endpoint of a duplex session sends media in one flow and receives media in the other flow. Returns the flow in
/// which the endpoint at `side` sends or receives (`half`), and the side of this endpoint in this flow.
fn direction([there, back]: [usize; 2], side: Side, half: Half) -> (usize, Side) {
    match (side, half) {
        (Side::Near, Half::Sending) => (there, Side::Near),
        (Side::Far, Half::Receiving) => (there, Side::Far),
        (Side::Far, Half::Sending) => (back, Side::Near),
        (Side::Near, Half::Receiving) => (back, Side::Far),
    }
}

/// The path number for an index. A session never has more paths than there are path numbers.
fn path_id(place: usize) -> PathId {
    PathId(u16::try_from(place).unwrap_or(u16::MAX))
}

/// One step of an endpoint in simulated time: passes `input`, if any, to the endpoint, calls `take` with each of its
/// outputs, and returns its next wake-up time.
///
/// During a run, a [`World`] calls its endpoints only by this function. The endpoint's clock is assumed to show the
/// simulation's time.
pub fn turn<E: Endpoint + ?Sized>(
    end: &mut E,
    now: Time,
    input: Option<Input<'_>>,
    mut take: impl FnMut(Output<'_>),
) -> Option<Time> {
    if let Some(input) = input {
        end.handle(now.assume_clock(), input);
    }
    while let Some(output) = end.poll() {
        take(output);
    }
    end.wake().map(|wake| wake.at.assume_clock())
}
