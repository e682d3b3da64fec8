//! Estimates the cost of a run before it starts.

use equipoise::control::{Parameters, Value};
use equipoise::units::{Rate, Schedule, Span};
use thiserror::Error;

use super::{Flow, FlowKind, LiveChoice, MultipathFlow, Scenario, TcpFlow};

/// Why a valid scenario is refused: a run would need too much time or too much memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverBudget {
    /// There are too many packets to simulate.
    #[error(
        "the flows send about {packets} packets in {duration}, and a run has at most {MOST_PACKETS}; \
         lower `duration`, or `{key}` of flow {flow}, which sends most"
    )]
    Packets {
        /// Estimated number of packets that all flows send in a run.
        packets: u64,
        /// The duration of a run.
        duration: Span,
        /// The key that sets or limits the rate of the flow with the most packets.
        key: &'static str,
        /// Name of the flow that sends most packets.
        flow: String,
    },
    /// There are too many control intervals to record.
    #[error(
        "the flows have {intervals} control intervals in {duration}, and a run has at most {MOST_INTERVALS}; \
         lower `duration` or the number of flows, or raise `report_interval`"
    )]
    Intervals {
        /// Number of control intervals of all flows in a run. For a flow over several paths, the intervals of each path
        /// count too.
        intervals: u64,
        /// The duration of a run.
        duration: Span,
    },
    /// There are too many samples to record.
    #[error(
        "connections, links and receivers have {samples} samples in {duration}, and a run has at most \
         {MOST_INTERVALS}; raise `sample_interval`, or lower the number of flows"
    )]
    Samples {
        /// Number of all samples in a run.
        samples: u64,
        /// The duration of a run.
        duration: Span,
    },
}

/// Maximum number of packets in a run. A run with this number of packets takes about ten minutes of processor time.
const MOST_PACKETS: u64 = 1_000_000_000;
/// Maximum number of control intervals in a run, and also the maximum number of samples in a run. This number of
/// intervals, or of samples, needs half a gigabyte of memory.
pub(crate) const MOST_INTERVALS: u64 = 4_000_000;
/// Largest expected ratio of a session's mean rate to the capacity of its path. The ratio cannot stay above this value,
/// because feedback reports the losses, and the controller then lowers the rate.
const OVERSHOOT: f64 = 2.0;

/// Checks whether a scenario can be run within the limits.
///
/// # Errors
/// [`OverBudget`] for the first limit that the scenario exceeds.
pub(super) fn check(scenario: &Scenario) -> Result<(), OverBudget> {
    let duration = scenario.duration;
    let packets: Vec<_> = scenario.flows.iter().map(|flow| packets(flow, scenario)).collect();
    let all = packets.iter().sum::<f64>();
    if all > MOST_PACKETS as f64 {
        let most = scenario.flows.iter().zip(&packets).max_by(|one, other| one.1.total_cmp(other.1));
        let (key, flow) = most.map_or(("rate", String::new()), |(flow, _)| (rate_key(flow), flow.name.clone()));
        return Err(OverBudget::Packets { packets: all as u64, duration, key, flow });
    }
    let intervals = intervals(scenario);
    if intervals > MOST_INTERVALS {
        return Err(OverBudget::Intervals { intervals, duration });
    }
    let samples = samples(scenario);
    if samples > MOST_INTERVALS {
        return Err(OverBudget::Samples { samples, duration });
    }
    Ok(())
}

/// Returns the number of runs whose intervals, samples and distributions together need at most about 200 MB; at least 1
/// and at most 1000.
pub(super) fn runs_with_series(scenario: &Scenario) -> u32 {
    const MOST_RUNS: u64 = 1000;
    /// Maximum number of intervals, samples and points of distributions in all runs together. Each of them needs less
    /// than 200 bytes.
    const MOST_POINTS: u64 = 1_000_000;
    const POINTS_OF_A_DISTRIBUTION: u64 = 61;
    let points = intervals(scenario).saturating_add(samples(scenario));
    let points = points.saturating_add(POINTS_OF_A_DISTRIBUTION * scenario.flows.len() as u64);
    (MOST_POINTS / points.max(1)).clamp(1, MOST_RUNS) as u32
}

/// Returns the number of control intervals in a run. For a flow over several paths, the intervals of each path count
/// too.
fn intervals(scenario: &Scenario) -> u64 {
    let intervals = scenario.flows.iter().map(|flow| {
        let interval = flow.report_interval().unwrap_or(scenario.metric_interval());
        count(scenario.duration - flow.start, interval).saturating_mul(1 + scenario.paths_of(flow).count() as u64)
    });
    intervals.fold(0, u64::saturating_add)
}

/// Returns the number of samples of connections, links and receivers in a run.
fn samples(scenario: &Scenario) -> u64 {
    let sampled = if scenario.is_sampled() { scenario.flows.len() + scenario.links.len() } else { 0 };
    count(scenario.duration, scenario.sample_interval).saturating_mul(sampled as u64)
}

/// Returns how many times `part` fits into `whole`.
fn count(whole: Span, part: Span) -> u64 {
    (whole / part).and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX)
}

/// Returns the estimated number of packets that a flow sends. Feedback and acknowledgements do not count.
fn packets(flow: &Flow, scenario: &Scenario) -> f64 {
    let lasts = scenario.duration - flow.start;
    let bits = match &flow.kind {
        FlowKind::Background { rate, .. } => bits(rate, lasts),
        FlowKind::Session { controller, .. } | FlowKind::Multipath(MultipathFlow { controller, .. }) => {
            let carried = OVERSHOOT * capacity_bps(flow, scenario);
            let live = flow.live().and_then(LiveChoice::most);
            let limits = max_rate(&controller.parameters).into_iter().chain(live).map(Rate::as_bps_f64);
            let allowed = limits.fold(carried, f64::min);
            allowed * lasts.as_secs_f64()
        }
        FlowKind::Tcp(TcpFlow { web: Some(web), .. }) => {
            web.most_bps().min(capacity_bps(flow, scenario)) * lasts.as_secs_f64()
        }
        FlowKind::Tcp(_) | FlowKind::Pair(_) => capacity_bps(flow, scenario) * lasts.as_secs_f64(),
    };
    bits / flow.packet_size.as_bits() as f64
}

fn bits(rate: &Schedule<Rate>, lasts: Span) -> f64 {
    let ends = rate.steps().iter().map(|(at, _)| *at).chain([lasts]);
    let begins = std::iter::once((Span::ZERO, rate.initial())).chain(rate.steps().iter().copied());
    begins.zip(ends).map(|((from, rate), until)| rate.as_bps_f64() * (until - from).as_secs_f64()).sum()
}

/// Returns the capacity of a flow's path in bit/s, which is the smallest capacity of its links. If the capacity of a
/// link changes, its maximum counts. For a flow over several paths, returns the sum over the paths.
fn capacity_bps(flow: &Flow, scenario: &Scenario) -> f64 {
    let narrowest = |links: &[usize]| {
        let links = links.iter().filter_map(|&link| scenario.links.get(link));
        let rates = links.filter_map(|link| link.direction(flow.direction).capacity.rate());
        let most = |rate: Schedule<Rate>| rate.values().max().map_or(0.0, Rate::as_bps_f64);
        rates.map(most).fold(f64::INFINITY, f64::min)
    };
    let several = scenario.paths_of(flow).map(|path| narrowest(&path.links)).reduce(|sum, path| sum + path);
    several.unwrap_or_else(|| narrowest(&flow.path))
}

fn max_rate(parameters: &Parameters) -> Option<Rate> {
    parameters.iter().find_map(|(name, value)| match value {
        Value::Rate(rate) if name == "max_rate" => Some(rate),
        _ => None,
    })
}

/// Returns the scenario's key that sets or limits the rate of `flow`.
const fn rate_key(flow: &Flow) -> &'static str {
    match flow.kind {
        FlowKind::Background { .. } => "source.rate",
        FlowKind::Session { .. } | FlowKind::Multipath(_) => "controller.max_rate",
        FlowKind::Tcp(_) | FlowKind::Pair(_) => "path",
    }
}
