//! The chart of a flow pair: its rate at the receiver over both transports.

use super::chart::{Layer, Shape};
use super::figure::{Figure, look, over_time};
use super::format::{counted, escape};
use super::worlds::InWorld;
use crate::result::{FlowResult, PairResult, PairTransport, ReceivedSample, Report, Run};

/// The rate over both transports, with a point at the beginning of each running period.
pub(super) fn figures(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> Vec<Figure> {
    let Some((_, first)) = shown.first() else { return Vec::new() };
    let mut layers = Vec::new();
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        let sample = |sample: &ReceivedSample| (sample.at_s, sample.rate_bps / 1e6);
        let name = format!("{world}: IP packets at the receiver");
        layers.push(Layer { name, style, shape: Shape::Line(flow.received.iter().map(sample).collect()) });
    }
    let title = format!("{}: rate at the receiver over time", first.name);
    let html = over_time(report, shown, (format!("received-{flow}"), title.clone()), "rate (Mbit/s)", layers);
    vec![Figure { title, html }]
}

/// What a flow pair achieved, and how often it ran.
pub(super) fn verdict(world: &InWorld<'_>, index: usize, first: &FlowResult) -> String {
    let results: Vec<_> = world.runs.iter().filter_map(|run| run.flows.get(index)?.pair.as_ref()).collect();
    let count = results.len().max(1) as f64;
    let mean = |of: &dyn Fn(&PairResult) -> f64| results.iter().map(|pair| of(pair)).sum::<f64>() / count;
    let rate = mean(&|pair| pair.received_bps.unwrap_or(0.0)) / 1e6;
    let (running, missing) = (mean(&running_periods), mean(&|pair| pair.adus_missing as f64));
    let over_runs = if results.len() == 1 { "" } else { " in the mean" };
    let (title, name, seeds) = (world.title(), escape(&first.name), world.seeds());
    let host = results.iter().find_map(|pair| pair.host.as_ref());
    let host = host.map_or(String::new(), |host| format!(" {}.", escape(&host.words())));
    format!(
        "<p class=\"verdict\"><strong>{title}, {name}</strong> ({seeds}): {rate:.3} Mbit/s at the receiver{over_runs}, {}, {}.{host}</p>\n",
        counted(running, "running period", "running periods"),
        counted(missing, "ADU missing", "ADUs missing"),
    )
}

/// How many running periods began.
pub(super) fn running_periods(pair: &PairResult) -> f64 {
    pair.periods.iter().filter(|period| period.transport == PairTransport::Rtp).count() as f64
}
