use equipoise::link::{LinkConfig, LinkError, LinkStats};
use equipoise::pace::Source;
use equipoise::session::rtp::{Receiver, Sender};
use equipoise::session::{Endpoint, Event, Input, Output};
use equipoise::units::{Instant, Size, Span};
use thiserror::Error;

use crate::agenda::Agenda;
use crate::network::{LinkId, Network, Outside, Packet};
use crate::packets::{PacketId, Packets};

/// The one clock of a simulated world; all hosts read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimClock {}

/// A moment of simulated time; the world begins at zero.
pub type Time = Instant<SimClock>;

/// A flow of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(usize);

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

/// A controlled session: two ends and the links between them.
pub struct Session {
    /// Sends media.
    pub near: Sender,
    /// Receives it.
    pub far: Receiver,
    /// The links that media pass, in order; none for a way without delay.
    pub forward: Vec<LinkId>,
    /// The links that reports pass, in order.
    pub backward: Vec<LinkId>,
}

/// A stream that answers to nobody, such as background traffic: packets on a source's schedule, without content.
///
/// Its events are those of a session's media. No datagram is made or parsed for it, which is what most packets of a
/// simulated network would otherwise spend their time on.
pub struct Stream {
    /// When its packets leave, and their size.
    pub source: Source<SimClock>,
    /// The links that they pass, in order; one at least.
    pub forward: Vec<LinkId>,
}

/// Why a flow cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FlowError {
    /// A path names a link of another world.
    #[error("link {link} is not one of this world's {links} links")]
    UnknownLink {
        /// The link's number.
        link: usize,
        /// How many links there are.
        links: usize,
    },
    /// A stream has no link to send into.
    #[error("a stream has to pass one link at least")]
    NoLink,
    /// Time has passed already, and packets may be ahead of it.
    #[error("time has passed in this world; flows have to be added before, with a later start where that is meant")]
    Running,
    /// The flows' paths form a ring of links without delay, in which no packet could be said to come first.
    #[error("link {link} is part of a ring of links without propagation delay; give one of them a delay")]
    Ring {
        /// The number of one of its links.
        link: usize,
    },
}

/// Sees what happens at the ends of the flows.
///
/// The events of one end come in the order of their times, and those of all sessions together do, too. A stream's events
/// come when the network knows of them, which may be ahead of the sessions' time; all up to a moment have come when
/// [`World::run`] has returned from there. Any closure over time, flow, side and event is an observer.
pub trait Observer {
    /// One end did or saw something.
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event);
}

impl<F: FnMut(Time, FlowId, Side, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        self(now, flow, side, event);
    }
}

/// Hosts, links, and what is going to happen.
///
/// Sessions live from event to event. Between the ends there are none: whatever a session sends takes its time to reach
/// the peer, and as far ahead as that the network may be calculated in one go (a conservative window, Nicol 1993).
#[derive(Default)]
pub struct World {
    now: Time,
    /// The moment behind the last one of the present call of `run`.
    end: Time,
    running: bool,
    /// How far behind what is known of the sessions' packets no unknown one can arrive.
    look_ahead: Option<Span>,
    network: Network,
    flows: Vec<Flow>,
    agenda: Agenda,
    /// What the numbers of the agenda stand for.
    things: Vec<Thing>,
    packets: Packets,
    scratch: Vec<u8>,
    outgoing: Vec<PacketId>,
}

#[derive(Clone, Copy, Debug)]
enum Thing {
    /// A packet reaches the end of a way.
    Arrival { way: usize, flow: usize, side: Side },
    /// A side of a session wants to be woken.
    Timer { flow: usize, side: Side },
}

#[expect(clippy::large_enum_variant, reason = "flows are few, and a session's two ends are best kept in one place")]
enum Flow {
    Session(SessionState),
    Stream,
}

struct SessionState {
    near: Sender,
    far: Receiver,
    /// The numbers of the ways from the near and from the far side.
    ways: [usize; 2],
    /// The timers' numbers in the agenda.
    timers: [usize; 2],
    /// When each side is going to be woken.
    wakes: [Option<Time>; 2],
    /// When the path's load was last asked for, and each forward link's offered bytes then.
    load_since: Time,
    load_offered: Vec<Size>,
}

/// The network is taken this far in one go where no session limits it: some hundred packets, which fit into a cache.
const WINDOW: Span = Span::from_millis(50);
const TICK: Span = Span::from_nanos(1);

impl World {
    /// An empty world at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a link of one direction, whose schedule of rates counts from time zero.
    ///
    /// # Errors
    /// [`LinkError`] where no link can be like that.
    pub fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, LinkError> {
        self.network.add_link(config)
    }

    /// Adds a session, whose ends are woken when they ask for it.
    ///
    /// # Errors
    /// [`FlowError`] where a path cannot be, or where time has passed.
    pub fn add_session(&mut self, session: Session) -> Result<FlowId, FlowError> {
        self.check(&session.forward)?;
        self.check(&session.backward)?;
        let Session { near, far, forward, backward } = session;
        let flow = self.flows.len();
        let mut way = |path: &[LinkId], side: Side| {
            let thing = self.thing(Thing::Arrival { way: 0, flow, side });
            let way = self.network.add_way(path, FlowId(flow), thing);
            self.things[thing] = Thing::Arrival { way, flow, side };
            way
        };
        let ways = [way(&forward, Side::Far), way(&backward, Side::Near)];
        let timers = [Side::Near, Side::Far].map(|side| self.thing(Thing::Timer { flow, side }));
        let load_offered = vec![Size::ZERO; forward.len()];
        let state = SessionState { near, far, ways, timers, wakes: [None; 2], load_since: self.now, load_offered };
        self.flows.push(Flow::Session(state));
        self.arrange()?;
        Ok(FlowId(flow))
    }

    /// Adds a stream.
    ///
    /// # Errors
    /// As [`World::add_session`], and [`FlowError::NoLink`].
    pub fn add_stream(&mut self, stream: Stream) -> Result<FlowId, FlowError> {
        self.check(&stream.forward)?;
        if stream.forward.is_empty() {
            return Err(FlowError::NoLink);
        }
        let flow = FlowId(self.flows.len());
        self.network.add_stream(stream.source, &stream.forward, flow);
        self.flows.push(Flow::Stream);
        self.arrange()?;
        Ok(flow)
    }

    fn check(&self, path: &[LinkId]) -> Result<(), FlowError> {
        let links = self.network.len();
        match path.iter().find(|link| link.0 >= links) {
            _ if self.running => Err(FlowError::Running),
            Some(&LinkId(link)) => Err(FlowError::UnknownLink { link, links }),
            None => Ok(()),
        }
    }

    fn arrange(&mut self) -> Result<(), FlowError> {
        self.look_ahead = self.network.look_ahead();
        self.network.arrange().map_err(|LinkId(link)| FlowError::Ring { link })
    }

    /// The number in the agenda of something new.
    fn thing(&mut self, thing: Thing) -> usize {
        self.things.push(thing);
        self.agenda.reserve(self.things.len());
        self.things.len() - 1
    }

    /// The present.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.network.len()).map(LinkId)
    }

    /// A link's counters up to now; `None` for a link of another world.
    pub fn link_stats(&self, link: LinkId) -> Option<LinkStats> {
        self.network.stats(link, self.now)
    }

    /// Lets time pass up to and including `until`; may be called again with a later time.
    pub fn run(&mut self, until: Time, observer: &mut impl Observer) {
        (self.running, self.end) = (true, until + TICK);
        self.set_horizon();
        for flow in 0..self.flows.len() {
            self.turn(flow, Side::Near, None, observer);
            self.turn(flow, Side::Far, None, observer);
        }
        loop {
            let (at, thing) = self.agenda.next().filter(|(at, _)| *at <= until).unzip();
            let next = at.unwrap_or(self.end);
            let ahead = self.look_ahead.unwrap_or(Span::ZERO);
            if next > self.network.known() + ahead || (at.is_none() && self.network.known() < self.end) {
                self.advance(next, observer);
                continue;
            }
            let Some(thing) = thing else { break };
            self.now = next;
            match self.things[thing] {
                Thing::Arrival { way, flow, side } => {
                    if let Some(packet) = self.network.take(way, &mut self.agenda) {
                        self.deliver(packet, flow, side, observer);
                    }
                }
                Thing::Timer { flow, side } => self.ring(flow, side, observer),
            }
        }
        self.now = self.now.max(until);
    }

    /// Takes the network as far as possible, knowing that no session acts before `next` but on what may yet arrive.
    fn advance(&mut self, next: Time, observer: &mut impl Observer) {
        let window = self.network.known() + self.look_ahead.unwrap_or(WINDOW).min(WINDOW);
        // What is not known yet arrives nowhere before the next packet that is.
        let to = self.network.next_at().map_or(next, |first| first + TICK).max(window).min(next);
        self.advance_to(to, observer);
    }

    fn advance_to(&mut self, to: Time, observer: &mut impl Observer) {
        let Self { network, agenda, packets, .. } = self;
        network.advance(to, &mut Outside { agenda, packets, observer });
    }

    /// Tells every sending end to end its session now; what they still send is under way, so let some time pass after.
    pub fn stop(&mut self, observer: &mut impl Observer) {
        for flow in self.network.stop_streams() {
            observer.on_event(self.now, flow, Side::Near, &Event::Ended { by_peer: false });
        }
        for flow in 0..self.flows.len() {
            self.turn(flow, Side::Near, Some(Input::Stop), observer);
        }
    }

    /// Sets the network's horizon: the end of the run, or before that the next request for a report, which asks for the
    /// links' loads.
    fn set_horizon(&mut self) {
        let requests = self.flows.iter().filter_map(|flow| match flow {
            Flow::Session(state) => Some(state.near.next_request().assume_clock()),
            Flow::Stream => None,
        });
        self.network.horizon = requests.fold(self.end, Time::min);
    }

    fn deliver(&mut self, packet: Packet, flow: usize, side: Side, observer: &mut impl Observer) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let input = Input::Datagram(self.packets.remove(packet.number as PacketId, &mut scratch));
        self.turn(flow, side, Some(input), observer);
        self.scratch = scratch;
    }

    fn ring(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        if let Flow::Session(state) = &mut self.flows[flow] {
            state.wakes[side as usize] = None;
            self.agenda.set(state.timers[side as usize], None);
        }
        self.turn(flow, side, Some(Input::Timer), observer);
    }

    /// One turn of a session's end: does all that it asks, and sets its timer.
    fn turn(&mut self, flow: usize, side: Side, input: Option<Input<'_>>, observer: &mut impl Observer) {
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
                self.set_horizon();
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
        let way = state.ways[side as usize] as u32;
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

    fn set_timer(&mut self, flow: usize, side: Side, asked: Option<Time>) {
        let Flow::Session(state) = &mut self.flows[flow] else { return };
        // Time does not run backwards, whatever an end asks for.
        let asked = asked.map(|at| at.max(self.now));
        if asked != std::mem::replace(&mut state.wakes[side as usize], asked) {
            self.agenda.set(state.timers[side as usize], asked);
        }
    }

    /// Offered load of the flow's fullest forward link since this was last asked (Waki 2013, Sec. 6.1.2).
    fn path_load(&mut self, flow: usize) -> Option<f64> {
        let Flow::Session(state) = &mut self.flows[flow] else { return None };
        let since = std::mem::replace(&mut state.load_since, self.now);
        let mut largest: Option<f64> = None;
        let forward = self.network.offered(state.ways[Side::Near as usize]);
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
