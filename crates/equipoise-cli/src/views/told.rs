//! The events of a run, in one stream for all views.

use equipoise_lab::link::LinkInterval;
use equipoise_lab::record::IntervalRow;
use serde::Serialize;

use crate::hosts::results::{self, Direction};

/// An event of a run. In JSON form it is a line of `--json-stream`, and a message to the live page.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Told {
    /// A run begins.
    Start(Start),
    /// A session, a flow or a direction of a path opens.
    Open(Open),
    /// An interval of a series has ended.
    Interval(Box<Interval>),
    /// A circuit breaker stopped the media of a session or flow, or let it resume.
    Breaker {
        /// The number of the series.
        series: u64,
        /// The time of the event, in seconds since the run's start.
        at_s: f64,
        /// The name of the circuit breaker; `null` if the media resumes.
        breaker: Option<&'static str>,
    },
    /// A series has ended.
    End {
        /// The number of the series.
        series: u64,
        /// The time of the event, in seconds since the run's start.
        at_s: f64,
        /// The reason why the series ended.
        why: &'static str,
    },
    /// The run is over.
    Over {
        /// The time of the end, in seconds since the run's start.
        at_s: f64,
        /// Number of earlier events that were dropped, because the reader of the events stalled.
        dropped: u64,
    },
}

/// Describes the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Start {
    pub(crate) version: &'static str,
    /// The subcommand: `send`, `receive`, `link` or `live`.
    pub(crate) command: &'static str,
    /// A description of the run for the user.
    pub(crate) title: String,
}

/// Describes a series: a session, a flow or one direction of an emulated path.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Open {
    /// The number of the series, unique in the run.
    pub(crate) series: u64,
    /// The time at which the series was opened, in seconds since the run's start.
    pub(crate) at_s: f64,
    pub(crate) name: String,
    pub(crate) direction: Way,
}

/// The direction of the media of a series, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    Sent,
    Received,
    /// Neither sent nor received: the packets pass through an emulated path on this host.
    Carried,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Sent, Self::Received, Self::Carried];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Carried => "carried",
        }
    }
}

impl From<Direction> for Way {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Sent => Self::Sent,
            Direction::Received => Self::Received,
        }
    }
}

/// The measurements of an interval that has ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interval {
    pub(crate) series: u64,
    /// The end of the interval, in seconds since the start of the command's first run. In contrast, the fields
    /// `start_s` and `end_s` of `measured` are relative to the start of the session, of the emulated path, or of the
    /// flow's live run.
    pub(crate) at_s: f64,
    #[serde(flatten)]
    pub(crate) measured: Measured,
}

/// The measurements of an interval.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Measured {
    /// Measured at one end of a session between two hosts.
    Session(results::Interval),
    /// Measured for a flow of a live run.
    Flow(IntervalRow),
    /// Measured in one direction of an emulated path.
    Path(LinkInterval),
}

/// The values for charts and totals, in the same form for all kinds of intervals. `None` means that a value was not
/// measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) lasted_s: f64,
    pub(crate) rate_bps: f64,
    /// The rate that the controller allowed, in bit/s.
    pub(crate) allowed_bps: Option<f64>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Share of lost packets, from 0 to 1. A sender takes it from the receiver's last report.
    pub(crate) lost_share: Option<f64>,
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) delay_p50_s: Option<f64>,
    pub(crate) delay_p95_s: Option<f64>,
    pub(crate) delay_p99_s: Option<f64>,
    pub(crate) jitter_s: Option<f64>,
    pub(crate) round_trip_s: Option<f64>,
    pub(crate) queue_packets: Option<f64>,
}

impl Measured {
    pub(crate) fn figures(&self) -> Figures {
        match self {
            Self::Session(results::Interval::Sent(sent)) => Figures {
                lasted_s: sent.end_s - sent.start_s,
                rate_bps: sent.rate_bps,
                allowed_bps: sent.target_rate_bps,
                packets: sent.packets,
                bytes: sent.bytes,
                lost: sent.packets_lost,
                lost_share: sent.fraction_lost,
                delay_mean_s: sent.delay_mean_s,
                round_trip_s: sent.round_trip_s,
                ..Figures::default()
            },
            Self::Session(results::Interval::Received(received)) => Figures {
                lasted_s: received.end_s - received.start_s,
                rate_bps: received.rate_bps,
                packets: received.packets,
                bytes: received.bytes,
                lost: received.packets_lost.unwrap_or(0),
                lost_share: share(received.packets_lost.unwrap_or(0), received.packets),
                delay_mean_s: received.delay_mean_s,
                delay_p50_s: received.delay_p50_s,
                delay_p95_s: received.delay_p95_s,
                delay_p99_s: received.delay_p99_s,
                jitter_s: received.jitter_s,
                ..Figures::default()
            },
            Self::Flow(row) => Figures {
                lasted_s: row.end_s - row.start_s,
                rate_bps: row.rate_bps,
                packets: row.packets,
                bytes: (row.rate_bps * (row.end_s - row.start_s) / 8.0).round() as u64,
                lost: row.packets_lost,
                lost_share: share(row.packets_lost, row.packets.saturating_sub(row.packets_lost)),
                delay_mean_s: row.delay_mean_s,
                delay_p95_s: row.delay_p95_s,
                ..Figures::default()
            },
            Self::Path(path) => Figures {
                lasted_s: path.end_s - path.start_s,
                rate_bps: path.rate_bps,
                packets: path.packets,
                bytes: path.bytes,
                lost: path.packets_lost + path.packets_dropped,
                lost_share: share(path.packets_lost + path.packets_dropped, path.packets),
                queue_packets: path.queue_mean_packets,
                ..Figures::default()
            },
        }
    }
}

/// Returns the share of lost packets among lost and received packets; `None` if there are no packets.
fn share(lost: u64, came: u64) -> Option<f64> {
    let all = lost + came;
    (all > 0).then(|| lost as f64 / all as f64)
}
