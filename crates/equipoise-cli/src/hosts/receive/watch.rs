//! The main thread of `equipoise receive`: sums up the server's events for each interval and each session, and prints
//! and writes the sums.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use equipoise::units::Span;
use equipoise_net::{End, Session, Time};
use equipoise_session::rtp::Payload;
use equipoise_session::{DropReason, Event, PathId};
use serde::Serialize;

use super::super::lines::{self, Heads};
use super::super::results::{self, Direction, Interval, ReceiveEnd, Tally, Together};
use crate::views::Views;
use crate::views::told::{Open, Told};
use crate::writer::{Screen, Writer};

/// The results of one session.
#[derive(Debug, Serialize)]
pub(super) struct SessionResult {
    number: u64,
    peer: SocketAddr,
    ssrc: u32,
    payload: &'static str,
    direction: Direction,
    is_multipath: bool,
    /// Why the session ended; `null` while it is open.
    ended: Option<&'static str>,
    end: Option<results::End>,
}

/// Maximum number of sessions that the results list one by one. Sessions that end later are only summed up.
const DETAILED: usize = 1000;

/// A line of the JSON results: one interval of one session.
#[derive(Serialize)]
struct IntervalLine<'a> {
    session: u64,
    #[serde(flatten)]
    interval: &'a Interval,
}

/// A message from the server's thread to the main thread.
pub(super) enum Note {
    Opened(Time, Session),
    /// An event of a session, or of one of the paths of a multipath session.
    Event(Time, u64, Option<PathId>, Event),
    Payload(u64, Given),
    Ended(Time, u64, End),
    Ignored(DropReason),
}

/// Describes payload that a session delivered.
pub(super) struct Given {
    pub(super) missing: u64,
    pub(super) bytes: u64,
    /// Whether the payload is audio: its SSRC differs from the session's SSRC.
    pub(super) is_audio: bool,
    /// Whether the payload was dropped, because the queue of the output was full.
    pub(super) is_dropped: bool,
}

/// An open session.
struct Live {
    opened: Time,
    /// The time at which the session was opened, in seconds since the start of the run.
    opened_s: f64,
    result: SessionResult,
    tally: Tally,
}

/// The outputs to which the main thread writes the results.
pub(super) struct Outputs {
    pub(super) screen: Screen,
    pub(super) json: Option<Writer>,
    pub(super) views: Views,
}

/// Collects the events of the server on the main thread.
pub(super) struct Watch {
    pub(super) outputs: Outputs,
    /// The time at which the run started.
    pub(super) origin: Time,
    interval: Span,
    heads: Heads,
    live: BTreeMap<u64, Live>,
    pub(super) done: Vec<SessionResult>,
    pub(super) more: Together,
    ended: u64,
    pub(super) ignored: BTreeMap<&'static str, u64>,
}

impl Watch {
    pub(super) fn new(outputs: Outputs, origin: Time, interval: Span) -> Self {
        let (live, done, ignored) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self {
            outputs,
            origin,
            interval,
            heads: Heads::default(),
            live,
            done,
            more: Together::default(),
            ended: 0,
            ignored,
        }
    }

    /// Sleeps for `wait`, then handles all messages that have arrived. Returns false if `wait` is zero, or if the
    /// server's thread has closed the channel; otherwise true.
    pub(super) fn take_in(&mut self, queue: &mpsc::Receiver<Note>, wait: Duration) -> bool {
        // The thread sleeps instead of waiting for each message, because waking up for every packet would cost as much
        // as receiving the packet.
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
                    live.tally.on_event(path, &event);
                    let opened_s = live.opened_s;
                    self.show(number, opened_s, &closed);
                    if path.is_none() {
                        self.outputs.views.tell_of_breaker(number, self.since_start(at), &event);
                    }
                }
            }
            Note::Payload(number, given) => {
                if let Some(Live { tally: Tally::Received(tally), .. }) = self.live.get_mut(&number) {
                    tally.on_payload(given.missing, (given.bytes, given.is_audio), given.is_dropped);
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
        let direction = if session.is_sent_to { Direction::Sent } else { Direction::Received };
        let way = if session.is_sent_to { "to" } else { "from" };
        self.outputs.screen.line(&format!("session {}: {payload} {way} {}{paths}\n", session.number, session.peer));
        let opened_s = self.since_start(at);
        self.outputs.views.tell(Told::Open(Open {
            series: session.number,
            at_s: opened_s,
            name: format!("{way} {}", session.peer),
            direction: direction.into(),
        }));
        let result = SessionResult {
            number: session.number,
            peer: session.peer,
            ssrc: session.ssrc,
            payload,
            direction,
            is_multipath: session.is_multipath,
            ended: None,
            end: None,
        };
        self.live.insert(session.number, Live { opened: at, opened_s, result, tally: Tally::of(direction) });
    }

    /// Whether there was a session and all sessions have ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended > 0 && self.live.is_empty()
    }

    /// Ends all open sessions, because the server has stopped.
    pub(super) fn end_all(&mut self, at: Time) {
        while let Some(number) = self.live.keys().next().copied() {
            self.end(at, number, End::Stopped);
        }
    }

    fn end(&mut self, at: Time, number: u64, why: End) {
        let Some(mut live) = self.live.remove(&number) else { return };
        self.ended += 1;
        let closed = live.close(at, self.interval);
        self.show(number, live.opened_s, &closed);
        let Live { opened, opened_s, mut result, mut tally } = live;
        let why = match (why, result.direction) {
            (End::Goodbye, Direction::Received) => "the sender said goodbye",
            (End::Goodbye, Direction::Sent) => "the receiver said goodbye",
            (End::Silence, Direction::Received) => "the sender fell silent",
            (End::Silence, Direction::Sent) => "the receiver fell silent",
            (End::Stopped, Direction::Received) => "the receiver was stopped",
            (End::Stopped, Direction::Sent) => "the sender was stopped",
        };
        result.ended = Some(why);
        let lasted = (at - opened).max(Span::ZERO);
        // The last interval of a session may be shorter than the other intervals.
        let rest = tally.close(lasted);
        self.outputs.views.tell_of_session(number, opened_s + lasted.as_secs_f64(), &rest);
        let end = tally.finish(lasted);
        let came = match &end {
            results::End::Received(end) => received(end),
            results::End::Sent(end) => lines::total(Direction::Sent, &end.sum()),
        };
        self.outputs.views.tell(Told::End { series: number, at_s: opened_s + lasted.as_secs_f64(), why });
        self.outputs.screen.line(&format!("session {number}: {why} after {:.1} s; {came}\n", lasted.as_secs_f64()));
        if self.done.len() < DETAILED {
            result.end = Some(end);
            self.done.push(result);
        } else {
            self.more.add(&end);
        }
    }

    /// Prints the intervals that have ended by `now`. Also sends them to the JSON output and the views.
    pub(super) fn tell(&mut self, now: Time) {
        let all = self.live.iter_mut();
        let closed: Vec<_> =
            all.map(|(number, live)| (*number, live.opened_s, live.close(now, self.interval))).collect();
        for (number, opened_s, closed) in &closed {
            self.show(*number, *opened_s, closed);
        }
    }

    fn since_start(&self, at: Time) -> f64 {
        (at - self.origin).max(Span::ZERO).as_secs_f64()
    }

    /// Prints and writes intervals of a session that was opened `opened_s` seconds after the run's start.
    fn show(&mut self, session: u64, opened_s: f64, closed: &[Interval]) {
        for interval in closed {
            if let Some(json) = &self.outputs.json {
                json.line(&IntervalLine { session, interval });
            }
            let (direction, end_s) = match interval {
                Interval::Sent(interval) => (Direction::Sent, interval.end_s),
                Interval::Received(interval) => (Direction::Received, interval.end_s),
            };
            self.outputs.views.tell_of_session(session, opened_s + end_s, interval);
            for line in lines::interval(&format!("{session:7} {end_s:6.1} s"), interval) {
                if let Some(head) = self.heads.next(direction) {
                    self.outputs.screen.line(&format!("session{head}"));
                }
                self.outputs.screen.line(&line);
            }
        }
    }
}

/// Returns the totals of a session as text, and prints a warning if payload was dropped.
fn received(end: &ReceiveEnd) -> String {
    if end.payload_dropped > 0 {
        // The warning goes to standard error, because the payload may use standard output.
        let dropped = end.payload_dropped;
        let _ = writeln!(
            anstream::stderr(),
            "warning: the payload of {dropped} packets was dropped, because the reader of --output stalled"
        );
    }
    let marked = if end.packets_marked > 0 { format!(", {} marked", end.packets_marked) } else { String::new() };
    let audio = if end.audio_packets > 0 { format!(", {} of them audio", end.audio_packets) } else { String::new() };
    let repaired =
        if end.packets_repaired > 0 { format!(" ({} repaired)", end.packets_repaired) } else { String::new() };
    format!(
        "{} packets received{audio}{marked}, {} lost{repaired}, {:.3} Mbit/s",
        end.packets_received,
        end.packets_lost,
        end.rate_bps / 1e6
    )
}

impl Live {
    /// Closes and returns the intervals that have ended by `now`.
    fn close(&mut self, now: Time, interval: Span) -> Vec<Interval> {
        let mut closed = Vec::new();
        let at = (now - self.opened).as_secs_f64();
        while at >= self.tally.start_s() + interval.as_secs_f64() {
            let ends = Span::from_secs_f64(self.tally.start_s()).unwrap_or_default() + interval;
            closed.push(self.tally.close(ends));
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    /// If this test fails, the memory of a receiver that runs for months grows without limit.
    #[test]
    fn of_sessions_beyond_the_first_thousand_only_the_sum_is_kept() {
        let outputs = Outputs { screen: Screen::None, json: None, views: Views::default() };
        let mut watch = Watch::new(outputs, Time::ZERO, Span::from_secs(1));
        let peer = (Ipv6Addr::LOCALHOST, 1).into();
        let more = 500;
        for number in 0..DETAILED as u64 + more {
            let session =
                Session { number, peer, ssrc: 1, payload: Payload::Stream, is_multipath: false, is_sent_to: false };
            watch.take(Note::Opened(Time::ZERO, session));
            watch.take(Note::Payload(number, Given { missing: 2, bytes: 100, is_audio: false, is_dropped: false }));
            watch.take(Note::Ended(Time::ZERO + Span::from_secs(100), number, End::Goodbye));
        }
        assert_eq!((watch.done.len(), watch.ended), (DETAILED, DETAILED as u64 + more));
        assert_eq!((watch.more.sessions, watch.more.payload_missing), (more, 2 * more));
    }
}
