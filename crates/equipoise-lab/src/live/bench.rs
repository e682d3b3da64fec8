//! The threads of a live run: the network emulator and the two endpoints of each flow.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::Sender as Post;

use equipoise::control::PathLoad;
use equipoise::units::Span;
use equipoise_net::flow_pair::{PairEnds, RunningPair};
use equipoise_net::{
    Clock, Emulator, EmulatorConfig, EmulatorReport, Host, HostStats, NetError, Place, Protocol, Route, Running,
    RunningTcp, Socket, TcpEnds, TestBed, Watcher, WebEnds, run_endpoint,
};
use equipoise_session::Half;

use super::ground::{Ground, Note, Poster};
use super::outages::Outages;
use super::waits::RouteOf;
use super::{DRAIN, LiveError, pair, tcp};
use crate::coupling::Groups;
use crate::ends;
use crate::playout::SharedPlayout;
use crate::result::PairHost;
use crate::scenario::{Direction, DuplexPart, Flow, FlowKind, Scenario, TcpFlow};

/// The sockets of a flow, before the run starts.
enum Sockets {
    /// Sockets of both hosts, one pair for each path.
    Datagrams(Vec<(Socket, Socket)>),
    Stream(TcpEnds),
    /// Sockets of all the streams of web traffic.
    Web(Box<WebEnds>),
    /// Sockets of a stream and of datagrams.
    Pair(Box<PairEnds>),
}

impl Ground<'_> {
    /// Opens the sockets of flow number `index`.
    fn sockets(&self, scenario: &Scenario, index: usize) -> Result<Sockets, LiveError> {
        let flow = &scenario.flows[index];
        let bed = || self.bed.ok_or_else(|| LiveError::TcpOnLoopback { flow: flow.name.clone() });
        match &flow.kind {
            FlowKind::Tcp(tcp) if tcp.web.is_some() => {
                return Ok(Sockets::Web(Box::new(WebEnds::open(bed()?, tcp::hosts(flow, tcp, flow.packet_size))?)));
            }
            FlowKind::Tcp(tcp) => {
                return Ok(Sockets::Stream(TcpEnds::open(bed()?, &tcp::hosts(flow, tcp, flow.packet_size))?));
            }
            FlowKind::Pair(config) => {
                let bed = bed()?;
                return Ok(Sockets::Pair(Box::new(PairEnds::open(
                    bed,
                    self.clock,
                    pair::hosts(flow, config, index, self),
                )?)));
            }
            FlowKind::Session { .. } | FlowKind::Multipath(_) | FlowKind::Background { .. } => {}
        }
        if flow.part == Some(DuplexPart::Back) {
            return Ok(Sockets::Datagrams(Vec::new()));
        }
        let bind = |place, address| match self.bed {
            Some(bed) => bed.inside(place, || Socket::bind((address, 0).into(), self.clock)),
            None => Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), self.clock),
        };
        let pair = |_| Ok((bind(Place::Near, TestBed::NEAR)?, bind(Place::Far, TestBed::FAR)?));
        let pairs = ways(scenario, flow).iter().map(pair).collect::<Result<_, NetError>>()?;
        Ok(Sockets::Datagrams(pairs))
    }

    /// Starts the emulator, which sends the main thread a note about each packet that leaves the emulator. `owners` has
    /// one entry for each route.
    fn emulator(
        &self,
        scenario: &Scenario,
        (routes, owners): (Vec<Route>, Vec<RouteOf>),
        post: &Post<Note>,
    ) -> Result<Emulator, NetError> {
        // In the emulator's list, the backward directions of all links follow the forward directions.
        let forward = scenario.links.iter().map(|link| link.forward.clone());
        let links = forward.chain(scenario.links.iter().map(|link| link.back.clone())).collect();
        let (seed, sample_interval) = (self.seed, scenario.is_sampled().then_some(scenario.sample_interval));
        let post = post.clone();
        let watcher = Watcher::new(move |passed| {
            if let Some(owner) = owners.get(passed.route) {
                // The main thread outlives the emulator. If the channel is closed nevertheless, nobody needs the note.
                let _ = post.send(owner.note(passed));
            }
        });
        let watcher = Some(watcher);
        let config =
            EmulatorConfig { seed, sample_interval, watcher, ..EmulatorConfig::new(self.origin, links, routes) };
        match self.bed {
            Some(bed) => Emulator::start_in(bed, self.clock, config),
            None => Emulator::start(self.clock, config),
        }
    }
}

/// Returns the links of each path of a flow. If the flow has a playout buffer, these are the links before the buffer.
fn ways<'a>(scenario: &'a Scenario, flow: &'a Flow) -> Vec<&'a [usize]> {
    let paths: Vec<_> = scenario.paths_of(flow).map(|path| path.links.as_slice()).collect();
    if paths.is_empty() { vec![flow.network()] } else { paths }
}

impl Sockets {
    /// Returns one route for each path of the flow; for a flow pair, one route for each half.
    fn routes(&self, scenario: &Scenario, flow: &Flow) -> Vec<Route> {
        // `Route::sender` is always the near host. In a backward flow, the near host is the receiver of the data, so
        // the two addresses are swapped.
        let is_forward = flow.direction == Direction::Forward;
        let hosts =
            |sender: SocketAddr, receiver: SocketAddr| if is_forward { [sender, receiver] } else { [receiver, sender] };
        let ends: Vec<_> = match self {
            Self::Datagrams(pairs) => {
                pairs.iter().map(|(near, far)| (Protocol::Udp, [near.address(), far.address()])).collect()
            }
            Self::Stream(ends) => {
                vec![(Protocol::Tcp { packet: flow.packet_size }, hosts(ends.sender(), ends.receiver()))]
            }
            Self::Web(ends) => {
                vec![(Protocol::Tcp { packet: flow.packet_size }, hosts(ends.sender(), ends.receiver()))]
            }
            Self::Pair(ends) => {
                let packet = ends.packet();
                let half = |protocol| (protocol, hosts(ends.sender(), ends.receiver()));
                vec![half(Protocol::Tcp { packet }), half(Protocol::Udp)]
            }
        };
        let route = |(links, (protocol, [sender, receiver])): (&[usize], (Protocol, [SocketAddr; 2]))| {
            let [media, answers] = scenario.ways(flow, links);
            let (forward, backward) = if is_forward { (media, answers) } else { (answers, media) };
            Route { forward, backward, protocol, sender, receiver }
        };
        // Both halves of a flow pair use the same path.
        ways(scenario, flow).into_iter().cycle().zip(ends).map(route).collect()
    }
}

/// All running threads of a live run.
pub(super) struct Bench {
    near: Vec<Box<dyn End>>,
    far: Vec<Box<dyn End>>,
    streams: Vec<RunningTcp>,
    /// Each flow pair, with the number of its flow in the scenario.
    pairs: Vec<(usize, RunningPair)>,
    emulator: Emulator,
    /// For each link, the playout buffer that replaces the link, if any.
    playouts: Vec<Option<SharedPlayout>>,
    groups: Groups,
}

/// An endpoint of a session or of background traffic, running on its own thread.
trait End {
    fn is_finished(&self) -> bool;

    fn stop(self: Box<Self>) -> Result<HostStats, NetError>;
}

impl<E> End for Running<E, Poster> {
    fn is_finished(&self) -> bool {
        Self::is_finished(self)
    }

    fn stop(self: Box<Self>) -> Result<HostStats, NetError> {
        Ok(Self::stop(*self)?.stats)
    }
}

impl Bench {
    pub(super) fn start(scenario: &Scenario, ground: &Ground<'_>, post: &Post<Note>) -> Result<Self, LiveError> {
        let sockets: Vec<_> =
            (0..scenario.flows.len()).map(|index| ground.sockets(scenario, index)).collect::<Result<_, _>>()?;
        let routes: Vec<_> =
            scenario.flows.iter().zip(&sockets).map(|(flow, ends)| ends.routes(scenario, flow)).collect();
        // The routes of each flow directly follow the routes of the previous flow.
        let first = routes.iter().scan(0, |next, routes| Some(std::mem::replace(next, *next + routes.len())));
        let first: Vec<usize> = first.collect();
        let owner = |(index, flow)| (RouteOf::new(index, flow), routes.get(index).map_or(0, Vec::len));
        let owners = scenario.flows.iter().enumerate().map(owner);
        let owners = owners.flat_map(|(owner, count)| std::iter::repeat_n(owner, count)).collect();
        let emulator = ground.emulator(scenario, (routes.into_iter().flatten().collect(), owners), post)?;
        // The links of the scenario are valid, because the emulator has already been created from them.
        let playouts = SharedPlayout::of(scenario, ground.origin.assume_clock()).into_iter();
        let playouts = playouts.map(|playout| playout.ok().flatten()).collect();
        let (streams, pairs) = (Vec::new(), Vec::new());
        let (near, far, groups) = (Vec::new(), Vec::new(), Groups::default());
        let mut bench = Self { near, far, streams, pairs, emulator, playouts, groups };
        for (index, (flow, sockets)) in scenario.flows.iter().zip(sockets).enumerate() {
            match (sockets, &flow.kind) {
                (Sockets::Stream(ends), FlowKind::Tcp(tcp)) => {
                    let supply = tcp::supply(flow, tcp, (index, ground.seed))
                        .map_err(|source| LiveError::Ends { flow: flow.name.clone(), source })?;
                    let poster =
                        Poster { flow: index, half: Half::Sending, receives: None, post: post.clone(), load: None };
                    bench.streams.push(tcp::run(scenario, (flow, tcp, supply), ground, ends, poster)?);
                }
                (Sockets::Web(ends), FlowKind::Tcp(TcpFlow { web: Some(web), stop, .. })) => {
                    let poster =
                        Poster { flow: index, half: Half::Sending, receives: None, post: post.clone(), load: None };
                    bench.streams.push(tcp::run_web(scenario, (flow, *web, *stop), ground, *ends, poster)?);
                }
                // The hosts of the previous flow are already running. They also send the reverse media of the session,
                // so nothing is started here.
                (Sockets::Datagrams(_), _) if flow.part == Some(DuplexPart::Back) => {}
                (Sockets::Datagrams(pairs), _) => {
                    let hosts = bench.hosts(first[index], pairs);
                    bench.add(scenario, ground, hosts, (index, post))?;
                }
                (Sockets::Pair(ends), FlowKind::Pair(pair)) => {
                    bench.pairs.push((index, pair::run((flow, pair), index, ground, *ends, post)?));
                }
                // `Stream` and `Web` are opened only for TCP flows, and `Pair` only for flow pairs, so this arm is
                // never reached.
                (Sockets::Stream(_) | Sockets::Web(_) | Sockets::Pair(_), _) => {}
            }
        }
        Ok(bench)
    }

    /// Returns the sockets of both hosts, each with the address to which it sends. `first` is the number of the flow's
    /// first route.
    fn hosts(&self, first: usize, pairs: Vec<(Socket, Socket)>) -> Hosts {
        // The emulator was started with a route for every pair of sockets, so no address is missing.
        let host = |(route, (near, far)): (usize, (Socket, Socket))| {
            Some(((near, self.emulator.entrance(route)?), (far, self.emulator.exit(route)?)))
        };
        let (near, far) = pairs.into_iter().enumerate().filter_map(|(at, pair)| host((first + at, pair))).unzip();
        Hosts { first, near, far }
    }

    /// Starts both endpoints of a session or of background traffic.
    fn add(
        &mut self,
        scenario: &Scenario,
        ground: &Ground<'_>,
        hosts: Hosts,
        (index, post): (usize, &Post<Note>),
    ) -> Result<(), LiveError> {
        let flow = &scenario.flows[index];
        let failed = |source| LiveError::Ends { flow: flow.name.clone(), source };
        let poster = |half, load| Poster { flow: index, half, receives: None, post: post.clone(), load };
        let [near_name, far_name] = [format!("near-{index}"), format!("far-{index}")];
        let (origin, seed) = (ground.origin.assume_clock(), ground.seed);
        let probe = self.emulator.load_probe(hosts.first, flow.direction == Direction::Back);
        let (near, far) = match flow.direction {
            Direction::Forward => (hosts.near, hosts.far),
            Direction::Back => (hosts.far, hosts.near),
        };
        let near_host = Host { name: near_name, paths: near };
        let far_host = Host { name: far_name, paths: far };
        if let FlowKind::Multipath(config) = &flow.kind {
            let (near, far) = ends::multipath(flow, config, (index, seed), origin).map_err(failed)?;
            let near = Outages::new(near, scenario.paths_of(flow), origin);
            self.far.push(Box::new(run_endpoint(far, far_host, poster(Half::Receiving, None))?));
            self.near.push(Box::new(run_endpoint(near, near_host, poster(Half::Sending, None))?));
            return Ok(());
        }
        if flow.part.is_some() {
            let loads = [PathLoad::default(), PathLoad::default()];
            // The endpoints of the forward media also send and receive the reverse media. The next flow of the scenario
            // is always the reverse flow, so `both_ways` finds both flows.
            let Some(ways) = ends::both_ways(scenario, index, &loads) else { return Ok(()) };
            let (near, far) = ends::duplex(ways, seed, origin).map_err(failed)?;
            let half = Half::Sending;
            let poster =
                |flow, receives, load| Poster { flow, half, receives: Some(receives), post: post.clone(), load };
            let [there, _] = loads;
            let told = probe.filter(|_| there.is_shared()).map(|probe| (probe, there));
            self.far.push(Box::new(run_endpoint(far, far_host, poster(index + 1, index, None))?));
            self.near.push(Box::new(run_endpoint(near, near_host, poster(index, index + 1, told))?));
            return Ok(());
        }
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                let playout = flow.playout().and_then(|link| self.playouts.get(link)?.clone());
                let load = PathLoad::default();
                let how = (controller, *report_interval, &load);
                let shared = (playout, &mut self.groups);
                let (near, far) = ends::session(flow, how, (index, seed), shared, origin).map_err(failed)?;
                self.far.push(Box::new(run_endpoint(far, far_host, poster(Half::Receiving, None))?));
                let told = probe.filter(|_| load.is_shared()).map(|probe| (probe, load));
                self.near.push(Box::new(run_endpoint(near, near_host, poster(Half::Sending, told))?));
            }
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, origin).map_err(failed)?;
                let (near, far) = ends::background(flow, source, index, seed).map_err(failed)?;
                self.far.push(Box::new(run_endpoint(far, far_host, poster(Half::Receiving, None))?));
                self.near.push(Box::new(run_endpoint(near, near_host, poster(Half::Sending, None))?));
            }
            FlowKind::Tcp(_) | FlowKind::Multipath(_) | FlowKind::Pair(_) => {}
        }
        Ok(())
    }

    /// Whether a thread ended before it was stopped: the emulator, a TCP connection, a flow pair, or the sender of a
    /// session or of background traffic.
    pub(super) fn has_failed(&self) -> bool {
        !self.emulator.is_running()
            || self.near.iter().any(|end| end.is_finished())
            || self.streams.iter().any(RunningTcp::is_finished)
            || self.pairs.iter().any(|(_, pair)| pair.is_finished())
    }

    /// For each link, the playout buffer that replaces the link, if any.
    pub(super) fn playouts(&self) -> &[Option<SharedPlayout>] {
        &self.playouts
    }

    /// Ends all flows, waits for the last packets to arrive, and stops the emulator.
    pub(super) fn stop(self, clock: &Clock) -> Result<Stopped, LiveError> {
        self.pairs.iter().for_each(|(_, pair)| pair.stop_sending());
        for end in self.near {
            end.stop()?;
        }
        for stream in self.streams {
            stream.stop()?;
        }
        // A sender's BYE packet follows its last media packet and ends the receiver. If the BYE packet is lost, the
        // receiver is stopped after `DRAIN`.
        let give_up = clock.now() + DRAIN;
        let mut pair_hosts = Vec::new();
        for (index, pair) in self.pairs {
            pair_hosts.extend(pair.stop(give_up)?.map(|state| (index, pair::host(&state))));
        }
        while clock.now() < give_up && !self.far.iter().all(|end| end.is_finished()) {
            clock.sleep_until(clock.now() + Span::from_millis(5));
        }
        let mut clock_name = None;
        for receiver in self.far {
            let stats = receiver.stop()?;
            clock_name = clock_name.or(Some(stats.timestamps.name().to_owned()));
        }
        let emulator = self.emulator.stop()?;
        // TCP connections and flow pairs report no clock. If there are no other flows, the clock is the emulator's.
        let clock = clock_name.unwrap_or_else(|| emulator.timestamps.name().to_owned());
        Ok(Stopped { clock, emulator, pair_hosts })
    }
}

/// Results that become available only after all threads have stopped.
pub(super) struct Stopped {
    /// Name of the source of arrival timestamps.
    pub(super) clock: String,
    pub(super) emulator: EmulatorReport,
    /// Window settings of each flow pair's hosts, with the number of the pair's flow.
    pub(super) pair_hosts: Vec<(usize, PairHost)>,
}

/// The sockets of both hosts of a flow, each with the address to which it sends.
struct Hosts {
    /// Number of the flow's first route.
    first: usize,
    near: Vec<(Socket, SocketAddr)>,
    far: Vec<(Socket, SocketAddr)>,
}
