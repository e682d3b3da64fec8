//! What a run gives: the one form in which both worlds' results are kept, compared, drawn and written.
//!
//! Field names carry their unit, because this is where types end (`report.json`). `None`, written as `null`, stands for
//! what was not measured. Times of a run count from its start.

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

/// All runs of one scenario, as `report.json` holds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the first run; the n-th uses `seed + n`.
    pub seed: u64,
    /// Version of Equipoise that made it.
    pub version: String,
    /// The scenario's own words on what it shows.
    pub description: String,
    /// The scenario file, whole.
    pub scenario_text: String,
    /// Start of the part that counts for the means, in seconds.
    pub warm_up_s: f64,
    /// Planned length of a run, in seconds.
    pub duration_s: f64,
    /// Steps of load and of capacity, for the charts.
    pub steps: Vec<Step>,
    /// When paths are taken away, for the charts; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageResult>,
    /// Means over the runs of each world that has several; else left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<WorldSummary>,
    /// The runs, simulated ones first, each world's in the order of their seeds.
    pub runs: Vec<Run>,
}

/// A planned change of a link's rate or of a source's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, in seconds; 0 for the initial value.
    pub at_s: f64,
    /// The link or flow that changes.
    pub name: String,
    /// Whether it is a link (a capacity) or a flow (a load).
    pub kind: StepKind,
    /// The rate from then on, in bit/s of IP packets.
    pub rate_bps: u64,
}

/// A time in which a path is taken away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutageResult {
    /// The path.
    pub path: String,
    /// Its beginning, in seconds.
    pub start_s: f64,
    /// Its end, or that of the run, in seconds.
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

/// The world that a run took place in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator.
    Sim,
    /// Real sockets.
    Live,
}

impl World {
    /// The world in a lower-case word, as JSON and CSV have it.
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
    /// Where it ran.
    pub world: World,
    /// Its seed.
    pub seed: u64,
    /// How long it really lasted, in seconds.
    pub lasted_s: f64,
    /// Whether it lasted as long as planned.
    pub complete: bool,
    /// What the delays were measured with: "simulated time", "kernel receive timestamps" and so on.
    pub clock: String,
    /// Moments in which the machine itself stalled (live runs).
    pub stalls: Vec<Stall>,
    /// What the emulated bottleneck says of itself (live runs).
    pub emulator: Option<EmulatorResult>,
    /// One entry a flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// One entry a link, in the scenario's order: its forward direction.
    pub links: Vec<LinkResult>,
    /// What all media did together, and in each phase; left out if no flow sends media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaResult>,
}

/// How well the emulated bottleneck did its work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulatorResult {
    /// Datagrams from strangers, which were dropped.
    pub packets_foreign: u64,
    /// Datagrams dropped by the machine and not by a link: for want of memory, or at a socket.
    pub packets_lost: u64,
    /// Median of how much later than ideal datagrams left, in seconds.
    pub late_p50_s: Option<f64>,
    /// 99th percentile of the same, in seconds.
    pub late_p99_s: Option<f64>,
    /// Largest of the same, in seconds.
    pub late_max_s: Option<f64>,
}

/// A time in which the machine ran nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Since the run's start, in seconds.
    pub start_s: f64,
    /// Since the run's start, in seconds.
    pub end_s: f64,
}

/// What one flow did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// The controller's or the window law's name; `null` for background traffic.
    pub controller: Option<String>,
    /// Media packets sent in the whole run.
    pub packets_sent: u64,
    /// Different media packets received.
    pub packets_received: u64,
    /// Sent and not received.
    pub packets_lost: u64,
    /// Of those received, media packets that queues had marked (ECN); left out where none may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_marked: Option<u64>,
    /// Mean sending rate after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// Of this, the rate of the packets that arrived, in bit/s of IP packets; `null` for TCP connections.
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
    /// Median of the intervals' mean delays, the warm-up and the three intervals after each step left out, in seconds.
    pub settled_delay_s: Option<f64>,
    /// When its delay was far above the target; `null` without a target.
    #[serde(default)]
    pub excursions: Option<ExcursionResult>,
    /// Share of the decisions after the warm-up in which the application or a limit of the rate decided, and not the law; `null`
    /// without decisions.
    #[serde(default)]
    pub limited_share: Option<f64>,
    /// Datagrams that the flow's two ends dropped, by reason; reasons that did not occur are left out.
    pub ignored: BTreeMap<String, u64>,
    /// How often the sender began a new schedule instead of catching up.
    pub pacing_resets: u64,
    /// How often three reports in a row were missing.
    pub reports_missing: u64,
    /// How often each circuit breaker stopped the media (RFC 8083, Sec. 4), by its name; those that did not are left out.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// How often the congestion breaker cut the rate to a tenth.
    #[serde(default)]
    pub circuit_strained: u64,
    /// How often each reason decided the rate.
    pub decisions: BTreeMap<String, u64>,
    /// AP's coefficient of response b at the last decision, in 1/(s·Mbit/s); `null` for other controllers.
    pub response: Option<f64>,
    /// The control intervals.
    pub intervals: Vec<IntervalResult>,
    /// Complementary distribution of the one-way delay after the warm-up, from all packets down to one in a thousand, or to the
    /// last one if there are fewer.
    #[serde(default)]
    pub distribution: Vec<DelayShare>,
    /// How long its packets that arrived after the warm-up waited in queues; left out if none arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<QueueingResult>,
    /// What became of the frames of a session's live video; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<FramesResult>,
    /// What became of the frames of its live audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<FramesResult>,
    /// What only a session with a playout buffer has; left out for other flows.
    #[serde(rename = "egress", default, skip_serializing_if = "Option::is_none")]
    pub playout: Option<PlayoutResult>,
    /// What only a TCP connection has; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpResult>,
    /// What only a flow pair has, whose packets, rates, delays and intervals are those of its RTP half; left out for other
    /// flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairResult>,
    /// Rates of IP packets at the receiver, a sample an interval, of flow pairs and where the scenario asks for them; else left
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<ReceivedSample>,
    /// What its law believed of the path, a sample each tenth of a second and where a reason changed; left out for laws that do not
    /// say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beliefs: Vec<BeliefResult>,
    /// Name of what divides the total of a flow over several paths; left out for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// What a flow over several paths did on each of them, in the order of their numbers; left out for other flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
}

/// What a flow did on one of its paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// The path's name.
    pub name: String,
    /// Media packets sent on it in the whole run.
    pub packets_sent: u64,
    /// Different media packets received from it.
    pub packets_received: u64,
    /// Sent and not received.
    pub packets_lost: u64,
    /// Mean sending rate after the warm-up, in bit/s of IP packets.
    pub mean_rate_bps: Option<f64>,
    /// One-way delay of the packets sent after the warm-up.
    pub delay: DelayResult,
    /// How often three reports in a row were missing.
    pub reports_missing: u64,
    /// How often each circuit breaker took media off it while other paths carried on (RFC 8083, Sec. 4), by its name; those that did
    /// not are left out.
    #[serde(default)]
    pub circuit_broken: BTreeMap<String, u64>,
    /// How often each reason decided its share.
    pub decisions: BTreeMap<String, u64>,
    /// Its coefficient of response b at the last split by `ap`, in 1/(s·Mbit/s); `null` for other splits.
    pub response: Option<f64>,
    /// The report intervals.
    pub intervals: Vec<IntervalResult>,
}

/// What became of a session's packets in its playout buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayoutResult {
    /// Packets that it took.
    pub packets_buffered: u64,
    /// Packets that found it full.
    pub packets_discarded: u64,
    /// When the last packet of a finite content had been served and had come to the end of the path, in seconds since the
    /// run's start; `null` where it has no end or none was reached.
    pub finished_s: Option<f64>,
}

/// What came to a flow's receiver between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSample {
    /// End of the time that it stands for, in seconds since the run's start.
    pub at_s: f64,
    /// Mean rate since the last sample, in bit/s of IP packets.
    pub rate_bps: f64,
}

/// What a law believed of its path at a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeliefResult {
    /// When, in seconds since the run's start.
    pub at_s: f64,
    /// How it went by what it believed: `delay`, `rival` or `policed`.
    pub mode: String,
    /// What decided the rate.
    pub reason: Option<String>,
    /// The rate, in bit/s of IP packets.
    pub rate_bps: u64,
    /// Rate at which the bottleneck served while it was busy, in bit/s; `null` if it was not lately.
    pub capacity_bps: Option<f32>,
    /// Rate at which trains of packets came through, in bit/s; `null` without trains.
    pub available_bps: Option<f32>,
    /// Round trip of the empty path, in seconds.
    pub base_s: f32,
    /// How rough delays were that are no queue, in seconds.
    pub noise_s: f32,
    /// Queueing delay of the last packet reported, in seconds.
    pub queue_s: f32,
    /// Queueing delay aimed at, in seconds.
    pub target_s: f32,
}

/// What a TCP connection did; of web traffic, all its connections together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpResult {
    /// Mean rate of new data at the receiver, in bit/s without headers: from the start, or the end of the warm-up if that is
    /// later, to the end of the transfer or of the run. `null` if the transfer was complete before the end of the warm-up.
    pub goodput_bps: Option<f64>,
    /// New data at the receiver in the whole run, in bytes without headers.
    pub delivered_bytes: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Of these, segments sent again in fast recovery; `null` for the kernel's connections, where it does not tell.
    pub resent_in_recovery: Option<u64>,
    /// Segments sent again after the timer had run out; `null` for the kernel's connections.
    pub resent_after_timeout: Option<u64>,
    /// How often fast recovery began; `null` for the kernel's connections.
    pub recoveries: Option<u64>,
    /// How often the retransmission timer ran out; `null` where the kernel does not tell (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Least round-trip time, in seconds.
    pub min_round_trip_s: Option<f64>,
    /// When the last data of a finite transfer were acknowledged, in seconds since the run's start.
    pub finished_s: Option<f64>,
    /// What only web traffic has; left out for one connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebResult>,
    /// Its state, a sample an interval.
    pub samples: Vec<TcpSample>,
}

/// A TCP connection's state at one moment; of web traffic, windows and segments in flight are sums over the connections that are open,
/// and round-trip times the least alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// When, in seconds since the run's start.
    pub at_s: f64,
    /// Congestion window.
    pub window_segments: f64,
    /// Slow start threshold; `null` before the first loss.
    pub slow_start_threshold_segments: Option<f64>,
    /// Segments sent and not acknowledged in order.
    pub in_flight_segments: u64,
    /// Smoothed round-trip time, in seconds.
    pub smoothed_round_trip_s: Option<f64>,
    /// Least round-trip time so far, in seconds.
    pub min_round_trip_s: Option<f64>,
    /// Mean rate of new data at the receiver since the last sample, in bit/s without headers.
    pub goodput_bps: Option<f64>,
    /// Segments sent again so far.
    pub retransmissions: u64,
    /// How often the retransmission timer has run out so far; `null` where the kernel does not tell (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Symbiosis' γ.
    pub gamma: Option<f64>,
    /// The capacity that the law goes by, in bit/s.
    pub capacity_bps: Option<f64>,
    /// The available bandwidth that the law goes by, in bit/s.
    pub available_bps: Option<f64>,
}

/// Times in which the mean delay of the intervals was above twice the target, the warm-up and the three intervals after each step
/// left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExcursionResult {
    /// All of them together, in seconds.
    pub total_s: f64,
    /// The longest, in seconds.
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
    /// Start, in seconds since the run's.
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
    /// The machine stalled for a part of it.
    pub stalled: bool,
}

/// A point of the delay's complementary distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayShare {
    /// A delay, in seconds.
    pub delay_s: f64,
    /// The share of the packets that took as long or longer, above 0 and up to 1.
    pub share: f64,
}

impl Report {
    /// The runs of a scenario, the first of which has `seed`.
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

    /// The control intervals of all runs of several scenarios as CSV, a line each.
    pub fn intervals_to_csv(reports: &[Self]) -> String {
        csv::intervals(reports)
    }

    /// The reports of several scenarios as a JSON array, with a line break at its end.
    pub fn several_to_json(reports: &[Self]) -> String {
        json(reports)
    }
}

/// Results as JSON, with a line break at its end: numbers, texts and maps by text always have a JSON form.
pub(crate) fn json<T: Serialize + ?Sized>(results: &T) -> String {
    let mut json = serde_json::to_string_pretty(results).expect("results are plain numbers and texts");
    json.push('\n');
    json
}

/// The same in one line.
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

/// Parts of a run in which a recorded capacity is drawn by its mean.
const PARTS: i64 = 200;

/// A capacity over a run, as a reader can see it; `None` where all is carried.
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
