//! The results of a suite. The types have the same structure as the JSON. The name of a field contains the unit. `null`
//! means that a case has no such value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bars::BarResult;
use super::rows::MetricRow;
use super::series::{Audio, FlowSeries};
use crate::result::{FlowResult, FramesResult, World, json_line};
use crate::statistics::{mean_95, share_95};

/// The results of all cases under all controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// The name of the suite: `rfc8867`, `traces` or `bars`.
    pub suite: String,
    /// Version of Equipoise that wrote the result.
    pub version: String,
    /// Seed of the first run of each variant; run n, counted from 0, uses `seed + n`.
    pub seed: u64,
    /// Number of simulated runs of each variant.
    pub runs: u32,
    /// Number of live runs of each variant; omitted if there are no live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_runs: Option<u32>,
    /// Queue discipline of all bottleneck links; `null` if each scenario keeps its own discipline.
    pub aqm: Option<String>,
    /// The bars, which are the limits that our control law must meet; omitted if the suite is not `bars`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<BarResult>,
    /// The results, in the order of case, variant and controller. A simulated result precedes the live result.
    pub results: Vec<CaseResult>,
    /// The variants that a controller cannot run or did not run.
    pub not_run: Vec<NotRun>,
}

/// The result of one variant of a case under one controller, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case, such as "5.1".
    pub case: String,
    /// The title of the case.
    pub title: String,
    /// The variant, such as "50ms-link".
    pub variant: String,
    /// The description in the scenario.
    pub description: String,
    /// Whether the runs were simulated or live.
    pub world: World,
    /// The name of the controller.
    pub controller: String,
    /// Origin of the controller's code: `ours` for this project's own code.
    pub implementation: String,
    /// Version of the controller's code.
    pub version: String,
    /// Seed of the first run.
    pub seed: u64,
    /// Parameters of the first session's controller, written as in a scenario file.
    pub parameters: BTreeMap<String, String>,
    /// Number of runs over which means are taken.
    pub runs: u32,
    /// Length of a run, in seconds.
    pub duration_s: f64,
    /// The results of media flows, of their audio, and of TCP flows, in the order of the scenario.
    pub flows: Vec<CaseFlow>,
    /// The results of the phases, which are the time spans between planned changes.
    pub phases: Vec<PhaseResult>,
    /// Metrics of all media together in the whole run.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Disturbances by the machine in live runs; omitted for simulated runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Time series of the flows, for charts.
    #[serde(skip)]
    pub series: Vec<FlowSeries>,
    /// Capacity of the first link in each second, in bit/s, for charts; empty if this capacity is not recorded.
    #[serde(skip)]
    pub capacity: Vec<f64>,
}

/// Disturbances of live runs that the machine caused, over all runs of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Total duration of the machine's stalls, in seconds, over all runs.
    pub stalled_s: f64,
    /// Number of packets that were lost by the machine instead of by a link, over all runs.
    pub packets_lost: u64,
    /// 99th percentile of the lateness with which packets left the emulator, in seconds, in the worst run.
    pub late_p99_s: Option<f64>,
    /// Maximum lateness with which packets left the emulator, in seconds.
    pub late_max_s: Option<f64>,
}

/// The mean of each metric over the runs, by the metric's key; `null` if no run has a value of the metric.
pub type Metrics = BTreeMap<String, Option<Estimate>>;

/// A variant of a case that a controller cannot run or did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRun {
    /// The name of the case.
    pub case: String,
    /// The title of the case.
    pub title: String,
    /// The name of the variant.
    pub variant: String,
    /// The name of the controller.
    pub controller: String,
    /// Whether the simulated runs, the live runs or both are missing; omitted if only the simulated runs are missing.
    #[serde(default = "simulated", skip_serializing_if = "is_simulated")]
    pub worlds: Vec<World>,
    /// The reason why the variant was not run, in words.
    pub reason: String,
}

fn simulated() -> Vec<World> {
    vec![World::Sim]
}

fn is_simulated(worlds: &[World]) -> bool {
    worlds == [World::Sim]
}

impl NotRun {
    /// Whether two entries have the same variant and controller.
    #[cfg(feature = "live")]
    pub(super) fn is_of_same(&self, other: &Self) -> bool {
        self.case == other.case && self.variant == other.variant && self.controller == other.controller
    }

    /// Returns the name of the variant as shown in tables, such as "5.6/300ms-reno under gcc". If only the live runs
    /// are missing, ", live" is appended.
    pub fn name(&self) -> String {
        let Self { case, variant, .. } = self;
        format!("{case}/{variant} under {}", self.controller_in_words())
    }

    /// Returns the name of the controller, followed by ", live" if only live runs are missing.
    pub fn controller_in_words(&self) -> String {
        let live = if self.worlds == [World::Live] { ", live" } else { "" };
        format!("{}{live}", self.controller)
    }
}

/// The result of one flow of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseFlow {
    /// Name of the flow.
    pub name: String,
    /// Kind of the flow.
    pub kind: FlowKind,
    /// Metrics of the flow.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The kind of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// A session with all its media, including its audio.
    Media,
    /// Only the audio of a session.
    Audio,
    /// A TCP connection or web traffic.
    Tcp,
}

impl FlowKind {
    /// The kind as a lower-case word, as in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Media => "media",
            Self::Audio => "audio",
            Self::Tcp => "tcp",
        }
    }
}

/// The result of one phase of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Start of the phase, in seconds since the run's start.
    pub start_s: f64,
    /// End of the phase, in seconds since the run's start.
    pub end_s: f64,
    /// Capacity that background traffic leaves to media and TCP, in bit/s, summed over all bottlenecks; `null` if no
    /// link limits the media.
    pub capacity_bps: Option<f64>,
    /// Metrics of the phase.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// The links that are bottlenecks of the media. Each entry is the link's name and the capacity, in bit/s, that
    /// background traffic leaves to media and TCP.
    #[serde(skip)]
    pub bottlenecks: Vec<(String, f64)>,
}

/// A mean over runs, with its 95 % confidence interval: by Student's t, or by Wilson's method if the mean is a share of
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the runs that have the metric.
    pub mean: f64,
    /// Lower end of the confidence interval; `null` if there is none, for example if a mean is over only one run.
    pub lo: Option<f64>,
    /// Upper end of the confidence interval; `null` if there is none, for example if a mean is over only one run.
    pub hi: Option<f64>,
    /// Number of runs that have the metric. For example, a convergence time is averaged over the runs that converged.
    pub runs: u32,
}

impl Estimate {
    /// Returns the mean over the runs that have a value; `None` if no run has one.
    pub fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<_> = values.flatten().filter(|value| value.is_finite()).collect();
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)?;
        let interval = mean_95(&values).map(|estimate| estimate.ci95);
        let runs = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let [lo, hi] = [0, 1].map(|end| interval.and_then(|interval| interval.get(end).copied()).map(rounded));
        Some(Self { mean: rounded(mean), lo, hi, runs })
    }

    /// Returns the share of runs in which an event happened, with Wilson's interval; `None` if there are no runs.
    pub fn of_share(hits: usize, runs: usize) -> Option<Self> {
        let found = share_95(hits, runs)?;
        let [lo, hi] = found.ci95.map(|end| Some(rounded(end)));
        Some(Self { mean: rounded(found.value), lo, hi, runs: u32::try_from(runs).unwrap_or(u32::MAX) })
    }

    /// Returns half the width of the confidence interval; `None` if there is no interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.hi? - self.lo?) / 2.0)
    }
}

/// Rounds a number to six significant digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// The value of [`CaseResult::implementation`] for this project's own controllers.
pub(super) const OURS: &str = "ours";
/// The key of a phase's capacity, which is planned instead of measured.
pub(super) const CAPACITY: &str = "capacity_bps";

/// A metric of the flows in a suite's results.
pub(super) struct FlowMetric {
    pub(super) key: &'static str,
    /// Returns the metric's value for media and TCP.
    pub(super) of: fn(&FlowResult) -> Option<f64>,
    /// Returns the metric's value for the audio of a session.
    pub(super) of_audio: fn(&AudioOf<'_>) -> Option<f64>,
}

/// The data about the audio of a session.
pub(super) struct AudioOf<'a> {
    pub(super) frames: FramesResult,
    pub(super) packets: &'a Audio,
    /// The result of the session to which the audio belongs.
    pub(super) flow: &'a FlowResult,
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Returns the share of packets that were lost. For TCP, each retransmission counts as a loss, because the sender
/// cannot distinguish necessary from unnecessary retransmissions.
fn lost(flow: &FlowResult) -> Option<f64> {
    share(flow.packets_sent.saturating_sub(flow.packets_received), flow.packets_sent)
}

/// For metrics that audio does not have.
const fn none(_: &AudioOf<'_>) -> Option<f64> {
    None
}

/// All metrics of a flow in a suite's results, each with its key in JSON.
pub(super) const FLOW_METRICS: &[FlowMetric] = &[
    FlowMetric {
        key: "mean_rate_bps",
        of: |flow| flow.mean_rate_bps,
        of_audio: |audio| {
            let Audio { bytes, of_bytes, .. } = audio.packets;
            Some(share(bytes.as_bytes(), of_bytes.as_bytes())? * audio.flow.mean_rate_bps?)
        },
    },
    FlowMetric { key: "delivered_rate_bps", of: |flow| flow.delivered_rate_bps, of_audio: none },
    FlowMetric { key: "goodput_bps", of: |flow| flow.tcp.as_ref()?.goodput_bps, of_audio: none },
    FlowMetric {
        key: "loss",
        of: lost,
        of_audio: |audio| share(audio.packets.sent.saturating_sub(audio.packets.received), audio.packets.sent),
    },
    FlowMetric { key: "delay_mean_s", of: |flow| flow.delay.mean_s, of_audio: none },
    FlowMetric { key: "delay_p95_s", of: |flow| flow.delay.p95_s, of_audio: none },
    FlowMetric {
        key: "queueing_mean_s",
        of: |flow| flow.queueing?.mean_s,
        of_audio: |audio| audio.packets.waits.result().mean_s,
    },
    FlowMetric {
        key: "queueing_p95_s",
        of: |flow| flow.queueing?.p95_s,
        of_audio: |audio| audio.packets.waits.result().p95_s,
    },
    FlowMetric {
        key: "queueing_p99_s",
        of: |flow| flow.queueing?.p99_s,
        of_audio: |audio| audio.packets.waits.result().p99_s,
    },
    FlowMetric {
        key: "frame_delay_p50_s",
        of: |flow| flow.video?.delay.p50_s,
        of_audio: |audio| audio.frames.delay.p50_s,
    },
    FlowMetric {
        key: "frame_delay_p95_s",
        of: |flow| flow.video?.delay.p95_s,
        of_audio: |audio| audio.frames.delay.p95_s,
    },
    FlowMetric {
        key: "frame_delay_p99_s",
        of: |flow| flow.video?.delay.p99_s,
        of_audio: |audio| audio.frames.delay.p99_s,
    },
    FlowMetric {
        key: "frames_late",
        of: |flow| flow.video?.share(flow.video?.late),
        of_audio: |audio| audio.frames.share(audio.frames.late),
    },
    FlowMetric {
        key: "freezes",
        of: |flow| Some(flow.video?.freezes as f64),
        of_audio: |audio| Some(audio.frames.freezes as f64),
    },
    FlowMetric {
        key: "frozen_s",
        of: |flow| Some(flow.video?.frozen_s),
        of_audio: |audio| Some(audio.frames.frozen_s),
    },
    FlowMetric { key: "fetch_p95_s", of: |flow| flow.tcp.as_ref()?.web?.time.p95_s, of_audio: none },
];

/// Further metrics of a phase, which the tables do not show: the variation of the flows' rates, and the fairness
/// between flows in windows of 1, 5 and 20 s (RFC 8868, Sec. 3, metrics 9 and 7).
pub(super) const PHASE_METRICS: &[PhaseMetric] = &[
    ("rate_cv", |phase| {
        let found: Vec<_> = phase.flows.iter().filter_map(|flow| flow.rate_cv).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    }),
    ("ratio_1s", |phase| least_over_greatest(phase, 1.0)),
    ("ratio_5s", |phase| least_over_greatest(phase, 5.0)),
    ("ratio_20s", |phase| least_over_greatest(phase, 20.0)),
];

/// The key of a phase's metric, and the function that reads its value.
pub(super) type PhaseMetric = (&'static str, fn(&crate::result::PhaseResult) -> Option<f64>);

/// Returns the ratio of the lowest to the highest flow throughput, averaged over windows of the given length.
fn least_over_greatest(phase: &crate::result::PhaseResult, window_s: f64) -> Option<f64> {
    Some(phase.fairness.iter().find(|found| (found.window_s - window_s).abs() < 1e-9)?.ratio)
}

impl CaseResult {
    /// Returns the name of the controller in tables: "gcc", or "gcc, live" for live results.
    pub fn label(&self) -> String {
        match self.world {
            World::Sim => self.controller.clone(),
            World::Live => format!("{}, live", self.controller),
        }
    }

    /// Returns the estimate of a metric of all media together, by the metric's key.
    pub fn metric(&self, key: &str) -> Option<Estimate> {
        self.metrics.get(key).copied().flatten()
    }

    /// Returns utilisation, 95th percentile of the queueing delays, and loss: "93.5 % · 144 ms · 0.31 %".
    pub fn in_short(&self) -> String {
        self.short(false)
    }

    /// Returns the text of [`in_short`](Self::in_short). If `has_intervals` is true, half the width of the confidence
    /// interval follows each value: "93.5 ± 1.2 % · 144 ± 15 ms · 0.31 ± 0.06 %".
    fn short(&self, has_intervals: bool) -> String {
        let number = |key: &str, scale: f64, decimals: usize| {
            let Some(found) = self.metric(key) else { return "–".to_owned() };
            let half = found.half_width().filter(|_| has_intervals);
            let half = half.map(|half| format!(" ± {:.decimals$}", half * scale));
            format!("{:.decimals$}{}", found.mean * scale, half.unwrap_or_default())
        };
        let (used, waited) = (number("utilisation", 100.0, 1), number("queueing_p95_s", 1e3, 0));
        format!("{used} % · {waited} ms · {} %", number("loss", 100.0, 2))
    }

    /// Returns the mean rate at which the media of all flows together arrived, in bit/s; `None` if the rate of a media
    /// flow was not measured.
    pub(super) fn media_rate_bps(&self) -> Option<f64> {
        let media = self.flows.iter().filter(|flow| flow.kind == FlowKind::Media);
        media.map(|flow| flow.metric("delivered_rate_bps").map(|found| found.mean)).sum::<Option<f64>>()
    }

    /// Returns the mean of a metric over those flows of one kind that have the metric.
    pub fn flow_mean(&self, kind: FlowKind, key: &str) -> Option<f64> {
        let found = self.flows.iter().filter(|flow| flow.kind == kind).filter_map(|flow| flow.metric(key));
        let (sum, count) = found.fold((0.0, 0u32), |(sum, count), found| (sum + found.mean, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }
}

/// The results of one variant of a case, either simulated or live.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The name of the case.
    pub case: String,
    /// The name of the variant.
    pub variant: String,
    /// Whether the results are simulated or live.
    pub world: World,
    /// The results of the controllers that ran the variant.
    pub results: Vec<&'a CaseResult>,
}

impl<'a> Row<'a> {
    /// Returns the result under a controller; `None` if the controller did not run the variant.
    pub fn of(&self, controller: &str) -> Option<&'a CaseResult> {
        self.results.iter().copied().find(|found| found.controller == controller)
    }

    /// Returns the name of the variant, followed by ", live" for live results: "50ms-link, live".
    pub fn label(&self) -> String {
        let live = if self.world == World::Live { ", live" } else { "" };
        format!("{}{live}", self.variant)
    }
}

impl CaseFlow {
    /// Returns the estimate of one of the flow's metrics, by the metric's key.
    pub fn metric(&self, key: &str) -> Option<Estimate> {
        self.metrics.get(key).copied().flatten()
    }
}

impl PhaseResult {
    /// Returns the estimate of one of the phase's metrics, by the metric's key.
    pub fn metric(&self, key: &str) -> Option<Estimate> {
        self.metrics.get(key).copied().flatten()
    }
}

impl SuiteResult {
    /// Returns the result as JSON in one line.
    pub fn to_json(&self) -> String {
        json_line(self)
    }

    /// Returns all measured values and the planned capacities. There is one row for each metric of a whole run, a flow,
    /// a phase or a bar (pass criterion).
    pub fn measured(&self) -> Vec<MetricRow<'_>> {
        super::rows::of(self)
    }

    /// Returns the result as CSV, with one line for each row of [`measured`](Self::measured). The book describes the
    /// columns.
    pub fn to_csv(&self) -> String {
        super::csv::of(self)
    }

    /// Describes the simulated and the live runs in words, for example "simulated with 10 runs on the seeds 1 to 10
    /// each, live with 1 run on the seed 1 each".
    pub fn seeds(&self) -> String {
        let of = |runs: u32| {
            let last = self.seed.wrapping_add(u64::from(runs.saturating_sub(1)));
            match runs {
                1 => format!("1 run on the seed {last}"),
                runs => format!("{runs} runs on the seeds {} to {last}", self.seed),
            }
        };
        let live = self.live_runs.map(|runs| format!(", live with {} each", of(runs))).unwrap_or_default();
        format!("simulated with {} each{live}", of(self.runs))
    }

    /// Returns in words how many of the bars (pass criteria) with a verdict our control law meets: "equipoise meets
    /// 120 of 150 bars".
    pub fn verdicts(&self) -> String {
        let judged = self.bars.iter().filter_map(|bar| bar.met);
        let (met, all) = judged.fold((0u32, 0u32), |(met, all), is_met| (met + u32::from(is_met), all + 1));
        format!("{} meets {met} of {all} bars", super::bars::JUDGED)
    }

    /// Returns the result as a Markdown table with confidence intervals. There is one column for each controller. There
    /// is one row for the simulated and one for the live results of each variant.
    pub fn to_markdown(&self) -> String {
        let controllers = self.controllers();
        let mut text = format!("| case | {} |\n|---|{}\n", controllers.join(" | "), "---|".repeat(controllers.len()));
        for row in self.rows() {
            let cell = |name: &&str| row.of(name).map_or_else(|| "–".to_owned(), |found| found.short(true));
            let cells: Vec<_> = controllers.iter().map(cell).collect();
            text.push_str(&format!("| {} {} | {} |\n", row.case, row.label(), cells.join(" | ")));
        }
        text
    }

    /// Returns the bars (pass criteria) as a Markdown table with confidence intervals and verdicts. There is one row
    /// for each bar, and one column for each control law.
    pub fn bars_to_markdown(&self) -> String {
        let controllers = self.controllers();
        let lines = "---|".repeat(controllers.len());
        let mut text =
            format!("| case | quantity | bar | {} | verdict |\n|---|---|---|{lines}---|\n", controllers.join(" | "));
        for bar in &self.bars {
            let laws: Vec<_> = controllers.iter().map(|law| bar.of(law)).collect();
            let (case, variant, label, limit) = (&bar.case, &bar.variant, bar.label(), bar.limit_in_short());
            let (laws, verdict) = (laws.join(" | "), bar.verdict());
            text.push_str(&format!("| {case} {variant} | {label} | {limit} | {laws} | {verdict} |\n"));
        }
        text.push_str(&format!("\n{}: {}.\n", self.verdicts(), self.seeds()));
        text
    }

    /// Returns one row for the simulated and one for the live results of each variant. Variants that no controller ran
    /// are the last rows.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let is_same = |one: &CaseResult, other: &CaseResult| one.case == other.case && one.variant == other.variant;
        let mut rows: Vec<Row<'_>> = Vec::new();
        for variant in self.results.chunk_by(is_same) {
            for world in [World::Sim, World::Live] {
                let results: Vec<_> = variant.iter().filter(|found| found.world == world).collect();
                if let Some(first) = results.first() {
                    rows.push(Row { case: first.case.clone(), variant: first.variant.clone(), world, results });
                }
            }
        }
        for NotRun { case, variant, .. } in &self.not_run {
            if rows.iter().all(|row| row.case != *case || row.variant != *variant) {
                let (case, variant) = (case.clone(), variant.clone());
                rows.push(Row { case, variant, world: World::Sim, results: Vec::new() });
            }
        }
        rows
    }

    /// Returns the names of the controllers in the order of the results, followed by controllers without results.
    pub fn controllers(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let judged = self.bars.iter().flat_map(|bar| &bar.laws).map(|law| law.controller.as_str());
        let ran = self.results.iter().map(|result| result.controller.as_str()).chain(judged);
        for name in ran.chain(self.not_run.iter().map(|not_run| not_run.controller.as_str())) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values 1 and 3 have the standard deviation √2, so their mean has the standard error √2 / √2 = 1. The 97.5 %
    /// quantile of Student's t with one degree of freedom is 12.706, so the interval is ±12.706.
    #[test]
    fn a_mean_has_an_interval_from_two_runs_on_and_counts_those_that_have_it() {
        let found = Estimate::of([Some(1.0), None, Some(3.0)].into_iter()).expect("two runs");
        assert_eq!(found.runs, 2);
        assert!((found.mean - 2.0).abs() < 1e-12);
        assert!((found.lo.expect("an interval") + 10.706).abs() < 1e-9, "{found:?}");
        assert!((found.half_width().expect("an interval") - 12.706).abs() < 1e-9, "{found:?}");
        let alone = Estimate::of([Some(5.0), Some(f64::NAN)].into_iter()).expect("one run");
        assert_eq!((alone.lo, alone.hi, alone.runs), (None, None, 1));
        assert_eq!(Estimate::of([None, None].into_iter()), None);
    }
}
