//! Charts of a TCP connection, and of the links in front of which packets wait.

use super::chart::{Layer, Shape, Style};
use super::figure::{Figure, STEP_DASH, look, over_time};
use crate::result::{FlowResult, Report, Run, TcpSample};

/// A line of a chart: what the legend says behind the world, and the value of a sample.
type Series<'a> = (&'a str, &'a dyn Fn(&TcpSample) -> Option<f64>);

/// The figures of a connection: window, goodput, round trips.
pub(super) fn figures(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> Vec<Figure> {
    let Some((_, first)) = shown.first() else { return Vec::new() };
    let name = &first.name;
    let megabits = |bps: Option<f64>| bps.map(|bps| bps / 1e6);
    let figure = |what: &str, id: &str, unit, series: &[Series<'_>]| {
        let title = format!("{name}: {what} over time");
        let html = series_over_time(report, shown, (format!("{id}-{flow}"), title.clone()), unit, series);
        Figure { title, html }
    };
    vec![
        figure(
            "congestion window",
            "window",
            "window (segments)",
            &[
                ("congestion window", &|sample| Some(sample.window_segments)),
                ("slow start threshold", &|sample| sample.slow_start_threshold_segments),
            ],
        ),
        figure(
            "goodput",
            "goodput",
            "rate (Mbit/s)",
            &[
                ("goodput", &|sample| megabits(sample.goodput_bps)),
                ("available bandwidth that it goes by", &|sample| megabits(sample.available_bps)),
            ],
        ),
        figure(
            "round-trip time",
            "round-trip",
            "round-trip time (ms)",
            &[
                ("smoothed", &|sample| sample.smoothed_round_trip_s.map(|s| s * 1e3)),
                ("least so far", &|sample| sample.min_round_trip_s.map(|s| s * 1e3)),
            ],
        ),
    ]
}

fn series_over_time(
    report: &Report,
    shown: &[(&Run, &FlowResult)],
    (id, title): (String, String),
    unit: &'static str,
    series: &[Series<'_>],
) -> String {
    let mut layers = Vec::new();
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        for (place, (name, value)) in series.iter().enumerate() {
            let samples = flow.tcp.as_ref().map(|tcp| tcp.samples.as_slice()).unwrap_or_default();
            let points: Vec<_> = samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)?))).collect();
            // What stands beside the main line is drawn as context.
            let style = if place == 0 { style } else { Style { color: "var(--context)", dash: STEP_DASH, width: 1.4 } };
            if !points.is_empty() {
                layers.push(Layer { name: format!("{world}: {name}"), style, shape: Shape::Line(points) });
            }
        }
    }
    over_time(report, shown, (id, title), unit, layers)
}

/// The queues of the links in front of which packets waited, where there are samples.
pub(super) fn queues(report: &Report, runs: &[&Run]) -> Vec<Figure> {
    let links = runs.first().map(|run| run.links.as_slice()).unwrap_or_default();
    let waited = |index: usize| {
        runs.iter()
            .any(|run| run.links.get(index).is_some_and(|link| link.max_queue_packets > 0 && !link.samples.is_empty()))
    };
    let figure = |(index, link): (usize, &crate::result::LinkResult)| {
        let layers = runs.iter().filter_map(|run| {
            let (style, world) = look(run.world);
            let samples = &run.links.get(index)?.samples;
            let points = samples.iter().filter_map(|sample| Some((sample.at_s, sample.queue_packets?))).collect();
            Some(Layer { name: format!("{world}: mean since the last sample"), style, shape: Shape::Line(points) })
        });
        let title = format!("{}: queue over time", link.name);
        let html =
            over_time(report, &[], (format!("queue-{index}"), title.clone()), "waiting packets", layers.collect());
        Figure { title, html }
    };
    links.iter().enumerate().filter(|(index, _)| waited(*index)).map(figure).collect()
}
