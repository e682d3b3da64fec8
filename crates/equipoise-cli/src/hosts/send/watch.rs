//! The main thread of `equipoise send`: sums up the events of the sessions, and prints and writes the sums.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use equipoise::units::Span;
use equipoise_net::{HostStats, NetError, Time};
use equipoise_session::{DropReason, Event};
use serde::Serialize;

use super::super::args::DelayKind;
use super::super::input::Given;
use super::super::lines::{self, Heads};
use super::super::results::{Direction, End, Interval, SendTally, Sums, Tally};
use super::streams::{Note, What};
use super::words::foot;
use super::{ResultsOfMany, ResultsOfOne, Start, StreamEnd};
use crate::error::CliError;
use crate::views::Views;
use crate::views::told::{Open, Told};
use crate::writer::{Screen, Writer};

/// Interval at which the main thread handles the events of the sessions' threads.
const TICK: Duration = Duration::from_millis(20);

pub(super) struct Watch {
    /// The sums of each session, in order of the session numbers, with the direction of the session's media.
    each: Vec<(Direction, Tally)>,
    heads: Heads,
    interval: Span,
    outputs: Outputs,
}

/// The outputs to which the main thread reports events.
pub(super) struct Outputs {
    pub(super) screen: Screen,
    pub(super) json: Option<Writer>,
    pub(super) views: Views,
}

/// A line of the JSON results: one interval of all sessions.
#[derive(Serialize)]
struct Line {
    start_s: f64,
    end_s: f64,
    streams: Vec<StreamLine>,
    sum: Sums,
}

/// The values of one session in the interval that a [`Line`] describes.
#[derive(Serialize)]
struct StreamLine {
    stream: usize,
    direction: Direction,
    #[serde(flatten)]
    interval: Interval,
}

impl Watch {
    /// Creates empty totals for sessions with the directions `directions`, and announces the sessions to the views. If
    /// `start` lists paths, there is only one session, which uses these paths.
    pub(super) fn new(directions: &[Direction], start: &Start, interval: Span, outputs: Outputs) -> Self {
        let paths = &start.paths;
        let tally = |direction: &Direction| match direction {
            Direction::Sent => Tally::Sent(Box::new(SendTally::of(paths))),
            Direction::Received => Tally::of(Direction::Received),
        };
        let each = directions.iter().map(|direction| (*direction, tally(direction))).collect();
        for (series, direction) in (0..).zip(directions) {
            let way = if *direction == Direction::Sent { "to" } else { "from" };
            let number = if directions.len() > 1 { format!("[{series}] ") } else { String::new() };
            let name = format!("{number}{way} {}", start.peer);
            outputs.views.tell(Told::Open(Open { series, at_s: 0.0, name, direction: (*direction).into() }));
        }
        Self { each, heads: Heads::default(), interval, outputs }
    }

    /// Whether there is only one session and this host sends in it. The results of such a run contain no list of
    /// sessions.
    fn is_one(&self) -> bool {
        matches!(self.each.as_slice(), [(Direction::Sent, _)])
    }

    /// Sleeps for `TICK`, then handles all messages that have arrived. Returns false if no session is left that could
    /// send messages.
    ///
    /// The thread sleeps instead of waiting for each message, because waking up for every packet would cost as much as
    /// sending the packet.
    pub(super) fn take_in(
        &mut self,
        queue: &mpsc::Receiver<Note>,
        origin: Time,
        steer: &mut dyn FnMut(&Event),
    ) -> bool {
        thread::sleep(TICK);
        loop {
            match queue.try_recv() {
                Ok(note) => {
                    let at = note.at - origin;
                    self.tell(at);
                    self.take(at, &note, steer);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, at: Span, note: &Note, steer: &mut dyn FnMut(&Event)) {
        let Some((_, tally)) = self.each.get_mut(note.stream) else { return };
        match &note.what {
            What::Event(path, event) => {
                tally.on_event(*path, event);
                if path.is_none() {
                    steer(event);
                    self.outputs.views.tell_of_breaker(note.stream as u64, at.as_secs_f64(), event);
                }
            }
            What::Path(path, change) => {
                if let Tally::Sent(tally) = tally {
                    tally.on_path(usize::from(path.0), *change);
                }
            }
        }
    }

    /// Closes the intervals that have ended by `at`, and passes their results to all outputs. `at` is the time since
    /// the start of the run.
    pub(super) fn tell(&mut self, at: Span) {
        loop {
            // All sessions have the same intervals, so the start of the first session's interval is sufficient.
            let start_s = self.each.first().map_or(f64::INFINITY, |(_, tally)| tally.start_s());
            if at.as_secs_f64() < start_s + self.interval.as_secs_f64() {
                return;
            }
            let ends = Span::from_secs_f64(start_s).unwrap_or_default() + self.interval;
            let closed: Vec<_> =
                self.each.iter_mut().map(|(direction, tally)| (*direction, tally.close(ends))).collect();
            for (series, (_, interval)) in (0..).zip(&closed) {
                self.outputs.views.tell_of_session(series, ends.as_secs_f64(), interval);
            }
            if self.is_one() {
                for (_, interval) in &closed {
                    self.show_one(ends, interval);
                }
            } else {
                self.show_many((start_s, ends.as_secs_f64()), closed);
            }
        }
    }

    fn show_one(&mut self, ends: Span, interval: &Interval) {
        if let Some(head) = self.heads.next(Direction::Sent) {
            self.outputs.screen.line(head);
        }
        for line in lines::interval(&format!("{:7.1} s", ends.as_secs_f64()), interval) {
            self.outputs.screen.line(&line);
        }
        if let Some(json) = &self.outputs.json {
            json.line(interval);
        }
    }

    fn show_many(&mut self, (start_s, end_s): (f64, f64), closed: Vec<(Direction, Interval)>) {
        let sum = Sums::of(closed.iter().map(|(direction, interval)| (*direction, interval.sum())));
        for (stream, (direction, interval)) in closed.iter().enumerate() {
            if let Some(head) = self.heads.next(*direction) {
                self.outputs.screen.line(&format!("  ID  {head}"));
            }
            for line in lines::interval(&format!("[{stream:3}] {end_s:7.1} s"), interval) {
                self.outputs.screen.line(&line);
            }
        }
        if closed.len() > 1 {
            self.outputs.screen.line(&lines::sums(&format!("[SUM] {end_s:7.1} s"), &sum));
        }
        if let Some(json) = &self.outputs.json {
            let stream = |(stream, (direction, interval))| StreamLine { stream, direction, interval };
            json.line(&Line { start_s, end_s, streams: closed.into_iter().enumerate().map(stream).collect(), sum });
        }
    }

    /// Adds the counters of the host threads, and the number of steps of the wall clock, to the totals of the sessions
    /// in which this host sends. `hosts` is in the order of the sessions.
    pub(super) fn add(&mut self, hosts: &[Result<HostStats, NetError>], wall_clock_steps: u64) {
        for ((_, tally), host) in self.each.iter_mut().zip(hosts) {
            if let Tally::Sent(tally) = tally {
                tally.end.wall_clock_steps = wall_clock_steps;
                tally.end.datagrams_unsent = host.as_ref().ok().map(|host| host.socket.unsent);
            }
        }
    }

    /// Closes the totals of all sessions, and prints and writes the results. `end` is the time since the start of the
    /// run. `given` counts the packets from other programs.
    pub(super) fn finish(self, start: Start, (end, given): (Span, &Given), delay: DelayKind) -> Result<(), CliError> {
        let is_one = self.is_one();
        let Outputs { screen, json, views } = self.outputs;
        let close = |(series, (direction, mut tally)): (u64, (Direction, Tally))| {
            // The last interval of a session may be shorter than the other intervals.
            views.tell_of_session(series, end.as_secs_f64(), &tally.close(end));
            views.tell(Told::End { series, at_s: end.as_secs_f64(), why: "the session is over" });
            (direction, tally.finish(end))
        };
        let ends: Vec<_> = (0..).zip(self.each).map(close).collect();
        let sum = Sums::of(ends.iter().map(|(direction, end)| (*direction, end.sum())));
        let mut streams = Vec::new();
        for (stream, (direction, mut end)) in ends.into_iter().enumerate() {
            if let End::Sent(end) = &mut end {
                end.payload_dropped = given.dropped.load(Ordering::Relaxed);
                end.ignore(DropReason::Foreign, given.foreign.load(Ordering::Relaxed));
                end.audio_packets = given.audio_packets.load(Ordering::Relaxed);
                end.audio_bytes = given.audio_bytes.load(Ordering::Relaxed);
            }
            let text = match &end {
                End::Sent(end) => foot(end, delay),
                End::Received(end) => lines::received_end(end),
            };
            let name = if is_one { "\n".to_owned() } else { format!("\n[{stream:3}] ") };
            screen.say(&(name + &text));
            streams.push(StreamEnd { stream, direction, end });
        }
        if streams.len() > 1 {
            screen.say(&lines::sums("\n[SUM]", &sum));
        }
        // The views are closed before the last lines are printed, because a view may use the whole terminal.
        let viewed = views.finish(end.as_secs_f64());
        screen.finish();
        let Some(json) = json else { return viewed };
        let intervals_dropped = json.inlet().dropped();
        if is_one && let Some(StreamEnd { end, .. }) = streams.pop() {
            return json.fulfil(&ResultsOfOne { start, end, intervals_dropped }).and(viewed);
        }
        json.fulfil(&ResultsOfMany { start, streams, sum, intervals_dropped }).and(viewed)
    }
}
