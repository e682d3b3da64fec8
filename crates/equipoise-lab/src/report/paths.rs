//! Charts of a flow over several paths: the rate and the delay of each path.

use super::chart::{Layer, Style};
use super::figure::{Figure, Question, Shown, ms, over_time};
use super::spread;
use crate::result::{IntervalResult, Report};

/// Colours of the lines of paths and of variants. With more lines than colours, the colours repeat. Up to 40 variants
/// still look different, because variants of the same colour have different dash patterns.
pub(super) const COLORS: [&str; 8] = [
    "var(--series-1)",
    "var(--series-2)",
    "var(--series-3)",
    "var(--series-4)",
    "var(--series-5)",
    "var(--series-6)",
    "var(--series-7)",
    "var(--series-8)",
];

/// Dash patterns of variants, so that their lines differ not only in colour. Dash patterns also select the symbols of
/// points.
const DASHES: [&str; 5] = ["", "6 3", "2 3", "9 3 2 3", "4 2 1 2"];

/// Returns the style of the variant, the controller or the flow with this number.
pub(super) fn variant_style(number: usize) -> Style {
    let nth = |all: &[&'static str]| all.get(number % all.len().max(1)).copied().unwrap_or_default();
    Style { color: nth(&COLORS), dash: nth(&DASHES), width: 1.6 }
}

/// Returns the charts of rate and delay of every path; empty for a flow over one path.
pub(super) fn figures(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Vec<Figure> {
    let Some(Shown { flow: first, .. }) = shown.first().filter(|shown| !shown.flow.paths.is_empty()) else {
        return Vec::new();
    };
    let figure = |what: &str, id: &str, unit, of: &dyn Fn(&IntervalResult) -> f64| {
        let title = format!("{}: {what} of each path over time", first.name);
        let chart = over_time(report, shown, (format!("{id}-{flow}"), title.clone()), unit, layers(shown, of));
        Figure::of(Question::When, title, chart)
    };
    vec![
        figure("sending rate", "path-rate", "rate of IP packets (Mbit/s)", &|interval| interval.rate_bps / 1e6),
        figure("mean one-way delay", "path-delay", "one-way delay (ms)", &|interval| ms(interval.delay_mean_s)),
    ]
}

/// Returns the layers of each path. The colour shows the path, and the dash pattern shows whether the runs are
/// simulated or live.
fn layers(shown: &[Shown<'_>], of: &dyn Fn(&IntervalResult) -> f64) -> Vec<Layer> {
    let mut layers = Vec::new();
    for shown in shown {
        let Shown { style, world, .. } = *shown;
        for (place, (path, color)) in shown.flow.paths.iter().zip(COLORS.iter().cycle()).enumerate() {
            let point = |interval: &IntervalResult| (interval.middle_s(), of(interval));
            let runs = shown.series(|flow| flow.paths.get(place).map_or(&[], |path| path.intervals.as_slice()), point);
            layers.extend(spread::layers(Style { color, ..style }, &format!("{world}: {}", path.name), &runs));
        }
    }
    layers
}
