//! A scenario in the simulated world.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicU32, Ordering};

use equipoise::control::PathLoad;
use equipoise::units::{Instant, Span};
use equipoise_session::{Event, PathId};
use equipoise_sim::{Flow, FlowError, FlowId, LinkId, Observer, PathLinks, Side, Stream, Time, World, tcp};
use rayon::prelude::*;
use thiserror::Error;

use crate::Progress;
use crate::egress::SharedEgress;
use crate::ends::{self, EndsError};
use crate::record::{LinkRecord, Recorder, TcpReading};
use crate::result::{self, Run};
use crate::scenario::{FlowKind, Scenario};

/// Why a scenario cannot be simulated.
#[derive(Debug, Error)]
pub enum SimError {
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
        source: equipoise_path::link::LinkError,
    },
    /// The world refused a flow.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The threads for many runs could not be started.
    #[error("the threads could not be started")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// Parts of a run after which progress is told.
const PARTS: i64 = 200;
/// How long packets that are under way at the end are waited for.
const DRAIN: Span = Span::from_secs(300);

/// One run with `seed`, whose events are told in the order of their times.
///
/// # Errors
/// [`SimError`] where the scenario was not made by [`Scenario::parse`] and cannot be run.
pub fn simulate(scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Progress)) -> Result<Run, SimError> {
    run(scenario, seed, InOrder { early: Vec::new(), progress })
}

/// Whether the scenario can be simulated.
///
/// # Errors
/// As [`simulate`].
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    build(scenario, scenario.seed).map(|_| ())
}

fn run(scenario: &Scenario, seed: u64, tell: impl Tell) -> Result<Run, SimError> {
    let Stage { mut world, links, flows, egresses } = build(scenario, seed)?;
    let end = Time::ZERO + scenario.duration;
    let mut watch = Watch { recorder: Recorder::new(scenario, Instant::ZERO), tell };
    let mut link_records: Vec<_> = links.iter().map(|_| LinkRecord::default()).collect();
    let sampled = scenario.is_sampled();
    let every = if sampled { scenario.sample_interval } else { part_of(scenario.duration) };
    let link_stats = |world: &World| -> Vec<_> {
        let stats = |(&link, egress): (&LinkId, &Option<SharedEgress>)| match egress {
            Some(egress) => Some(egress.stats(world.now().assume_clock())),
            None => world.link_stats(link),
        };
        links.iter().zip(&egresses).map(stats).collect()
    };
    let mut until = Span::ZERO;
    while until < scenario.duration {
        until = (until + every).min(scenario.duration);
        world.run(Time::ZERO + until, &mut watch);
        if sampled {
            sample(&world, &flows, until, &mut watch.recorder);
            for (record, stats) in link_records.iter_mut().zip(link_stats(&world)) {
                if let Some(stats) = stats {
                    record.push(until, stats);
                }
            }
        }
        watch.tell.come_to(until, until.as_secs_f64() / scenario.duration.as_secs_f64());
    }
    let stats = link_stats(&world);
    world.stop(&mut watch);
    world.run(end + DRAIN, &mut watch);
    watch.tell.come_to(Span::MAX, 1.0);
    let links = scenario.links.iter().zip(stats);
    Ok(Run {
        world: result::World::Sim,
        seed,
        lasted_s: scenario.duration.as_secs_f64(),
        complete: true,
        clock: "simulated time".to_owned(),
        stalls: Vec::new(),
        emulator: None,
        flows: watch.recorder.finish(scenario.duration, &[]),
        links: links
            .zip(link_records)
            .filter_map(|((link, stats), record)| {
                let result = result::LinkResult::new(&link.name, &stats?);
                Some(result::LinkResult { samples: record.finish(), ..result })
            })
            .collect(),
    })
}

/// So much of a run that progress is told often enough.
fn part_of(duration: Span) -> Span {
    Span::from_nanos(duration.as_nanos() / PARTS).max(Span::from_nanos(1))
}

/// Takes the state of all TCP connections.
fn sample(world: &World, flows: &[FlowId], at: Span, recorder: &mut Recorder) {
    for (index, &flow) in flows.iter().enumerate() {
        let (Some(near), Some(far)) = (world.near::<tcp::Sender>(flow), world.far::<tcp::Receiver>(flow)) else {
            continue;
        };
        let stats = near.stats();
        let reading = TcpReading {
            window: stats.window,
            slow_start_threshold: stats.slow_start_threshold,
            in_flight: stats.in_flight,
            smoothed_round_trip: stats.smoothed_round_trip,
            min_round_trip: stats.min_round_trip,
            sent: stats.sent,
            retransmissions: stats.resent_in_recovery + stats.resent_after_timeout,
            resent_after_timeout: Some(stats.resent_after_timeout),
            recoveries: Some(stats.recoveries),
            timeouts: Some(stats.timeouts),
            delivered: far.delivered(),
            finished: stats.finished.map(|at| at - Time::ZERO),
            law: stats.law,
        };
        recorder.on_tcp(at, index, &reading);
    }
}

/// Records what happens in the world and tells it.
struct Watch<T> {
    recorder: Recorder,
    tell: T,
}

impl<T: Tell> Observer for Watch<T> {
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
}

/// Who is told of a run while it goes on.
trait Tell {
    fn event(&mut self, at: Span, flow: usize, path: Option<PathId>, event: &Event);
    /// All events up to `until` have been told; this share of the run is done.
    fn come_to(&mut self, until: Span, share: f64);
}

/// Nobody.
struct Silence;

impl Tell for Silence {
    fn event(&mut self, _: Span, _: usize, _: Option<PathId>, _: &Event) {}
    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Somebody who wants the events in order, though the world may tell a stream's ahead of time.
struct InOrder<'a> {
    early: Vec<(Span, usize, Option<PathId>, Event)>,
    progress: &'a mut dyn FnMut(Progress),
}

impl Tell for InOrder<'_> {
    fn event(&mut self, at: Span, flow: usize, path: Option<PathId>, event: &Event) {
        self.early.push((at, flow, path, *event));
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
    threads: Option<usize>,
    keep: impl Fn(Run) -> T + Sync,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<T>, SimError> {
    if runs == 1 {
        let mut tell = |part: Progress| {
            if let Progress::Share(share) = part {
                progress(share);
            }
        };
        return Ok(vec![keep(simulate(scenario, first_seed, &mut tell)?)]);
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
    threads: Option<usize>,
    keep: impl Fn(Run) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build()?;
    pool.install(|| {
        scenarios.par_iter().map(|(scenario, seed)| run(scenario.borrow(), *seed, Silence).map(&keep)).collect()
    })
}

/// The scenario's world, the forward direction of its links, its flows, and for each link the egress buffer in its place.
struct Stage {
    world: World,
    links: Vec<LinkId>,
    flows: Vec<FlowId>,
    egresses: Vec<Option<SharedEgress>>,
}

fn build(scenario: &Scenario, seed: u64) -> Result<Stage, SimError> {
    let mut world = World::new();
    let mut add = |link: &crate::scenario::Link| {
        let added = world.add_link(link.config.clone());
        added.map_err(|source| SimError::Link { link: link.name.clone(), source })
    };
    let forward = scenario.links.iter().map(&mut add).collect::<Result<Vec<_>, _>>()?;
    let backward = scenario.links.iter().map(&mut add).collect::<Result<Vec<_>, _>>()?;
    let way = |links: &[LinkId], path: &[usize]| -> Vec<LinkId> {
        path.iter().filter_map(|&link| links.get(link)).copied().collect()
    };
    let egresses = SharedEgress::of(scenario, Instant::ZERO).into_iter().zip(&scenario.links);
    let egresses = egresses
        .map(|(egress, link)| egress.map_err(|source| SimError::Link { link: link.name.clone(), source }))
        .collect::<Result<Vec<_>, _>>()?;
    let mut flows = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let there = way(&forward, flow.network());
        let back: Vec<_> = flow.network().iter().rev().copied().collect();
        let back = way(&backward, &back);
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                let egress = flow.egress().and_then(|link| egresses.get(link)?.clone());
                let load = PathLoad::default();
                let how = (controller, *report_interval, &load);
                let (near, far) = ends::session(flow, how, (index, seed), egress, Instant::ZERO)
                    .map_err(|source| SimError::Ends { flow: flow.name.clone(), source })?;
                let id = world.add_flow(Flow::new(near, far, there, back))?;
                if load.is_shared() {
                    world.tell_load(id, load)?;
                }
                flows.push(id);
            }
            FlowKind::Multipath(multipath) => {
                let (near, far) = ends::multipath(flow, multipath, (index, seed), Instant::ZERO)
                    .map_err(|source| SimError::Ends { flow: flow.name.clone(), source })?;
                let paths = scenario.paths_of(flow).map(|path| PathLinks {
                    forward: way(&forward, &path.links),
                    backward: way(&backward, &path.links.iter().rev().copied().collect::<Vec<_>>()),
                    changes: path.changes().into_iter().map(|(at, change)| (Time::ZERO + at, change)).collect(),
                });
                let (near, far) = (Box::new(near), Box::new(far));
                flows.push(world.add_flow(Flow { near, far, paths: paths.collect() })?);
            }
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, Time::ZERO);
                flows.push(world.add_stream(Stream { source, forward: there })?);
            }
            FlowKind::Tcp(tcp) => {
                let oracle = ends::bandwidth_oracle(flow, tcp, index, seed);
                let told = oracle.as_ref().map(|oracle| oracle.told.clone());
                let (near, far) = ends::tcp(flow, tcp, (index, seed), told)
                    .map_err(|source| SimError::Ends { flow: flow.name.clone(), source })?;
                let id = world.add_flow(Flow::new(near, far, there, back))?;
                if let Some(oracle) = oracle {
                    world.tell_bandwidth(id, oracle)?;
                }
                flows.push(id);
            }
        }
    }
    Ok(Stage { world, links: forward, flows, egresses })
}
