//! `equipoise receive`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use equipoise::units::Span;
use equipoise_net::{Clock, End, Server, ServerConfig, Session, SessionObserver, Socket, SocketStats, Time};
use equipoise_session::rtp::{Payload, ReorderConfig};
use equipoise_session::{DropReason, Event, PathId};
use serde::Serialize;

use super::args::Receive;
use super::results::{ReceiveEnd, ReceiveInterval, ReceiveTally};
use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::{Output, say};

/// The results as JSON.
#[derive(Debug, Serialize)]
struct Results {
    start: Start,
    sessions: Vec<SessionResult>,
    /// Datagrams that belong to no session, by reason.
    ignored: BTreeMap<&'static str, u64>,
    /// Datagrams that this host's kernel refused to send; `null` if the server failed.
    datagrams_unsent: Option<u64>,
    /// How often this host's wall clock was found to be set; it moves no delay.
    wall_clock_steps: u64,
}

#[derive(Debug, Serialize)]
struct Start {
    version: &'static str,
    local: SocketAddr,
    encrypted: bool,
    timestamps: &'static str,
}

/// One session.
#[derive(Debug, Serialize)]
struct SessionResult {
    number: u64,
    peer: SocketAddr,
    ssrc: u32,
    payload: &'static str,
    is_multipath: bool,
    /// Why it is over; `null` while it is not.
    ended: Option<&'static str>,
    intervals: Vec<ReceiveInterval>,
    end: ReceiveEnd,
}

/// How often the main thread looks around.
const TICK: Duration = Duration::from_millis(20);
/// Sessions whose intervals are kept for the results; of later ones only the end is.
const DETAILED: usize = 1000;

/// What the server's thread tells.
enum Note {
    Opened(Time, Session),
    /// Of a session, of its path where it has several.
    Event(Time, u64, Option<PathId>, Event),
    Payload(u64, u64, Vec<u8>),
    Ended(Time, u64, End),
    Ignored(DropReason),
}

/// Posts what happens to the main thread; RTP it plays out itself, without a detour.
struct Poster {
    post: mpsc::Sender<Note>,
    rtp: Option<(UdpSocket, SocketAddr)>,
    wants_payload: bool,
}

impl SessionObserver for Poster {
    fn on_open(&mut self, now: Time, session: &Session) {
        let _ = self.post.send(Note::Opened(now, *session));
    }

    fn on_event(&mut self, now: Time, session: &Session, event: &Event) {
        let _ = self.post.send(Note::Event(now, session.number, None, *event));
    }

    fn on_path_event(&mut self, now: Time, session: &Session, path: PathId, event: &Event) {
        let _ = self.post.send(Note::Event(now, session.number, Some(path), *event));
    }

    fn on_payload(&mut self, _now: Time, session: &Session, missing: u64, payload: &[u8]) {
        if let (Payload::Rtp, Some((socket, to))) = (session.payload, &self.rtp) {
            // A player that is not there yet is no reason to stop.
            let _ = socket.send_to(payload, to);
        }
        let kept = if self.wants_payload { payload.to_vec() } else { vec![0; 0] };
        let _ = self.post.send(Note::Payload(session.number, missing, kept));
    }

    fn on_end(&mut self, now: Time, session: &Session, why: End) {
        let _ = self.post.send(Note::Ended(now, session.number, why));
    }

    fn on_ignored(&mut self, _now: Time, reason: DropReason) {
        let _ = self.post.send(Note::Ignored(reason));
    }
}

/// Runs the command.
pub(crate) fn run(options: &Receive) -> Result<Outcome, CliError> {
    let json = options.ends.json.as_deref().map(Output::promise).transpose()?;
    let output = options.output.as_deref().map(Output::promise).transpose()?;
    let key = super::key(&options.ends)?;
    let stop = catch_interrupt()?;
    let clock = Clock::new();
    // The unspecified IPv6 address receives IPv4 as well.
    let bind = options.bind.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let socket = Socket::bind((bind, options.ends.port).into(), &clock)?;
    let start = Start {
        version: env!("CARGO_PKG_VERSION"),
        local: socket.address(),
        encrypted: key.is_some(),
        timestamps: socket.timestamps().name(),
    };
    let rtp = options.rtp.map(|to| play_out(to).map(|socket| (socket, to))).transpose()?;
    let config = ServerConfig {
        reorder: ReorderConfig { hold: options.hold, ..ReorderConfig::default() },
        most_sessions: options.most_sessions,
        idle: options.idle,
        ..ServerConfig::new(key)
    };
    let (post, queue) = mpsc::channel();
    let poster = Poster { post, rtp, wants_payload: output.is_some() };
    let server = Server::start(socket, config, poster)?;
    let stdout_is_taken = [&json, &output].iter().any(|file| matches!(file, Some(Output::Stdout)));
    let quiet = options.ends.quiet || stdout_is_taken;
    let secure = if start.encrypted { "encrypted sessions" } else { "sessions without encryption or authentication" };
    say(quiet, &format!("receiving {secure} at {}\n", start.local));
    let mut watch = Watch::new(output, options.ends.interval, quiet);
    let origin = clock.now();
    while !stop.load(Ordering::Relaxed) && options.time.is_none_or(|lasts| clock.now() - origin < lasts) {
        let open = watch.take_in(&queue, TICK)?;
        watch.tell(clock.now());
        if !open || server.is_finished() || options.one_off && watch.ended > 0 && watch.live.is_empty() {
            break;
        }
    }
    // What was measured is written even if the server failed.
    let stopped = server.stop();
    while watch.take_in(&queue, Duration::ZERO)? {}
    let socket = stopped.as_ref().ok().map(|(_, host)| host.socket);
    finish(watch, start, socket, &clock, json)?;
    stopped?;
    Ok(outcome(&stop))
}

/// Writes what came of it.
fn finish(
    mut watch: Watch,
    start: Start,
    socket: Option<SocketStats>,
    clock: &Clock,
    json: Option<Output>,
) -> Result<(), CliError> {
    // Those that a server left behind that failed.
    while let Some(number) = watch.live.keys().next().copied() {
        watch.end(clock.now(), number, End::Stopped);
    }
    if let Some(output) = watch.output.take() {
        output.finish()?;
    }
    if let Some(unanswerable) = socket.map(|socket| socket.unanswerable).filter(|count| *count > 0) {
        watch.ignored.insert("unanswerable", unanswerable);
    }
    let results = Results {
        start,
        sessions: watch.done,
        ignored: watch.ignored,
        datagrams_unsent: socket.map(|socket| socket.unsent),
        wall_clock_steps: clock.wall_clock_steps(),
    };
    if let Some(json) = json {
        // Numbers and texts always have a JSON form.
        json.fulfil(&format!("{}\n", serde_json::to_string_pretty(&results).unwrap_or_default()))?;
    }
    Ok(())
}

fn play_out(to: SocketAddr) -> Result<UdpSocket, RealError> {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { std::net::Ipv4Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).map_err(|source| RealError::Input { what: format!("a socket to {to}"), source })
}

/// A session that goes on.
struct Live {
    opened: Time,
    result: SessionResult,
    tally: ReceiveTally,
}

/// The main thread's side.
struct Watch {
    output: Option<Output>,
    interval: Span,
    quiet: bool,
    rows: usize,
    live: BTreeMap<u64, Live>,
    done: Vec<SessionResult>,
    ended: u64,
    ignored: BTreeMap<&'static str, u64>,
}

impl Watch {
    fn new(output: Option<Output>, interval: Span, quiet: bool) -> Self {
        let (live, ignored) = (BTreeMap::new(), BTreeMap::new());
        Self { output, interval, quiet, rows: 0, live, done: Vec::new(), ended: 0, ignored }
    }

    /// Takes what came within `wait`. False once nobody is left to tell anything, or nothing came in no time.
    fn take_in(&mut self, queue: &mpsc::Receiver<Note>, wait: Duration) -> Result<bool, CliError> {
        // To be woken for every packet would cost as much as receiving it.
        thread::sleep(wait);
        loop {
            match queue.try_recv() {
                Ok(note) => self.take(note)?,
                Err(TryRecvError::Empty) => return Ok(wait > Duration::ZERO),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    fn take(&mut self, note: Note) -> Result<(), CliError> {
        match note {
            Note::Opened(at, session) => self.open(at, session),
            Note::Event(at, number, path, event) => {
                if let Some(live) = self.live.get_mut(&number) {
                    let lines = live.tell(at, self.interval);
                    match path {
                        Some(path) => live.tally.on_path_event(path, &event),
                        None => live.tally.on_event(&event),
                    }
                    self.print(&lines);
                }
            }
            Note::Payload(number, missing, payload) => {
                if let Some(live) = self.live.get_mut(&number) {
                    live.tally.end.payload_missing += missing;
                    live.tally.end.payload_bytes += payload.len() as u64;
                }
                if let (0, Some(output)) = (number, &mut self.output) {
                    output.append(&payload)?;
                }
            }
            Note::Ended(at, number, why) => self.end(at, number, why),
            Note::Ignored(reason) => *self.ignored.entry(reason.name()).or_default() += 1,
        }
        Ok(())
    }

    fn open(&mut self, at: Time, session: Session) {
        let payload = match session.payload {
            Payload::Generated => "zeros",
            Payload::Stream => "a stream",
            Payload::Rtp => "another program's RTP",
        };
        let paths = if session.is_multipath { ", on several paths" } else { "" };
        say(self.quiet, &format!("session {}: {payload} from {}{paths}\n", session.number, session.peer));
        let result = SessionResult {
            number: session.number,
            peer: session.peer,
            ssrc: session.ssrc,
            payload,
            is_multipath: session.is_multipath,
            ended: None,
            intervals: Vec::new(),
            end: ReceiveEnd::default(),
        };
        self.live.insert(session.number, Live { opened: at, result, tally: ReceiveTally::default() });
    }

    fn end(&mut self, at: Time, number: u64, why: End) {
        let Some(mut live) = self.live.remove(&number) else { return };
        self.ended += 1;
        let lines = live.tell(at, self.interval);
        self.print(&lines);
        live.result.end = live.tally.finish((at - live.opened).max(Span::ZERO));
        let why = match why {
            End::Goodbye => "the sender said goodbye",
            End::Silence => "the sender fell silent",
            End::Stopped => "the receiver was stopped",
        };
        live.result.ended = Some(why);
        let end = &live.result.end;
        say(
            self.quiet,
            &format!(
                "session {number}: {why} after {:.1} s; {} packets received, {} lost, {:.3} Mbit/s\n",
                end.duration_s,
                end.packets_received,
                end.packets_lost,
                end.rate_bps / 1e6
            ),
        );
        if self.done.len() >= DETAILED {
            live.result.intervals.clear();
        }
        self.done.push(live.result);
    }

    /// Prints the intervals that ended before `now`.
    fn tell(&mut self, now: Time) {
        let lines: Vec<_> = self.live.values_mut().flat_map(|live| live.tell(now, self.interval)).collect();
        self.print(&lines);
    }

    fn print(&mut self, lines: &[String]) {
        for line in lines {
            if self.rows.is_multiple_of(20) {
                say(self.quiet, "session     time     received  packets   delay since the first\n");
            }
            self.rows += 1;
            say(self.quiet, line);
        }
    }
}

impl Live {
    /// Closes the intervals that ended before `now`, with a line for each.
    fn tell(&mut self, now: Time, interval: Span) -> Vec<String> {
        let mut lines = Vec::new();
        let at = (now - self.opened).as_secs_f64();
        while at >= self.tally.now.start_s + interval.as_secs_f64() {
            let ends = Span::from_secs_f64(self.tally.now.start_s).unwrap_or_default() + interval;
            let closed = self.tally.close(ends);
            lines.push(line(&format!("{:7} {:6.1} s", self.result.number, closed.end_s), &closed));
            lines.extend(closed.paths.iter().map(|(path, part)| line(&format!("path {path:11}"), part)));
            self.result.intervals.push(closed);
        }
        lines
    }
}

fn line(of: &str, interval: &ReceiveInterval) -> String {
    let delay = interval.shown_delay_mean_s.map_or("-".to_owned(), |delay| format!("{:+.2} ms", delay * 1e3));
    format!("{of} {:6.2} Mbit/s {:8}   {delay:>12}\n", interval.rate_bps / 1e6, interval.packets)
}
