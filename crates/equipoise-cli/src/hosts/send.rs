//! `equipoise send`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use equipoise::control::scheduler::{self, BoxedScheduler};
use equipoise::control::{self, BoxedController, Cbr};
use equipoise::units::{Rate, Size, Span};
use equipoise_net::{
    Clock, HostStats, Multipath, MultipathSession, NetError, Observer, PayloadSender, Running, SendConfig, Socket,
    Time, Via, send, send_multipath,
};
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::multipath::{self};
use equipoise_session::rtp::{self, Delays, Payload};
use equipoise_session::{Ecn, Event, PathChange, PathId};
use serde::Serialize;

use super::args::{DelayKind, EcnField, FeedbackFormat, Send};
use super::input::Input;
use super::rate_socket::RateSocket;
use super::results::{SendEnd, SendInterval, SendTally};
use super::writer::{MOST_LINES, Screen, Writer};
use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::Output;

/// The last line of the results as JSON; those before it are the intervals.
#[derive(Debug, Serialize)]
struct Results {
    start: Start,
    end: SendEnd,
    /// Intervals that found no room, as the file or its reader stood still.
    intervals_dropped: u64,
}

/// What was asked for.
#[derive(Debug, Serialize)]
struct Start {
    version: &'static str,
    peer: SocketAddr,
    /// `null` where it sends on several paths, each from an address of its own.
    local: Option<SocketAddr>,
    /// Its paths and what divides the rate among them, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<String>,
    encrypted: bool,
    controller: String,
    target_delay_s: Option<f64>,
    /// What the delays are: `queueing`, `one-way` or `estimated`.
    delay: &'static str,
    packet_size_bytes: u64,
    report_interval_s: f64,
    payload: &'static str,
    /// `null` where it has several sockets.
    timestamps: Option<&'static str>,
}

/// Without anything to send but zeros a session ends by itself after so long, as iperf3's.
const DEFAULT_TIME: Span = Span::from_secs(10);
/// How often the main thread looks around.
const TICK: Duration = Duration::from_millis(20);

/// Runs the command.
pub(crate) fn run(options: &Send) -> Result<Outcome, CliError> {
    let json = options.ends.json.as_deref().map(Output::promise).transpose()?;
    let key = super::key(&options.ends)?;
    let peer = resolve(options)?;
    let stop = catch_interrupt()?;
    let clock = Clock::new();
    let scheduler = scheduler(options)?;
    let mut config = SendConfig {
        packet_size: Size::from_bytes(u64::from(options.length)),
        report_interval: options.report_interval,
        delays: delays(options.delay),
        ecn: ecn(options.ecn),
        reporting: options.feedback.map(|format| reporting(format, options.feedback_interval)),
        ..SendConfig::new(peer, key)
    };
    // Interrupted before anything came, there is nothing to send.
    let Some(input) = Input::of(options, &stop)? else { return Ok(Outcome::Interrupted) };
    (config.payload, config.ssrc) = (input.payload(), input.ssrc());
    let controller = controller(options, config.packet_size)?;
    let source = source(options, peer, scheduler, &clock)?;
    let start = start(options, &config, &source, controller.target_delay());
    let screen = Screen::new(options.ends.quiet || matches!(json, Some(Output::Stdout)));
    let (post, queue) = mpsc::channel();
    let (running, payloads) = source.open(&config, controller, Poster { post })?;
    let origin = clock.now();
    screen.say(&head(&start));
    let offer = options.rate_socket.as_deref().map(RateSocket::open).transpose()?;
    let dropped = Arc::new(AtomicU64::new(0));
    if let Some(payloads) = payloads {
        input.feed(payloads, &stop, &dropped);
    }
    let mut tell_rate = |rate: Rate| {
        if let Some(offer) = &offer {
            let is_multipath = !options.path.is_empty();
            let rate = if is_multipath { config.multipath_payload_rate(rate) } else { config.payload_rate(rate) };
            offer.tell(rate.as_bps());
        }
    };
    let lasts = options.time.or((config.payload == Payload::Generated).then_some(DEFAULT_TIME));
    let lasts = lasts.filter(|time| *time > Span::ZERO);
    let tally = SendTally::of(&start.paths);
    let json = json.map(|file| Writer::start(file, MOST_LINES));
    let mut watch = Watch { tally, rows: 0, interval: options.ends.interval, screen, json };
    let mut end = Span::ZERO;
    while !stop.load(Ordering::Relaxed) && lasts.is_none_or(|lasts| end < lasts) {
        let open = watch.take_in(&queue, origin, &mut tell_rate);
        end = (clock.now() - origin).max(Span::ZERO);
        watch.tell(end);
        if !open || running.is_finished() {
            break;
        }
    }
    // What was measured is written even if the session failed.
    let stopped = running.stop();
    while watch.take_in(&queue, origin, &mut tell_rate) {}
    watch.tally.end.wall_clock_steps = clock.wall_clock_steps();
    watch.tally.end.datagrams_unsent = stopped.as_ref().ok().map(|host| host.socket.unsent);
    finish(watch, start, (end, dropped.load(Ordering::Relaxed)), options.delay)?;
    stopped?;
    Ok(outcome(&stop))
}

/// What the packets leave by.
enum Source {
    Socket(Socket),
    Paths(Clock, Multipath),
}

fn source(options: &Send, peer: SocketAddr, scheduler: BoxedScheduler, clock: &Clock) -> Result<Source, CliError> {
    if options.path.is_empty() {
        let any: IpAddr = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        return Ok(Source::Socket(Socket::bind((options.bind.unwrap_or(any), 0).into(), clock)?));
    }
    let multipath = Multipath::new(options.path.clone(), scheduler);
    // A period has one report at the least.
    let period = options.scheduler_period.unwrap_or(multipath.period.max(options.report_interval));
    Ok(Source::Paths(clock.clone(), Multipath { period, ..multipath }))
}

impl Source {
    fn open(
        self,
        config: &SendConfig,
        controller: BoxedController,
        poster: Poster,
    ) -> Result<(Sending, Option<PayloadSender>), NetError> {
        Ok(match self {
            Self::Socket(socket) => {
                let (running, payloads) = send(socket, config, controller, poster)?;
                (Sending::OnePath(running), payloads)
            }
            Self::Paths(clock, multipath) => {
                let session = send_multipath(&clock, config, multipath, controller, poster)?;
                let MultipathSession { running, payloads, .. } = session;
                (Sending::SeveralPaths(running), payloads)
            }
        })
    }
}

/// A session that goes on.
enum Sending {
    OnePath(Running<rtp::Sender, Poster>),
    SeveralPaths(Running<multipath::Sender, Poster>),
}

impl Sending {
    fn is_finished(&self) -> bool {
        match self {
            Self::OnePath(running) => running.is_finished(),
            Self::SeveralPaths(running) => running.is_finished(),
        }
    }

    fn stop(self) -> Result<HostStats, NetError> {
        match self {
            Self::OnePath(running) => running.stop().map(|finished| finished.stats),
            Self::SeveralPaths(running) => running.stop().map(|finished| finished.stats),
        }
    }
}

/// What the session's thread tells.
enum Note {
    /// Of one of several paths, or of the session.
    Event(Option<PathId>, Event),
    Path(PathId, PathChange),
}

/// Posts what happens to the main thread, which outlives the session.
struct Poster {
    post: mpsc::Sender<(Time, Note)>,
}

impl Observer for Poster {
    fn on_event(&mut self, now: Time, event: &Event) {
        let _ = self.post.send((now, Note::Event(None, *event)));
    }

    fn on_path_event(&mut self, now: Time, path: PathId, event: &Event) {
        let _ = self.post.send((now, Note::Event(Some(path), *event)));
    }

    fn on_path(&mut self, now: Time, path: PathId, change: PathChange) {
        let _ = self.post.send((now, Note::Path(path, change)));
    }
}

/// Prints and writes what came of it.
fn finish(watch: Watch, start: Start, (end, dropped): (Span, u64), delay: DelayKind) -> Result<(), CliError> {
    let mut summary = watch.tally.finish(end);
    summary.payload_dropped = dropped;
    watch.screen.say(&foot(&summary, delay));
    watch.screen.finish();
    let Some(json) = watch.json else { return Ok(()) };
    let results = Results { start, end: summary, intervals_dropped: json.inlet().dropped() };
    json.fulfil(&results)
}

/// The main thread's side.
struct Watch {
    tally: SendTally,
    rows: u64,
    interval: Span,
    screen: Screen,
    json: Option<Writer>,
}

impl Watch {
    /// Takes what came within a tick. False once nobody is left to tell anything.
    ///
    /// It sleeps rather than waits: to be woken for every packet would cost as much as sending it.
    fn take_in(&mut self, queue: &mpsc::Receiver<(Time, Note)>, origin: Time, decided: &mut dyn FnMut(Rate)) -> bool {
        thread::sleep(TICK);
        loop {
            match queue.try_recv() {
                Ok((at, note)) => {
                    self.tell(at - origin);
                    match note {
                        Note::Event(None, event) => {
                            self.tally.on_event(&event);
                            if let Event::RateDecided { rate, .. } = event {
                                decided(rate);
                            }
                        }
                        Note::Event(Some(path), event) => self.tally.on_path_event(usize::from(path.0), &event),
                        Note::Path(path, change) => self.tally.on_path(usize::from(path.0), change),
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Prints and writes the intervals that ended before `at`.
    fn tell(&mut self, at: Span) {
        while at.as_secs_f64() >= self.tally.now.start_s + self.interval.as_secs_f64() {
            let ends = Span::from_secs_f64(self.tally.now.start_s).unwrap_or_default() + self.interval;
            let interval = self.tally.close(ends);
            if self.rows.is_multiple_of(20) {
                self.screen.say(
                    "     time       sent    allowed     waits   delay: mean   deviation  round trip    lost  decided by\n",
                );
            }
            self.rows += 1;
            self.screen.say(&line(&format!("{:7.1} s", interval.end_s), &interval, interval.decided_by().as_deref()));
            for part in &interval.paths {
                let by = if part.state == "up" { part.interval.decided_by() } else { Some(part.state.to_owned()) };
                self.screen.say(&line(&format!("{:>9}", part.path), &part.interval, by.as_deref()));
            }
            if let Some(json) = &self.json {
                json.line(&interval);
            }
        }
    }
}

fn line(name: &str, of: &SendInterval, decided_by: Option<&str>) -> String {
    let millis = |seconds: Option<f64>| seconds.map_or(format!("{:>9}", "-"), |s| format!("{:6.2} ms", s * 1e3));
    let megabits = |bps: f64| format!("{:6.2}", bps / 1e6);
    format!(
        "{name} {} M  {} M {}     {}   {}   {} {:>6}  {}\n",
        megabits(of.rate_bps),
        of.target_rate_bps.map_or_else(|| "     -".to_owned(), megabits),
        millis(Some(of.waited_max_s)),
        millis(of.delay_mean_s),
        millis(of.delay_deviation_s),
        millis(of.round_trip_s),
        of.fraction_lost.map_or_else(|| "-".to_owned(), |lost| format!("{:.1} %", lost * 100.0)),
        decided_by.unwrap_or("-"),
    )
}

fn head(start: &Start) -> String {
    let secure = if start.encrypted { "encrypted" } else { "not encrypted, not authenticated" };
    let target = start
        .target_delay_s
        .map_or(String::new(), |target| format!(", {} delay held at {:.1} ms", start.delay, target * 1e3));
    let from = start.local.map_or_else(
        || format!("by {} (split {})", start.paths.join(", "), start.split.as_deref().unwrap_or("-")),
        |local| format!("from {local}"),
    );
    format!("sending {} {from} to {}: {secure}; {}{target}\n", start.payload, start.peer, start.controller)
}

fn foot(end: &SendEnd, delay: DelayKind) -> String {
    let mut text =
        format!("\n{:.1} s, {} packets, {:.3} Mbit/s sent", end.duration_s, end.packets_sent, end.rate_bps / 1e6);
    if let Some(lost) = end.packets_lost {
        text.push_str(&format!("; {lost} lost by the receiver's last report"));
    }
    if let Some(mean) = end.delay_mean_s {
        text.push_str(&format!("; {} delay {:.2} ms on average", words(delay), mean * 1e3));
    }
    text.push('\n');
    if let Some(clocks) = end.clocks {
        text.push_str(&format!(
            "the receiver's clock is ahead by {:.3} ms, give or take {:.3} ms",
            clocks.offset_s * 1e3,
            clocks.uncertainty_s * 1e3
        ));
        if let (Some(ppm), Some(within)) = (clocks.drift_ppm, clocks.drift_uncertainty_ppm) {
            text.push_str(&format!(", and gains {ppm:.1} ppm, give or take {within:.1}"));
        }
        text.push('\n');
    }
    let counted = [
        (end.clock_steps.len() as u64, "steps of one host's clock against the other's"),
        (end.wall_clock_steps, "times this host's wall clock was set, which moved no delay"),
        (end.reports_missing, "times three reports were missing"),
        (
            end.circuit_strained,
            "times the rate was cut to a tenth: losses were more than ten times TCP's rate would bear",
        ),
        (end.ecn_failed, "paths on which ECN was given up: no packet came that still said it may be marked"),
        (end.pacing_resets, "times the sender was late by a packet or more"),
        (end.payload_dropped, "packets of the other program found no room"),
        (end.payload_expired, "packets of the other program had waited too long and were dropped"),
    ];
    for (count, what) in counted.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("{count} {what}\n"));
    }
    for (breaker, count) in &end.circuit_broken {
        text.push_str(&format!("{count} times the media was stopped by the circuit breaker {breaker}\n"));
    }
    for path in &end.paths {
        text.push_str(&format!("{}: {} packets", path.path, path.packets_sent));
        if path.times_down > 0 {
            text.push_str(&format!(", {} times down", path.times_down));
        }
        for (breaker, count) in &path.circuit_broken {
            text.push_str(&format!(", {count} times left alone by the circuit breaker {breaker}"));
        }
        text.push('\n');
    }
    for (reason, count) in &end.ignored {
        text.push_str(&format!("{count} datagrams dropped as {reason}\n"));
    }
    text
}

fn start(options: &Send, config: &SendConfig, source: &Source, target: Option<Span>) -> Start {
    let socket = if let Source::Socket(socket) = source { Some(socket) } else { None };
    Start {
        version: env!("CARGO_PKG_VERSION"),
        peer: config.peer,
        local: socket.map(Socket::address),
        paths: options.path.iter().map(Via::to_string).collect(),
        split: socket.is_none().then(|| options.scheduler.clone()),
        encrypted: config.key.is_some(),
        controller: if options.bitrate.is_some() { "cbr".to_owned() } else { options.controller().to_owned() },
        target_delay_s: target.map(Span::as_secs_f64),
        delay: words(options.delay),
        packet_size_bytes: config.packet_size.as_bytes(),
        report_interval_s: config.report_interval.as_secs_f64(),
        payload: match config.payload {
            Payload::Generated => "zeros",
            Payload::Stream => "a stream",
            Payload::Rtp => "another program's RTP",
        },
        timestamps: socket.map(|socket| socket.timestamps().name()),
    }
}

const fn words(delay: DelayKind) -> &'static str {
    match delay {
        DelayKind::Queueing => "queueing",
        DelayKind::OneWay => "one-way",
        DelayKind::Estimated => "estimated one-way",
    }
}

const fn delays(kind: DelayKind) -> Delays {
    match kind {
        DelayKind::Queueing => Delays::Queueing,
        DelayKind::OneWay => Delays::Synchronised,
        DelayKind::Estimated => Delays::Estimated,
    }
}

const fn reporting(format: FeedbackFormat, interval: Span) -> Reporting {
    let format = match format {
        FeedbackFormat::Rfc8888 => Format::CongestionFeedback,
        FeedbackFormat::Twcc => Format::TransportWide,
    };
    Reporting { format, interval }
}

const fn ecn(field: EcnField) -> Ecn {
    match field {
        EcnField::Off => Ecn::NotCapable,
        EcnField::Ect0 => Ecn::Ect0,
        EcnField::Ect1 => Ecn::Ect1,
    }
}

fn resolve(options: &Send) -> Result<SocketAddr, RealError> {
    let failed = |source| RealError::Host { host: options.host.clone(), source };
    let mut found = (options.host.as_str(), options.ends.port).to_socket_addrs().map_err(failed)?;
    let wanted = |address: &SocketAddr| !(options.four && address.is_ipv6() || options.six && address.is_ipv4());
    found.find(wanted).ok_or_else(|| failed(io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

/// The delay that is held where none is asked for.
const USUAL_TARGET: Span = Span::from_millis(20);

fn controller(options: &Send, packet: Size) -> Result<BoxedController, RealError> {
    if let Some(rate) = options.bitrate {
        return Ok(Box::new(Cbr::new(rate)));
    }
    let name = options.controller();
    let entry = control::find(name).ok_or_else(|| RealError::UnknownController {
        name: name.to_owned(),
        known: control::entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    let target = options.target.unwrap_or(USUAL_TARGET);
    let [target, min, max] = [target.to_string(), options.min_rate.to_string(), options.max_rate.to_string()];
    let start = options.start_rate.map(|rate| rate.to_string());
    let mut given = vec![("target", target.as_str()), ("min_rate", &min), ("max_rate", &max)];
    given.extend(start.as_deref().map(|start| ("initial_rate", start)));
    given.retain(|(name, _)| entry.parameters.iter().any(|parameter| parameter.name == *name));
    for (name, value) in pairs(&options.set) {
        given.retain(|(other, _)| *other != name);
        given.push((name, value));
    }
    let failed = |source| RealError::Controller { name: name.to_owned(), source };
    entry.parse(&given).and_then(|parameters| entry.build(&parameters, packet)).map_err(failed)
}

fn scheduler(options: &Send) -> Result<BoxedScheduler, RealError> {
    let name = options.scheduler.as_str();
    let entry = scheduler::find(name).ok_or_else(|| RealError::UnknownScheduler {
        name: name.to_owned(),
        known: scheduler::entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    let failed = |source| RealError::Scheduler { name: name.to_owned(), source };
    let packet = Size::from_bytes(u64::from(options.length));
    let given: Vec<_> = pairs(&options.scheduler_set).collect();
    entry.parse(&given).and_then(|parameters| entry.build(&parameters, packet)).map_err(failed)
}

/// Names and values of parameters.
fn pairs(set: &[String]) -> impl Iterator<Item = (&str, &str)> {
    set.iter().map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}
