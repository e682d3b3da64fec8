//! Runs a scenario in the simulator.

mod sample;
mod stage;
mod tell;

use std::borrow::Borrow;
use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use equipoise::units::{Instant, Size, Span};
use equipoise_session::{Event, Half, PathId};
use equipoise_sim::{Arrival, Datagram, FlowError, FlowId, Observer, Packet, Side, Time, World};
use rayon::prelude::*;
use thiserror::Error;

use self::stage::Stage;
pub use self::tell::RunObserver;
use self::tell::{InOrder, Observed, Of, Shares, Silence, Tell};
use crate::Progress;
use crate::ends::EndsError;
use crate::record::{LinkRecord, Received, Recorder};
use crate::result::{self, Run};
use crate::scenario::{OverBudget, Scenario};

/// Why a scenario cannot be simulated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The simulation would take too much time or memory.
    #[error("too much for a simulated run")]
    OverBudget(#[from] OverBudget),
    /// The endpoints of a flow cannot be created.
    #[error("flow {flow}")]
    Ends {
        /// The flow's name.
        flow: String,
        /// Why the endpoints cannot be created.
        source: EndsError,
    },
    /// A link cannot be created.
    #[error("link {link}")]
    Link {
        /// The link's name.
        link: String,
        /// Why the link cannot be created.
        source: equipoise_path::link::PipeError,
    },
    /// The simulator refused a flow.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// [`Stop`] ended the run before its planned end.
    #[error("the run was stopped before its end")]
    Stopped,
    /// The threads that simulate several runs could not be started.
    #[error("the threads could not be started")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// Number of parts into which a run is divided if it is not sampled (see [`Scenario::is_sampled`]). Progress is
/// reported after each part.
const PARTS: i64 = 200;
/// Simulated time after the end of the run during which packets in flight may still arrive.
const DRAIN: Span = Span::from_secs(300);

/// How runs are executed. These settings do not affect the results. `Some(4).into()` sets only the number of threads.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Number of threads; `None` to use all processor cores.
    pub threads: Option<usize>,
    /// Can end the runs before their planned end.
    pub stop: Stop,
}

impl From<Option<usize>> for Execution {
    fn from(threads: Option<usize>) -> Self {
        Self { threads, stop: Stop::default() }
    }
}

/// A handle that ends runs before their planned end, with [`SimError::Stopped`]. It controls all runs that were started
/// with a clone of the same handle.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends all runs that share this `Stop`.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the runs should end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), SimError> {
        if self.is_stopped() { Err(SimError::Stopped) } else { Ok(()) }
    }
}

/// Simulates one run with `seed`, and reports its events in order of time.
///
/// # Errors
/// - [`SimError::OverBudget`] if the simulation would take too much time or memory.
/// - [`SimError::Ends`] if a flow cannot be simulated: for example, if it is a TCP connection without a window law, or
///   if the trace of its video cannot be read.
/// - [`SimError::Flow`] if links without propagation delay form a cycle.
///
/// A scenario from [`Scenario::parse`] causes no other errors.
pub fn simulate(scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Progress)) -> Result<Run, SimError> {
    simulate_captured(scenario, seed, progress, &mut |_, _| {})
}

/// Simulates one run like [`simulate`]. In addition, calls `datagrams` for each datagram that leaves or reaches an
/// endpoint, in order of time, with the time since the run's start.
///
/// # Errors
/// The errors of [`simulate`].
pub fn simulate_captured(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
    datagrams: &mut dyn FnMut(Span, &Datagram<'_>),
) -> Result<Run, SimError> {
    Ok(run(scenario, seed, InOrder::new(progress, datagrams), &Stop::default())?.0)
}

/// Simulates one run with `seed`, without progress reports. `stop` can end the run early.
///
/// # Errors
/// The errors of [`simulate`], and [`SimError::Stopped`].
#[cfg(feature = "sweep")]
pub(crate) fn simulate_silently(scenario: &Scenario, seed: u64, stop: &Stop) -> Result<Run, SimError> {
    Ok(run(scenario, seed, Silence, stop)?.0)
}

/// Checks whether the scenario can be simulated.
///
/// # Errors
/// The errors of [`simulate`].
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    Stage::new(scenario, scenario.seed).map(|_| ())
}

/// Simulates a run. Returns the result of the run, and `tell`, which has observed the run.
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

/// Returns the length of one part of a run without samples. Such a run is divided into [`PARTS`] equal parts.
fn part_of(duration: Span) -> Span {
    Span::from_nanos(duration.as_nanos() / PARTS).max(Span::from_nanos(1))
}

/// Records and reports the events of the simulation.
struct Watch<T> {
    recorder: Recorder,
    tell: T,
}

impl<T: Tell> Observer for Watch<T> {
    #[expect(clippy::inline_always, reason = "as a flow's record, to which it goes on")]
    #[inline(always)]
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        let (at, flow) = (now - Time::ZERO, flow.index());
        self.recorder.on_event(at, flow, event);
        self.tell.event(at, flow, of(side, None), event);
    }

    fn on_path_event(&mut self, now: Time, flow: FlowId, side: Side, path: PathId, event: &Event) {
        let (at, flow) = (now - Time::ZERO, flow.index());
        self.recorder.on_path_event(at, flow, path, event);
        self.tell.event(at, flow, of(side, Some(path)), event);
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
            self.tell.event(packet.sent - Time::ZERO, flow, of(Side::Near, None), &packet.departure());
        }
    }

    fn on_arrivals(&mut self, flow: FlowId, packets: &[Packet]) {
        let flow = flow.index();
        self.recorder.on_waited(flow, packets.iter().map(|packet| (packet.at - Time::ZERO, packet.waited)));
        self.recorder.on_arrivals(flow, packets.iter().map(received));
        for packet in packets {
            let at = packet.at - Time::ZERO;
            self.tell.waited(at, flow, packet.waited);
            self.tell.event(at, flow, of(Side::Far, None), &packet.reception());
        }
    }
}

/// Returns the origin of an event. The near endpoint sends the media, and the far endpoint receives the media.
const fn of(side: Side, path: Option<PathId>) -> Of {
    let half = match side {
        Side::Near => Half::Sending,
        Side::Far => Half::Receiving,
    };
    Of { half, path }
}

/// Converts a packet that has arrived into the form that the recorder uses.
fn received(&Packet { at, sent, size, ecn, .. }: &Packet) -> Received {
    Received { at: at - Time::ZERO, sent: sent - Time::ZERO, delay: at - sent, size, ecn }
}

/// Simulates `runs` runs with consecutive seeds, starting with `first_seed`. Returns the result of `keep` for each run,
/// in the order of the seeds. The results do not depend on the number of threads. `progress` is called with the share
/// of the runs that are complete, 0 to 1; if there is a single run, with the completed share of this run.
///
/// # Errors
/// The errors of [`simulate`], [`SimError::Stopped`], and [`SimError::Threads`].
pub fn simulate_many<T: Send>(
    scenario: &Scenario,
    (first_seed, runs): (u64, u32),
    execution: impl Into<Execution>,
    keep: impl Fn(Run) -> T + Sync,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<T>, SimError> {
    let execution = execution.into();
    if runs == 1 {
        return Ok(vec![keep(run(scenario, first_seed, Shares(progress), &execution.stop)?.0)]);
    }
    let done = AtomicU32::new(0);
    let counted = |run| {
        let kept = keep(run);
        progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / f64::from(runs));
        kept
    };
    let seeded = (0..runs).map(|number| (scenario, first_seed.wrapping_add(u64::from(number))));
    simulate_each(&seeded.collect::<Vec<_>>(), execution, counted)
}

/// Simulates one run of each scenario with the seed that belongs to the scenario. Returns the result of `keep` for each
/// run, in the order of `scenarios`.
///
/// # Errors
/// The errors of [`simulate_many`].
pub fn simulate_each<T: Send>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    execution: impl Into<Execution>,
    keep: impl Fn(Run) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let execution = execution.into();
    let one = |_, scenario: &Scenario, seed| Ok(keep(run(scenario, seed, Silence, &execution.stop)?.0));
    each(scenarios, &execution, one)
}

/// Simulates one run of each scenario with the seed that belongs to the scenario, each with its own observer. Calls
/// `keep` with each run and its observer, and returns the results of these calls in the order of `scenarios`.
///
/// # Errors
/// The errors of [`simulate_many`].
pub fn simulate_each_observed<T: Send, O: RunObserver>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    execution: impl Into<Execution>,
    observer: impl Fn() -> O + Sync,
    keep: impl Fn(Run, O) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    observe_each(scenarios, &execution.into(), observer, |_, run, observer| keep(run, observer))
}

/// Simulates runs like [`simulate_each_observed`], and also passes the index of the run's scenario to `keep`.
pub(crate) fn observe_each<T: Send, O: RunObserver>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    execution: &Execution,
    observer: impl Fn() -> O + Sync,
    keep: impl Fn(usize, Run, O) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let one = |place, scenario: &Scenario, seed| {
        let (run, Observed(observer)) = run(scenario, seed, Observed(observer()), &execution.stop)?;
        Ok(keep(place, run, observer))
    };
    each(scenarios, execution, one)
}

/// Simulates one run with `seed`, and reports its events to `observer`. An event of background traffic may be reported
/// before earlier events of other endpoints.
///
/// # Errors
/// The errors of [`simulate`].
pub fn simulate_observed<O: RunObserver>(scenario: &Scenario, seed: u64, observer: O) -> Result<(Run, O), SimError> {
    let (run, Observed(observer)) = run(scenario, seed, Observed(observer), &Stop::default())?;
    Ok((run, observer))
}

fn each<T: Send>(
    scenarios: &[(impl Borrow<Scenario> + Sync, u64)],
    execution: &Execution,
    one: impl Fn(usize, &Scenario, u64) -> Result<T, SimError> + Sync,
) -> Result<Vec<T>, SimError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(execution.threads.unwrap_or(0)).build()?;
    let of_place = |(place, (scenario, seed)): (usize, &(_, u64))| one(place, Borrow::borrow(scenario), *seed);
    pool.install(|| scenarios.par_iter().enumerate().map(of_place).collect())
}
