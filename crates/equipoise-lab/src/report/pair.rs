//! The chart of a flow pair, which shows the pair's rate at the receiver over TCP and RTP together.

use super::charts::name_of;
use super::figure::{Figure, Question, Shown, over_time};
use super::format::{counted, escape};
use super::spread;
use super::worlds::InWorld;
use crate::result::{FlowResult, PairResult, ReceivedSample, Report};

/// Returns the chart of the rate at which data arrived over both transports together.
pub(super) fn figures(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Vec<Figure> {
    let mut layers = Vec::new();
    for shown in shown {
        let Shown { style, world, .. } = *shown;
        let sample = |sample: &ReceivedSample| (sample.at_s, sample.rate_bps / 1e6);
        let runs = shown.series(|flow| &flow.received, sample);
        layers.extend(spread::layers(style, &format!("{world}: IP packets at the receiver"), &runs));
    }
    let title = format!("{}: rate at the receiver over time", name_of(shown));
    let chart = over_time(report, shown, (format!("received-{flow}"), title.clone()), "rate (Mbit/s)", layers);
    vec![Figure::of(Question::Cost, title, chart)]
}

/// Returns a sentence about a flow pair: the rate at the receiver, how many running periods started, how many
/// application data units (ADUs) are missing, and the settings of the sending host.
pub(super) fn verdict(world: &InWorld<'_>, index: usize, first: &FlowResult) -> String {
    let results: Vec<_> = world.runs.iter().filter_map(|run| run.flows.get(index)?.pair.as_ref()).collect();
    let count = results.len().max(1) as f64;
    let mean = |of: &dyn Fn(&PairResult) -> f64| results.iter().map(|pair| of(pair)).sum::<f64>() / count;
    let rate = mean(&|pair| pair.received_bps.unwrap_or(0.0)) / 1e6;
    let (running, missing) = (mean(&|pair| pair.running_periods() as f64), mean(&|pair| pair.adus_missing as f64));
    let over_runs = if results.len() == 1 { "" } else { " on average" };
    let (title, name, seeds) = (world.title(), escape(&first.name), world.seeds());
    let host = results.iter().find_map(|pair| pair.host.as_ref());
    let host = host.map_or(String::new(), |host| format!(" {}.", escape(&host.words())));
    format!(
        "<p class=\"verdict\"><strong>{title}, {name}</strong> ({seeds}): {rate:.3} Mbit/s at the receiver{over_runs}, {}, {}.{host}</p>\n",
        counted(running, "running period", "running periods"),
        counted(missing, "ADU missing", "ADUs missing"),
    )
}
