//! The results of a run of this example.

use std::fmt;

use equipoise::control::Reason;
use equipoise::units::Span;
use equipoise_session::feedback::FeedbackCounts;
use equipoise_webrtc::Status;
use serde::Serialize;
use serde_json::Value;

use crate::path::Through;

/// Statistics of the sender and of the receiver at one time; recorded once per second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Second {
    pub(crate) time_s: f64,
    /// The state of Equipoise's congestion control, if the sender uses it.
    pub(crate) own: Option<Own>,
    /// Statistics of the receiving Chromium; `Null` if this program receives.
    pub(crate) chromium: Value,
}

/// The state of Equipoise's congestion control.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Own {
    rate_bps: u64,
    reason: &'static str,
    /// Bytes that wait to be sent by the pacer.
    waiting_bytes: u64,
}

impl Second {
    pub(crate) fn new(time: Span, status: Option<Status>, chromium: Value) -> Self {
        let own = status.map(|status| Own {
            rate_bps: status.rate.as_bps(),
            reason: status.snapshot.reason.map_or("", Reason::name),
            waiting_bytes: status.waiting.as_bytes(),
        });
        Self { time_s: time.as_secs_f64(), own, chromium }
    }

    /// The longest time between two successive pictures since the previous record, in s.
    fn gap_s(&self) -> f64 {
        self.chromium["longest_gap_s"].as_f64().unwrap_or(0.0)
    }
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |name: &str| self.chromium[name].as_f64().unwrap_or(0.0);
        write!(f, "{:6.1} s", self.time_s)?;
        if let Some(Own { rate_bps, reason, waiting_bytes }) = self.own {
            write!(f, "  rate {:5.2} Mbit/s {reason:<16} waiting {waiting_bytes:6} B", rate_bps as f64 / 1e6)?;
        }
        let gap_ms = self.gap_s() * 1e3;
        write!(f, "  decoded {:5}  longest gap {gap_ms:4.0} ms", number("frames_decoded"))
    }
}

/// The results of the whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) chromium: String,
    pub(crate) frames_sent: u64,
    pub(crate) frames_decoded: u64,
    /// The visible freezes, at most one per record in `seconds`. An entry contains the time of the record since the
    /// start of the run, and the length of the longest freeze since the previous record, both in s.
    pub(crate) gaps: Vec<(f64, f64)>,
    pub(crate) jitter_buffer_s: Option<f64>,
    pub(crate) packets_lost: i64,
    pub(crate) through: Through,
    pub(crate) reports: u64,
    pub(crate) reports_refused: u64,
    pub(crate) seconds: Vec<Second>,
}

/// Minimum time between two pictures that counts as a visible freeze, in s.
const FREEZE_S: f64 = 0.2;

impl Report {
    pub(crate) fn new(
        chromium: String,
        sent: u64,
        through: Through,
        counts: Option<FeedbackCounts>,
        seconds: Vec<Second>,
    ) -> Self {
        let last = seconds.last().map_or(&Value::Null, |second| &second.chromium);
        let counts = counts.unwrap_or_default();
        let gaps = seconds.iter().filter(|second| second.gap_s() >= FREEZE_S);
        Self {
            chromium,
            frames_sent: sent,
            frames_decoded: last["frames_decoded"].as_u64().unwrap_or(0),
            gaps: gaps.map(|second| (second.time_s, second.gap_s())).collect(),
            jitter_buffer_s: last["jitter_buffer_s"].as_f64(),
            packets_lost: last["packets_lost"].as_i64().unwrap_or(0),
            through,
            reports: counts.reports,
            reports_refused: counts.refused,
            seconds,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} frames sent, {} decoded", self.chromium, self.frames_sent, self.frames_decoded)?;
        for phase in &self.through.phases {
            writeln!(
                f,
                "{:4.1} Mbit/s: {:3.0} % used from 5 s on, queueing p95 {:4.0} ms",
                phase.capacity_bps as f64 / 1e6,
                phase.used * 100.0,
                phase.queueing_p95_s * 1e3
            )?;
        }
        let Through { queueing_mean_s, queueing_p95_s, packets_dropped, .. } = &self.through;
        let [mean, p95] = [queueing_mean_s, queueing_p95_s].map(|seconds| seconds * 1e3);
        writeln!(f, "queueing: mean {mean:.0} ms, p95 {p95:.0} ms; {packets_dropped} packets dropped")?;
        let gaps: Vec<_> = self.gaps.iter().map(|(at, gap)| format!("{:.0} ms by {at:.0} s", gap * 1e3)).collect();
        let gaps = if gaps.is_empty() { "none".to_owned() } else { gaps.join(", ") };
        writeln!(f, "times without a new picture above {:.0} ms: {gaps}", FREEZE_S * 1e3)?;
        writeln!(f, "{} reports, {} of them refused", self.reports, self.reports_refused)
    }
}
