use std::collections::BTreeMap;

use equipoise::units::{Size, Span};
use equipoise_session::{Ecn, Event, PathChange, PathId};
use serde::Serialize;

/// What a sender did in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SendInterval {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    /// Rate of IP packets that were sent, and the one that was allowed in the end.
    pub(super) rate_bps: f64,
    pub(super) target_rate_bps: Option<f64>,
    /// How long the payload of a packet that left had waited at the most.
    pub(super) waited_max_s: f64,
    /// The delay that is held, from the last report; `null` where none came.
    pub(super) delay_mean_s: Option<f64>,
    pub(super) delay_deviation_s: Option<f64>,
    pub(super) round_trip_s: Option<f64>,
    /// Share of packets lost, by the last report.
    pub(super) fraction_lost: Option<f64>,
    /// Share of packets that came marked (ECN), by the last report; left out where none may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fraction_marked: Option<f64>,
    pub(super) packets: u64,
    pub(super) reports: u64,
    pub(super) decided_by: Option<&'static str>,
    /// The circuit breaker that had stopped the media at its end; `null` where none had.
    pub(super) stopped_by: Option<&'static str>,
    /// What it did on each path, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) paths: Vec<SendPathInterval>,
    #[serde(skip)]
    bytes: u64,
}

/// What a sender did on one of several paths in one interval.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SendPathInterval {
    pub(super) path: String,
    /// In the end: `up`, `down`, or `joining` before it first was up.
    pub(super) state: &'static str,
    #[serde(flatten)]
    pub(super) interval: SendInterval,
}

impl SendInterval {
    /// What made the rate what it is, for a line.
    pub(super) fn decided_by(&self) -> Option<String> {
        self.stopped_by.map(|breaker| format!("stopped: {breaker}")).or_else(|| self.decided_by.map(str::to_owned))
    }
}

/// What a sender did in all.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SendEnd {
    pub(super) duration_s: f64,
    pub(super) rate_bps: f64,
    pub(super) packets_sent: u64,
    pub(super) bytes_sent: u64,
    /// Packets that were sent and had not arrived by the last report.
    pub(super) packets_lost: Option<u64>,
    /// Mean over the intervals that had reports.
    pub(super) delay_mean_s: Option<f64>,
    pub(super) clocks: Option<ClocksCompared>,
    /// By how much the clocks of the two hosts were found to step against each other.
    pub(super) clock_steps: Vec<f64>,
    /// How often this host's wall clock was found to be set; it moves no delay.
    pub(super) wall_clock_steps: u64,
    pub(super) reports_missing: u64,
    /// How often the congestion breaker cut the rate to a tenth (RFC 8083, Sec. 4.3).
    pub(super) circuit_strained: u64,
    /// How often each circuit breaker stopped the media (RFC 8083, Sec. 4).
    pub(super) circuit_broken: BTreeMap<&'static str, u64>,
    /// On how many paths ECN failed (RFC 6679, Sec. 7.4.1).
    pub(super) ecn_failed: u64,
    pub(super) pacing_resets: u64,
    pub(super) ignored: BTreeMap<&'static str, u64>,
    /// Datagrams that this host's kernel refused to send; `null` if the session failed.
    pub(super) datagrams_unsent: Option<u64>,
    /// Packets of the other program that found no room.
    pub(super) payload_dropped: u64,
    /// Packets of the other program that had waited for too long, and were dropped.
    pub(super) payload_expired: u64,
    pub(super) ended_by_peer: bool,
    /// What it did on each path, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) paths: Vec<SendPathEnd>,
}

/// What a sender did on one of several paths in all.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SendPathEnd {
    pub(super) path: String,
    /// How often it could not be used any more.
    pub(super) times_down: u64,
    pub(super) packets_sent: u64,
    pub(super) bytes_sent: u64,
    /// Packets that were sent and had not arrived by the last report.
    pub(super) packets_lost: Option<u64>,
    pub(super) delay_mean_s: Option<f64>,
    pub(super) clocks: Option<ClocksCompared>,
    pub(super) reports_missing: u64,
    /// How often each circuit breaker took media off it, while other paths carried on.
    pub(super) circuit_broken: BTreeMap<&'static str, u64>,
}

/// How the hosts' clocks compare.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ClocksCompared {
    /// Receiver's clock less sender's.
    pub(super) offset_s: f64,
    pub(super) uncertainty_s: f64,
    pub(super) drift_ppm: Option<f64>,
    pub(super) drift_uncertainty_ppm: Option<f64>,
}

/// Adds up what a sender tells.
#[derive(Debug, Default)]
pub(super) struct SendTally {
    pub(super) now: SendInterval,
    pub(super) end: SendEnd,
    delays: (f64, u64),
    /// By their numbers; none where it has one alone.
    paths: Vec<PathTally>,
}

/// Adds up what a sender tells of one of several paths.
#[derive(Debug)]
struct PathTally {
    name: String,
    state: &'static str,
    times_down: u64,
    tally: SendTally,
}

impl SendTally {
    /// Of a session over these paths; none where it has one alone.
    pub(super) fn of(paths: &[String]) -> Self {
        let path = |name: &String| {
            let (name, tally) = (name.clone(), Self::default());
            PathTally { name, state: "joining", times_down: 0, tally }
        };
        Self { paths: paths.iter().map(path).collect(), ..Self::default() }
    }

    /// Something became of a path.
    pub(super) fn on_path(&mut self, path: usize, change: PathChange) {
        if let Some(path) = self.paths.get_mut(path) {
            path.state = if change == PathChange::Up { "up" } else { "down" };
            path.times_down += u64::from(change == PathChange::Down);
        }
    }

    /// What happened on one path is part of what happened to the session, but for what each path has to itself.
    pub(super) fn on_path_event(&mut self, path: usize, event: &Event) {
        if let Some(path) = self.paths.get_mut(path) {
            path.tally.on_event(event);
        }
        match event {
            Event::ReportApplied { .. } => self.now.reports += 1,
            Event::RateDecided { .. }
            | Event::ClocksCompared { .. }
            | Event::CircuitBroken(_)
            | Event::CircuitClosed => {}
            _ => self.on_event(event),
        }
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::PayloadExpired { packets } => self.end.payload_expired += packets,
            Event::MediaSent { size, waited, .. } => {
                self.now.waited_max_s = self.now.waited_max_s.max(waited.as_secs_f64());
                self.now.packets += 1;
                self.now.bytes += size.as_bytes();
                self.end.packets_sent += 1;
                self.end.bytes_sent += size.as_bytes();
            }
            Event::ReportApplied { delay, round_trip, fraction_lost, fraction_marked, lost, .. } => {
                self.now.reports += 1;
                self.now.delay_mean_s = delay.map(|delay| delay.mean_s);
                self.now.delay_deviation_s = delay.map(|delay| delay.variance_s2.sqrt());
                self.now.round_trip_s = Some(round_trip.as_secs_f64());
                self.now.fraction_lost = Some(*fraction_lost);
                self.now.fraction_marked = *fraction_marked;
                self.end.packets_lost = Some(*lost);
                if let Some(delay) = delay {
                    self.delays = (self.delays.0 + delay.mean_s, self.delays.1 + 1);
                }
            }
            Event::RateDecided { rate, snapshot } => {
                self.now.target_rate_bps = Some(rate.as_bps_f64());
                self.now.decided_by = snapshot.reason.map(equipoise::control::Reason::name);
            }
            Event::ClocksCompared { offset: Some(offset), drift, .. } => {
                self.end.clocks = Some(ClocksCompared {
                    offset_s: offset.receiver_ahead.as_secs_f64(),
                    uncertainty_s: offset.uncertainty.as_secs_f64(),
                    drift_ppm: drift.map(|drift| drift.ppm),
                    drift_uncertainty_ppm: drift.map(|drift| drift.uncertainty_ppm),
                });
            }
            Event::ClockStepped { by } => self.end.clock_steps.push(by.as_secs_f64()),
            Event::ReportsMissing => self.end.reports_missing += 1,
            Event::CircuitStrained => self.end.circuit_strained += 1,
            Event::CircuitBroken(breaker) => {
                *self.end.circuit_broken.entry(breaker.name()).or_default() += 1;
                self.now.stopped_by = Some(breaker.name());
            }
            Event::CircuitClosed => self.now.stopped_by = None,
            Event::EcnFailed { .. } => self.end.ecn_failed += 1,
            Event::PacingReset { .. } => self.end.pacing_resets += 1,
            Event::Ignored(reason) => *self.end.ignored.entry(reason.name()).or_default() += 1,
            Event::Ended { by_peer } => self.end.ended_by_peer = *by_peer,
            _ => {}
        }
    }

    /// Closes the interval that lasted until `at`.
    pub(super) fn close(&mut self, at: Span) -> SendInterval {
        let kept = SendInterval {
            start_s: at.as_secs_f64(),
            target_rate_bps: self.now.target_rate_bps,
            decided_by: self.now.decided_by,
            stopped_by: self.now.stopped_by,
            ..SendInterval::default()
        };
        let mut closed = std::mem::replace(&mut self.now, kept);
        closed.end_s = at.as_secs_f64();
        closed.rate_bps = rate(closed.bytes, closed.end_s - closed.start_s);
        let paths = self.paths.iter_mut().map(|path| {
            let (path, state, interval) = (path.name.clone(), path.state, path.tally.close(at));
            SendPathInterval { path, state, interval }
        });
        closed.paths = paths.collect();
        if !closed.paths.is_empty() {
            closed.pool();
            if let Some(mean_s) = closed.delay_mean_s {
                self.delays = (self.delays.0 + mean_s, self.delays.1 + 1);
            }
        }
        closed
    }

    /// The whole session, which lasted until `at`.
    pub(super) fn finish(mut self, at: Span) -> SendEnd {
        let paths = std::mem::take(&mut self.paths).into_iter().map(|path| {
            let end = path.tally.finish(at);
            SendPathEnd {
                path: path.name,
                times_down: path.times_down,
                packets_sent: end.packets_sent,
                bytes_sent: end.bytes_sent,
                packets_lost: end.packets_lost,
                delay_mean_s: end.delay_mean_s,
                clocks: end.clocks,
                reports_missing: end.reports_missing,
                circuit_broken: end.circuit_broken,
            }
        });
        self.end.paths = paths.collect();
        if !self.end.paths.is_empty() {
            let lost = self.end.paths.iter().filter_map(|path| path.packets_lost);
            self.end.packets_lost = lost.reduce(u64::saturating_add);
        }
        self.end.duration_s = at.as_secs_f64();
        self.end.rate_bps = rate(self.end.bytes_sent, self.end.duration_s);
        let (sum, count) = self.delays;
        self.end.delay_mean_s = (count > 0).then(|| sum / count as f64);
        self.end
    }
}

impl SendInterval {
    /// Delay and loss of all packets, by those of the paths, each with its share of the packets. How the delay varies cannot
    /// be said of all packets: it varies with how far the paths lie apart.
    fn pool(&mut self) {
        let mean = |of: fn(&Self) -> Option<f64>| {
            let known = self.paths.iter().filter_map(|path| Some((of(&path.interval)?, path.interval.packets as f64)));
            let (sum, packets) =
                known.fold((0.0, 0.0), |(sum, all), (value, packets)| (sum + value * packets, all + packets));
            (packets > 0.0).then(|| sum / packets)
        };
        (self.delay_mean_s, self.fraction_lost) = (mean(|path| path.delay_mean_s), mean(|path| path.fraction_lost));
        self.fraction_marked = mean(|path| path.fraction_marked);
        let longest = self.paths.iter().filter_map(|path| path.interval.round_trip_s);
        self.round_trip_s = longest.reduce(f64::max);
    }
}

/// What a receiver saw of one session in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ReceiveInterval {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) rate_bps: f64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Delay as the two clocks show it, less that of the session's first packet.
    pub(super) shown_delay_mean_s: Option<f64>,
    /// What came on each path, by the sender's number, if the session has several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) paths: BTreeMap<u16, ReceiveInterval>,
    #[serde(skip)]
    delays_s: f64,
}

impl ReceiveInterval {
    fn count(&mut self, delay: Span, size: Size) {
        self.packets += 1;
        self.bytes += size.as_bytes();
        self.delays_s += delay.as_secs_f64();
    }

    fn close(&mut self, start_s: f64, end_s: f64) {
        (self.start_s, self.end_s) = (start_s, end_s);
        self.rate_bps = rate(self.bytes, end_s - start_s);
        self.shown_delay_mean_s = (self.packets > 0).then(|| self.delays_s / self.packets as f64);
        self.paths.values_mut().for_each(|path| path.close(start_s, end_s));
    }
}

/// What a receiver saw of one session in all.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ReceiveEnd {
    pub(super) duration_s: f64,
    pub(super) rate_bps: f64,
    pub(super) packets_received: u64,
    /// Of these, packets that queues had marked (ECN).
    pub(super) packets_marked: u64,
    pub(super) bytes_received: u64,
    /// Numbers between the first and the last that never came.
    pub(super) packets_lost: u64,
    /// Packets whose payload is missing in what was given out.
    pub(super) payload_missing: u64,
    pub(super) payload_bytes: u64,
    /// Packets whose payload was not written, as the file or its reader stood still.
    pub(super) payload_dropped: u64,
    pub(super) ignored: BTreeMap<&'static str, u64>,
    /// Packets that came on each path, by the sender's number, if the session has several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) packets_by_path: BTreeMap<u16, u64>,
}

/// What sessions came to that are counted together.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Together {
    pub(super) sessions: u64,
    pub(super) packets_received: u64,
    pub(super) bytes_received: u64,
    pub(super) packets_lost: u64,
    pub(super) payload_missing: u64,
}

impl Together {
    pub(super) fn add(&mut self, end: &ReceiveEnd) {
        self.sessions += 1;
        self.packets_received += end.packets_received;
        self.bytes_received += end.bytes_received;
        self.packets_lost += end.packets_lost;
        self.payload_missing += end.payload_missing;
    }
}

/// Paths of a session that are told apart. Ours: four times what it may have at once; a path that was added late, after so
/// many others, counts in the whole alone.
const PATHS: usize = 64;

/// Adds up what a server tells of a session.
#[derive(Debug, Default)]
pub(super) struct ReceiveTally {
    pub(super) now: ReceiveInterval,
    pub(super) end: ReceiveEnd,
    numbers: Option<(u64, u64)>,
}

impl ReceiveTally {
    /// What happened on one path is part of what happened to the session.
    pub(super) fn on_path_event(&mut self, path: PathId, event: &Event) {
        let has_room = self.end.packets_by_path.len() < PATHS || self.end.packets_by_path.contains_key(&path.0);
        if let (Event::MediaReceived { delay, size, .. }, true) = (event, has_room) {
            self.now.paths.entry(path.0).or_default().count(*delay, *size);
            *self.end.packets_by_path.entry(path.0).or_default() += 1;
        }
        self.on_event(event);
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::MediaReceived { sequence, delay, size, ecn, .. } => {
                self.now.count(*delay, *size);
                self.end.packets_received += 1;
                self.end.packets_marked += u64::from(*ecn == Ecn::Marked);
                self.end.bytes_received += size.as_bytes();
                let (first, last) = self.numbers.unwrap_or((*sequence, *sequence));
                self.numbers = Some((first.min(*sequence), last.max(*sequence)));
            }
            Event::Ignored(reason) => *self.end.ignored.entry(reason.name()).or_default() += 1,
            _ => {}
        }
    }

    /// Payload was given out, behind so many packets that are missing, or dropped.
    pub(super) fn on_payload(&mut self, missing: u64, bytes: u64, is_dropped: bool) {
        self.end.payload_missing += missing;
        self.end.payload_dropped += u64::from(is_dropped);
        self.end.payload_bytes += if is_dropped { 0 } else { bytes };
    }

    /// Closes the interval that lasted until `at` on the session's own time.
    pub(super) fn close(&mut self, at: Span) -> ReceiveInterval {
        let fresh = ReceiveInterval { start_s: at.as_secs_f64(), ..ReceiveInterval::default() };
        let mut closed = std::mem::replace(&mut self.now, fresh);
        closed.close(closed.start_s, at.as_secs_f64());
        closed
    }

    pub(super) fn finish(&mut self, at: Span) -> ReceiveEnd {
        self.end.duration_s = at.as_secs_f64();
        self.end.rate_bps = rate(self.end.bytes_received, self.end.duration_s);
        let expected = self.numbers.map_or(0, |(first, last)| last - first + 1);
        self.end.packets_lost = expected.saturating_sub(self.end.packets_received);
        self.end.clone()
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
