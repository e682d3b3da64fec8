//! The results of sessions, for sent and for received media: values of each interval, and totals.

mod received;
mod sent;

use equipoise::units::Span;
use equipoise_session::{Event, PathId};
use serde::Serialize;

pub(crate) use received::{ReceiveEnd, ReceiveInterval, ReceiveTally, Together};
pub(crate) use sent::{SendEnd, SendInterval, SendTally};

/// The direction of a session's media, as seen from this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Sent,
    Received,
}

/// Sums up the events of a session at this end, which either sends or receives the media.
#[derive(Debug)]
pub(crate) enum Tally {
    Sent(Box<SendTally>),
    Received(Box<ReceiveTally>),
}

/// The results of one interval of a session.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Interval {
    Sent(Box<SendInterval>),
    Received(Box<ReceiveInterval>),
}

/// The results of a whole session.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum End {
    Sent(Box<SendEnd>),
    Received(Box<ReceiveEnd>),
}

impl Tally {
    pub(crate) fn of(direction: Direction) -> Self {
        match direction {
            Direction::Sent => Self::Sent(Box::default()),
            Direction::Received => Self::Received(Box::default()),
        }
    }

    /// Handles an event of the session, or of one of its paths.
    pub(crate) fn on_event(&mut self, path: Option<PathId>, event: &Event) {
        match (self, path) {
            (Self::Sent(tally), None) => tally.on_event(event),
            (Self::Sent(tally), Some(path)) => tally.on_path_event(usize::from(path.0), event),
            (Self::Received(tally), None) => tally.on_event(event),
            (Self::Received(tally), Some(path)) => tally.on_path_event(path, event),
        }
    }

    /// Returns the start of the current interval, in s since the start of the session.
    pub(crate) const fn start_s(&self) -> f64 {
        match self {
            Self::Sent(tally) => tally.now.start_s,
            Self::Received(tally) => tally.now.start_s,
        }
    }

    /// Ends the current interval at the time `at`, counted from the session's start. Returns the results of the
    /// interval.
    pub(crate) fn close(&mut self, at: Span) -> Interval {
        match self {
            Self::Sent(tally) => Interval::Sent(Box::new(tally.close(at))),
            Self::Received(tally) => Interval::Received(Box::new(tally.close(at))),
        }
    }

    /// Returns the totals of the session. `at` is the time from the session's start to its end.
    pub(crate) fn finish(self, at: Span) -> End {
        match self {
            Self::Sent(tally) => End::Sent(Box::new(tally.finish(at))),
            Self::Received(mut tally) => End::Received(Box::new(tally.finish(at))),
        }
    }
}

impl Interval {
    pub(crate) const fn sum(&self) -> Sum {
        match self {
            Self::Sent(interval) => interval.sum(),
            Self::Received(interval) => interval.sum(),
        }
    }
}

impl End {
    pub(crate) const fn sum(&self) -> Sum {
        match self {
            Self::Sent(end) => end.sum(),
            Self::Received(end) => end.sum(),
        }
    }
}

/// The sums of one session, or of all sessions of one direction, for one interval or for the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sum {
    pub(crate) rate_bps: f64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Number of lost packets. If this end sends, the number is from the last reports. If this end receives, the number
    /// is computed from sequence numbers. Omitted in intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets_lost: Option<u64>,
}

/// The sums of each direction over its sessions; a direction without a session is omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sums {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sent: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) received: Option<Sum>,
}

impl Sums {
    pub(crate) fn of(each: impl Iterator<Item = (Direction, Sum)>) -> Self {
        let mut sums = Self::default();
        for (direction, more) in each {
            let sum = match direction {
                Direction::Sent => &mut sums.sent,
                Direction::Received => &mut sums.received,
            };
            *sum = Some(sum.map_or(more, |sum| sum.and(more)));
        }
        sums
    }
}

impl Sum {
    fn and(self, other: Self) -> Self {
        let lost = [self.packets_lost, other.packets_lost].into_iter().flatten();
        Self {
            rate_bps: self.rate_bps + other.rate_bps,
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
            packets_lost: lost.reduce(u64::saturating_add),
        }
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
