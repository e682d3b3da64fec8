//! The methods to divide the traffic, and the results that are computed from a run.

use super::{Lab, Mean, parse_with};
use crate::{Plot, PlotData, PlotLayer};
use equipoise_lab::result::{IntervalResult, Run};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

pub(super) const LTE_WIMAX: &str = include_str!("../../scenarios/asvarujanon2014/lte-wimax.toml");

/// Number of simulated runs. The paper has five trials (Asvarujanon 2014, Sec. 4.5), too few for our confidence
/// intervals.
pub(super) const RUNS: u32 = 30;
/// Number of simulated runs of the experiments beyond the paper.
pub(super) const RUNS_BEYOND: u32 = 10;
/// Total rates of the session in Mbit/s. The first rate is the paper's rate. The second rate exceeds the capacity of
/// the slower path. The third rate exceeds the available bandwidth of the faster path, but not the total available
/// bandwidth of both paths.
pub(super) const TOTALS: [&str; 3] = ["1.5", "3.0", "4.8"];
/// Number of report intervals in the scheduler's period of 5 s.
const INTERVALS_IN_PERIOD: usize = 10;
/// Size of a packet of the session, in bits.
const PACKET_BITS: f64 = 4000.0;

/// A method that divides the session's total rate among the paths.
#[derive(Clone, Copy)]
pub(super) struct Method {
    pub(super) name: &'static str,
    /// The name of the scheduler, as in a scenario file.
    pub(super) scheduler: &'static str,
    parameter: Option<Parameter>,
}

/// A parameter of a scheduler, as in a scenario file.
#[derive(Clone, Copy)]
struct Parameter {
    key: &'static str,
    value: &'static str,
}

impl Method {
    pub(super) const fn new(name: &'static str, scheduler: &'static str) -> Self {
        Self { name, scheduler, parameter: None }
    }

    /// Returns a copy of the method in which the scheduler's parameter `key` has the value `value`.
    pub(super) const fn with(self, key: &'static str, value: &'static str) -> Self {
        Self { parameter: Some(Parameter { key, value }), ..self }
    }
}

/// AP with the coefficient of response for packets of 500 bytes: b = 600, in 1/(s·Mbit/s). For packets of 1000 bytes,
/// b is 300 (Waki 2013, Eq. 11).
pub(super) const AP: Method = Method::new("AP", "ap").with("b", "600");
pub(super) const AP_300: Method = Method::new("AP", "ap").with("b", "300");
pub(super) const EQUAL: Method = Method::new("Equal", "equal");
pub(super) const MIN_DELAY: Method = Method::new("Min-delay", "min-delay");
pub(super) const WIMAX_ONLY: Method = Method::new("WiMAX-only", "single").with("path", "1");
/// All methods, in the order in which they take turns in the paper (Asvarujanon 2014, Sec. 4.4).
pub(super) const METHODS: [Method; 5] =
    [AP, EQUAL, WIMAX_ONLY, Method::new("LTE-only", "single").with("path", "0"), MIN_DELAY];
/// Indices in `METHODS` of the two methods that use a single path.
pub(super) const SINGLES: [usize; 2] = [2, 3];
pub(super) const LTE_ONLY: usize = 3;

/// Returns the scenario of the session in the paper. The session's total rate is `total`, in Mbit/s.
pub(super) fn session(total: &str, method: Method) -> Scenario {
    session_of(LTE_WIMAX, total, method)
}

/// Returns the scenario `text` with the session's total rate and method replaced.
pub(super) fn session_of(text: &str, total: &str, method: Method) -> Scenario {
    let mut overrides = vec![
        Override::set("flow.call.controller.rate", format!("{total} Mbit/s")),
        Override::set("flow.call.scheduler.name", method.scheduler),
    ];
    let parameter = |Parameter { key, value }| Override::set(format!("flow.call.scheduler.{key}"), value);
    overrides.extend(method.parameter.map(parameter));
    parse_with(text, &overrides)
}

/// The values that the claims and charts use, computed from one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Mean one-way delay of the session's packets, in ms.
    pub(super) delay_ms: f64,
    /// Rate of the session's packets that were delivered, in Mbit/s.
    pub(super) throughput_mbps: f64,
    /// Share of lost packets among the packets sent, in %.
    pub(super) lost_percent: f64,
    /// Largest of the mean delays of the scheduler periods, in ms. A scheduler period lasts 5 s.
    pub(super) surge_ms: f64,
    /// For each period, the middle of the period in s, and the mean delay of its packets in ms.
    pub(super) delays: Vec<(f64, f64)>,
    /// For each path, its name and a list of points: the middle of a period in s, and the path's rate in Mbit/s.
    pub(super) rates: Vec<(String, Vec<(f64, f64)>)>,
}

impl Outcome {
    /// Computes the results of a run. The first flow of the run must be the session.
    pub(super) fn of(run: &Run) -> Self {
        let Some(flow) = run.flows.first() else { unreachable!("the scenarios of the program have a session") };
        let delays: Vec<_> = flow.intervals.chunks(INTERVALS_IN_PERIOD).map(period_delay).collect();
        let finite = delays.iter().map(|delay| delay.1).filter(|delay| delay.is_finite());
        let rates = flow
            .paths
            .iter()
            .map(|path| (path.name.clone(), path.intervals.chunks(INTERVALS_IN_PERIOD).map(period_rate).collect()));
        Self {
            delay_ms: flow.delay.mean_s.map_or(f64::NAN, |mean| mean * 1e3),
            throughput_mbps: flow.packets_received as f64 * PACKET_BITS / 1e6 / run.lasted_s,
            lost_percent: 100.0 * flow.packets_lost as f64 / flow.packets_sent.max(1) as f64,
            surge_ms: finite.fold(f64::NAN, f64::max),
            rates: rates.collect(),
            delays,
        }
    }
}

/// Returns the middle of a period in s, and the mean delay, in ms, of the packets sent in the period.
fn period_delay(period: &[IntervalResult]) -> (f64, f64) {
    let known =
        || period.iter().filter_map(|part| Some((part.delay_mean_s?, (part.packets - part.packets_lost) as f64)));
    let packets: f64 = known().map(|(_, packets)| packets).sum();
    (middle(period), 1e3 * known().map(|(mean, packets)| mean * packets).sum::<f64>() / packets)
}

fn period_rate(period: &[IntervalResult]) -> (f64, f64) {
    (middle(period), period.iter().map(|part| part.rate_bps / 1e6).sum::<f64>() / period.len() as f64)
}

fn middle(period: &[IntervalResult]) -> f64 {
    let ends = period.first().zip(period.last());
    ends.map_or(f64::NAN, |(first, last)| f64::midpoint(first.start_s, last.end_s))
}

/// The results of all runs of a method, in the order of their seeds.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    pub(super) fn run(lab: &Lab<'_>, name: &str, scenario: &Scenario, runs: u32) -> Result<Self, SimError> {
        Ok(Self { name: name.to_owned(), outcomes: lab.runs(scenario, runs, Outcome::of)? })
    }

    pub(super) fn mean(&self, of: fn(&Outcome) -> f64) -> Mean {
        Mean::of(&self.values(of))
    }

    pub(super) fn values(&self, of: fn(&Outcome) -> f64) -> Vec<f64> {
        self.outcomes.iter().map(of).collect()
    }

    /// The headings of the table columns that [`cells`](Self::cells) fills.
    pub(super) const COLUMNS: [&str; 4] =
        ["mean delay (ms)", "largest mean of a period (ms)", "throughput (Mbit/s)", "packets lost (%)"];

    pub(super) fn cells(&self) -> Vec<String> {
        let cell = |of, decimals| self.mean(of).words(decimals);
        vec![
            cell(|outcome| outcome.delay_ms, 1),
            cell(|outcome| outcome.surge_ms, 1),
            cell(|outcome| outcome.throughput_mbps, 3),
            cell(|outcome| outcome.lost_percent, 2),
        ]
    }
}

/// Returns the mean of the differences between two methods. Each difference is between two runs with the same seed.
pub(super) fn apart(minuend: &Row, subtrahend: &Row, of: fn(&Outcome) -> f64) -> Mean {
    Mean::of(&pairs(minuend, subtrahend, of, |one, other| one - other))
}

/// Returns the geometric mean of the ratios between two methods. Each ratio is between two runs with the same seed.
pub(super) fn ratio(over: &Row, under: &Row, of: fn(&Outcome) -> f64) -> Mean {
    geometric(&pairs(over, under, of, |one, other| one / other))
}

/// Returns the geometric mean of ratios. All ratios must be above zero.
pub(super) fn geometric(ratios: &[f64]) -> Mean {
    let logarithms = Mean::of(&ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<_>>());
    let back = |mean: Estimate| Estimate { value: mean.value.exp(), ci95: mean.ci95.map(f64::exp) };
    Mean {
        value: logarithms.value.map(f64::exp).filter(|ratio| ratio.is_finite()),
        estimate: logarithms.estimate.map(back).filter(|found| found.value.is_finite() && found.value > 0.0),
    }
}

fn pairs(one: &Row, other: &Row, of: fn(&Outcome) -> f64, join: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    one.outcomes.iter().zip(&other.outcomes).map(|(one, other)| join(of(one), of(other))).collect()
}

/// Returns a chart of the delays over time, with the first run of each row.
pub(super) fn delays_over_time<'a>(title: String, rows: impl IntoIterator<Item = &'a Row>) -> Plot {
    let layers = rows.into_iter().filter_map(|row| {
        let line = row.outcomes.first()?.delays.clone();
        Some(PlotLayer { name: row.name.clone(), data: PlotData::Line(line) })
    });
    Plot {
        title,
        x: "time (s)",
        y: "mean delay of a period (ms)",
        y_limits: None,
        layers: layers.collect(),
        marks: Vec::new(),
    }
}

/// Returns a chart of the paths' rates over time in the first run of a row.
pub(super) fn rates_over_time(title: String, row: &Row) -> Plot {
    let rates = row.outcomes.first().map(|outcome| outcome.rates.as_slice()).unwrap_or_default();
    let layers = rates.iter().map(|(name, line)| PlotLayer { name: name.clone(), data: PlotData::Line(line.clone()) });
    Plot { title, x: "time (s)", y: "rate (Mbit/s)", y_limits: None, layers: layers.collect(), marks: Vec::new() }
}
