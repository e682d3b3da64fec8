//! Charts of a flow over several paths: what each of them carries, and how long it takes.

use super::chart::{Layer, Shape, Style};
use super::figure::{Figure, look, middle, ms, over_time};
use crate::result::{FlowResult, IntervalResult, Report, Run};

/// Colours of the paths in their order, as far as they go; where they begin again, the legend tells.
const COLORS: [&str; 8] = [
    "var(--series-1)",
    "var(--series-2)",
    "var(--series-3)",
    "var(--series-4)",
    "var(--series-5)",
    "var(--series-6)",
    "var(--series-7)",
    "var(--series-8)",
];

/// Rate and delay of every path; nothing for a flow over one.
pub(super) fn figures(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> Vec<Figure> {
    let Some((_, first)) = shown.first().filter(|(_, first)| !first.paths.is_empty()) else { return Vec::new() };
    let figure = |what: &str, id: &str, unit, of: &dyn Fn(&IntervalResult) -> f64| {
        let title = format!("{}: {what} of each path over time", first.name);
        let layers = layers(shown, of);
        Figure { html: over_time(report, shown, (format!("{id}-{flow}"), title.clone()), unit, layers), title }
    };
    vec![
        figure("sending rate", "path-rate", "rate of IP packets (Mbit/s)", &|interval| interval.rate_bps / 1e6),
        figure("mean one-way delay", "path-delay", "one-way delay (ms)", &|interval| ms(interval.delay_mean_s)),
    ]
}

/// A line for each path and world: its colour is the path's, its dashes are the world's.
fn layers(shown: &[(&Run, &FlowResult)], of: &dyn Fn(&IntervalResult) -> f64) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        for (path, color) in flow.paths.iter().zip(COLORS.iter().cycle()) {
            let points = path.intervals.iter().map(|interval| (middle(interval), of(interval))).collect();
            let name = format!("{world}: {}", path.name);
            layers.push(Layer { name, style: Style { color, ..style }, shape: Shape::Line(points) });
        }
    }
    layers
}
