use equipoise::link::{FifoLink, LinkConfig, LinkError, LinkStats, Verdict};
use equipoise::session::rtp::{Background, Receiver, Sender};
use equipoise::session::{Endpoint, Event, Input, Output};
use equipoise::units::{Instant, Size};
use thiserror::Error;

use crate::EventQueue;
use crate::packets::{PacketId, Packets};

/// The one clock of a simulated world; all hosts read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimClock {}

/// A moment of simulated time; the world begins at zero.
pub type Time = Instant<SimClock>;

/// A link of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

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

/// The end of a flow that sends media.
pub enum NearEnd {
    /// A controlled session.
    Sender(Sender),
    /// Background traffic.
    Background(Background),
}

/// Two ends and the links between them.
pub struct Flow {
    /// Sends media.
    pub near: NearEnd,
    /// Receives it.
    pub far: Receiver,
    /// The links that media pass, in order; none for a way without delay.
    pub forward: Vec<LinkId>,
    /// The links that reports pass, in order.
    pub backward: Vec<LinkId>,
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
}

/// Sees what happens at the ends of the flows.
///
/// Any closure over time, flow, side and event is one.
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
#[derive(Default)]
pub struct World {
    now: Time,
    links: Vec<FifoLink<SimClock>>,
    /// Bytes offered to each link so far.
    offered: Vec<Size>,
    flows: Vec<FlowState>,
    events: EventQueue<Happening>,
    packets: Packets,
    scratch: Vec<u8>,
}

struct FlowState {
    flow: Flow,
    /// When each side is going to be woken by an event in the queue; other wake-ups there are stale.
    wakes: [Option<Time>; 2],
    /// When the path's load was last asked for, and each forward link's offered bytes then.
    load_since: Time,
    load_offered: Vec<Size>,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A side's timer.
    Timer { flow: u32, side: Side },
    /// A packet reaches a link of its way, or the end behind the last.
    Arrival(Arrival),
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    flow: u32,
    towards: Side,
    /// How many links lie behind it.
    hop: u32,
    packet: PacketId,
}

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
        self.links.push(FifoLink::new(config, Time::ZERO)?);
        self.offered.push(Size::ZERO);
        Ok(LinkId(self.links.len() - 1))
    }

    /// Adds a flow, whose ends are woken when they ask for it.
    ///
    /// # Errors
    /// [`FlowError`] where a path names a link that this world does not have.
    pub fn add_flow(&mut self, flow: Flow) -> Result<FlowId, FlowError> {
        let links = self.links.len();
        if let Some(&LinkId(link)) = flow.forward.iter().chain(&flow.backward).find(|link| link.0 >= links) {
            return Err(FlowError::UnknownLink { link, links });
        }
        let load_offered = flow.forward.iter().map(|link| self.offered[link.0]).collect();
        self.flows.push(FlowState { flow, wakes: [None; 2], load_since: self.now, load_offered });
        Ok(FlowId(self.flows.len() - 1))
    }

    /// The present.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len()).map(LinkId)
    }

    /// A link's counters up to now; `None` for a link of another world.
    pub fn link_stats(&self, link: LinkId) -> Option<LinkStats> {
        self.links.get(link.0).map(|link| link.stats(self.now))
    }

    /// Lets time pass up to and including `until`; may be called again with a later time.
    pub fn run(&mut self, until: Time, observer: &mut impl Observer) {
        for flow in 0..self.flows.len() {
            for side in [Side::Near, Side::Far] {
                self.turn(flow, side, None, observer);
            }
        }
        while self.events.next_at().is_some_and(|at| at <= until) {
            let Some((now, happening)) = self.events.pop() else { break };
            self.now = now;
            match happening {
                Happening::Timer { flow, side } => self.ring(flow as usize, side, observer),
                Happening::Arrival(arrival) => self.arrive(arrival, observer),
            }
        }
        self.now = self.now.max(until);
    }

    /// Tells every sending end to end its session now; what they still send is under way, so let some time pass after.
    pub fn stop(&mut self, observer: &mut impl Observer) {
        for flow in 0..self.flows.len() {
            self.turn(flow, Side::Near, Some(Input::Stop), observer);
        }
    }

    fn ring(&mut self, flow: usize, side: Side, observer: &mut impl Observer) {
        let wake = &mut self.flows[flow].wakes[side as usize];
        if *wake == Some(self.now) {
            *wake = None;
            self.turn(flow, side, Some(Input::Timer), observer);
        }
    }

    fn arrive(&mut self, arrival: Arrival, observer: &mut impl Observer) {
        let Arrival { flow, towards, hop, packet } = arrival;
        let flow = flow as usize;
        let state = &self.flows[flow];
        let path = if towards == Side::Far { &state.flow.forward } else { &state.flow.backward };
        let Some(&LinkId(link)) = path.get(hop as usize) else {
            let mut scratch = std::mem::take(&mut self.scratch);
            let datagram = self.packets.remove(packet, &mut scratch);
            self.turn(flow, towards, Some(Input::Datagram(datagram)), observer);
            self.scratch = scratch;
            return;
        };
        let size = self.packets.size(packet);
        self.offered[link] = self.offered[link] + size;
        match self.links[link].offer(self.now, size) {
            Verdict::ArrivesAt(at) => {
                self.events.push(at, Happening::Arrival(Arrival { hop: hop + 1, ..arrival }));
            }
            Verdict::Dropped => self.packets.discard(packet),
        }
    }

    /// One turn of an end: does all that it asks, and sets its timer.
    fn turn(&mut self, flow: usize, side: Side, input: Option<Input<'_>>, observer: &mut impl Observer) {
        let now = self.now;
        let mut input = input;
        loop {
            let Self { flows, packets, events, .. } = self;
            let ends = &mut flows[flow].flow;
            let mut requested = false;
            let take = |output: Output<'_>| match output {
                Output::Event(event) => {
                    requested |= matches!(event, Event::ReportRequested { .. });
                    observer.on_event(now, FlowId(flow), side, &event);
                }
                Output::Transmit(transmit) => {
                    let towards = if side == Side::Near { Side::Far } else { Side::Near };
                    let packet = packets.insert(&transmit);
                    events.push(now, Happening::Arrival(Arrival { flow: flow as u32, towards, hop: 0, packet }));
                }
            };
            let wake = match (side, &mut ends.near) {
                (Side::Far, _) => turn(&mut ends.far, now, input, take),
                (Side::Near, NearEnd::Sender(sender)) => turn(sender, now, input, take),
                (Side::Near, NearEnd::Background(background)) => turn(background, now, input, take),
            };
            let load = if requested { self.path_load(flow) } else { None };
            let Some(load) = load else { return self.set_timer(flow, side, wake) };
            input = Some(Input::PathLoad(load));
        }
    }

    fn set_timer(&mut self, flow: usize, side: Side, asked: Option<Time>) {
        // Time does not run backwards, whatever an end asks for.
        let asked = asked.map(|at| at.max(self.now));
        let wake = &mut self.flows[flow].wakes[side as usize];
        if asked != *wake {
            *wake = asked;
            if let Some(at) = asked {
                self.events.push(at, Happening::Timer { flow: flow as u32, side });
            }
        }
    }

    /// Offered load of the flow's fullest forward link since this was last asked (Waki 2013, Sec. 6.1.2).
    fn path_load(&mut self, flow: usize) -> Option<f64> {
        let state = &mut self.flows[flow];
        let since = std::mem::replace(&mut state.load_since, self.now);
        let mut largest: Option<f64> = None;
        for (link, seen) in state.flow.forward.iter().zip(&mut state.load_offered) {
            let offered = self.offered[link.0];
            let news = offered - std::mem::replace(seen, offered);
            let load = self.links[link.0].load(since, self.now, news);
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

#[cfg(test)]
mod tests {
    use equipoise::control::{Allowance, Controller, Feedback};
    use equipoise::measure::ClockMap;
    use equipoise::session::rtp::{ReceiverConfig, SenderConfig, StreamConfig};
    use equipoise::units::{Rate, SenderClock, Span};

    use super::*;

    /// Goes from one rate to the other at each report, so that the sender's timer is moved every time.
    struct Alternating(Rate, Rate);

    impl Controller for Alternating {
        fn on_feedback(&mut self, _: Instant<SenderClock>, _: &Feedback) {
            std::mem::swap(&mut self.0, &mut self.1);
        }
        fn allowance(&self) -> Allowance {
            Allowance { rate: self.0 }
        }
    }

    /// Timers that were moved are stale until their time; if each moment left some behind, memory would grow with it.
    #[test]
    fn stale_timers_do_not_pile_up() {
        let packet_size = Size::from_bytes(1000);
        let stream = StreamConfig { ssrc: 1, payload_type: 96, packet_size, cname: "s".into() };
        let report_interval = Span::from_millis(10);
        let config = SenderConfig { stream, report_interval, start: Instant::ZERO, seed: 1 };
        let controller = Alternating(Rate::from_bps(8_000_000), Rate::from_bps(1_000_000));
        let clocks = ClockMap::SYNCHRONISED;
        let far = ReceiverConfig { ssrc: 2, cname: "r".into(), sender_ssrc: 1, clocks, seed: 1 };
        let mut world = World::new();
        let flow = Flow {
            near: NearEnd::Sender(Sender::new(config, Box::new(controller)).expect("a valid configuration")),
            far: Receiver::new(far).expect("a valid configuration"),
            forward: Vec::new(),
            backward: Vec::new(),
        };
        world.add_flow(flow).expect("no links to be known");
        let mut longest = 0;
        let mut applied = 0;
        for millis in 1..=10_000u64 {
            world.run(Time::from_nanos(millis * 1_000_000), &mut |_: Time, _: FlowId, _: Side, event: &Event| {
                applied += u64::from(matches!(event, Event::ReportApplied { .. }));
            });
            // Nothing is under way between moments on paths without links: all that waits are timers.
            longest = longest.max(world.events.len());
        }
        assert!(applied > 900, "the rate was to change with each report: {applied}");
        assert!(longest <= 4, "{longest} timers for two ends: one live each, and what a moved one left until its time");
    }
}
