//! A scenario in the real world: real packets on real sockets, through an emulated bottleneck on this host.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, RecvTimeoutError, Sender as Post};
use std::time::Duration;

use equipoise::session::rtp;
use equipoise::session::{Endpoint, Event};
use equipoise::units::Span;
use equipoise_net::{
    Clock, Emulator, EmulatorReport, Host, LoadProbe, NetError, Observer, Place, Route, Running, Socket, Stalls,
    TestBed, Time, Watchdog, run_endpoint,
};
use thiserror::Error;

use crate::Progress;
use crate::ends::{self, EndsError};
use crate::record::Recorder;
use crate::result::{self, EmulatorResult, LinkResult, Run, Stall};
use crate::scenario::{Flow, FlowKind, Scenario};

/// Why a scenario cannot be run live.
#[derive(Debug, Error)]
pub enum LiveError {
    /// A flow's ends cannot be made.
    #[error("flow {flow}")]
    Ends {
        /// The flow's name.
        flow: String,
        /// Why.
        source: EndsError,
    },
    /// TCP connections are the kernel's, and are not run yet.
    #[error("flow {flow} is a TCP connection, which only `equipoise sim` runs so far")]
    Tcp {
        /// The flow's name.
        flow: String,
    },
    /// The system refused a socket or a thread, or one failed.
    #[error("the network")]
    Net(#[from] NetError),
}

/// From the first socket to the first packet: the kernel needs some milliseconds to begin stamping arrivals.
const LEAD: Span = Span::from_millis(100);
/// How often the interrupt and the progress are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long the last packets are waited for.
const DRAIN: Span = Span::from_secs(2);

/// Where a run takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// On this host's loopback interface; needs no right.
    #[default]
    Loopback,
    /// In three network namespaces, so that every packet crosses two virtual Ethernets; needs root.
    Namespaces,
}

/// One run with `seed`, until its end or until `stop` is set; what was measured by then is given in either case.
///
/// # Errors
/// [`LiveError`] where the system refuses what the run needs.
pub fn run(
    scenario: &Scenario,
    (seed, stage): (u64, Stage),
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Run, LiveError> {
    let clock = Clock::new();
    let bed = (stage == Stage::Namespaces).then(TestBed::new).transpose()?;
    let mut bind = |place: Place| match &bed {
        Some(bed) => bed.bind(place, &clock),
        None => Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &clock),
    };
    let watchdog = Watchdog::start(&clock)?;
    let origin = clock.now() + LEAD;
    let (post, inbox) = mpsc::channel();
    let bench = Bench::start(scenario, seed, (&clock, origin), &post, &mut bind)?;
    let mut watch = Watch { inbox, recorder: Recorder::new(scenario, origin.assume_clock()), origin };
    let mut lasted = Span::ZERO;
    while lasted < scenario.duration && !stop.load(Ordering::Relaxed) && !bench.has_failed() {
        watch.take_in(TICK, progress);
        lasted = (clock.now() - origin).max(Span::ZERO).min(scenario.duration);
        progress(Progress::Share(lasted.as_secs_f64() / scenario.duration.as_secs_f64()));
        watch.tell_rows(lasted, progress);
    }
    let (clock_name, emulator) = bench.stop(&clock)?;
    drop(post);
    while watch.take_in(Duration::ZERO, progress) {}
    if lasted >= scenario.duration {
        // The last interval too is over, and its packets have arrived.
        watch.tell_rows(lasted + DRAIN, progress);
    }
    let stalls = stalls(&watchdog.stop()?, origin, lasted);
    let links = scenario.links.iter().zip(&emulator.links);
    Ok(Run {
        world: result::World::Live,
        seed,
        lasted_s: lasted.as_secs_f64(),
        complete: lasted >= scenario.duration,
        clock: clock_name,
        emulator: Some(emulator_result(&emulator)),
        flows: watch.recorder.finish(lasted, &stalls),
        links: links.map(|(link, stats)| LinkResult::new(&link.name, stats)).collect(),
        stalls,
    })
}

/// What an endpoint's thread tells: when, which flow, what.
type Note = (Time, usize, Event);

/// The main thread's side of a run.
struct Watch {
    inbox: Inbox<Note>,
    recorder: Recorder,
    origin: Time,
}

impl Watch {
    /// Records what comes within `wait`; false once nobody is left to tell anything, or nothing came.
    fn take_in(&mut self, wait: Duration, progress: &mut dyn FnMut(Progress)) -> bool {
        match self.inbox.recv_timeout(wait) {
            Ok(note) => self.record(note, progress),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
        while let Ok(note) = self.inbox.try_recv() {
            self.record(note, progress);
        }
        true
    }

    /// Tells the intervals that were over before `at`.
    fn tell_rows(&mut self, at: Span, progress: &mut dyn FnMut(Progress)) {
        for row in self.recorder.take_rows(at) {
            progress(Progress::Interval(row));
        }
    }

    fn record(&mut self, (at, flow, event): Note, progress: &mut dyn FnMut(Progress)) {
        let at = at - self.origin;
        self.recorder.on_event(at, flow, &event);
        progress(Progress::Event { at, origin: self.origin.assume_clock(), flow, event });
    }
}

/// Posts an endpoint's events to the main thread, and knows the load of its path where that is wanted.
struct Poster {
    flow: usize,
    post: Post<Note>,
    load: Option<LoadProbe>,
}

impl Observer for Poster {
    fn on_event(&mut self, now: Time, event: &Event) {
        // The main thread outlives the endpoints; if it is gone, there is nobody to tell.
        let _ = self.post.send((now, self.flow, *event));
    }

    fn path_load(&mut self, now: Time) -> Option<f64> {
        self.load.as_mut().and_then(|probe| probe.load(now))
    }
}

/// Everything that runs: the emulator and two endpoints a flow.
struct Bench {
    near: Vec<RunningNear>,
    far: Vec<Running<rtp::Receiver, Poster>>,
    emulator: Emulator,
}

enum RunningNear {
    Sender(Running<rtp::Sender, Poster>),
    Background(Running<rtp::Background, Poster>),
}

impl Bench {
    fn start(
        scenario: &Scenario,
        seed: u64,
        (clock, origin): (&Clock, Time),
        post: &Post<Note>,
        bind: &mut dyn FnMut(Place) -> Result<Socket, NetError>,
    ) -> Result<Self, LiveError> {
        let mut sockets = Vec::new();
        for _ in &scenario.flows {
            sockets.push((bind(Place::Near)?, bind(Place::Far)?));
        }
        let links = scenario.links.len();
        // The links' other directions stand behind them in the emulator's list.
        let configs: Vec<_> = scenario.links.iter().chain(&scenario.links).map(|link| link.config.clone()).collect();
        let routes = scenario.flows.iter().zip(&sockets).map(|(flow, (near, far))| Route {
            forward: flow.path.clone(),
            backward: flow.path.iter().rev().map(|link| link + links).collect(),
            sender: near.address(),
            receiver: far.address(),
        });
        let emulator = Emulator::start_between(clock, origin, &configs, routes.collect(), bind)?;
        let mut bench = Self { near: Vec::new(), far: Vec::new(), emulator };
        for (index, (flow, sockets)) in scenario.flows.iter().zip(sockets).enumerate() {
            bench.add(flow, index, seed, origin, sockets, post)?;
        }
        Ok(bench)
    }

    #[expect(clippy::too_many_arguments, reason = "a flow has two sockets, and a run a seed and an origin")]
    fn add(
        &mut self,
        flow: &Flow,
        index: usize,
        seed: u64,
        origin: Time,
        (near_socket, far_socket): (Socket, Socket),
        post: &Post<Note>,
    ) -> Result<(), LiveError> {
        let failed = |source| LiveError::Ends { flow: flow.name.clone(), source };
        let poster = |load| Poster { flow: index, post: post.clone(), load };
        let host = |side: &str, socket, peer| Host { name: format!("{side}-{index}"), socket, peer };
        // The emulator was started with a route for every flow.
        let (Some(entrance), Some(exit)) = (self.emulator.entrance(index), self.emulator.exit(index)) else {
            return Ok(());
        };
        let (near_host, far_host) = (host("near", near_socket, entrance), host("far", far_socket, exit));
        let origin = origin.assume_clock();
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                let (near, far) =
                    ends::session(flow, (controller, *report_interval), index, seed, origin).map_err(failed)?;
                self.far.push(run_endpoint(far, far_host, poster(None))?);
                let near = run_endpoint(near, near_host, poster(self.emulator.load_probe(index)))?;
                self.near.push(RunningNear::Sender(near));
            }
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, origin);
                let (near, far) = ends::background(flow, source, index, seed).map_err(failed)?;
                self.far.push(run_endpoint(far, far_host, poster(None))?);
                self.near.push(RunningNear::Background(run_endpoint(near, near_host, poster(None))?));
            }
            FlowKind::Tcp(_) => return Err(LiveError::Tcp { flow: flow.name.clone() }),
        }
        Ok(())
    }

    /// Whether an endpoint or the emulator ended before it was told to.
    fn has_failed(&self) -> bool {
        let near = |end: &RunningNear| match end {
            RunningNear::Sender(sender) => sender.is_finished(),
            RunningNear::Background(background) => background.is_finished(),
        };
        !self.emulator.is_running() || self.near.iter().any(near)
    }

    /// Ends all sessions, lets the last packets arrive, and stops the emulator. Names the source of arrival times.
    fn stop(self, clock: &Clock) -> Result<(String, EmulatorReport), LiveError> {
        for end in self.near {
            match end {
                RunningNear::Sender(sender) => finish(sender)?,
                RunningNear::Background(background) => finish(background)?,
            }
        }
        // A sender's goodbye comes behind its last packet and ends its receiver, unless it is lost.
        let give_up = clock.now() + DRAIN;
        while clock.now() < give_up && !self.far.iter().all(Running::is_finished) {
            clock.sleep_until(clock.now() + Span::from_millis(5));
        }
        let mut clock_name = None;
        for receiver in self.far {
            let stats = receiver.stop()?.stats;
            clock_name = clock_name.or(Some(stats.timestamps.name().to_owned()));
        }
        Ok((clock_name.unwrap_or_default(), self.emulator.stop()?))
    }
}

fn finish<E: Endpoint>(end: Running<E, Poster>) -> Result<(), NetError> {
    end.stop().map(|_| ())
}

/// The stalls that fall into the run.
fn stalls(found: &Stalls, origin: Time, lasted: Span) -> Vec<Stall> {
    let inside = found.list.iter().map(|stall| (stall.start - origin, stall.end - origin));
    inside
        .filter(|&(start, end)| end > Span::ZERO && start < lasted)
        .map(|(start, end)| Stall { start_s: start.as_secs_f64(), end_s: end.as_secs_f64() })
        .collect()
}

fn emulator_result(report: &EmulatorReport) -> EmulatorResult {
    let late = report.lateness.as_ref();
    EmulatorResult {
        packets_foreign: report.foreign,
        packets_lost: report.refused + report.lost_at_sockets,
        late_p50_s: late.map(|late| late.p50.as_secs_f64()),
        late_p99_s: late.map(|late| late.p99.as_secs_f64()),
        late_max_s: late.map(|late| late.max.as_secs_f64()),
    }
}
