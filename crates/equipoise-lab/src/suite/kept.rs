//! The data that a suite keeps of each run, and the means of this data over the runs of an item.

use super::result::{self, CaseFlow, Estimate, FlowKind, Metrics, PhaseResult};
use super::series::{FlowSeries, Second, Watch, Watched};
use crate::metrics;
use crate::result::{FlowResult, MediaResult, Run};

/// The data that a suite keeps of one run: a fixed number of values, and a few values for each second of each flow.
#[derive(Debug)]
pub(super) struct Kept {
    media: MediaResult,
    flows: Vec<KeptFlow>,
}

#[derive(Debug)]
struct KeptFlow {
    name: String,
    kind: FlowKind,
    /// The values of the flow's metrics, in the order of [`result::FLOW_METRICS`].
    values: Vec<Option<f64>>,
    /// The values of each second; empty for audio, which is part of the series of its session.
    seconds: Vec<Second>,
}

impl Kept {
    pub(super) fn of(run: Run, watch: Watch) -> Self {
        let mut watched = watch.into_flows();
        watched.resize_with(run.flows.len(), Watched::default);
        let flows = run.flows.iter().zip(&watched).flat_map(|(flow, watched)| kept_flows(flow, watched, run.lasted_s));
        Self { flows: flows.collect(), media: run.media.unwrap_or_default() }
    }
}

/// Returns the entry of a flow, followed by an entry for its audio, if any. Background traffic has no entry.
fn kept_flows(flow: &FlowResult, watched: &Watched, lasted_s: f64) -> Vec<KeptFlow> {
    let values = |of: &dyn Fn(&result::FlowMetric) -> Option<f64>| {
        result::FLOW_METRICS.iter().map(|metric| of(metric).filter(|value| value.is_finite())).collect()
    };
    if let Some(tcp) = &flow.tcp {
        let seconds = (0..lasted_s.max(0.0) as usize).map(|second| {
            let within = |at_s: f64| at_s > second as f64 && at_s <= second as f64 + 1.0;
            let rates = tcp.samples.iter().filter(|sample| within(sample.at_s)).filter_map(|sample| sample.goodput_bps);
            let (sum, count) = rates.fold((0.0, 0u32), |(sum, count), rate| (sum + rate, count + 1));
            Second { rate_bps: (count > 0).then(|| sum / f64::from(count)), ..Second::default() }
        });
        let seconds = seconds.collect();
        let values = values(&|metric| (metric.of)(flow));
        return vec![KeptFlow { name: flow.name.clone(), kind: FlowKind::Tcp, values, seconds }];
    }
    if flow.controller.is_none() {
        return Vec::new();
    }
    let media = KeptFlow {
        name: flow.name.clone(),
        kind: FlowKind::Media,
        values: values(&|metric| (metric.of)(flow)),
        seconds: watched.seconds(lasted_s),
    };
    let audio = flow.audio.map(|frames| KeptFlow {
        name: format!("{} (audio)", flow.name),
        kind: FlowKind::Audio,
        values: values(&|metric| (metric.of_audio)(&result::AudioOf { frames, packets: &watched.audio, flow })),
        seconds: Vec::new(),
    });
    std::iter::once(media).chain(audio).collect()
}

/// Returns the metrics of all media together, each as the mean over the runs.
pub(super) fn whole(runs: &[Kept]) -> Metrics {
    let mean = |metric: &metrics::Metric<MediaResult>| {
        (metric.key.to_owned(), Estimate::of(runs.iter().map(|run| metric.of(&run.media))))
    };
    metrics::RUN.iter().map(mean).collect()
}

/// Returns the results of the phases. The time spans of the phases are equal in all runs of a scenario.
pub(super) fn phases(runs: &[Kept]) -> Vec<PhaseResult> {
    let first = runs.first().map(|run| run.media.phases.as_slice()).unwrap_or_default();
    let phase = |(number, planned): (usize, &crate::result::PhaseResult)| {
        let all = || runs.iter().map(|run| run.media.phases.get(number));
        let mean = |metric: &metrics::Metric<crate::result::PhaseResult>| {
            (metric.key.to_owned(), Estimate::of(all().map(|phase| metric.of(phase?))))
        };
        let more = |(key, of): &result::PhaseMetric| ((*key).to_owned(), Estimate::of(all().map(|phase| of(phase?))));
        // The capacity is planned instead of measured, so it has no confidence interval.
        let measured = metrics::PHASE.iter().filter(|metric| metric.key != result::CAPACITY);
        PhaseResult {
            start_s: planned.start_s,
            end_s: planned.end_s,
            capacity_bps: planned.capacity_bps,
            bottlenecks: planned.bottlenecks.iter().map(|found| (found.link.clone(), found.capacity_bps)).collect(),
            metrics: measured.map(mean).chain(result::PHASE_METRICS.iter().map(more)).collect(),
        }
    };
    first.iter().enumerate().map(phase).collect()
}

/// Returns the results of the flows in the order of the scenario, each followed by its audio.
pub(super) fn flows(runs: &[Kept]) -> Vec<CaseFlow> {
    let first = runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let flow = |(number, flow): (usize, &KeptFlow)| {
        let mean = |(index, metric): (usize, &result::FlowMetric)| {
            let of_run = |run: &Kept| run.flows.get(number)?.values.get(index).copied().flatten();
            (metric.key.to_owned(), Estimate::of(runs.iter().map(of_run)))
        };
        CaseFlow {
            name: flow.name.clone(),
            kind: flow.kind,
            metrics: result::FLOW_METRICS.iter().enumerate().map(mean).collect(),
        }
    };
    first.iter().enumerate().map(flow).collect()
}

/// Returns the time series of the flows. The values of each second are means over the runs.
pub(super) fn series(runs: &[Kept]) -> Vec<FlowSeries> {
    let first = runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let drawn = first.iter().enumerate().filter(|(_, flow)| flow.kind != FlowKind::Audio);
    let series = |(number, flow): (usize, &KeptFlow)| {
        let second = |place: usize| {
            let of_run = |run: &'_ Kept| run.flows.get(number)?.seconds.get(place).copied();
            let all: Vec<_> = runs.iter().filter_map(of_run).collect();
            Second::mean(&all)
        };
        FlowSeries {
            name: flow.name.clone(),
            is_tcp: flow.kind == FlowKind::Tcp,
            seconds: (0..flow.seconds.len()).map(second).collect(),
        }
    };
    drawn.map(series).collect()
}
