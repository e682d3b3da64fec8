use std::collections::VecDeque;

use equipoise::units::Size;
use equipoise_pair::{Adu, Event, Input, Output, TcpRequest, TcpState};

use super::{Ends, Flow, FlowError, FlowId, LinkId, Observer, Side, Time, World};
use crate::network::Packet;
use crate::packets::PacketId;
use crate::tcp;

/// A flow pair: two ends with a TCP connection between them, and an application that always has one more ADU.
pub struct FlowPair {
    /// Sends ADUs.
    pub near: equipoise_pair::Sender,
    /// Receives them.
    pub far: equipoise_pair::Receiver,
    /// Sends what goes over TCP; its supply is [`Supply::Written`](tcp::Supply::Written), and its window not to be reset
    /// for idleness.
    pub tcp_near: tcp::Sender,
    /// Receives it.
    pub tcp_far: tcp::Receiver,
    /// Size of the IP packet of a full segment.
    pub packet: Size,
    /// Size of an ADU.
    pub adu: Size,
    /// When the application begins.
    pub start: Time,
    /// The links that both transports' data pass, in order; one at least.
    pub forward: Vec<LinkId>,
    /// The links that reports and acknowledgements pass, in order; one at least.
    pub backward: Vec<LinkId>,
}

/// What an end of a flow pair did or saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairEvent {
    /// The pair itself.
    Pair(Event),
    /// The receiver gave out an ADU.
    Adu {
        /// Its number.
        number: u64,
        /// ADUs that are missing before it.
        missing: u64,
        /// Which transport brought it.
        over: equipoise_pair::tpba::Period,
        /// Its size.
        size: Size,
    },
}

/// A flow pair in its place.
pub(super) struct PairState {
    near: equipoise_pair::Sender,
    far: equipoise_pair::Receiver,
    tcp_near: tcp::Sender,
    tcp_far: tcp::Receiver,
    segment: Size,
    header: Size,
    start: Time,
    pub(super) ends: Ends,
    /// What the application sends again and again.
    adu: Vec<u8>,
    /// Bytes that were written and not read: TCP of this world moves sizes only.
    stream: VecDeque<u8>,
    /// Bytes that were read.
    read: u64,
    finished: bool,
}

impl PairState {
    fn tcp_state(&self) -> TcpState {
        let stats = self.tcp_near.stats();
        let (acknowledged, unsent) = self.tcp_near.written();
        TcpState {
            acknowledged,
            unsent,
            window: Size::from_bytes((stats.window * self.segment.as_bytes() as f64) as u64),
            segment: self.segment,
            header: self.header,
            reductions: stats.recoveries + stats.timeouts,
        }
    }

    /// Does what the pair asks of TCP.
    fn obey(&mut self, request: TcpRequest) {
        match request {
            TcpRequest::NoDelay(on) => self.tcp_near.set_no_delay(on),
            TcpRequest::Window(window) => {
                self.tcp_near.set_window(window.as_bytes() as f64 / self.segment.as_bytes() as f64);
            }
            TcpRequest::Finish => self.finished = true,
        }
    }

    /// Writes what TCP is to carry; whether there was any.
    fn write(&mut self, now: Time) -> bool {
        let pending = self.near.tcp_pending();
        let length = pending.len();
        self.stream.extend(pending);
        if length > 0 {
            self.tcp_near.write(length as u64);
            self.near.tcp_written(now.assume_clock(), length);
        }
        length > 0
    }

    /// The application gives what it always has.
    fn supply(&mut self, now: Time) {
        let most = self.adu.len();
        // One ADU ahead of what the transports have taken.
        while now >= self.start && !self.finished && self.near.waiting() < most.max(1) {
            if self.near.push(now.assume_clock(), &self.adu, true).is_err() {
                break;
            }
        }
    }

    /// The receiver reads what has come in order.
    fn read(&mut self, now: Time) {
        let come = self.tcp_near.bytes_before(self.tcp_far.next());
        while come > self.read && self.far.wants_tcp() {
            let most = usize::try_from(come - self.read).unwrap_or(usize::MAX);
            let (front, _) = self.stream.as_slices();
            let taken = self.far.tcp_received(now.assume_clock(), &front[..front.len().min(most)]);
            self.stream.drain(..taken);
            self.read += taken as u64;
            if taken == 0 {
                break;
            }
        }
        if self.finished && self.stream.is_empty() {
            self.far.handle(now.assume_clock(), Input::TcpEnded);
        }
    }
}

impl World {
    /// Adds a flow pair.
    ///
    /// # Errors
    /// As [`World::add_session`], and [`FlowError::NoLink`].
    pub fn add_flow_pair(&mut self, pair: FlowPair) -> Result<FlowId, FlowError> {
        let FlowPair { near, far, tcp_near, tcp_far, packet, adu, start, forward, backward } = pair;
        if forward.is_empty() || backward.is_empty() {
            return Err(FlowError::NoLink);
        }
        let ends = self.ends(&[(&forward, &backward)])?;
        let flow = self.flows.len();
        let adu = vec![0; adu.as_bytes() as usize];
        let (header, stream) = (tcp::HEADER, VecDeque::new());
        let segment = packet - header;
        let state = PairState {
            near,
            far,
            tcp_near,
            tcp_far,
            segment,
            header,
            start,
            ends,
            adu,
            stream,
            read: 0,
            finished: false,
        };
        self.flows.push(Flow::Pair(Box::new(state)));
        self.arrange()?;
        Ok(FlowId(flow))
    }

    /// The TCP hosts of a flow pair; `None` for a flow of another kind.
    pub fn pair_tcp(&self, flow: FlowId) -> Option<(&tcp::Sender, &tcp::Receiver)> {
        match self.flows.get(flow.0) {
            Some(Flow::Pair(state)) => Some((&state.tcp_near, &state.tcp_far)),
            _ => None,
        }
    }

    pub(super) fn begin_pair(&mut self, flow: usize, observer: &mut impl Observer) {
        self.turn_pair(flow, Side::Near, None, observer);
        self.turn_pair(flow, Side::Far, None, observer);
    }

    pub(super) fn ring_pair(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        let now = self.now;
        let Flow::Pair(state) = &mut self.flows[flow] else { return };
        let answer = match side {
            Side::Near => {
                state.tcp_near.on_timer(now);
                None
            }
            Side::Far => state.tcp_far.on_timer(now),
        };
        self.answer_pair(flow, answer);
        self.turn_pair(flow, side, Some(Input::Timer), observer);
    }

    /// A segment or a datagram has come to one side.
    pub(super) fn deliver_to_pair(&mut self, packet: &Packet, flow: usize, side: Side, observer: &mut impl Observer) {
        let (now, id) = (self.now, packet.number as PacketId);
        if !self.packets.is_segment(id) {
            let mut scratch = std::mem::take(&mut self.scratch);
            let input = Input::Datagram(self.packets.remove(id, &mut scratch));
            self.turn_pair(flow, side, Some(input), observer);
            self.scratch = scratch;
            return;
        }
        let Some(segment) = self.packets.remove_segment(id) else { return };
        let Flow::Pair(state) = &mut self.flows[flow] else { return };
        let answer = match side {
            Side::Near => {
                state.tcp_near.on_segment(now, segment);
                None
            }
            Side::Far => state.tcp_far.on_segment(now, segment),
        };
        self.answer_pair(flow, answer);
        self.turn_pair(flow, side, None, observer);
    }

    fn answer_pair(&mut self, flow: usize, answer: Option<tcp::Segment>) {
        if let Some(segment) = answer {
            self.send_segment(flow, Side::Far, segment);
        }
    }

    fn send_segment(&mut self, flow: usize, side: Side, segment: tcp::Segment) {
        let Flow::Pair(state) = &self.flows[flow] else { return };
        let way = state.ends.only_way(side);
        super::tcp_flow::send(&mut self.packets, &mut self.network, way, self.now, segment);
    }

    /// One turn of an end: does all that it asks, as long as it asks, and sets its timer.
    pub(super) fn turn_pair(
        &mut self,
        flow: usize,
        side: Side,
        input: Option<Input<'_>>,
        observer: &mut impl Observer,
    ) {
        let wake = match side {
            Side::Near => self.turn_near(flow, input, observer),
            Side::Far => self.turn_far(flow, input, observer),
        };
        self.set_timer(flow, side, wake);
    }

    fn turn_near(&mut self, flow: usize, input: Option<Input<'_>>, observer: &mut impl Observer) -> Option<Time> {
        let now = self.now;
        let Flow::Pair(state) = &mut self.flows[flow] else { return None };
        if let Some(input) = input {
            state.near.handle(now.assume_clock(), input);
        }
        loop {
            let Flow::Pair(state) = &mut self.flows[flow] else { return None };
            state.near.handle(now.assume_clock(), Input::Tcp(state.tcp_state()));
            state.supply(now);
            let mut goes_on = state.write(now);
            while let Some(segment) = self.next_segment(flow) {
                self.send_segment(flow, Side::Near, segment);
                goes_on = true;
            }
            goes_on |= self.take_near(flow, observer);
            if !goes_on {
                break;
            }
        }
        let Flow::Pair(state) = &self.flows[flow] else { return None };
        let begins = (now < state.start).then_some(state.start);
        let pair = state.near.wake().map(|wake| wake.at.assume_clock());
        [state.tcp_near.wake(), pair, begins].into_iter().flatten().min()
    }

    fn next_segment(&mut self, flow: usize) -> Option<tcp::Segment> {
        let Flow::Pair(state) = &mut self.flows[flow] else { return None };
        state.tcp_near.poll(self.now)
    }

    /// Takes what the sender says; whether it asked for something that may let it go on.
    fn take_near(&mut self, flow: usize, observer: &mut impl Observer) -> bool {
        let now = self.now;
        let mut asked = false;
        let mut outgoing = std::mem::take(&mut self.outgoing);
        while let Flow::Pair(state) = &mut self.flows[flow] {
            match state.near.poll() {
                None => break,
                Some(Output::Transmit(transmit)) => outgoing.push(self.packets.insert(&transmit)),
                Some(Output::Tcp(request)) => {
                    asked = true;
                    state.obey(request);
                }
                Some(Output::Event(Event::Rtp(event))) => observer.on_event(now, FlowId(flow), Side::Near, &event),
                Some(Output::Event(event)) => {
                    observer.on_pair_event(now, FlowId(flow), Side::Near, &PairEvent::Pair(event));
                }
            }
        }
        self.send_datagrams(flow, Side::Near, &mut outgoing);
        self.outgoing = outgoing;
        asked
    }

    fn turn_far(&mut self, flow: usize, input: Option<Input<'_>>, observer: &mut impl Observer) -> Option<Time> {
        let now = self.now;
        let Flow::Pair(state) = &mut self.flows[flow] else { return None };
        if let Some(input) = input {
            state.far.handle(now.assume_clock(), input);
        }
        let mut outgoing = std::mem::take(&mut self.outgoing);
        while let Flow::Pair(state) = &mut self.flows[flow] {
            state.read(now);
            while let Some(output) = state.far.poll() {
                match output {
                    Output::Transmit(transmit) => outgoing.push(self.packets.insert(&transmit)),
                    Output::Event(Event::Rtp(event)) => observer.on_event(now, FlowId(flow), Side::Far, &event),
                    Output::Event(event) => {
                        observer.on_pair_event(now, FlowId(flow), Side::Far, &PairEvent::Pair(event));
                    }
                    Output::Tcp(_) => {}
                }
            }
            let Some(Adu { number, missing, over, data }) = state.far.take_adu() else { break };
            let size = Size::from_bytes(data.len() as u64);
            let event = PairEvent::Adu { number, missing, over, size };
            observer.on_pair_event(now, FlowId(flow), Side::Far, &event);
        }
        self.send_datagrams(flow, Side::Far, &mut outgoing);
        self.outgoing = outgoing;
        let Flow::Pair(state) = &self.flows[flow] else { return None };
        let pair = state.far.wake().map(|wake| wake.at.assume_clock());
        [state.tcp_far.wake(), pair].into_iter().flatten().min()
    }

    fn send_datagrams(&mut self, flow: usize, side: Side, outgoing: &mut Vec<PacketId>) {
        let Flow::Pair(state) = &self.flows[flow] else { return };
        let way = state.ends.only_way(side) as u32;
        for id in outgoing.drain(..) {
            let (at, number, size) = (self.now, u64::from(id), self.packets.size(id));
            // The way has a link, so nothing has arrived yet.
            self.network.send(Packet { at, sent: at, number, size, way, hop: 0 });
        }
    }
}
