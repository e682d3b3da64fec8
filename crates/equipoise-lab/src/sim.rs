//! A scenario in the simulated world.

use equipoise::session::Event;
use equipoise::units::{Instant, Span};
use equipoise_sim::{Flow, FlowError, FlowId, LinkId, NearEnd, Observer, Side, Time, World};
use rayon::prelude::*;
use thiserror::Error;

use crate::Progress;
use crate::ends::{EndsError, Near, ends};
use crate::record::Recorder;
use crate::result::{self, Run};
use crate::scenario::Scenario;

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

/// One run with `seed`.
///
/// # Errors
/// [`SimError`] where the scenario was not made by [`Scenario::parse`] and cannot be run.
pub fn simulate(scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Progress)) -> Result<Run, SimError> {
    let (mut world, links) = build(scenario, seed)?;
    let end = Time::ZERO + scenario.duration;
    let mut watch = Watch { recorder: Recorder::new(scenario, Instant::ZERO), progress };
    for part in 1..=PARTS {
        // By nanoseconds, so that the parts end on the run's end whatever the rounding.
        let nanos = i128::from(scenario.duration.as_nanos()) * i128::from(part) / i128::from(PARTS);
        world.run(Time::ZERO + Span::from_nanos(nanos as i64), &mut watch);
        (watch.progress)(Progress::Share(part as f64 / PARTS as f64));
    }
    let stats: Vec<_> = links.iter().map(|&link| world.link_stats(link)).collect();
    world.stop(&mut watch);
    world.run(end + DRAIN, &mut watch);
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

/// Records what happens in the world and passes it on.
struct Watch<'a> {
    recorder: Recorder,
    progress: &'a mut dyn FnMut(Progress),
}

impl Observer for Watch<'_> {
    fn on_event(&mut self, now: Time, flow: FlowId, _: Side, event: &Event) {
        let (at, flow) = (now - Time::ZERO, flow.index());
        self.recorder.on_event(at, flow, event);
        (self.progress)(Progress::Event { at, origin: Instant::ZERO, flow, event: *event });
    }
}

/// `runs` runs with the seeds from `first_seed` on, on so many threads or all cores; in the order of their seeds, and
/// the same whatever the number of threads. `progress` is told the share of the runs that are done.
///
/// # Errors
/// As [`simulate`], and [`SimError::Threads`].
pub fn simulate_many(
    scenario: &Scenario,
    first_seed: u64,
    runs: u32,
    threads: Option<usize>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<Run>, SimError> {
    if runs == 1 {
        let mut tell = |part: Progress| {
            if let Progress::Share(share) = part {
                progress(share);
            }
        };
        return Ok(vec![simulate(scenario, first_seed, &mut tell)?]);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build()?;
    let done = std::sync::atomic::AtomicU32::new(0);
    pool.install(|| {
        let one = |number: u32| {
            let run = simulate(scenario, first_seed.wrapping_add(u64::from(number)), &mut |_| {});
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
        let (near, far) = ends(flow, index, seed, Instant::ZERO)
            .map_err(|source| SimError::Ends { flow: flow.name.clone(), source })?;
        let near = match near {
            Near::Sender(sender) => NearEnd::Sender(sender),
            Near::Background(background) => NearEnd::Background(background),
        };
        let back: Vec<_> = flow.path.iter().rev().copied().collect();
        let (there, back) = (way(&forward, &flow.path), way(&backward, &back));
        world.add_flow(Flow { near, far, forward: there, backward: back })?;
    }
    Ok((world, forward))
}
