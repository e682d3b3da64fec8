use equipoise_session::multipath::{
    MultipathEndpoint, MultipathInput, MultipathOutput, PathChange, PathId, Receiver, Sender,
};

use super::{Ends, Flow, FlowError, FlowId, LinkId, Observer, Side, Thing, Time, World};
use crate::network::Packet;
use crate::packets::PacketId;

/// A controlled session over several paths: two ends, and the links of each path, which have numbers from 0.
pub struct Multipath {
    /// Sends media.
    pub near: Sender,
    /// Receives it.
    pub far: Receiver,
    /// The paths between them, all there from the beginning.
    pub paths: Vec<PathLinks>,
}

/// The links of one path.
#[derive(Clone, Debug, Default)]
pub struct PathLinks {
    /// Those that media pass, in order; none for a way without delay.
    pub forward: Vec<LinkId>,
    /// Those that reports pass, in order.
    pub backward: Vec<LinkId>,
    /// What becomes of it later on, as the near host notices: an interface that is taken away, or comes back. What is under
    /// way then arrives all the same.
    pub changes: Vec<(Time, PathChange)>,
}

/// A session over several paths in its place.
pub(super) struct MultipathState {
    near: Sender,
    far: Receiver,
    pub(super) ends: Ends,
    /// What an end gave out in its turn.
    outgoing: Vec<(PathId, PacketId)>,
}

impl World {
    /// Adds a session over several paths. A path whose link has no rate for a while is dead for so long, and nobody says so.
    ///
    /// # Errors
    /// As [`World::add_session`].
    pub fn add_multipath(&mut self, session: Multipath) -> Result<FlowId, FlowError> {
        let Multipath { mut near, far, paths } = session;
        let flow = self.flows.len();
        let ways: Vec<(&[LinkId], &[LinkId])> =
            paths.iter().map(|path| (path.forward.as_slice(), path.backward.as_slice())).collect();
        let ends = self.ends(&ways)?;
        for path in (0..paths.len()).map(path_id) {
            near.handle(self.now.assume_clock(), MultipathInput::Path { path, change: PathChange::Up });
        }
        for (path, links) in paths.iter().enumerate() {
            for (at, change) in &links.changes {
                let thing = self.thing(Thing::PathChange { flow, path: path_id(path), change: *change });
                self.agenda.set(thing, Some(*at));
            }
        }
        self.flows.push(Flow::Multipath(MultipathState { near, far, ends, outgoing: Vec::new() }));
        self.arrange()?;
        Ok(FlowId(flow))
    }

    /// A datagram has come to one side of a session over several paths.
    pub(super) fn deliver_on_path(
        &mut self,
        packet: Packet,
        (flow, side): (usize, Side),
        path: usize,
        observer: &mut impl Observer,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let datagram = self.packets.remove(packet.number as PacketId, &mut scratch);
        let input = MultipathInput::Datagram { path: path_id(path), datagram };
        self.turn_multipath(flow, side, Some(input), observer);
        self.scratch = scratch;
    }

    /// One turn of an end of a session over several paths: does all that it asks, and sets its timer.
    pub(super) fn turn_multipath(
        &mut self,
        flow: usize,
        side: Side,
        input: Option<MultipathInput<'_>>,
        observer: &mut impl Observer,
    ) {
        let now = self.now;
        let Self { flows, packets, .. } = self;
        let Flow::Multipath(MultipathState { near, far, outgoing, .. }) = &mut flows[flow] else { return };
        let take = |output: MultipathOutput<'_>| match output {
            MultipathOutput::Event { path: None, event } => observer.on_event(now, FlowId(flow), side, &event),
            MultipathOutput::Event { path: Some(path), event } => {
                observer.on_path_event(now, FlowId(flow), side, (path, &event));
            }
            MultipathOutput::Transmit { path, transmit } => outgoing.push((path, packets.insert(&transmit))),
            // Nobody is there to want it; generated media has none.
            MultipathOutput::Payload { .. } => {}
        };
        let wake = match side {
            Side::Near => turn_multipath(near, now, input, take),
            Side::Far => turn_multipath(far, now, input, take),
        };
        self.set_timer(flow, side, wake);
        self.send_on_paths(flow, side, observer);
    }

    /// Sends what an end gave out in its turn.
    fn send_on_paths(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        let Flow::Multipath(state) = &mut self.flows[flow] else { return };
        let mut outgoing = std::mem::take(&mut state.outgoing);
        for (PathId(path), id) in outgoing.drain(..) {
            let path = usize::from(path);
            let Flow::Multipath(state) = &self.flows[flow] else { return };
            let Some(way) = state.ends.way(path, side) else {
                self.packets.discard(id);
                continue;
            };
            let (at, number, size) = (self.now, u64::from(id), self.packets.size(id));
            let packet = Packet { at, sent: at, number, size, way: way as u32, hop: 0 };
            if let Some(arrived) = self.network.send(packet) {
                let peer = if side == Side::Near { Side::Far } else { Side::Near };
                self.deliver_on_path(arrived, (flow, peer), path, observer);
            }
        }
        // A turn of the peer, on a way without links, may have sent in between, and taken a list of its own.
        if let Flow::Multipath(state) = &mut self.flows[flow]
            && state.outgoing.is_empty()
        {
            state.outgoing = outgoing;
        }
    }
}

/// The number of the path at this place; a session takes no more paths than there are numbers.
fn path_id(place: usize) -> PathId {
    PathId(u16::try_from(place).unwrap_or(u16::MAX))
}

/// One turn of an end in simulated time: takes `input`, gives out all that the end has to say, and tells when to wake it.
fn turn_multipath<E: MultipathEndpoint>(
    end: &mut E,
    now: Time,
    input: Option<MultipathInput<'_>>,
    mut take: impl FnMut(MultipathOutput<'_>),
) -> Option<Time> {
    if let Some(input) = input {
        end.handle(now.assume_clock(), input);
    }
    while let Some(output) = end.poll() {
        take(output);
    }
    end.wake().map(|wake| wake.at.assume_clock())
}
