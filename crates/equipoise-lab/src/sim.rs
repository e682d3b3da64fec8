//! A scenario in the simulated world.

mod sample;

use std::borrow::Borrow;
use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use equipoise::control::PathLoad;
use equipoise::units::{Instant, Size, Span};
use equipoise_path::link::PipeConfig;
use equipoise_path::source::WebConfig;
use equipoise_session::{Event, PathId};
use equipoise_sim::{
    Arrival, Datagram, FlowError, FlowId, LinkId, Observer, Packet, PathLinks, Side, Stream, Time, World,
};
use rayon::prelude::*;
use thiserror::Error;

use crate::Progress;
use crate::coupling::Groups;
use crate::ends::{self, EndsError};
use crate::playout::SharedPlayout;
use crate::record::{LinkRecord, Received, Recorder};
use crate::result::{self, Run};
use crate::scenario::{Choice, DuplexPart, Flow, FlowKind, MultipathFlow, OverBudget, Scenario, TcpFlow};

/// Why a scenario cannot be simulated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// There is too much to simulate.
    #[error("too much for a simulated run")]
    OverBudget(#[from] OverBudget),
    /// A flow's ends cannot be made.
    #[error("flow {flow}")]
    Ends {
        /// The flow's name.
        flow: String,
        /// Why.
        source: EndsError,
    },
    /// A link cannot be made.
    #[error("link {link}")]
    Link {
        /// The link's name.
        link: String,
        /// Why.
        source: equipoise_path::link::PipeError,
    },
    /// The world refused a flow.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The run was stopped from outside, by [`Stop`].
    #[error("the run was stopped before its end")]
    Stopped,
    /// The threads for many runs could not be started.
    #[error("the threads could not be started")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// Parts of a run after which progress is told.
const PARTS: i64 = 200;
/// How long packets that are under way at the end are waited for.
const DRAIN: Span = Span::from_secs(300);

/// On how many threads runs are made; the results do not depend on it. A number is a number of threads.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// How many; `None` for all cores.
    pub number: Option<usize>,
    /// What ends the runs early.
    pub stop: Stop,
}

impl From<Option<usize>> for Threads {
    fn from(number: Option<usize>) -> Self {
        Self { number, stop: Stop::default() }
    }
}

/// Ends runs from outside: all that have the same one, and soon, with [`SimError::Stopped`].
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends them.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), SimError> {
        if self.is_stopped() { Err(SimError::Stopped) } else { Ok(()) }
    }
}

/// One run with `seed`, whose events are told in the order of their times.
///
/// # Errors
/// [`SimError::OverBudget`], and any other if the scenario was not made by [`Scenario::parse`] and cannot be run.
pub fn simulate(scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Progress)) -> Result<Run, SimError> {
    simulate_captured(scenario, seed, progress, &mut |_, _| {})
}

/// The same, where each datagram is told as it leaves an end or comes to one, at a time after the run's start and in their order.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_captured(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
    datagrams: &mut dyn FnMut(Span, &Datagram<'_>),
) -> Result<Run, SimError> {
    Ok(run(scenario, seed, InOrder { early: Vec::new(), progress, datagrams }, &Stop::default())?.0)
}

/// One run with `seed`, of which nobody is told while it goes on.
///
/// # Errors
/// As [`simulate`].
#[cfg(feature = "sweep")]
pub(crate) fn simulate_silently(scenario: &Scenario, seed: u64) -> Result<Run, SimError> {
    Ok(run(scenario, seed, Silence, &Stop::default())?.0)
}

/// Whether the scenario can be simulated.
///
/// # Errors
/// As [`simulate`].
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    Stage::new(scenario, scenario.seed).map(|_| ())
}

/// A run, and who was told of it.
fn run<T: Tell>(scenario: &Scenario, seed: u64, tell: T, stop: &Stop) -> Result<(Run, T), SimError> {
    let Stage { mut world, links, flows, playouts, .. } = Stage::new(scenario, seed)?;
    let end = Time::ZERO + scenario.duration;
    let mut watch = Watch { recorder: Recorder::new(scenario, Instant::ZERO), tell };
    let watched = scenario.watched_links();
    let mut link_records: Vec<_> = watched.iter().map(|_| LinkRecord::default()).collect();
    let sampled = scenario.is_sampled();
    let every = if sampled { scenario.sample_interval } else { part_of(scenario.duration) };
    let link_stats = |world: &World| -> Vec<_> {
        let stats = |&(_, place): &(String, usize)| match playouts.get(place) {
            Some(Some(playout)) => Some(playout.stats(world.now().assume_clock())),
            Some(None) | None => world.link_stats(*links.get(place)?),
        };
        watched.iter().map(stats).collect()
    };
    let mut received = vec![Size::ZERO; flows.len()];
    let mut until = Span::ZERO;
    while until < scenario.duration {
        stop.check()?;
        until = (until + every).min(scenario.duration);
        world.run(Time::ZERO + until, &mut watch);
        if sampled {
            sample::connections(&world, &flows, until, &mut watch.recorder);
            sample::web(&mut world, &flows, until, &mut watch.recorder);
            sample::received(&world, until, flows.iter().zip(&mut received), &mut watch.recorder);
            for (record, stats) in link_records.iter_mut().zip(link_stats(&world)) {
                if let Some(stats) = stats {
                    record.push(until, stats);
                }
            }
        }
        watch.tell.come_to(until, until.as_secs_f64() / scenario.duration.as_secs_f64());
    }
    let stats = link_stats(&world);
    stop.check()?;
    world.stop(&mut watch);
    world.run(end + DRAIN, &mut watch);
    watch.tell.come_to(Span::MAX, 1.0);
    let found = watched.iter().zip(stats);
    let run = Run {
        world: result::World::Sim,
        seed,
        lasted_s: scenario.duration.as_secs_f64(),
        complete: true,
        clock: "simulated time".to_owned(),
        stalls: Vec::new(),
        emulator: None,
        media: watch.recorder.media(scenario.duration),
        flows: watch.recorder.finish(scenario.duration, &[]),
        links: found
            .zip(link_records)
            .filter_map(|(((name, _), stats), record)| {
                let result = result::LinkResult::new(name, &stats?);
                Some(result::LinkResult { samples: record.finish(), ..result })
            })
            .collect(),
    };
    Ok((run, watch.tell))
}

/// So much of a run that progress is told often enough.
fn part_of(duration: Span) -> Span {
    Span::from_nanos(duration.as_nanos() / PARTS).max(Span::from_nanos(1))
}

/// Records what happens in the world and tells it.
struct Watch<T> {
    recorder: Recorder,
    tell: T,
}

impl<T: Tell> Observer for Watch<T> {
    #[expect(clippy::inline_always, reason = "as a flow's record, to which it goes on")]
    #[inline(always)]
    fn on_event(&mut self, now: Time, flow: FlowId, _: Side, event: &Event) {
        let (at, flow) = (now - Time::ZERO, flow.index());
        self.recorder.on_event(at, flow, event);
        self.tell.event(at, flow, None, event);
    }

    fn on_path_event(&mut self, now: Time, flow: FlowId, _: Side, path: PathId, event: &Event) {
        let (at, flow) = (now - Time::ZERO, flow.index());
        self.recorder.on_path_event(at, flow, path, event);
        self.tell.event(at, flow, Some(path), event);
    }

    fn on_arrival(&mut self, now: Time, flow: FlowId, side: Side, Arrival { size, waited }: Arrival) {
        match side {
            Side::Far => {
                let (at, flow) = (now - Time::ZERO, flow.index());
                self.recorder.on_waited(flow, once((at, waited)));
                self.tell.waited(at, flow, waited);
            }
            Side::Near => self.recorder.on_returned(flow.index(), size),
        }
    }

    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>) {
        self.tell.datagram(now - Time::ZERO, datagram);
    }

    fn on_departures(&mut self, flow: FlowId, packets: &[Packet]) {
        let flow = flow.index();
        self.recorder.on_departures(flow, packets.iter().map(|packet| (packet.sent - Time::ZERO, packet.size)));
        for packet in packets {
            self.tell.event(packet.sent - Time::ZERO, flow, None, &packet.departure());
        }
    }

    fn on_arrivals(&mut self, flow: FlowId, packets: &[Packet]) {
        let flow = flow.index();
        self.recorder.on_waited(flow, packets.iter().map(|packet| (packet.at - Time::ZERO, packet.waited)));
        self.recorder.on_arrivals(flow, packets.iter().map(received));
        for packet in packets {
            let at = packet.at - Time::ZERO;
            self.tell.waited(at, flow, packet.waited);
            self.tell.event(at, flow, None, &packet.reception());
        }
    }
}

/// A packet at its end, as the recorder takes it.
fn received(&Packet { at, sent, size, ecn, .. }: &Packet) -> Received {
    Received { at: at - Time::ZERO, sent: sent - Time::ZERO, delay: at - sent, size, ecn }
}

/// Who is told of a run while it goes on.
trait Tell {
    fn event(&mut self, at: Span, flow: usize, path: Option<PathId>, event: &Event);
    /// A packet came to the far end, for which it had waited in queues for so long; its event follows.
    fn waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
    /// A datagram left one end or came to one.
    fn datagram(&mut self, _at: Span, _datagram: &Datagram<'_>) {}
    /// All events up to `until` have been told; this share of the run is done.
    fn come_to(&mut self, until: Span, share: f64);
}

/// Nobody.
struct Silence;

impl Tell for Silence {
    fn event(&mut self, _: Span, _: usize, _: Option<PathId>, _: &Event) {}
    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Somebody who only wants to know how much is done.
struct Shares<'a>(&'a (dyn Fn(f64) + Sync));

impl Tell for Shares<'_> {
    fn event(&mut self, _: Span, _: usize, _: Option<PathId>, _: &Event) {}

    fn come_to(&mut self, _: Span, share: f64) {
        (self.0)(share);
    }
}

/// Sees the events of a run.
pub trait RunObserver {
    /// One end of flow number `flow` did or saw something at `at` after the run's start; after the end of the run, what was
    /// still under way arrives. The events of one end come in the order of their times.
    fn on_event(&mut self, at: Span, flow: usize, event: &Event);

    /// A packet of flow number `flow` came to its receiver, for which it had waited in queues for so long. If it was media, its event
    /// follows.
    fn on_waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
}

/// An observer of a run's events.
struct Observed<O>(O);

impl<O: RunObserver> Tell for Observed<O> {
    fn event(&mut self, at: Span, flow: usize, _: Option<PathId>, event: &Event) {
        self.0.on_event(at, flow, event);
    }

    fn waited(&mut self, at: Span, flow: usize, waited: Span) {
        self.0.on_waited(at, flow, waited);
    }

    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Somebody who wants the events in order, though the world may tell a stream's ahead of time.
struct InOrder<'a> {
    early: Vec<(Span, usize, Option<PathId>, Event)>,
    progress: &'a mut dyn FnMut(Progress),
    datagrams: &'a mut dyn FnMut(Span, &Datagram<'_>),
}

impl Tell for InOrder<'_> {
    fn event(&mut self, at: Span, flow: usize, path: Option<PathId>, event: &Event) {
        self.early.push((at, flow, path, *event));
    }

    fn datagram(&mut self, at: Span, datagram: &Datagram<'_>) {
        (self.datagrams)(at, datagram);
    }

    fn come_to(&mut self, until: Span, share: f64) {
        self.early.sort_by_key(|(at, ..)| *at);
        let due = self.early.partition_point(|(at, ..)| *at <= until);
        for (at, flow, path, event) in self.early.drain(..due) {
            (self.progress)(Progress::Event { at, origin: Instant::ZERO, flow, path, event });
        }
        (self.progress)(Progress::Share(share));
    }
}

/// `runs` runs with the seeds from `first_seed` on, on so many threads or all cores; of each what `keep` makes of it, in
/// the order of their seeds and the same whatever the number of threads. `progress` is told the share of the runs that
/// are done.
///
/// # Errors
/// As [`simulate`], and [`SimError::Threads`].
pub fn simulate_many<T: Send>(
    scenario: &Scenario,
    (first_seed, runs): (u64, u32),
    threads: impl Into<Threads>,
    keep: impl Fn(Run) -> T + Sync,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<T>, SimError> {
    let threads = threads.into();
    if runs == 1 {
        return Ok(vec![keep(run(scenario, first_seed, Shares(progress), &threads.stop)?.0)]);
    }
    let done = AtomicU32::new(0);
    let counted = |run| {
        let kept = keep(run);
        progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / f64::from(runs));
        kept
    };
    let seeded = (0..runs).map(|number| (scenario, first_seed.wrapping_add(u64::from(number))));
    simulate_each(&seeded.collect::<Vec<_>>(), threads, counted)
}

/// One run of each scenario with the seed beside it; else as [`simulate_many`].
///
/// # Errors
/// As [`simulate_many`].
pub fn simulate_each<T: Send>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    threads: impl Into<Threads>,
    keep: impl Fn(Run) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let threads = threads.into();
    let one = |_, scenario: &Scenario, seed| Ok(keep(run(scenario, seed, Silence, &threads.stop)?.0));
    each(scenarios, &threads, one)
}

/// One run of each scenario with the seed beside it, each with an observer of its own, which `keep` is given with the run;
/// else as [`simulate_many`].
///
/// # Errors
/// As [`simulate_many`].
pub fn simulate_each_observed<T: Send, O: RunObserver>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    threads: impl Into<Threads>,
    observer: impl Fn() -> O + Sync,
    keep: impl Fn(Run, O) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    observe_each(scenarios, &threads.into(), observer, |_, run, observer| keep(run, observer))
}

/// The same, where `keep` is also given the place of the run's scenario among all of them.
pub(crate) fn observe_each<T: Send, O: RunObserver>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    threads: &Threads,
    observer: impl Fn() -> O + Sync,
    keep: impl Fn(usize, Run, O) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let one = |place, scenario: &Scenario, seed| {
        let (run, Observed(observer)) = run(scenario, seed, Observed(observer()), &threads.stop)?;
        Ok(keep(place, run, observer))
    };
    each(scenarios, threads, one)
}

/// One run with `seed`, whose events an observer sees; some are told ahead of those of other flows.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed<O: RunObserver>(scenario: &Scenario, seed: u64, observer: O) -> Result<(Run, O), SimError> {
    let (run, Observed(observer)) = run(scenario, seed, Observed(observer), &Stop::default())?;
    Ok((run, observer))
}

fn each<T: Send>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    threads: &Threads,
    one: impl Fn(usize, &Scenario, u64) -> Result<T, SimError> + Sync,
) -> Result<Vec<T>, SimError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.number.unwrap_or(0)).build()?;
    let of_place = |(place, (scenario, seed)): (usize, &(_, u64))| one(place, Borrow::borrow(scenario), *seed);
    pool.install(|| scenarios.par_iter().enumerate().map(of_place).collect())
}

/// The scenario's world, the directions of its links, its flows, and for each link the playout buffer in its place.
struct Stage {
    world: World,
    /// All forward ones first.
    links: Vec<LinkId>,
    flows: Vec<FlowId>,
    playouts: Vec<Option<SharedPlayout>>,
    groups: Groups,
}

/// The links that a flow's packets pass there and back.
struct Ways {
    forward: Vec<LinkId>,
    backward: Vec<LinkId>,
}

/// Adds both directions of a scenario's links to a world: all forward ones first.
fn add_links(world: &mut World, scenario: &Scenario) -> Result<Vec<LinkId>, SimError> {
    let mut add = |(link, config): (&crate::scenario::Link, &PipeConfig)| {
        let added = world.add_link(config.clone());
        added.map_err(|source| SimError::Link { link: link.name.clone(), source })
    };
    let forward = scenario.links.iter().map(|link| (link, &link.forward));
    forward.chain(scenario.links.iter().map(|link| (link, &link.back))).map(&mut add).collect()
}

impl Stage {
    fn new(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        scenario.check_budget()?;
        let mut world = World::seeded(seed);
        let links = add_links(&mut world, scenario)?;
        let playouts = SharedPlayout::of(scenario, Instant::ZERO).into_iter().zip(&scenario.links);
        let playouts = playouts
            .map(|(playout, link)| {
                playout.map_err(|source| SimError::Link { link: link.name.clone(), source: source.into() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut stage = Self { world, links, flows: Vec::new(), playouts, groups: Groups::default() };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let place = Place { scenario, flow, index, seed };
            let added = match flow.part {
                None => stage.add(&place).map(|id| stage.flows.push(id)),
                Some(DuplexPart::There) => stage.add_duplex(&place).map(|ids| stage.flows.extend(ids)),
                // It was added with the media there.
                Some(DuplexPart::Back) => Ok(()),
            };
            added.map_err(|error| match error {
                Refused::Ends(source) => SimError::Ends { flow: flow.name.clone(), source },
                Refused::Flow(error) => SimError::Flow(error),
            })?;
        }
        Ok(stage)
    }

    fn add(&mut self, place: &Place<'_>) -> Result<FlowId, Refused> {
        let Place { flow, index, seed, .. } = *place;
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                self.add_session(place, controller, *report_interval)
            }
            FlowKind::Multipath(multipath) => self.add_multipath(place, multipath),
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, Time::ZERO)?;
                Ok(self.world.add_stream(Stream { source, forward: self.ways(place).forward })?)
            }
            FlowKind::Tcp(tcp) => match tcp.web {
                Some(web) => self.add_web(place, tcp, web),
                None => self.add_tcp(place, tcp),
            },
            FlowKind::Pair(pair) => {
                let (near, far) = ends::pair(flow, pair, index, seed)?;
                let Ways { forward, backward } = self.ways(place);
                Ok(self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?)
            }
        }
    }

    /// The links that a flow's packets pass if it has one path.
    fn ways(&self, place: &Place<'_>) -> Ways {
        self.ways_over(place, place.flow.network())
    }

    fn ways_over(&self, Place { scenario, flow, .. }: &Place<'_>, path: &[usize]) -> Ways {
        let links = |way: Vec<usize>| way.into_iter().filter_map(|place| self.links.get(place)).copied().collect();
        let [there, back] = scenario.ways(flow, path);
        Ways { forward: links(there), backward: links(back) }
    }

    fn add_session(
        &mut self,
        place: &Place<'_>,
        controller: &Choice,
        report_interval: Span,
    ) -> Result<FlowId, Refused> {
        let playout = place.flow.playout().and_then(|link| self.playouts.get(link)?.clone());
        let load = PathLoad::default();
        let how = (controller, report_interval, &load);
        let shared = (playout, &mut self.groups);
        let (near, far) = ends::session(place.flow, how, (place.index, place.seed), shared, Instant::ZERO)?;
        let Ways { forward, backward } = self.ways(place);
        let id = self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?;
        if load.is_shared() {
            self.world.share_load(id, load)?;
        }
        Ok(id)
    }

    /// Adds a session with media both ways, the second direction of which is the flow behind it.
    fn add_duplex(&mut self, place: &Place<'_>) -> Result<Vec<FlowId>, Refused> {
        let loads = [PathLoad::default(), PathLoad::default()];
        let Some(ways) = ends::both_ways(place.scenario, place.index, &loads) else { return Ok(Vec::new()) };
        let (near, far) = ends::duplex(ways, place.seed, Instant::ZERO)?;
        let Ways { forward, backward } = self.ways(place);
        let ids = self.world.add_duplex(equipoise_sim::Flow::new(near, far, forward, backward))?;
        let [load, _] = loads;
        if load.is_shared() {
            self.world.share_load(ids[0], load)?;
        }
        Ok(ids.to_vec())
    }

    fn add_multipath(&mut self, place: &Place<'_>, multipath: &MultipathFlow) -> Result<FlowId, Refused> {
        let (near, far) = ends::multipath(place.flow, multipath, (place.index, place.seed), Instant::ZERO)?;
        let paths = place.scenario.paths_of(place.flow).map(|path| {
            let Ways { forward, backward } = self.ways_over(place, &path.links);
            let changes = path.changes().into_iter().map(|(at, change)| (Time::ZERO + at, change)).collect();
            PathLinks { forward, backward, changes }
        });
        let paths = paths.collect();
        Ok(self.world.add_flow(equipoise_sim::Flow { near: Box::new(near), far: Box::new(far), paths })?)
    }

    fn add_tcp(&mut self, place: &Place<'_>, tcp: &TcpFlow) -> Result<FlowId, Refused> {
        let Place { flow, index, seed, .. } = *place;
        let oracle = ends::bandwidth_oracle(flow, tcp, index, seed);
        let told = oracle.as_ref().map(|oracle| oracle.told.clone());
        let (near, far) = ends::tcp(flow, tcp, (index, seed), told)?;
        let Ways { forward, backward } = self.ways(place);
        let id = self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?;
        if let Some(oracle) = oracle {
            self.world.share_bandwidth(id, oracle)?;
        }
        Ok(id)
    }

    fn add_web(&mut self, place: &Place<'_>, tcp: &TcpFlow, web: WebConfig) -> Result<FlowId, Refused> {
        let (near, far) = ends::web(place.flow, tcp, web, (place.index, place.seed))?;
        let Ways { forward, backward } = self.ways(place);
        let paths = vec![PathLinks::new(forward, backward); near.places()];
        Ok(self.world.add_flow(equipoise_sim::Flow { near: Box::new(near), far: Box::new(far), paths })?)
    }
}

/// A flow, where it is added, and what its random numbers follow from.
struct Place<'a> {
    scenario: &'a Scenario,
    flow: &'a Flow,
    /// The flow's place in the scenario.
    index: usize,
    /// The run's seed.
    seed: u64,
}

/// Why a flow cannot be added.
enum Refused {
    Ends(EndsError),
    Flow(FlowError),
}

impl From<EndsError> for Refused {
    fn from(error: EndsError) -> Self {
        Self::Ends(error)
    }
}

impl From<FlowError> for Refused {
    fn from(error: FlowError) -> Self {
        Self::Flow(error)
    }
}
