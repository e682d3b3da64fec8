//! Charts of a TCP connection, and of the queues of links.

use super::chart::{Layer, Style};
use super::charts::name_of;
use super::figure::{Figure, Question, STEP_DASH, Shown, over_time};
use super::spread;
use super::worlds::InWorld;
use crate::result::{FlowResult, LinkResult, LinkSample, Report, TcpSample};

/// A line of a chart: its name, which the legend shows after "simulated" or "live", and the function that reads the
/// line's value from a sample.
type Series<'a> = (&'a str, &'a dyn Fn(&TcpSample) -> Option<f64>);

/// Returns the charts of a TCP connection: congestion window, goodput and round-trip times.
pub(super) fn figures(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Vec<Figure> {
    let name = name_of(shown);
    let megabits = |bps: Option<f64>| bps.map(|bps| bps / 1e6);
    let figure = |question, what: &str, id: &str, unit, series: &[Series<'_>]| {
        let title = format!("{name}: {what} over time");
        let layers = series.iter().enumerate().flat_map(|(place, series)| layers(shown, series, place == 0)).collect();
        Figure::of(question, title.clone(), over_time(report, shown, (format!("{id}-{flow}"), title), unit, layers))
    };
    vec![
        figure(
            Question::When,
            "congestion window",
            "window",
            "window (segments)",
            &[
                ("congestion window", &|sample| Some(sample.window_segments)),
                ("slow start threshold", &|sample| sample.slow_start_threshold_segments),
            ],
        ),
        figure(
            Question::Cost,
            "goodput",
            "goodput",
            "rate (Mbit/s)",
            &[
                ("goodput", &|sample| megabits(sample.goodput_bps)),
                ("available bandwidth that it uses", &|sample| megabits(sample.available_bps)),
            ],
        ),
        figure(
            Question::Cost,
            "round-trip time",
            "round-trip",
            "round-trip time (ms)",
            &[
                ("smoothed", &|sample| sample.smoothed_round_trip_s.map(|s| s * 1e3)),
                ("least", &|sample| sample.min_round_trip_s.map(|s| s * 1e3)),
            ],
        ),
    ]
}

fn samples(flow: &FlowResult) -> &[TcpSample] {
    flow.tcp.as_ref().map_or(&[], |tcp| tcp.samples.as_slice())
}

/// Returns the layers that draw one series of a chart for the simulated and the live runs. If the series is not the
/// chart's main series, its lines are thin, and only the first simulated run and the first live run that have values
/// are drawn.
fn layers(shown: &[Shown<'_>], (name, value): &Series<'_>, is_main: bool) -> Vec<Layer> {
    let point = |sample: &TcpSample| (sample.at_s, value(sample).unwrap_or(f64::NAN));
    let mut layers = Vec::new();
    for shown in shown {
        let Shown { style, world, .. } = *shown;
        let mut runs = shown.series(samples, point);
        runs.retain(|points| points.iter().any(|point| point.1.is_finite()));
        let name = format!("{world}: {name}");
        if is_main {
            layers.extend(spread::layers(style, &name, &runs));
        } else {
            runs.truncate(1);
            let style = Style { color: "var(--context)", dash: STEP_DASH, width: 1.4 };
            layers.extend(spread::layers(style, &name, &runs));
        }
    }
    layers
}

/// Returns the results of link number `index` in those runs of `world` that sampled the link.
fn sampled<'a>(world: &InWorld<'a>, index: usize) -> impl Iterator<Item = &'a LinkResult> {
    let links = world.runs.iter().filter_map(move |run| run.links.get(index));
    links.filter(|link| !link.samples.is_empty())
}

/// Returns one chart for each link, which shows the link's queue over time. A link has a chart only if at least one
/// sample has a mean queue of one packet or more.
pub(super) fn queues(report: &Report, worlds: &[InWorld<'_>]) -> Vec<Figure> {
    let links = worlds.first().and_then(|world| world.runs.first()).map(|run| run.links.as_slice()).unwrap_or_default();
    let figure = |(index, link): (usize, &LinkResult)| {
        let samples = worlds.iter().flat_map(|world| sampled(world, index)).flat_map(|link| &link.samples);
        // If no sample has a mean queue of one packet or more, the link's row in the table of links is enough.
        if !samples.filter_map(|sample| sample.queue_packets).any(|packets| packets >= 1.0) {
            return None;
        }
        let mut layers = Vec::new();
        for world in worlds {
            let point = |sample: &LinkSample| (sample.at_s, sample.queue_packets.unwrap_or(f64::NAN));
            let runs: Vec<Vec<_>> =
                sampled(world, index).map(|link| link.samples.iter().map(point).collect()).collect();
            let InWorld { style, name, .. } = *world;
            layers.extend(spread::layers(style, &format!("{name}: mean since the last sample"), &runs));
        }
        let title = format!("{}: queue over time", link.name);
        let id = (format!("queue-{index}"), title.clone());
        Some(Figure::of(Question::When, title, over_time(report, &[], id, "waiting packets", layers)))
    };
    links.iter().enumerate().filter_map(figure).collect()
}
