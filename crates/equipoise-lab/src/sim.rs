//! A scenario in the simulated world.

use equipoise::session::Event;
use equipoise::units::{Instant, Span};
use equipoise_sim::{FlowError, FlowId, LinkId, Observer, Session, Side, Stream, Time, World};
use rayon::prelude::*;
use thiserror::Error;

use crate::Progress;
use crate::ends::{self, EndsError};
use crate::record::Recorder;
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
        source: equipoise::link::LinkError,
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

fn run(scenario: &Scenario, seed: u64, tell: impl Tell) -> Result<Run, SimError> {
    let (mut world, links) = build(scenario, seed)?;
    let end = Time::ZERO + scenario.duration;
    let mut watch = Watch { recorder: Recorder::new(scenario, Instant::ZERO), tell };
    for part in 1..=PARTS {
        // By nanoseconds, so that the parts end on the run's end whatever the rounding.
        let nanos = i128::from(scenario.duration.as_nanos()) * i128::from(part) / i128::from(PARTS);
        let until = Span::from_nanos(nanos as i64);
        world.run(Time::ZERO + until, &mut watch);
        watch.tell.come_to(until, part as f64 / PARTS as f64);
    }
    let stats: Vec<_> = links.iter().map(|&link| world.link_stats(link)).collect();
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
            .filter_map(|(link, stats)| stats.map(|stats| result::LinkResult::new(&link.name, &stats)))
            .collect(),
    })
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
        self.tell.event(at, flow, event);
    }
}

/// Who is told of a run while it goes on.
trait Tell {
    fn event(&mut self, at: Span, flow: usize, event: &Event);
    /// All events up to `until` have been told; this share of the run is done.
    fn come_to(&mut self, until: Span, share: f64);
}

/// Nobody.
struct Silence;

impl Tell for Silence {
    fn event(&mut self, _: Span, _: usize, _: &Event) {}
    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Somebody who wants the events in order, though the world may tell a stream's ahead of time.
struct InOrder<'a> {
    early: Vec<(Span, usize, Event)>,
    progress: &'a mut dyn FnMut(Progress),
}

impl Tell for InOrder<'_> {
    fn event(&mut self, at: Span, flow: usize, event: &Event) {
        self.early.push((at, flow, *event));
    }

    fn come_to(&mut self, until: Span, share: f64) {
        self.early.sort_by_key(|(at, ..)| *at);
        let due = self.early.partition_point(|(at, ..)| *at <= until);
        for (at, flow, event) in self.early.drain(..due) {
            (self.progress)(Progress::Event { at, origin: Instant::ZERO, flow, event });
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
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build()?;
    let done = std::sync::atomic::AtomicU32::new(0);
    pool.install(|| {
        let one = |number: u32| {
            let run = run(scenario, first_seed.wrapping_add(u64::from(number)), Silence).map(&keep);
            let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            progress(f64::from(done) / f64::from(runs));
            run
        };
        (0..runs).into_par_iter().map(one).collect()
    })
}

/// The scenario's world, and the forward direction of its links.
fn build(scenario: &Scenario, seed: u64) -> Result<(World, Vec<LinkId>), SimError> {
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
    for (index, flow) in scenario.flows.iter().enumerate() {
        let there = way(&forward, &flow.path);
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                let (near, far) = ends::session(flow, (controller, *report_interval), index, seed, Instant::ZERO)
                    .map_err(|source| SimError::Ends { flow: flow.name.clone(), source })?;
                let back: Vec<_> = flow.path.iter().rev().copied().collect();
                world.add_session(Session { near, far, forward: there, backward: way(&backward, &back) })?;
            }
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, Time::ZERO);
                world.add_stream(Stream { source, forward: there })?;
            }
        }
    }
    Ok((world, forward))
}
