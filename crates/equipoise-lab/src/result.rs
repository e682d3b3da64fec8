//! The results of a run: one format, in which simulated and live results are stored, compared, drawn and written.
//!
//! Field names include their unit, because values are plain numbers here (`report.json`). `None`, written as `null`,
//! means not measured. Times in a run count from its start.

mod csv;
mod frames;
mod link;
mod media;
mod pair;
mod series;
mod summary;
mod web;

use std::collections::BTreeMap;

use equipoise::units::{Rate, Schedule, Span};
use equipoise_path::link::Capacity;
use serde::{Deserialize, Serialize};

pub use frames::FramesResult;
pub use link::{LinkResult, LinkSample};
pub use media::{BottleneckResult, FairnessResult, MediaResult, PhaseFlowResult, PhaseResult, QueueingResult};
pub use pair::{PairHost, PairPeriod, PairResult, PairTransport};
pub use summary::{FlowSummary, Mean, PhaseSummary, WorldSummary};
pub use web::WebResult;

use crate::scenario::{FlowKind, Outage, Path, Scenario};

/// All runs of one scenario, as in `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the first run; the n-th uses `seed + n`.
    pub seed: u64,
    /// Version of Equipoise that wrote it.
    pub version: String,
    /// The scenario's own description.
    pub description: String,
    /// The whole scenario file.
    pub scenario_text: String,
    /// Start of the time span over which means are taken, in seconds.
    pub warm_up_s: f64,
    /// Planned length of a run, in seconds.
    pub duration_s: f64,
    /// Steps of load and of capacity, for the charts.
    pub steps: Vec<Step>,
    /// Outages of paths, for the charts; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageResult>,
    /// Means over the runs, for simulated and live runs separately; left out if there is only one run of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<WorldSummary>,
    /// The runs: first the simulated ones, then the live ones, each in order of their seeds.
    pub runs: Vec<Run>,
}

/// A planned change of the rate of a link or of a background source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Time of the change, in seconds; 0 for the initial value.
    pub at_s: f64,
    /// The link or flow that changes.
    pub name: String,
    /// Whether it is a link (a capacity) or a flow (a load).
    pub kind: StepKind,
    /// The rate from then on, in bit/s of IP packets.
    pub rate_bps: u64,
}

/// A time span in which a path is unavailable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutageResult {
    /// The path.
    pub path: String,
    /// Its beginning, in seconds.
    pub start_s: f64,
    /// Its end, in seconds; the end of the run for an outage without an end.
    pub end_s: f64,
}

/// What a [`Step`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StepKind {
    /// A link's capacity.
    Capacity,
    /// A background source's load.
    Load,
}

/// The world of a run: simulated or live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator.
    Sim,
    /// Real sockets.
    Live,
}

impl World {
    /// The world as a lower-case word, as in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Live => "live",
        }
    }
}

/// One run of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whether it was simulated or live.
    pub world: World,
    /// Its seed.
    pub seed: u64,
    /// Actual length, in seconds.
    pub lasted_s: f64,
    /// Whether it lasted as long as planned.
    pub complete: bool,
    /// How the delays were measured: "simulated time", "kernel receive timestamps" and so on.
    pub clock: String,
    /// Time spans in which the machine itself stalled (live runs).
    pub stalls: Vec<Stall>,
    /// What the emulated bottleneck reports of itself (live runs).
    pub emulator: Option<EmulatorResult>,
    /// One entry per flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// One entry per link for its forward direction, in the scenario's order, then reverse directions that media pass.
    pub links: Vec<LinkResult>,
    /// The results of all media together, over the run and in each phase; left out if no flow sends media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaResult>,
}

/// How precisely the emulated bottleneck worked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulatorResult {
    /// Datagrams dropped because they were not from the run's flows.
    pub packets_foreign: u64,
    /// Datagrams dropped by the machine and not by a link: for lack of memory, or at a socket.
    pub packets_lost: u64,
    /// Median of the lateness with which datagrams left, compared with an ideal link, in seconds.
    pub late_p50_s: Option<f64>,
    /// 99th percentile of this lateness, in seconds.
    pub late_p99_s: Option<f64>,
    /// Maximum of this lateness, in seconds.
    pub late_max_s: Option<f64>,
}

/// A time span in which the machine ran nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Its start, since the run's start, in seconds.
    pub start_s: f64,
    /// Its end, since the run's start, in seconds.
    pub end_s: f64,
}

/// The results of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Name of the controller or of the window law; `null` for background traffic.
    pub controller: Option<String>,
    /// Media packets sent in the whole run.
    pub packets_sent: u64,
    /// Distinct media packets received.
    pub packets_received: u64,
    /// Media packets sent and not received.
    pub packets_lost: u64,
    /// Received media packets with a congestion mark (ECN); left out if the flow is not ECN-capable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_marked: Option<u64>,
    /// Mean sending rate after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// The part of this rate that arrived, in bit/s of IP packets; `null` for TCP connections.
    #[serde(default)]
    pub delivered_rate_bps: Option<f64>,
    /// One-way delay of the packets sent after the warm-up.
    pub delay: DelayResult,
    /// Target of the one-way delay, in seconds.
    pub target_s: Option<f64>,
    /// Mean squared error of the intervals' mean delays from the target, in s² (Waki 2013, Eq. 18).
    pub mse_s2: Option<f64>,
    /// Coefficient of variation of the intervals' mean delays (Waki 2013, Eq. 21).
    pub cv: Option<f64>,
    /// Largest distance of an interval's mean delay from the target, in seconds (Waki 2013, Eq. 22).
    pub jitter_s: Option<f64>,
    /// Median of the intervals' mean delays, without the warm-up and the three intervals after each step, in seconds.
    pub settled_delay_s: Option<f64>,
    /// Time spans in which its delay was far above the target; `null` without a target.
    #[serde(default)]
    pub excursions: Option<ExcursionResult>,
    /// Share of the decisions after the warm-up in which the application or a rate limit set the rate, not the control
    /// law; `null` without decisions.
    #[serde(default)]
    pub limited_share: Option<f64>,
    /// Datagrams dropped by the flow's two ends, by reason; reasons that did not occur are left out.
    pub ignored: BTreeMap<String, u64>,
    /// How often the pacer restarted its schedule instead of catching up.
    pub pacing_resets: u64,
    /// How often three reports in a row were missing.
    pub reports_missing: u64,
    /// How often each circuit breaker, by name, stopped the media (RFC 8083, Sec. 4); breakers that never did are left
    /// out.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// How often the congestion circuit breaker cut the rate to a tenth.
    #[serde(default)]
    pub circuit_strained: u64,
    /// Number of rate decisions by reason.
    pub decisions: BTreeMap<String, u64>,
    /// AP's coefficient of response b at the last decision, in 1/(s·Mbit/s); `null` for other controllers.
    pub response: Option<f64>,
    /// The results of each control interval.
    pub intervals: Vec<IntervalResult>,
    /// Complementary distribution of the one-way delay after the warm-up, for shares of packets from 1 to 0.001, or
    /// down to one packet if there are fewer than 1000.
    #[serde(default)]
    pub distribution: Vec<DelayShare>,
    /// Queueing delays of its packets that arrived after the warm-up; left out if none arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<QueueingResult>,
    /// Results of the frames of a session's live video; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<FramesResult>,
    /// Results of the frames of a session's live audio; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<FramesResult>,
    /// Results of a session's playout buffer; left out for other flows.
    #[serde(rename = "egress", default, skip_serializing_if = "Option::is_none")]
    pub playout: Option<PlayoutResult>,
    /// Results of a TCP connection; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpResult>,
    /// Results of a flow pair; left out for other flows. The packets, rates, delays and intervals of a flow pair
    /// describe its RTP half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairResult>,
    /// Rate of IP packets at the receiver in each sample interval; left out unless this is a flow pair or the scenario
    /// requests the rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<ReceivedSample>,
    /// Estimates of the path by the control law, sampled every 0.1 s and at each change of the decision's reason; left
    /// out for laws that do not report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beliefs: Vec<BeliefResult>,
    /// Name of the scheduler that divides the total rate of a flow over several paths; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Results on each path of a flow over several paths, in the order of its paths; left out for other flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
}

/// The results of a flow on one of its paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// The path's name.
    pub name: String,
    /// Media packets sent on it in the whole run.
    pub packets_sent: u64,
    /// Distinct media packets received on it.
    pub packets_received: u64,
    /// Media packets sent and not received.
    pub packets_lost: u64,
    /// Mean sending rate after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// One-way delay of the packets sent after the warm-up.
    pub delay: DelayResult,
    /// How often three reports in a row were missing.
    pub reports_missing: u64,
    /// How often each circuit breaker, by name, stopped media on this path while other paths continued (RFC 8083,
    /// Sec. 4); breakers that never did are left out.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// Number of decisions on this path's share of the rate, by reason.
    pub decisions: BTreeMap<String, u64>,
    /// Coefficient of response b of this path when `ap` last split the rate, in 1/(s·Mbit/s); `null` for other
    /// schedulers.
    pub response: Option<f64>,
    /// The results of each report interval.
    pub intervals: Vec<IntervalResult>,
}

/// Results of a session's playout buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayoutResult {
    /// Packets that it accepted.
    pub packets_buffered: u64,
    /// Packets discarded because it was full.
    pub packets_discarded: u64,
    /// Time at which the last packet of finite content reached the end of the path, after its playout, in seconds since
    /// the run's start; `null` if the content has no end, or if the run ended earlier.
    pub finished_s: Option<f64>,
}

/// The rate at a flow's receiver between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSample {
    /// End of the time span that the sample covers, in seconds since the run's start.
    pub at_s: f64,
    /// Mean rate since the last sample, in bit/s of IP packets.
    pub rate_bps: f64,
}

/// A control law's estimates of its path at a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeliefResult {
    /// Time of the decision, in seconds since the run's start.
    pub at_s: f64,
    /// The law's mode, which follows from its estimates: `delay`, `rival` or `policed`.
    pub mode: String,
    /// The reason for the rate.
    pub reason: Option<String>,
    /// The rate, in bit/s of IP packets.
    pub rate_bps: u64,
    /// Service rate of the bottleneck while it was busy, in bit/s; `null` if it was not busy recently.
    pub capacity_bps: Option<f32>,
    /// Rate at which packet trains arrived, in bit/s; `null` without trains.
    pub available_bps: Option<f32>,
    /// Round-trip time of the empty path, in seconds.
    pub base_s: f32,
    /// Variation of delays that no queue causes, in seconds.
    pub noise_s: f32,
    /// Queueing delay of the last packet reported, in seconds.
    pub queue_s: f32,
    /// Target queueing delay, in seconds.
    pub target_s: f32,
}

/// Results of a TCP connection; for web traffic, of all its connections together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpResult {
    /// Mean rate of new data at the receiver, in bit/s without headers: from the start or the end of the warm-up,
    /// whichever is later, to the end of the transfer or of the run. `null` if the transfer was complete before the end
    /// of the warm-up.
    pub goodput_bps: Option<f64>,
    /// New data at the receiver in the whole run, in bytes without headers.
    pub delivered_bytes: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Segments retransmitted in fast recovery; `null` for the kernel's connections, which do not report it.
    pub resent_in_recovery: Option<u64>,
    /// Segments retransmitted after a timeout; `null` for the kernel's connections.
    pub resent_after_timeout: Option<u64>,
    /// Number of fast recoveries; `null` for the kernel's connections.
    pub recoveries: Option<u64>,
    /// Number of retransmission timeouts; `null` if the kernel does not report it (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Minimum round-trip time, in seconds.
    pub min_round_trip_s: Option<f64>,
    /// When the last data of a finite transfer were acknowledged, in seconds since the run's start.
    pub finished_s: Option<f64>,
    /// Results of web traffic; left out for a single connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebResult>,
    /// Its state, one sample per interval.
    pub samples: Vec<TcpSample>,
}

/// A TCP connection's state at one time. For web traffic, windows and segments in flight are sums over the open
/// connections, and only the minimum of the round-trip times is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Time of the sample, in seconds since the run's start.
    pub at_s: f64,
    /// Congestion window.
    pub window_segments: f64,
    /// Slow start threshold; `null` before the first loss.
    pub slow_start_threshold_segments: Option<f64>,
    /// Segments sent and not yet cumulatively acknowledged.
    pub in_flight_segments: u64,
    /// Smoothed round-trip time, in seconds.
    pub smoothed_round_trip_s: Option<f64>,
    /// Minimum round-trip time so far, in seconds.
    pub min_round_trip_s: Option<f64>,
    /// Mean rate of new data at the receiver since the last sample, in bit/s without headers.
    pub goodput_bps: Option<f64>,
    /// Segments retransmitted so far.
    pub retransmissions: u64,
    /// Number of retransmission timeouts so far; `null` if the kernel does not report it (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Symbiosis' γ.
    pub gamma: Option<f64>,
    /// The bottleneck capacity that the window law uses, in bit/s.
    pub capacity_bps: Option<f64>,
    /// The available bandwidth that the window law uses, in bit/s.
    pub available_bps: Option<f64>,
}

/// Time spans in which the mean delay of the intervals was above twice the target, without the warm-up and the three
/// intervals after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExcursionResult {
    /// Their total length, in seconds.
    pub total_s: f64,
    /// Length of the longest time span, in seconds.
    pub longest_s: f64,
}

/// Statistics of a set of one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayResult {
    /// Mean, in seconds.
    pub mean_s: Option<f64>,
    /// Variance (divisor n − 1), in s².
    pub variance_s2: Option<f64>,
    /// Median, in seconds.
    pub p50_s: Option<f64>,
    /// 95th percentile, in seconds.
    pub p95_s: Option<f64>,
    /// 99th percentile, in seconds.
    pub p99_s: Option<f64>,
    /// Largest, in seconds.
    pub max_s: Option<f64>,
}

/// The packets sent in one control interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalResult {
    /// Start, in seconds since the run's start.
    pub start_s: f64,
    /// End, in seconds since the run's start.
    pub end_s: f64,
    /// Sending rate, in bit/s of IP packets.
    pub rate_bps: f64,
    /// Mean one-way delay, in seconds.
    pub delay_mean_s: Option<f64>,
    /// Variance of the one-way delay, in s².
    pub delay_variance_s2: Option<f64>,
    /// Median one-way delay, in seconds.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the one-way delay, in seconds.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile of the one-way delay, in seconds.
    pub delay_p99_s: Option<f64>,
    /// Largest one-way delay, in seconds.
    pub delay_max_s: Option<f64>,
    /// Packets sent.
    pub packets: u64,
    /// Of these, packets that never arrived.
    pub packets_lost: u64,
    /// Whether the machine stalled during a part of the interval.
    pub stalled: bool,
}

impl IntervalResult {
    /// The middle of the interval, in seconds since the run's start.
    pub(crate) fn middle_s(&self) -> f64 {
        f64::midpoint(self.start_s, self.end_s)
    }
}

/// A point of the delay's complementary distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayShare {
    /// A delay, in seconds.
    pub delay_s: f64,
    /// The share of the packets with at least this delay, above 0 and up to 1.
    pub share: f64,
}

impl Report {
    /// A report of the runs of a scenario; the first run has `seed`.
    pub fn new(scenario: &Scenario, seed: u64, mut runs: Vec<Run>) -> Self {
        runs.sort_by_key(|run| run.world);
        Self {
            scenario: scenario.name.clone(),
            seed,
            version: crate::VERSION.to_owned(),
            description: scenario.description.trim().to_owned(),
            scenario_text: scenario.text.clone(),
            warm_up_s: scenario.warm_up.as_secs_f64(),
            duration_s: scenario.duration.as_secs_f64(),
            steps: steps(scenario),
            outages: outages(scenario),
            summary: summary::of(&runs),
            runs,
        }
    }

    /// The report as JSON, with a line break at its end.
    pub fn to_json(&self) -> String {
        json(self)
    }

    /// The control intervals of all runs of several scenarios as CSV, one line each.
    pub fn intervals_to_csv(reports: &[Self]) -> String {
        csv::intervals(reports)
    }

    /// The reports of several scenarios as a JSON array, with a line break at its end.
    pub fn several_to_json(reports: &[Self]) -> String {
        json(reports)
    }
}

/// Results as JSON, with a line break at the end. This cannot fail: numbers, strings and maps with string keys always
/// have a JSON form.
pub(crate) fn json<T: Serialize + ?Sized>(results: &T) -> String {
    let mut json = serde_json::to_string_pretty(results).expect("results are plain numbers and texts");
    json.push('\n');
    json
}

/// Results as JSON in one line.
pub(crate) fn json_line<T: Serialize + ?Sized>(results: &T) -> String {
    let mut json = serde_json::to_string(results).expect("results are plain numbers and texts");
    json.push('\n');
    json
}

/// Initial values and steps of every link's capacity and every background flow's load.
fn steps(scenario: &Scenario) -> Vec<Step> {
    let capacities = scenario.links.iter().filter_map(|link| {
        let capacity = capacity_over(&link.forward.capacity, scenario.duration)?;
        Some((&link.name, StepKind::Capacity, Span::ZERO, capacity))
    });
    let loads = scenario.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Background { rate, .. } => Some((&flow.name, StepKind::Load, flow.start, rate.clone())),
        FlowKind::Session { .. } | FlowKind::Tcp(_) | FlowKind::Multipath(_) | FlowKind::Pair(_) => None,
    });
    let mut steps = Vec::new();
    for (name, kind, start, rate) in capacities.chain(loads) {
        let values = std::iter::once((Span::ZERO, rate.initial())).chain(rate.steps().iter().copied());
        steps.extend(values.map(|(at, rate)| Step {
            at_s: (start + at).as_secs_f64(),
            name: name.clone(),
            kind,
            rate_bps: rate.as_bps(),
        }));
    }
    steps
}

/// Number of parts of a run; a recorded capacity is drawn as the mean of each part.
const PARTS: i64 = 200;

/// A capacity over a run, at a resolution for charts; `None` if it is unlimited.
fn capacity_over(capacity: &Capacity, duration: Span) -> Option<Schedule<Rate>> {
    let Capacity::Trace(_) = capacity else { return capacity.rate() };
    let part = Span::from_nanos(duration.as_nanos() / PARTS).max(Span::from_millis(100));
    let parts = (duration / part).unwrap_or(0).max(1);
    let mean = |number: i64| {
        let (from, to) = (part * number, part * (number + 1));
        let bps = capacity.bits(from, to).unwrap_or(0.0) / part.as_secs_f64();
        (from, Rate::from_bps_f64(bps).unwrap_or(Rate::ZERO))
    };
    Some(Schedule::new(mean(0).1, (1..parts).map(mean).collect()))
}

fn outages(scenario: &Scenario) -> Vec<OutageResult> {
    let outages = scenario.paths.iter().flat_map(|path| path.down.iter().map(move |outage| (path, outage)));
    let result = |(path, outage): (&Path, &Outage)| OutageResult {
        path: path.name.clone(),
        start_s: outage.at.as_secs_f64(),
        end_s: outage.until.unwrap_or(scenario.duration).as_secs_f64(),
    };
    outages.map(result).collect()
}
