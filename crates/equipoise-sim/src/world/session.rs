use equipoise::units::Size;
use equipoise_session::rtp::{Receiver, Sender};
use equipoise_session::{Endpoint, Event, Input, Output};

use super::{Ends, Flow, FlowId, Observer, Side, Time, World};
use crate::network::Packet;
use crate::packets::PacketId;

/// A controlled session in its place.
pub(super) struct SessionState {
    pub(super) near: Sender,
    pub(super) far: Receiver,
    pub(super) ends: Ends,
    /// When the path's load was last asked for, and each forward link's offered bytes then.
    pub(super) load_since: Time,
    pub(super) load_offered: Vec<Size>,
}

impl World {
    pub(super) fn deliver(&mut self, packet: Packet, flow: usize, side: Side, observer: &mut impl Observer) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let input = Input::Datagram(self.packets.remove(packet.number as PacketId, &mut scratch));
        self.turn(flow, side, Some(input), observer);
        self.scratch = scratch;
    }

    /// One turn of a session's end: does all that it asks, and sets its timer.
    pub(super) fn turn(&mut self, flow: usize, side: Side, input: Option<Input<'_>>, observer: &mut impl Observer) {
        let now = self.now;
        let mut input = input;
        let wake = loop {
            let Self { flows, packets, outgoing, .. } = self;
            let Flow::Session(SessionState { near, far, .. }) = &mut flows[flow] else { return };
            let (mut requested, mut moved) = (false, false);
            let take = |output: Output<'_>| match output {
                Output::Event(event) => {
                    requested |= matches!(event, Event::ReportRequested { .. });
                    moved |= matches!(event, Event::ReportRequested { .. } | Event::ReportsMissing);
                    observer.on_event(now, FlowId(flow), side, &event);
                }
                Output::Transmit(transmit) => outgoing.push(packets.insert(&transmit)),
                // Nobody is there to want it; generated media has none.
                Output::Payload { .. } => {}
            };
            let wake = match side {
                Side::Near => turn(near, now, input, take),
                Side::Far => turn(far, now, input, take),
            };
            if requested {
                self.advance_to(now, observer);
            }
            let load = if requested { self.path_load(flow) } else { None };
            if moved {
                self.set_horizon(observer);
            }
            let Some(load) = load else { break wake };
            input = Some(Input::PathLoad(load));
        };
        self.set_timer(flow, side, wake);
        self.send(flow, side, observer);
    }

    /// Sends what an end gave out in its turn.
    fn send(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        let Flow::Session(state) = &self.flows[flow] else { return };
        let way = state.ends.only_way(side) as u32;
        // A turn of the peer, on a way without links, may send in between: each turn takes its own packets away.
        let mut outgoing = std::mem::take(&mut self.outgoing);
        for id in outgoing.drain(..) {
            let (at, number, size) = (self.now, u64::from(id), self.packets.size(id));
            if let Some(arrived) = self.network.send(Packet { at, sent: at, number, size, way, hop: 0 }) {
                let peer = if side == Side::Near { Side::Far } else { Side::Near };
                self.deliver(arrived, flow, peer, observer);
            }
        }
        self.outgoing = outgoing;
    }

    /// Offered load of the flow's fullest forward link since this was last asked (Waki 2013, Sec. 6.1.2).
    fn path_load(&mut self, flow: usize) -> Option<f64> {
        let Flow::Session(state) = &mut self.flows[flow] else { return None };
        let since = std::mem::replace(&mut state.load_since, self.now);
        let mut largest: Option<f64> = None;
        let forward = self.network.offered(state.ends.only_way(Side::Near));
        for ((link, offered), seen) in forward.zip(&mut state.load_offered) {
            let news = offered - std::mem::replace(seen, offered);
            let load = self.network.load(link, since, self.now, news);
            largest = largest.into_iter().chain(load).reduce(f64::max);
        }
        largest
    }
}

/// One turn of an end in simulated time: takes `input`, if there is one, gives out all that the end then has to say, and
/// tells when it wants to be woken.
///
/// All that a [`World`] does with its ends. The end's clock is taken to agree with the world's.
pub fn turn<E: Endpoint>(
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
