mod flow;
mod noise;
mod oracle;

use equipoise::units::Span;
use equipoise_path::link::{LinkStats, PipeConfig, PipeError, link_seed};
use equipoise_path::source::Source;
use equipoise_session::{Event, Input, PathChange, PathId};
use thiserror::Error;

use self::flow::FlowState;
pub use self::flow::{FarEnd, Flow, NearEnd, PathLinks, turn};
pub use self::noise::WhiteNoise;
pub use self::oracle::BandwidthOracle;
use self::oracle::Oracle;

use crate::event_queue::EventQueue;
use crate::network::{LinkId, Network, Outside};
use crate::observer::{FlowId, Observer, Side, SimClock, Time};
use crate::packets::{PacketId, Packets};

/// A stream without feedback, such as background traffic. Its packets have no content.
///
/// A stream has the same events as the media of a session. To save computing time, no datagrams are created or parsed
/// for its packets.
pub struct Stream {
    /// The source, which determines the times and the size of the packets.
    pub source: Source<SimClock>,
    /// The links that the packets pass, in order; at least one.
    pub forward: Vec<LinkId>,
}

/// Why a flow cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FlowError {
    /// A path has a link of another world.
    #[error("link {link} is not one of this world's {links} links")]
    UnknownLink {
        /// The number of the unknown link.
        link: usize,
        /// The number of links.
        links: usize,
    },
    /// A stream or a path has no link.
    #[error("a stream must pass at least one link, and a path at least one in either direction")]
    NoLink,
    /// No flow of this world has this number, or the flow is a stream or the second flow of a duplex session. These
    /// flows have no endpoints of their own.
    #[error("flow {flow} is not one of this world's flows with two ends")]
    UnknownFlow {
        /// The number of the flow.
        flow: usize,
    },
    /// The interval between measurements is not above zero, so simulated time would not advance.
    #[error("bandwidth measured every {interval}; the time between two measurements must be above zero")]
    MeasuringInterval {
        /// The configured interval.
        interval: Span,
    },
    /// A flow was added after the start of the simulation. This is an error, because some links may already be computed
    /// ahead of the current time.
    #[error("the simulation has started; flows must be added before, with a later start if that is intended")]
    Running,
    /// Links of the flows' paths form a cycle without delay. In such a cycle, the order of packets is undefined.
    #[error("link {link} is part of a ring of links without propagation delay; give one of them a delay")]
    Ring {
        /// The number of a link in the cycle.
        link: usize,
    },
}

/// A simulation: hosts, network links, and future events.
///
/// Events drive only the sessions. The network between the endpoints is computed in steps. A packet of a session takes
/// at least a minimum time from one endpoint to the other, so one step can cover this minimum time (a conservative
/// window, Nicol 1993).
#[derive(Default)]
pub struct World {
    seed: u64,
    now: Time,
    /// One nanosecond after the time `until` of the current call of `run`.
    end: Time,
    running: bool,
    /// If the network knows all packets that sessions send before a time t, it can compute all arrivals at sessions
    /// before the time t + `look_ahead`. `None` if there are no sessions.
    look_ahead: Option<Span>,
    network: Network,
    /// The state of each flow. `None` for a [`Stream`], which has no feedback, and for the second flow of a duplex
    /// session, which directly follows the first.
    flows: Vec<Option<FlowState>>,
    oracles: Vec<Oracle>,
    events: EventQueue,
    /// For each event number, the meaning of the event.
    kinds: Vec<EventKind>,
    packets: Packets,
    scratch: Vec<u8>,
    outgoing: Vec<(PathId, PacketId)>,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug)]
enum EventKind {
    /// A packet arrives at the end of a route.
    Arrival { route: usize, flow: usize, side: Side, path: usize },
    /// The timer of one endpoint of a flow expires.
    Timer { flow: usize, side: Side },
    /// An oracle measures the bandwidth of a path.
    Measurement { oracle: usize },
    /// The near host is told that the state of a path changes.
    PathChange { flow: usize, path: PathId, change: PathChange },
}

/// How far ahead the network is computed in one step if no session limits this. Our choice: the packets of one step
/// should fit into a processor cache.
const WINDOW: Span = Span::from_millis(200);
pub(crate) const TICK: Span = Span::from_nanos(1);

impl World {
    /// A simulation without links and flows, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// A simulation that has no links and flows yet. `seed` determines the random numbers of the links.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Adds a link for one direction. Its schedules and traces start at time zero.
    ///
    /// # Errors
    /// [`PipeError`] if the configuration is invalid.
    pub fn add_link(&mut self, config: impl Into<PipeConfig>) -> Result<LinkId, PipeError> {
        let seed = link_seed(self.seed, self.network.len());
        self.network.add_link(config.into(), seed)
    }

    /// Adds a stream.
    ///
    /// # Errors
    /// [`FlowError`] as for [`World::add_flow`], and [`FlowError::NoLink`] if the stream has no links.
    pub fn add_stream(&mut self, stream: Stream) -> Result<FlowId, FlowError> {
        self.check(&stream.forward)?;
        if stream.forward.is_empty() {
            return Err(FlowError::NoLink);
        }
        let flow = FlowId(self.flows.len());
        self.network.add_stream(stream.source, &stream.forward, flow);
        self.flows.push(None);
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
        self.network.arrange().map_err(|LinkId(link)| FlowError::Ring { link })?;
        self.look_ahead = self.network.look_ahead();
        Ok(())
    }

    /// Adds an event without a time, and returns its number.
    fn add_event(&mut self, kind: EventKind) -> usize {
        self.kinds.push(kind);
        self.events.reserve(self.kinds.len());
        self.kinds.len() - 1
    }

    /// The current time of the simulation.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.network.len()).map(LinkId)
    }

    /// The counters of a link from time zero until now; `None` for a link of another world.
    pub fn link_stats(&self, link: LinkId) -> Option<LinkStats> {
        self.network.stats(link, self.now)
    }

    /// Runs the simulation up to and including `until`. May be called again with a later time.
    pub fn run(&mut self, until: Time, observer: &mut impl Observer) {
        (self.running, self.end) = (true, until + TICK);
        self.set_horizon(observer);
        for flow in 0..self.flows.len() {
            self.turn(flow, Side::Near, None, observer);
            self.turn(flow, Side::Far, None, observer);
        }
        loop {
            let (at, event) = self.events.next().filter(|(at, _)| *at <= until).unzip();
            let next = at.unwrap_or(self.end);
            let ahead = self.look_ahead.unwrap_or(Span::ZERO);
            if next > self.network.known() + ahead || (at.is_none() && self.network.known() < self.end) {
                self.advance(next, observer);
                continue;
            }
            let Some(event) = event else { break };
            self.now = next;
            match self.kinds[event] {
                EventKind::Arrival { route, flow, side, path } => {
                    if let Some(packet) = self.network.take(route, &mut self.events) {
                        self.deliver(&packet, flow, side, path, observer);
                    }
                }
                EventKind::Timer { flow, side } => self.wake(flow, side, observer),
                EventKind::Measurement { oracle } => self.measure(oracle, observer),
                EventKind::PathChange { flow, path, change } => {
                    self.events.set(event, None);
                    self.turn(flow, Side::Near, Some(Input::Path { path, change }), observer);
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// Advances the network by one step. `next` is the time of the next event, or the end of the run. Before `next`, a
    /// session acts only if it receives a packet that is still in the network.
    fn advance(&mut self, next: Time, observer: &mut impl Observer) {
        let window = self.network.known() + self.look_ahead.unwrap_or(WINDOW).min(WINDOW);
        // Before `next`, a session sends only after it has received a packet. Therefore no session sends before the
        // next packet in the network is processed.
        let to = self.network.next_known().unwrap_or(next).max(window).min(next);
        self.advance_to(to, observer);
    }

    fn advance_to(&mut self, to: Time, observer: &mut impl Observer) {
        let Self { network, events, packets, .. } = self;
        network.advance(to, &mut Outside { events, packets, observer });
    }

    /// Stops all streams, the sending endpoint of each session, and both endpoints of a duplex session. Their last
    /// packets are then in flight, so the caller should run the simulation for some more time.
    pub fn stop(&mut self, observer: &mut impl Observer) {
        for flow in self.network.stop_streams() {
            observer.on_event(self.now, flow, Side::Near, &Event::Ended { by_peer: false });
        }
        for flow in 0..self.flows.len() {
            let sends_back = self.flows[flow].as_ref().is_some_and(|state| state.back.is_some());
            self.turn(flow, Side::Near, Some(Input::Stop), observer);
            if sends_back {
                self.turn(flow, Side::Far, Some(Input::Stop), observer);
            }
        }
    }
}
