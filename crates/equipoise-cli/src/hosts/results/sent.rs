use std::collections::BTreeMap;

use equipoise::units::Span;
use equipoise_session::{DropReason, Event, PathChange};
use serde::Serialize;

use super::{Sum, rate};

/// What the sender measured in one interval, for a session or for one of its paths.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SendInterval {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// Rate at which IP packets were sent in the interval, and rate that was allowed at the end of the interval.
    pub(crate) rate_bps: f64,
    pub(crate) target_rate_bps: Option<f64>,
    /// Longest queueing time, in s, of the payload of a packet that was sent in this interval.
    pub(crate) waited_max_s: f64,
    /// Mean delay, in s, in the last report of the interval; `null` if there is no report, or if the report contains no
    /// delay. `--delay` sets the kind of delay.
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) delay_deviation_s: Option<f64>,
    pub(crate) round_trip_s: Option<f64>,
    /// Share of packets lost, from 0 to 1, according to the last report.
    pub(crate) fraction_lost: Option<f64>,
    /// Share of marked packets among the ECN-capable packets that arrived, from 0 to 1, according to the last report.
    /// Omitted if no ECN-capable packet arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fraction_marked: Option<f64>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Number of packets that the reports of this interval newly count as lost.
    pub(crate) packets_lost: u64,
    pub(crate) reports: u64,
    pub(crate) decided_by: Option<&'static str>,
    /// The name of the circuit breaker that keeps the media stopped at the end of the interval; `null` if media may be
    /// sent.
    pub(crate) stopped_by: Option<&'static str>,
    /// The values of each path of a multipath session; omitted for other sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<SendPathInterval>,
}

/// What the sender measured on one of its paths in one interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SendPathInterval {
    pub(crate) path: String,
    /// State of the path at the end of the interval: `joining` until the first change of the state, then `up` or
    /// `down`.
    pub(crate) state: &'static str,
    #[serde(flatten)]
    pub(crate) interval: SendInterval,
}

impl SendInterval {
    /// Returns the totals of the interval.
    pub(crate) const fn sum(&self) -> Sum {
        Sum { rate_bps: self.rate_bps, packets: self.packets, bytes: self.bytes, packets_lost: None }
    }

    /// Returns the reason for the current rate as text: the circuit breaker that stopped the media, or the controller's
    /// reason.
    pub(crate) fn decided_by(&self) -> Option<String> {
        self.stopped_by.map(|breaker| format!("stopped: {breaker}")).or_else(|| self.decided_by.map(str::to_owned))
    }
}

/// Totals of a session, or of one of its paths, at the sender.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SendEnd {
    pub(crate) duration_s: f64,
    pub(crate) rate_bps: f64,
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    /// Number of sent packets that had not arrived according to the last report.
    pub(crate) packets_lost: Option<u64>,
    /// Mean delay, in s, over all reports that contain a delay. In a multipath session, this is the mean of
    /// `SendInterval::delay_mean_s` over the intervals.
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) clocks: Option<ClocksCompared>,
    /// Detected jumps, in s, of the clock offset: the receiver's session clock minus the sender's session clock.
    pub(crate) clock_steps: Vec<f64>,
    /// Number of detected steps of this host's wall clock. The measured delays do not depend on this clock.
    pub(crate) wall_clock_steps: u64,
    /// Number of report requests that were skipped because reports were missing.
    pub(crate) reports_missing: u64,
    /// Number of times that the congestion circuit breaker reduced the rate to a tenth (RFC 8083, Sec. 4.3).
    pub(crate) circuit_strained: u64,
    /// Number of times that each circuit breaker stopped the media (RFC 8083, Sec. 4).
    pub(crate) circuit_broken: BTreeMap<&'static str, u64>,
    /// Number of paths on which ECN failed (RFC 6679, Sec. 7.4.1).
    pub(crate) ecn_failed: u64,
    pub(crate) pacing_resets: u64,
    /// Number of retransmitted packets and their bytes. No other count or rate includes them.
    pub(crate) packets_repeated: u64,
    pub(crate) bytes_repeated: u64,
    /// Number of key frames that the receiver requested.
    pub(crate) key_frames_wanted: u64,
    pub(crate) ignored: BTreeMap<&'static str, u64>,
    /// Number of datagrams that this host could not send; `null` if the session failed.
    pub(crate) datagrams_unsent: Option<u64>,
    /// Number of audio packets from another program that were queued for sending, and their bytes. When an audio packet
    /// is sent, `packets_sent` and `bytes_sent` count it, too.
    pub(crate) audio_packets: u64,
    pub(crate) audio_bytes: u64,
    /// Number of packets from another program that were dropped before they reached the session, because the queue to
    /// the session was full.
    pub(crate) payload_dropped: u64,
    /// Number of packets from another program that the session dropped, because they were queued for too long or
    /// because its queue was full.
    pub(crate) payload_expired: u64,
    pub(crate) ended_by_peer: bool,
    /// The totals of each path of a multipath session; omitted for other sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<SendPathEnd>,
}

impl SendEnd {
    /// Returns the totals of the session.
    pub(crate) const fn sum(&self) -> Sum {
        let Self { rate_bps, packets_sent: packets, bytes_sent: bytes, packets_lost, .. } = *self;
        Sum { rate_bps, packets, bytes, packets_lost }
    }

    /// Adds `count` packets that were dropped for `reason`.
    pub(crate) fn ignore(&mut self, reason: DropReason, count: u64) {
        if count > 0 {
            *self.ignored.entry(reason.name()).or_default() += count;
        }
    }
}

/// Totals of one path of a session, at the sender.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SendPathEnd {
    pub(crate) path: String,
    /// Number of times that the path became unusable.
    pub(crate) times_down: u64,
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    /// Number of packets sent on this path that had not arrived according to the last report.
    pub(crate) packets_lost: Option<u64>,
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) clocks: Option<ClocksCompared>,
    /// Number of report requests on this path that were skipped because reports were missing.
    pub(crate) reports_missing: u64,
    /// Number of times that each circuit breaker stopped the media on this path while other paths continued.
    pub(crate) circuit_broken: BTreeMap<&'static str, u64>,
}

/// The measured difference between the two hosts' clocks.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ClocksCompared {
    /// The receiver's clock minus the sender's clock, in s.
    pub(crate) offset_s: f64,
    pub(crate) uncertainty_s: f64,
    pub(crate) drift_ppm: Option<f64>,
    pub(crate) drift_uncertainty_ppm: Option<f64>,
}

/// Sums up the events of a session, or of one of its paths, at the sender.
#[derive(Debug, Default)]
pub(crate) struct SendTally {
    pub(crate) now: SendInterval,
    pub(crate) end: SendEnd,
    delays: (f64, u64),
    /// The sums of each path, in order of the path numbers; empty if the session is not multipath.
    paths: Vec<PathTally>,
}

/// Sums up the events of one path of a multipath session.
#[derive(Debug)]
struct PathTally {
    name: String,
    state: &'static str,
    times_down: u64,
    tally: SendTally,
}

impl SendTally {
    /// Creates the sums for a session with the paths `paths`. The list is empty if the session is not multipath.
    pub(crate) fn of(paths: &[String]) -> Self {
        let path = |name: &String| {
            let (name, tally) = (name.clone(), Self::default());
            PathTally { name, state: "joining", times_down: 0, tally }
        };
        Self { paths: paths.iter().map(path).collect(), ..Self::default() }
    }

    /// Records a change of a path's state.
    pub(crate) fn on_path(&mut self, path: usize, change: PathChange) {
        if let Some(path) = self.paths.get_mut(path) {
            path.state = if change == PathChange::Up { "up" } else { "down" };
            path.times_down += u64::from(change == PathChange::Down);
        }
    }

    /// Handles an event of a path. The event also counts for the session, unless it concerns only the path.
    pub(crate) fn on_path_event(&mut self, path: usize, event: &Event) {
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

    pub(crate) fn on_event(&mut self, event: &Event) {
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
                self.now.packets_lost += lost.saturating_sub(self.end.packets_lost.unwrap_or(0));
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
            Event::MediaRepeated { size, .. } => {
                self.end.packets_repeated += 1;
                self.end.bytes_repeated += size.as_bytes();
            }
            Event::KeyFrameWanted(_) => self.end.key_frames_wanted += 1,
            Event::Ignored(reason) => self.end.ignore(*reason, 1),
            Event::Ended { by_peer } => self.end.ended_by_peer = *by_peer,
            _ => {}
        }
    }

    /// Ends the current interval at the time `at`, counted from the session's start. Returns the values of the
    /// interval.
    pub(crate) fn close(&mut self, at: Span) -> SendInterval {
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

    /// Returns the totals of the session. `at` is the time from the session's start to its end.
    pub(crate) fn finish(mut self, at: Span) -> SendEnd {
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
    /// Computes the values of the session from the values of its paths. Delay, loss and ECN marks are means weighted by
    /// the number of packets of each path. The round-trip time is the maximum, and the number of lost packets is the
    /// sum. No deviation of the delay is computed, because the deviation would include the differences between the
    /// paths' delays.
    fn pool(&mut self) {
        let mean = |of: fn(&Self) -> Option<f64>| {
            let known = self.paths.iter().filter_map(|path| Some((of(&path.interval)?, path.interval.packets as f64)));
            let (sum, packets) =
                known.fold((0.0, 0.0), |(sum, all), (value, packets)| (sum + value * packets, all + packets));
            (packets > 0.0).then(|| sum / packets)
        };
        (self.delay_mean_s, self.fraction_lost) = (mean(|path| path.delay_mean_s), mean(|path| path.fraction_lost));
        self.fraction_marked = mean(|path| path.fraction_marked);
        self.packets_lost = self.paths.iter().map(|path| path.interval.packets_lost).sum();
        let longest = self.paths.iter().filter_map(|path| path.interval.round_trip_s);
        self.round_trip_s = longest.reduce(f64::max);
    }
}
