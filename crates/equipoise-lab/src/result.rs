//! The results of a run. Simulated and live results have the same format.
//!
//! The names of fields include the unit, because values are plain numbers in this format (`report.json`). `None`, which
//! is written as `null`, means that the value was not measured. Times within a run are relative to the run's start.

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

/// All runs of one scenario. The fields are those of `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the first run; run n, counted from 0, uses `seed + n`.
    pub seed: u64,
    /// Version of Equipoise that wrote the report.
    pub version: String,
    /// The description in the scenario file.
    pub description: String,
    /// The complete text of the scenario file.
    pub scenario_text: String,
    /// End of the warm-up, in seconds since the run's start. Means are taken over the time after the warm-up.
    pub warm_up_s: f64,
    /// Planned length of a run, in seconds.
    pub duration_s: f64,
    /// Initial values and planned steps of load and of capacity, which charts show.
    pub steps: Vec<Step>,
    /// Planned outages of paths, which charts show; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageResult>,
    /// Means over the simulated runs and means over the live runs; omitted if there is at most one run of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<WorldSummary>,
    /// The runs: first the simulated ones, then the live ones, each in the order of their seeds.
    pub runs: Vec<Run>,
}

/// The initial rate of a link or of a background source, or a planned change of this rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Time of the change, in seconds since the run's start. The initial rate of a link has the time 0. The initial
    /// rate of a background source has the start time of the flow.
    pub at_s: f64,
    /// Name of the link or of the flow.
    pub name: String,
    /// Whether the rate is that of a link (a capacity) or of a flow (a load).
    pub kind: StepKind,
    /// The rate from this time on, in bit/s of IP packets.
    pub rate_bps: u64,
}

/// A time span in which a path is unavailable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutageResult {
    /// Name of the path.
    pub path: String,
    /// Start of the outage, in seconds since the run's start.
    pub start_s: f64,
    /// End of the outage, in seconds since the run's start; the planned end of the run if the path does not return.
    pub end_s: f64,
}

/// Which quantity a [`Step`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StepKind {
    /// The capacity of a link.
    Capacity,
    /// The load of a background source.
    Load,
}

/// The kind of a run: simulated or live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Run in the simulator.
    Sim,
    /// Run on real sockets.
    Live,
}

impl World {
    /// Returns the kind as a lower-case word, as in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Live => "live",
        }
    }
}

/// The results of one run of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whether the run was simulated or live.
    pub world: World,
    /// Seed of the run.
    pub seed: u64,
    /// Actual length of the run, in seconds.
    pub lasted_s: f64,
    /// Whether the run lasted as long as planned.
    pub complete: bool,
    /// How the delays were measured: "simulated time", "kernel receive timestamps" and so on.
    pub clock: String,
    /// Time spans in which the machine itself stalled (live runs).
    pub stalls: Vec<Stall>,
    /// How precisely the emulated bottleneck worked (live runs).
    pub emulator: Option<EmulatorResult>,
    /// One entry per flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// One entry for each link's forward direction, in the scenario's order. After these, one entry for each reverse
    /// direction that carries media or data. A reverse direction with only feedback or acknowledgements has no entry.
    pub links: Vec<LinkResult>,
    /// The results of all media together, for the whole run and for each phase; omitted if no flow sends media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaResult>,
}

/// How precisely the emulated bottleneck worked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulatorResult {
    /// Number of datagrams dropped because they did not come from the run's flows.
    pub packets_foreign: u64,
    /// Number of datagrams lost on the machine instead of on a link: those that the emulator dropped for lack of
    /// memory, and those that were lost at the emulator's sockets.
    pub packets_lost: u64,
    /// Median lateness of departures, compared with an ideal link, in seconds.
    pub late_p50_s: Option<f64>,
    /// 99th percentile of the lateness of departures, in seconds.
    pub late_p99_s: Option<f64>,
    /// Maximum lateness of departures, in seconds.
    pub late_max_s: Option<f64>,
}

/// A time span in which the watchdog thread of a live run should have run but did not. Probably the run's other threads
/// did not run either.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Start of the stall, in seconds since the run's start.
    pub start_s: f64,
    /// End of the stall, in seconds since the run's start.
    pub end_s: f64,
}

/// The results of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Name of the controller, of the window law or of the kernel's congestion control; `null` for background traffic.
    pub controller: Option<String>,
    /// Number of media packets sent in the whole run. For background traffic, all packets count; for TCP, all segments,
    /// including retransmissions.
    pub packets_sent: u64,
    /// Number of distinct media packets received. For TCP, the number of segments sent minus the number of
    /// retransmissions.
    pub packets_received: u64,
    /// Number of media packets sent and not received; for TCP, the number of retransmissions.
    pub packets_lost: u64,
    /// Number of media packets received with an ECN congestion mark; omitted if the flow is not ECN-capable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_marked: Option<u64>,
    /// Mean sending rate after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// Mean rate of the bytes that were sent after the warm-up and arrived, in bit/s of IP packets; `null` for TCP
    /// connections.
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
    /// Median of the intervals' mean delays, in seconds. These intervals do not count: those in the warm-up, those with
    /// a step (a change of capacity or load, or the loss or return of a path), and the three intervals after a step.
    pub settled_delay_s: Option<f64>,
    /// Time spans in which the flow's delay was far above the target; `null` if the flow has no target.
    #[serde(default)]
    pub excursions: Option<ExcursionResult>,
    /// Share of the decisions after the warm-up in which the application or a rate limit set the rate instead of the
    /// control law; `null` if there were no decisions.
    #[serde(default)]
    pub limited_share: Option<f64>,
    /// Number of datagrams that the flow's two endpoints dropped, by reason; reasons that did not occur are omitted.
    pub ignored: BTreeMap<String, u64>,
    /// How often the pacer restarted its schedule instead of sending faster to catch up.
    pub pacing_resets: u64,
    /// How often the sender skipped a report request because at least three reports were missing. While the network
    /// reported the receiver as unreachable, one missing report was enough.
    pub reports_missing: u64,
    /// How often each circuit breaker stopped the media (RFC 8083, Sec. 4), by the breaker's name. Breakers that never
    /// stopped the media are omitted.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// How often the congestion circuit breaker cut the rate to a tenth.
    #[serde(default)]
    pub circuit_strained: u64,
    /// Number of rate decisions by reason.
    pub decisions: BTreeMap<String, u64>,
    /// Coefficient of response of the controller AP at its last decision, in 1/(s·Mbit/s); `null` for other
    /// controllers.
    pub response: Option<f64>,
    /// The results of each control interval, up to the last interval in which a packet was sent. An interval that the
    /// end of the run cut short is omitted.
    pub intervals: Vec<IntervalResult>,
    /// Complementary distribution of the one-way delay after the warm-up. Each entry has a share of the packets and the
    /// delay that this share reached or exceeded. The shares fall from 1 to 0.001. If there are fewer than 1000
    /// packets, the last share is one packet.
    #[serde(default)]
    pub distribution: Vec<DelayShare>,
    /// Queueing delays of the flow's packets that arrived after the warm-up; omitted if none arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<QueueingResult>,
    /// Results of the frames of a session's live video; omitted for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<FramesResult>,
    /// Results of the frames of a session's live audio; omitted for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<FramesResult>,
    /// Results of a session's playout buffer; omitted for other flows.
    #[serde(rename = "egress", default, skip_serializing_if = "Option::is_none")]
    pub playout: Option<PlayoutResult>,
    /// Results of a TCP connection or of web traffic; omitted for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpResult>,
    /// Results of a flow pair; omitted for other flows. For a flow pair, [`received`](Self::received) covers TCP and
    /// RTP together. The other fields of `FlowResult` for packets, rates, delays and intervals describe only the RTP
    /// half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairResult>,
    /// Rate of IP packets at the receiver in each sample interval; omitted unless the flow is a flow pair or the
    /// scenario requests these rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<ReceivedSample>,
    /// Samples of the control law's estimates of the path. A sample is taken if the last sample is at least 0.1 s old,
    /// or if the decision's reason or the law's mode has changed. Omitted for laws that do not report estimates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beliefs: Vec<BeliefResult>,
    /// Name of the scheduler that divides the total rate of a flow over several paths; omitted for flows with one path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Results on each path of a flow over several paths, in the order of the flow's paths; omitted for flows with one
    /// path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
}

/// The results of a flow on one of the flow's paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// The path's name.
    pub name: String,
    /// Number of media packets sent on this path in the whole run.
    pub packets_sent: u64,
    /// Number of distinct media packets received on this path.
    pub packets_received: u64,
    /// Number of media packets sent on this path and not received.
    pub packets_lost: u64,
    /// Mean sending rate on this path after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// One-way delay of the packets sent on this path after the warm-up.
    pub delay: DelayResult,
    /// How often the sender skipped a report request on this path because reports were missing.
    pub reports_missing: u64,
    /// How often each circuit breaker stopped media on this path while other paths continued (RFC 8083, Sec. 4), by the
    /// breaker's name. Breakers that never stopped media are omitted.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// Number of decisions about this path's share of the rate, by reason.
    pub decisions: BTreeMap<String, u64>,
    /// Coefficient of response of this path at the last decision of the scheduler `ap`, in 1/(s·Mbit/s); `null` for
    /// other schedulers.
    pub response: Option<f64>,
    /// The results of each report interval on this path, up to the last interval in which a packet was sent. An
    /// interval that the end of the run cut short is omitted.
    pub intervals: Vec<IntervalResult>,
}

/// Results of a session's playout buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayoutResult {
    /// Number of packets that the buffer accepted.
    pub packets_buffered: u64,
    /// Number of packets that were discarded because the playout buffer was full.
    pub packets_discarded: u64,
    /// Time at which the last packet of the content reached the end of its path, in seconds since the run's start. The
    /// path includes the playout buffer's link and any links after it. `null` if the content has no end, or if the
    /// buffer did not accept all packets of the content before the run's end.
    pub finished_s: Option<f64>,
}

/// The mean rate at a flow's receiver between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSample {
    /// End of the time span that the sample covers, in seconds since the run's start.
    pub at_s: f64,
    /// Mean rate since the previous sample, in bit/s of IP packets.
    pub rate_bps: f64,
}

/// A control law's estimates of its path at the time of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeliefResult {
    /// Time of the decision, in seconds since the run's start.
    pub at_s: f64,
    /// Mode of the control law, which follows from the law's estimates: `delay`, `rival` or `policed`.
    pub mode: String,
    /// The reason for the decided rate.
    pub reason: Option<String>,
    /// The decided rate, in bit/s of IP packets.
    pub rate_bps: u64,
    /// Service rate of the bottleneck while it was busy, in bit/s; `null` if the bottleneck was not busy recently.
    pub capacity_bps: Option<f32>,
    /// Rate at which packet trains arrived, in bit/s; `null` if there were no packet trains.
    pub available_bps: Option<f32>,
    /// Round-trip time of the path without any queue, in seconds.
    pub base_s: f32,
    /// Variation of delays that is not caused by queues, in seconds.
    pub noise_s: f32,
    /// Queueing delay of the last packet that was reported, in seconds.
    pub queue_s: f32,
    /// Target queueing delay, in seconds.
    pub target_s: f32,
}

/// Results of a TCP connection. For web traffic, the results cover all its connections together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpResult {
    /// Mean rate of new data at the receiver, in bit/s without headers. It is measured from the flow's start or the end
    /// of the warm-up, whichever is later, to the end of the transfer or of the run. `null` if the transfer was
    /// complete before the end of the warm-up.
    pub goodput_bps: Option<f64>,
    /// Amount of new data that arrived at the receiver in the whole run, in bytes without headers.
    pub delivered_bytes: u64,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// Number of segments retransmitted in fast recovery; `null` for the kernel's connections, which do not report this
    /// number.
    pub resent_in_recovery: Option<u64>,
    /// Number of segments retransmitted after a timeout; `null` for the kernel's connections.
    pub resent_after_timeout: Option<u64>,
    /// Number of fast recoveries; `null` for the kernel's connections.
    pub recoveries: Option<u64>,
    /// Number of retransmission timeouts; `null` if the kernel does not report this number (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Minimum round-trip time, in seconds. In simulated runs, it is the minimum over the whole connection. In live
    /// runs, it is the minimum over the connection's last minutes, as measured by the kernel.
    pub min_round_trip_s: Option<f64>,
    /// When the last data of a finite transfer was acknowledged, in seconds since the run's start.
    pub finished_s: Option<f64>,
    /// Results of web traffic; omitted for a single connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebResult>,
    /// The connection's state over time, one sample per sample interval of the scenario.
    pub samples: Vec<TcpSample>,
}

/// The state of a TCP connection at one time. For web traffic, the congestion window and the number of segments in
/// flight are sums over the open connections. Of the round-trip times, only the minimum is known for web traffic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Time of the sample, in seconds since the run's start.
    pub at_s: f64,
    /// Congestion window, in segments.
    pub window_segments: f64,
    /// Slow start threshold, in segments; `null` until a threshold is set, for example by the first loss.
    pub slow_start_threshold_segments: Option<f64>,
    /// Number of segments sent and not yet cumulatively acknowledged.
    pub in_flight_segments: u64,
    /// Smoothed round-trip time, in seconds.
    pub smoothed_round_trip_s: Option<f64>,
    /// Minimum round-trip time, in seconds. In simulated runs, it is the minimum since the connection's start. In live
    /// runs, it is the minimum over the last minutes, as measured by the kernel.
    pub min_round_trip_s: Option<f64>,
    /// Mean rate of new data at the receiver since the previous sample, in bit/s without headers.
    pub goodput_bps: Option<f64>,
    /// Number of segments retransmitted since the connection's start.
    pub retransmissions: u64,
    /// Number of retransmission timeouts since the connection's start; `null` if the kernel does not report this number
    /// (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// γ of the window law Symbiosis, the weight of cross traffic; `null` for other laws.
    pub gamma: Option<f64>,
    /// The bottleneck capacity that the window law uses, in bit/s.
    pub capacity_bps: Option<f64>,
    /// The available bandwidth that the window law uses, in bit/s.
    pub available_bps: Option<f64>,
}

/// Excursions of the delay: series of control intervals whose mean delays are above twice the target. Intervals in the
/// warm-up, intervals with a step, and the three intervals after a step do not count. A step is a change of capacity or
/// load, or the loss or return of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExcursionResult {
    /// Total length of the excursions, in seconds.
    pub total_s: f64,
    /// Length of the longest excursion, in seconds.
    pub longest_s: f64,
}

/// Statistics of a set of one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayResult {
    /// Mean delay, in seconds.
    pub mean_s: Option<f64>,
    /// Variance of the delays (divisor n − 1), in s².
    pub variance_s2: Option<f64>,
    /// Median delay, in seconds.
    pub p50_s: Option<f64>,
    /// 95th percentile of the delays, in seconds.
    pub p95_s: Option<f64>,
    /// 99th percentile of the delays, in seconds.
    pub p99_s: Option<f64>,
    /// Longest delay, in seconds.
    pub max_s: Option<f64>,
}

/// Statistics of the packets that were sent in one control interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalResult {
    /// Start of the interval, in seconds since the run's start.
    pub start_s: f64,
    /// End of the interval, in seconds since the run's start.
    pub end_s: f64,
    /// Sending rate in the interval, in bit/s of IP packets.
    pub rate_bps: f64,
    /// Mean one-way delay of the packets sent in the interval, in seconds.
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
    /// Number of packets sent in the interval.
    pub packets: u64,
    /// Number of packets sent in the interval that never arrived.
    pub packets_lost: u64,
    /// Whether the machine stalled during a part of the interval.
    pub stalled: bool,
}

impl IntervalResult {
    /// Returns the middle of the interval, in seconds since the run's start.
    pub(crate) fn middle_s(&self) -> f64 {
        f64::midpoint(self.start_s, self.end_s)
    }
}

/// A point of the complementary distribution of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayShare {
    /// A delay, in seconds.
    pub delay_s: f64,
    /// The share of the packets with at least this delay, above 0 and up to 1.
    pub share: f64,
}

impl Report {
    /// Returns the report of the runs of a scenario. `seed` is the seed of the first run.
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

    /// Returns the report as JSON that ends with a line break.
    pub fn to_json(&self) -> String {
        json(self)
    }

    /// Returns the control intervals of all runs of several scenarios as CSV, with one line for each interval.
    pub fn intervals_to_csv(reports: &[Self]) -> String {
        csv::intervals(reports)
    }

    /// Returns the reports of several scenarios as a JSON array that ends with a line break.
    pub fn several_to_json(reports: &[Self]) -> String {
        json(reports)
    }
}

/// Returns results as JSON that ends with a line break. This cannot fail: numbers, strings and maps with string keys
/// always have a JSON form.
pub(crate) fn json<T: Serialize + ?Sized>(results: &T) -> String {
    let mut json = serde_json::to_string_pretty(results).expect("results are plain numbers and texts");
    json.push('\n');
    json
}

/// Returns results as JSON in one line that ends with a line break.
pub(crate) fn json_line<T: Serialize + ?Sized>(results: &T) -> String {
    let mut json = serde_json::to_string(results).expect("results are plain numbers and texts");
    json.push('\n');
    json
}

/// Returns the initial value and the steps of each link's forward capacity and of each background flow's load.
/// Unlimited capacities are omitted.
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

/// Maximum number of steps in the chart of a recorded capacity. Each step shows the mean capacity over an equal part of
/// the run.
const PARTS: i64 = 200;

/// Returns a link's capacity over a run, at a resolution that is enough for charts; `None` if the capacity is
/// unlimited.
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
