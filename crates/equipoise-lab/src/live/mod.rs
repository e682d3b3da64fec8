//! Runs a scenario live: real packets on real sockets, through an emulated bottleneck on this machine.

mod bench;
mod ground;
mod outages;
mod pair;
mod playout;
mod tcp;
mod waits;

use std::iter::once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver as PayloadReceiver, RecvTimeoutError};
use std::time::Duration;

use equipoise::units::{Size, Span};
pub use equipoise_net::flow_pair::WindowControl;
use equipoise_net::{Clock, EmulatorReport, NetError, Stalls, TestBed, Time, Watchdog, WebFetched};
use equipoise_session::Event;
use thiserror::Error;

use crate::Progress;
use crate::ends::EndsError;
use crate::record::{LinkRecord, Recorder};
use crate::result::{self, EmulatorResult, FlowResult, LinkResult, PairHost, Run, Stall};
use crate::scenario::{Flow, FlowKind, OverBudget, Scenario};
use bench::{Bench, Stopped};
use ground::{Ground, Note, Said};
use playout::PlayoutWatch;
use waits::UnderWay;

/// Why a scenario cannot be run live.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario exceeds a limit.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The endpoints of a flow cannot be built.
    #[error("flow {flow}")]
    Ends {
        /// The flow's name.
        flow: String,
        /// Why the endpoints cannot be built.
        source: EndsError,
    },
    /// The flow uses the kernel's TCP, which needs separate network namespaces.
    #[error("flow {flow} has TCP of the kernel, which runs across network namespaces: --namespaces, as root")]
    TcpOnLoopback {
        /// The flow's name.
        flow: String,
    },
    /// A socket or a thread failed, or the operating system does not provide what the run needs.
    #[error("the network")]
    Net(#[from] NetError),
}

impl LiveError {
    /// Returns the error text if the kernel lacks a congestion control that the run needs; `None` for any other error.
    pub fn lacking(&self) -> Option<String> {
        match self {
            Self::Net(error @ NetError::NoCongestionControl { .. }) => Some(error.to_string()),
            Self::OverBudget(_) | Self::Net(_) | Self::Ends { .. } | Self::TcpOnLoopback { .. } => None,
        }
    }
}

/// Time from just before the creation of the first socket to the start of the run. The kernel starts to timestamp
/// arrivals only some milliseconds after a socket requests timestamps.
const LEAD: Span = Span::from_millis(100);
/// Maximum time between two updates of the progress, and between two checks whether to stop.
const TICK: Duration = Duration::from_millis(50);
/// Maximum time to wait after the end of the run for packets that are still in flight.
const DRAIN: Span = Span::from_secs(2);

/// The environment of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// This host's loopback interface; needs no privileges.
    #[default]
    Loopback,
    /// Three network namespaces, so that every packet crosses two virtual Ethernet links; needs root.
    Namespaces,
}

impl Stage {
    /// Checks whether a run is possible in this environment.
    ///
    /// # Errors
    /// [`LiveError::Net`], which names what the environment lacks.
    pub fn check(self) -> Result<(), LiveError> {
        match self {
            Self::Loopback => Ok(()),
            Self::Namespaces => Ok(TestBed::new().map(drop)?),
        }
    }
}

/// The parameters of a run, in addition to its scenario.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// Environment in which the run takes place.
    pub stage: Stage,
    /// Returns the [`WindowControl`] for a flow pair. The argument is the name of the congestion control that the
    /// scenario sets for the flow pair. TCP uses the congestion control of the `WindowControl` instead. Without a
    /// `WindowControl`, pacing limits TCP to one window per round trip at the start of each probing period.
    pub window_control: &'a dyn Fn(&str) -> Option<WindowControl>,
}

impl Setup<'_> {
    /// Returns the parameters of a run without a [`WindowControl`].
    pub fn new(seed: u64, stage: Stage) -> Self {
        Self { seed, stage, window_control: &|_| None }
    }
}

/// Performs one run until its planned end or until `stop` is set. In both cases, returns the measurements made until
/// then.
///
/// # Errors
/// [`LiveError`] if the run is too large, if the endpoints of a flow cannot be built, if the environment does not
/// provide what the run needs, or if a socket or a thread fails.
pub fn run(
    scenario: &Scenario,
    setup: &Setup<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Run, LiveError> {
    scenario.check_budget()?;
    let Setup { seed, stage, window_control } = *setup;
    let clock = Clock::new();
    let bed = (stage == Stage::Namespaces).then(|| hosts(scenario)).transpose()?;
    let watchdog = Watchdog::start(&clock)?;
    let origin = clock.now() + LEAD;
    let (post, inbox) = mpsc::channel();
    let ground = Ground { clock: &clock, origin, seed, bed: bed.as_ref(), window_control };
    let bench = Bench::start(scenario, &ground, &post)?;
    let recorder = Recorder::new(scenario, origin.assume_clock());
    let (reckoned, under_way) = (Reckoned::new(scenario), UnderWay::of(scenario));
    let mut watch = Watch { inbox, recorder, origin, reckoned, under_way };
    let mut playouts = PlayoutWatch::new(bench.playouts(), scenario.sample_interval, origin);
    let mut lasted = Span::ZERO;
    while lasted < scenario.duration && !stop.load(Ordering::Relaxed) && !bench.has_failed() {
        watch.take_in(TICK, progress);
        lasted = (clock.now() - origin).max(Span::ZERO).min(scenario.duration);
        progress(Progress::Share(lasted.as_secs_f64() / scenario.duration.as_secs_f64()));
        watch.tell_rows(lasted, progress);
        playouts.look(lasted);
    }
    let Stopped { clock: clock_name, emulator, pair_hosts } = bench.stop(&clock)?;
    drop(post);
    while watch.take_in(Duration::ZERO, progress) {}
    if lasted >= scenario.duration {
        // No more packets can arrive, so the rows of the last intervals need not wait any longer.
        watch.tell_rows(lasted + DRAIN, progress);
    }
    let stalls = stalls(&watchdog.stop()?, origin, lasted);
    Ok(Run {
        world: result::World::Live,
        seed,
        lasted_s: lasted.as_secs_f64(),
        complete: lasted >= scenario.duration,
        clock: clock_name,
        emulator: Some(emulator_result(&emulator)),
        media: watch.recorder.media(lasted),
        flows: flows(scenario, watch.recorder.finish(lasted, &stalls), pair_hosts),
        links: links(scenario, &emulator, playouts, (origin, lasted)),
        stalls,
    })
}

/// Creates the three network namespaces. If the scenario disables the slow-start restart after idle times for a
/// connection, the setting applies to all connections of the host that sends this connection's data.
fn hosts(scenario: &Scenario) -> Result<TestBed, NetError> {
    let bed = TestBed::new()?;
    let keeps = |flow: &&Flow| flow.connection().is_some_and(|tcp| !tcp.idle_restart);
    for flow in scenario.flows.iter().filter(keeps) {
        bed.set(tcp::sender(flow).place(), "net/ipv4/tcp_slow_start_after_idle", "0")?;
    }
    Ok(bed)
}

/// State of the main thread during a run.
struct Watch {
    inbox: PayloadReceiver<Note>,
    recorder: Recorder,
    origin: Time,
    reckoned: Reckoned,
    /// For each flow, the packets that have left the emulator and that the receiver has not yet reported.
    under_way: Vec<UnderWay>,
}

/// Size of the headers of a TCP segment from the kernel: IP, TCP and the timestamps option (RFC 791, RFC 9293, RFC
/// 7323).
const TCP_HEADERS: Size = Size::from_bytes(52);

/// Computes the total size of a connection's IP packets from the amount of data that the kernel's TCP delivered.
struct Reckoned {
    interval: Span,
    connections: Vec<Connection>,
}

/// The TCP connection of a flow.
struct Connection {
    packet: Size,
    /// Data that the connection delivered to its application so far.
    delivered: Size,
}

impl Reckoned {
    fn new(scenario: &Scenario) -> Self {
        let packet = |flow: &Flow| match &flow.kind {
            FlowKind::Pair(pair) => pair.segment,
            _ => flow.packet_size,
        };
        let connection = |flow: &Flow| Connection { packet: packet(flow), delivered: Size::ZERO };
        Self { interval: scenario.sample_interval, connections: scenario.flows.iter().map(connection).collect() }
    }

    /// Records what flow number `flow` received since the previous reading of the kernel's counters. A reading is taken
    /// near the end of each interval. It counts for the interval whose end is nearest.
    fn record(&mut self, at: Span, flow: usize, delivered: Size, recorder: &mut Recorder) {
        let Some(connection) = self.connections.get_mut(flow) else { return };
        let news = delivered - std::mem::replace(&mut connection.delivered, delivered);
        let half = Span::from_nanos(self.interval.as_nanos() / 2);
        let end = self.interval * ((at + half) / self.interval).unwrap_or(1).max(1);
        recorder.on_tcp_received(end, flow, connection.packets(news));
    }

    /// Records what the receiver of flow number `flow`, a flow pair, read from its TCP connection at the time `at`.
    fn record_read(&self, at: Span, flow: usize, read: Size, recorder: &mut Recorder) {
        if let Some(connection) = self.connections.get(flow) {
            recorder.on_tcp_received(at, flow, connection.packets(read));
        }
    }
}

impl Connection {
    /// Returns the total size of the packets that carry this amount of data, if all packets are full.
    fn packets(&self, data: Size) -> Size {
        let (packet, full) = (self.packet.as_bytes() as f64, (self.packet - TCP_HEADERS).as_bytes() as f64);
        Size::from_bytes((data.as_bytes() as f64 * packet / full).round() as u64)
    }
}

impl Watch {
    /// Waits for at most `wait` and records all notes that have arrived. Returns whether any note arrived.
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

    /// Reports the rows that [`Recorder::take_rows`] returns for the time `at`.
    fn tell_rows(&mut self, at: Span, progress: &mut dyn FnMut(Progress)) {
        for row in self.recorder.take_rows(at) {
            progress(Progress::Interval(row));
        }
    }

    /// Records and reports that a packet of flow number `flow` arrived at the time `at` after waiting in queues for
    /// `waited`.
    fn waited(&mut self, (at, flow): (Span, usize), waited: Span, progress: &mut dyn FnMut(Progress)) {
        self.recorder.on_waited(flow, once((at, waited)));
        progress(Progress::Waited { at, flow, waited });
    }

    fn record(&mut self, Note { at, flow, said }: Note, progress: &mut dyn FnMut(Progress)) {
        let at = at - self.origin;
        match said {
            Said::Event(path, half, event) => {
                if let Event::MediaReceived { sequence, .. } = event
                    && let Some(waited) = self.under_way.get_mut(flow).and_then(|flow| flow.on_received(sequence))
                {
                    self.waited((at, flow), waited, progress);
                }
                match path {
                    Some(path) => self.recorder.on_path_event(at, flow, path, &event),
                    None => self.recorder.on_event(at, flow, &event),
                }
                progress(Progress::Event { at, origin: self.origin.assume_clock(), flow, path, half, event });
            }
            Said::Tcp(reading) => {
                self.recorder.on_tcp(at, flow, &reading);
                self.reckoned.record(at, flow, reading.delivered, &mut self.recorder);
            }
            Said::Web(reading, fetched) => {
                self.recorder.on_web(at, flow, reading);
                for WebFetched { opened, completed, .. } in fetched {
                    self.recorder.on_fetch(flow, opened - self.origin, completed - self.origin);
                }
            }
            Said::Waited { waited, sequence } => {
                let told = self.under_way.get_mut(flow).and_then(|flow| flow.on_passed(waited, sequence));
                if let Some(waited) = told {
                    self.waited((at, flow), waited, progress);
                }
            }
            Said::Returned(size) => self.recorder.on_returned(flow, size),
            Said::Stream(read) => self.reckoned.record_read(at, flow, read, &mut self.recorder),
        }
    }
}

/// Completes the results of the flows. TCP connections get the name of the kernel's congestion control, and flow pairs
/// get the window settings of their hosts.
fn flows(scenario: &Scenario, mut results: Vec<FlowResult>, pair_hosts: Vec<(usize, PairHost)>) -> Vec<FlowResult> {
    for (flow, result) in scenario.flows.iter().zip(&mut results) {
        if let FlowKind::Tcp(tcp) = &flow.kind {
            result.controller = Some(tcp.congestion_control().to_owned());
        }
    }
    for (index, host) in pair_hosts {
        if let Some(pair) = results.get_mut(index).and_then(|flow| flow.pair.as_mut()) {
            pair.host = Some(host);
        }
    }
    results
}

/// Returns the results of the link directions that the scenario watches, with the samples taken during the run.
fn links(
    scenario: &Scenario,
    emulator: &EmulatorReport,
    mut playouts: PlayoutWatch,
    (origin, lasted): (Time, Span),
) -> Vec<LinkResult> {
    let emulated = |number: usize, name: &str| {
        let mut record = LinkRecord::default();
        for sample in &emulator.samples {
            let at = sample.at - origin;
            sample.links.get(number).filter(|_| at <= lasted).into_iter().for_each(|stats| record.push(at, *stats));
        }
        let result = LinkResult::new(name, emulator.links.get(number)?);
        Some(LinkResult { samples: record.finish(), ..result })
    };
    let result =
        |(name, place): (String, usize)| playouts.result(place, &name, lasted).or_else(|| emulated(place, &name));
    scenario.watched_links().into_iter().filter_map(result).collect()
}

/// Returns the stalls of the machine that overlap the run.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's counters are read near the end of each interval, sometimes before the end. If the test fails, some
    /// intervals get two readings and others none.
    #[test]
    fn what_a_connection_received_is_reckoned_by_interval() {
        let scenario = Scenario::parse(
            "name = \"one\"\nduration = \"3 s\"\nsample_interval = \"1 s\"\nreceiver_rates = \"on\"\n\n[[link]]\nname = \"link\"\n\
             rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"10 packets\"\n\n[[flow]]\nname = \"tcp\"\npath = [\"link\"]\n\
             packet_size = \"1500 B\"\nkernel = \"reno\"\n",
        );
        let scenario = scenario.expect("right");
        let (mut reckoned, mut recorder) =
            (Reckoned::new(&scenario), Recorder::new(&scenario, Time::ZERO.assume_clock()));
        for (at_ms, segments) in [(1002, 10), (1999, 30), (3004, 30)] {
            reckoned.record(Span::from_millis(at_ms), 0, Size::from_bytes(segments * 1448), &mut recorder);
        }
        let flows = recorder.finish(scenario.duration, &[]);
        let rates: Vec<_> = flows[0].received.iter().map(|sample| sample.rate_bps.round() as u64).collect();
        assert_eq!(rates, [120_000, 240_000, 0]);
    }

    /// A flow pair's TCP stream is read when data arrives. If the test fails, the data counts at a wrong time or with a
    /// wrong packet size.
    #[test]
    fn what_a_flow_pair_received_over_tcp_is_reckoned_when_it_is_read() {
        let scenario = Scenario::parse(
            "name = \"one\"\nduration = \"2 s\"\nsample_interval = \"1 s\"\n\n[[link]]\nname = \"link\"\nrate = \"1 Mbit/s\"\n\
             delay = \"1 ms\"\nqueue = \"10 packets\"\n\n[[flow]]\nname = \"pair\"\npath = [\"link\"]\npacket_size = \"588 B\"\n\
             report_interval = \"1 s\"\nkernel = \"reno\"\npair = { adu = \"5120 B\", segment = \"1500 B\" }\n",
        );
        let scenario = scenario.expect("right");
        let (reckoned, mut recorder) = (Reckoned::new(&scenario), Recorder::new(&scenario, Time::ZERO.assume_clock()));
        for (at_ms, segments) in [(300, 4), (999, 6), (1001, 5)] {
            reckoned.record_read(Span::from_millis(at_ms), 0, Size::from_bytes(segments * 1448), &mut recorder);
        }
        let flows = recorder.finish(scenario.duration, &[]);
        let rates: Vec<_> = flows[0].received.iter().map(|sample| sample.rate_bps.round() as u64).collect();
        assert_eq!(rates, [120_000, 60_000]);
    }
}
