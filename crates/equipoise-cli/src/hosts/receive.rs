//! `equipoise receive`.

use std::collections::BTreeMap;
use std::io::Write as _;
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
use super::results::{ReceiveEnd, ReceiveInterval, ReceiveTally, Together};
use super::writer::{Inlet, MOST_LINES, MOST_PAYLOAD, Screen, Writer};
use crate::error::{CliError, RealError};
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::Output;

/// The last line of the results as JSON; those before it are the intervals.
#[derive(Debug, Serialize)]
struct Results {
    start: Start,
    /// The first that ended, in that order.
    sessions: Vec<SessionResult>,
    /// What the others came to, together.
    more_sessions: Together,
    /// Intervals that found no room, as the file or its reader stood still.
    intervals_dropped: u64,
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
    end: ReceiveEnd,
}

/// How often the main thread looks around.
const TICK: Duration = Duration::from_millis(20);
/// Sessions that the results have one by one; what later ones came to is added up.
const DETAILED: usize = 1000;

/// An interval of a session, as a line of the results.
#[derive(Serialize)]
struct IntervalLine<'a> {
    session: u64,
    #[serde(flatten)]
    interval: &'a ReceiveInterval,
}

/// What the server's thread tells.
enum Note {
    Opened(Time, Session),
    /// Of a session, of its path where it has several.
    Event(Time, u64, Option<PathId>, Event),
    Payload(u64, Given),
    Ended(Time, u64, End),
    Ignored(DropReason),
}

/// Payload that a session gave out.
struct Given {
    missing: u64,
    bytes: u64,
    /// It found no room.
    is_dropped: bool,
}

/// Posts what happens to the main thread, which never waits for a reader. What is written or played out takes no detour.
struct Poster {
    post: mpsc::Sender<Note>,
    rtp: Option<(UdpSocket, SocketAddr)>,
    output: Option<Inlet>,
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
        let output = self.output.as_ref().filter(|_| session.number == 0);
        let is_dropped = output.is_some_and(|output| !output.offer(payload.to_vec()));
        let given = Given { missing, bytes: payload.len() as u64, is_dropped };
        let _ = self.post.send(Note::Payload(session.number, given));
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
    let (screen, json, output) = outputs(options)?;
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
    let poster = Poster { post, rtp, output: output.as_ref().map(|output| output.inlet().clone()) };
    let server = Server::start(socket, config, poster)?;
    let secure = if start.encrypted { "encrypted sessions" } else { "sessions without encryption or authentication" };
    screen.say(&format!("receiving {secure} at {}\n", start.local));
    let mut watch = Watch::new(screen, json, options.ends.interval);
    let has_failed = || output.as_ref().is_some_and(Writer::has_failed);
    let origin = clock.now();
    while !stop.load(Ordering::Relaxed) && options.time.is_none_or(|lasts| clock.now() - origin < lasts) {
        let open = watch.take_in(&queue, TICK);
        watch.tell(clock.now());
        let is_over = server.is_finished() || options.one_off && watch.ended > 0 && watch.live.is_empty();
        if !open || is_over || has_failed() {
            break;
        }
    }
    // What was measured is written even if the server or the output failed.
    let stopped = server.stop();
    while watch.take_in(&queue, Duration::ZERO) {}
    let socket = stopped.as_ref().ok().map(|(_, host)| host.socket);
    let told = finish(watch, start, socket, &clock);
    output.map_or(Ok(()), |output| output.finish()?.finish())?;
    told?;
    stopped?;
    Ok(outcome(&stop))
}

/// What it writes to: lines for a person, results, payload.
fn outputs(options: &Receive) -> Result<(Screen, Option<Writer>, Option<Writer>), CliError> {
    let json = options.ends.json.as_deref().map(Output::promise).transpose()?;
    let output = options.output.as_deref().map(Output::promise).transpose()?;
    let stdout_is_taken = [&json, &output].iter().any(|file| matches!(file, Some(Output::Stdout)));
    let screen = Screen::new(options.ends.quiet || stdout_is_taken);
    let json = json.map(|file| Writer::start(file, MOST_LINES));
    Ok((screen, json, output.map(|file| Writer::start(file, MOST_PAYLOAD))))
}

/// Writes what came of it.
fn finish(mut watch: Watch, start: Start, socket: Option<SocketStats>, clock: &Clock) -> Result<(), CliError> {
    // Those that a server left behind that failed.
    while let Some(number) = watch.live.keys().next().copied() {
        watch.end(clock.now(), number, End::Stopped);
    }
    watch.screen.finish();
    if let Some(unanswerable) = socket.map(|socket| socket.unanswerable).filter(|count| *count > 0) {
        watch.ignored.insert("unanswerable", unanswerable);
    }
    let Some(json) = watch.json else { return Ok(()) };
    let results = Results {
        start,
        sessions: watch.done,
        more_sessions: watch.more,
        intervals_dropped: json.inlet().dropped(),
        ignored: watch.ignored,
        datagrams_unsent: socket.map(|socket| socket.unsent),
        wall_clock_steps: clock.wall_clock_steps(),
    };
    json.fulfil(&results)
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
    screen: Screen,
    json: Option<Writer>,
    interval: Span,
    rows: usize,
    live: BTreeMap<u64, Live>,
    done: Vec<SessionResult>,
    more: Together,
    ended: u64,
    ignored: BTreeMap<&'static str, u64>,
}

impl Watch {
    fn new(screen: Screen, json: Option<Writer>, interval: Span) -> Self {
        let (live, done, ignored) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { screen, json, interval, rows: 0, live, done, more: Together::default(), ended: 0, ignored }
    }

    /// Takes what came within `wait`. False once nobody is left to tell anything, or nothing came in no time.
    fn take_in(&mut self, queue: &mpsc::Receiver<Note>, wait: Duration) -> bool {
        // To be woken for every packet would cost as much as receiving it.
        thread::sleep(wait);
        loop {
            match queue.try_recv() {
                Ok(note) => self.take(note),
                Err(TryRecvError::Empty) => return wait > Duration::ZERO,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Opened(at, session) => self.open(at, session),
            Note::Event(at, number, path, event) => {
                if let Some(live) = self.live.get_mut(&number) {
                    let closed = live.close(at, self.interval);
                    match path {
                        Some(path) => live.tally.on_path_event(path, &event),
                        None => live.tally.on_event(&event),
                    }
                    self.show(number, &closed);
                }
            }
            Note::Payload(number, given) => {
                if let Some(live) = self.live.get_mut(&number) {
                    live.tally.on_payload(given.missing, given.bytes, given.is_dropped);
                }
            }
            Note::Ended(at, number, why) => self.end(at, number, why),
            Note::Ignored(reason) => *self.ignored.entry(reason.name()).or_default() += 1,
        }
    }

    fn open(&mut self, at: Time, session: Session) {
        let payload = match session.payload {
            Payload::Generated => "zeros",
            Payload::Stream => "a stream",
            Payload::Rtp => "another program's RTP",
        };
        let paths = if session.is_multipath { ", on several paths" } else { "" };
        self.screen.say(&format!("session {}: {payload} from {}{paths}\n", session.number, session.peer));
        let result = SessionResult {
            number: session.number,
            peer: session.peer,
            ssrc: session.ssrc,
            payload,
            is_multipath: session.is_multipath,
            ended: None,
            end: ReceiveEnd::default(),
        };
        self.live.insert(session.number, Live { opened: at, result, tally: ReceiveTally::default() });
    }

    fn end(&mut self, at: Time, number: u64, why: End) {
        let Some(mut live) = self.live.remove(&number) else { return };
        self.ended += 1;
        let closed = live.close(at, self.interval);
        self.show(number, &closed);
        live.result.end = live.tally.finish((at - live.opened).max(Span::ZERO));
        let why = match why {
            End::Goodbye => "the sender said goodbye",
            End::Silence => "the sender fell silent",
            End::Stopped => "the receiver was stopped",
        };
        live.result.ended = Some(why);
        let end = &live.result.end;
        let marked = if end.packets_marked > 0 { format!(", {} marked", end.packets_marked) } else { String::new() };
        self.screen.say(&format!(
            "session {number}: {why} after {:.1} s; {} packets received{marked}, {} lost, {:.3} Mbit/s\n",
            end.duration_s,
            end.packets_received,
            end.packets_lost,
            end.rate_bps / 1e6
        ));
        if end.payload_dropped > 0 {
            // Where the payload goes to standard output this is its one way to a person.
            let dropped = end.payload_dropped;
            let _ = writeln!(
                anstream::stderr(),
                "warning: the payload of {dropped} packets was dropped, as the reader of --output stood still"
            );
        }
        if self.done.len() < DETAILED {
            self.done.push(live.result);
        } else {
            self.more.add(end);
        }
    }

    /// Prints and writes the intervals that ended before `now`.
    fn tell(&mut self, now: Time) {
        let all = self.live.iter_mut();
        let closed: Vec<_> = all.map(|(number, live)| (*number, live.close(now, self.interval))).collect();
        for (number, closed) in &closed {
            self.show(*number, closed);
        }
    }

    /// Prints and writes intervals of a session.
    fn show(&mut self, session: u64, closed: &[ReceiveInterval]) {
        for interval in closed {
            if let Some(json) = &self.json {
                json.line(&IntervalLine { session, interval });
            }
            self.print(&line(&format!("{session:7} {:6.1} s", interval.end_s), interval));
            for (path, part) in &interval.paths {
                self.print(&line(&format!("path {path:11}"), part));
            }
        }
    }

    fn print(&mut self, line: &str) {
        if self.rows.is_multiple_of(20) {
            self.screen.say("session     time     received  packets   delay since the first\n");
        }
        self.rows += 1;
        self.screen.say(line);
    }
}

impl Live {
    /// Closes the intervals that ended before `now`.
    fn close(&mut self, now: Time, interval: Span) -> Vec<ReceiveInterval> {
        let mut closed = Vec::new();
        let at = (now - self.opened).as_secs_f64();
        while at >= self.tally.now.start_s + interval.as_secs_f64() {
            let ends = Span::from_secs_f64(self.tally.now.start_s).unwrap_or_default() + interval;
            closed.push(self.tally.close(ends));
        }
        closed
    }
}

fn line(of: &str, interval: &ReceiveInterval) -> String {
    let delay = interval.shown_delay_mean_s.map_or("-".to_owned(), |delay| format!("{:+.2} ms", delay * 1e3));
    format!("{of} {:6.2} Mbit/s {:8}   {delay:>12}\n", interval.rate_bps / 1e6, interval.packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, a receiver that runs for months ends for want of memory.
    #[test]
    fn of_sessions_beyond_the_first_thousand_only_the_sum_is_kept() {
        let mut watch = Watch::new(Screen::new(true), None, Span::from_secs(1));
        let peer = (Ipv6Addr::LOCALHOST, 1).into();
        let more = 500;
        for number in 0..DETAILED as u64 + more {
            let session = Session { number, peer, ssrc: 1, payload: Payload::Stream, is_multipath: false };
            watch.take(Note::Opened(Time::ZERO, session));
            watch.take(Note::Payload(number, Given { missing: 2, bytes: 100, is_dropped: false }));
            watch.take(Note::Ended(Time::ZERO + Span::from_secs(100), number, End::Goodbye));
        }
        assert_eq!((watch.done.len(), watch.ended), (DETAILED, DETAILED as u64 + more));
        assert_eq!((watch.more.sessions, watch.more.payload_missing), (more, 2 * more));
    }
}
