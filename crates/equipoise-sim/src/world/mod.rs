mod multipath;
mod noise;
mod pair;
mod session;
mod tcp_flow;

use equipoise::units::{Instant, Size, Span};
use equipoise_path::link::{LinkConfig, LinkError, LinkStats};
use equipoise_path::source::Source;
use equipoise_session::multipath::{MultipathInput, PathChange, PathId};
use equipoise_session::rtp::{Receiver, Sender};
use equipoise_session::{Event, Input};
use thiserror::Error;

use self::multipath::MultipathState;
pub use self::multipath::{Multipath, PathLinks};
pub use self::noise::WhiteNoise;
use self::pair::PairState;
pub use self::pair::{FlowPair, PairEvent};
use self::session::SessionState;
pub use self::session::turn;
pub use self::tcp_flow::{Connection, KnownBandwidth};
use self::tcp_flow::{TcpInput, TcpState};

use crate::agenda::Agenda;
use crate::network::{LinkId, Network, Outside};
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
    #[error("a stream or a connection has to pass one link at least")]
    NoLink,
    /// The world would measure a path's bandwidth for ever at one moment.
    #[error("bandwidth measured every {interval}; the time between two measurements has to be above zero")]
    MeasuringInterval {
        /// What was asked for.
        interval: Span,
    },
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

    /// One end of a flow pair did or saw something, beside its RTP half's events.
    fn on_pair_event(&mut self, _now: Time, _flow: FlowId, _side: Side, _event: &PairEvent) {}
    /// One end of a session over several paths did or saw something on one of them. Where nobody asks which one, it is an
    /// event like any other.
    fn on_path_event(&mut self, now: Time, flow: FlowId, side: Side, (_, event): (PathId, &Event)) {
        self.on_event(now, flow, side, event);
    }
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
    Arrival { way: usize, flow: usize, side: Side, path: usize },
    /// A side of a flow wants to be woken.
    Timer { flow: usize, side: Side },
    /// A TCP flow is to be told its bandwidth.
    Measurement { flow: usize },
    /// Something becomes of a path.
    PathChange { flow: usize, path: PathId, change: PathChange },
}

#[expect(clippy::large_enum_variant, reason = "a flow's two ends are best kept in one place")]
enum Flow {
    Session(SessionState),
    Multipath(MultipathState),
    Tcp(TcpState),
    Pair(Box<PairState>),
    Stream,
}

impl Flow {
    /// Where the flow's two ends are; `None` for one without.
    fn ends(&mut self) -> Option<&mut Ends> {
        match self {
            Self::Session(state) => Some(&mut state.ends),
            Self::Multipath(state) => Some(&mut state.ends),
            Self::Tcp(state) => Some(&mut state.ends),
            Self::Pair(state) => Some(&mut state.ends),
            Self::Stream => None,
        }
    }
}

/// Where a flow's near and far end are.
struct Ends {
    /// The numbers of each path's ways from the near and from the far side.
    ways: Vec<[usize; 2]>,
    /// The timers' numbers in the agenda.
    timers: [usize; 2],
    /// When each side is going to be woken.
    wakes: [Option<Time>; 2],
}

impl Ends {
    /// The number of a path's way from a side.
    fn way(&self, path: usize, side: Side) -> Option<usize> {
        self.ways.get(path).map(|ways| ways[side as usize])
    }

    /// The same where there is one path.
    fn only_way(&self, side: Side) -> usize {
        self.ways[0][side as usize]
    }
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
        let Session { near, far, forward, backward } = session;
        let ends = self.ends(&[(&forward, &backward)])?;
        let load_offered = vec![Size::ZERO; forward.len()];
        let state = SessionState { near, far, ends, load_since: self.now, load_offered };
        self.flows.push(Flow::Session(state));
        self.arrange()?;
        Ok(FlowId(self.flows.len() - 1))
    }

    /// Lays the ways of the next flow, there and back on each of its paths.
    fn ends(&mut self, paths: &[(&[LinkId], &[LinkId])]) -> Result<Ends, FlowError> {
        for (forward, backward) in paths {
            self.check(forward)?;
            self.check(backward)?;
        }
        let flow = self.flows.len();
        let mut way = |links: &[LinkId], side: Side, path: usize| {
            let thing = self.thing(Thing::Arrival { way: 0, flow, side, path });
            let way = self.network.add_way(links, FlowId(flow), thing);
            self.things[thing] = Thing::Arrival { way, flow, side, path };
            way
        };
        let there_and_back = |(path, (forward, backward)): (usize, &(&[LinkId], &[LinkId]))| {
            [way(forward, Side::Far, path), way(backward, Side::Near, path)]
        };
        let ways = paths.iter().enumerate().map(there_and_back).collect();
        let timers = [Side::Near, Side::Far].map(|side| self.thing(Thing::Timer { flow, side }));
        Ok(Ends { ways, timers, wakes: [None; 2] })
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
        self.set_horizon(observer);
        for flow in 0..self.flows.len() {
            match &self.flows[flow] {
                Flow::Session(_) => {
                    self.turn(flow, Side::Near, None, observer);
                    self.turn(flow, Side::Far, None, observer);
                }
                Flow::Multipath(_) => {
                    self.turn_multipath(flow, Side::Near, None, observer);
                    self.turn_multipath(flow, Side::Far, None, observer);
                }
                Flow::Tcp(_) => self.turn_tcp(flow, Side::Near, None),
                Flow::Pair(_) => self.begin_pair(flow, observer),
                Flow::Stream => {}
            }
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
                Thing::Arrival { way, flow, side, path } => {
                    if let Some(packet) = self.network.take(way, &mut self.agenda) {
                        match &self.flows[flow] {
                            Flow::Multipath(_) => self.deliver_on_path(packet, (flow, side), path, observer),
                            Flow::Tcp(_) => {
                                let segment = self.packets.remove_segment(packet.number as PacketId);
                                self.turn_tcp(flow, side, segment.map(TcpInput::Segment));
                            }
                            Flow::Pair(_) => self.deliver_to_pair(&packet, flow, side, observer),
                            Flow::Session(_) | Flow::Stream => self.deliver(packet, flow, side, observer),
                        }
                    }
                }
                Thing::Timer { flow, side } => self.ring(flow, side, observer),
                Thing::Measurement { flow } => self.measure(flow, observer),
                Thing::PathChange { flow, path, change } => {
                    self.agenda.set(thing, None);
                    self.turn_multipath(flow, Side::Near, Some(MultipathInput::Path { path, change }), observer);
                }
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
            match &mut self.flows[flow] {
                Flow::Tcp(state) => state.near.stop(self.now),
                Flow::Multipath(_) => self.turn_multipath(flow, Side::Near, Some(MultipathInput::Stop), observer),
                Flow::Pair(_) => self.turn_pair(flow, Side::Near, Some(equipoise_pair::Input::Stop), observer),
                Flow::Session(_) | Flow::Stream => self.turn(flow, Side::Near, Some(Input::Stop), observer),
            }
        }
    }

    /// Sets the network's horizon: the end of the run, or before that the next request for a report, which asks for the
    /// links' loads.
    ///
    /// What the old one held back is taken on at once: nothing may be sent into a time of which arrivals are not known.
    fn set_horizon(&mut self, observer: &mut impl Observer) {
        let requests = self.flows.iter().filter_map(|flow| match flow {
            Flow::Session(state) => Some(state.near.next_request().assume_clock()),
            Flow::Tcp(state) => state.next_measurement(),
            Flow::Multipath(_) | Flow::Pair(_) | Flow::Stream => None,
        });
        self.network.horizon = requests.fold(self.end, Time::min);
        self.advance_to(self.network.known(), observer);
    }

    fn ring(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        if let Some(ends) = self.flows[flow].ends() {
            ends.wakes[side as usize] = None;
            self.agenda.set(ends.timers[side as usize], None);
        }
        match &self.flows[flow] {
            Flow::Multipath(_) => self.turn_multipath(flow, side, Some(MultipathInput::Timer), observer),
            Flow::Tcp(_) => self.turn_tcp(flow, side, Some(TcpInput::Timer)),
            Flow::Pair(_) => self.ring_pair(flow, side, observer),
            Flow::Session(_) | Flow::Stream => self.turn(flow, side, Some(Input::Timer), observer),
        }
    }

    fn set_timer(&mut self, flow: usize, side: Side, asked: Option<Time>) {
        let Some(ends) = self.flows[flow].ends() else { return };
        // Time does not run backwards, whatever an end asks for.
        let asked = asked.map(|at| at.max(self.now));
        if asked != std::mem::replace(&mut ends.wakes[side as usize], asked) {
            self.agenda.set(ends.timers[side as usize], asked);
        }
    }
}
