//! Charts of a control law's estimates of its path, and of the reasons for its decisions.

use super::chart::{Layer, Shape, Style};
use super::charts::name_of;
use super::figure::{Figure, Question, Shown, over_time};
use crate::result::{BeliefResult, Report};

const COLORS: [&str; 6] =
    ["var(--series-6)", "var(--series-4)", "var(--series-5)", "var(--series-7)", "var(--series-8)", "var(--series-1)"];

/// Returns charts of the rates and delays that the control law of a flow estimated, in the first run with estimates.
/// Returns no charts if the law does not report estimates.
pub(super) fn figures(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Vec<Figure> {
    let Some(first) = shown.iter().find(|shown| !shown.flow.beliefs.is_empty()) else { return Vec::new() };
    let beliefs = &first.flow.beliefs;
    let world = first.world;
    let line = |name: &str, color, dash, of: &dyn Fn(&BeliefResult) -> f64| Layer {
        name: name.to_owned(),
        style: Style { color, dash, width: 1.6 },
        shape: Shape::Line(beliefs.iter().map(|it| (it.at_s, of(it))).collect()),
    };
    let mbps = |bps: Option<f32>| bps.map_or(f64::NAN, |bps| f64::from(bps) / 1e6);
    let mut rates = vec![
        line("capacity: rate of service of the busy bottleneck", "var(--context)", "2 3", &|it| mbps(it.capacity_bps)),
        line("available: rate of trains", "var(--series-3)", "10 3 2 3", &|it| mbps(it.available_bps)),
        line("rate", "var(--sim)", "", &|it| it.rate_bps as f64 / 1e6),
    ];
    rates.extend(reasons(beliefs));
    let mut delays = vec![
        line("noise: roughness of delays", "var(--context)", "2 3", &|it| f64::from(it.noise_s) * 1e3),
        line("queueing delay", "var(--sim)", "", &|it| f64::from(it.queue_s) * 1e3),
        line("target", "var(--series-3)", "14 3 2 3", &|it| f64::from(it.target_s) * 1e3),
    ];
    for (mode, color) in [("rival", "var(--live)"), ("policed", "var(--series-6)")] {
        if beliefs.iter().any(|it| it.mode == mode) {
            let name = format!("mode {mode}, where there is a line at zero");
            delays.push(line(&name, color, "", &|it| if it.mode == mode { 0.0 } else { f64::NAN }));
        }
    }
    let name = name_of(shown);
    let chart = |id: &str, title: &str, unit, layers| {
        over_time(report, shown, (format!("{id}-{flow}"), title.to_owned()), unit, layers)
    };
    let rates = chart("believed-rates", "Rate over time, and the rates that the law believed in", "Mbit/s", rates);
    let delays =
        chart("believed-delays", "Queueing delay, target and noise over time, as the law saw them", "ms", delays);
    let last = beliefs.last().map_or(0.0, |it| f64::from(it.base_s) * 1e3);
    let note = format!(
        "The first run ({world}). A point marks where something but the law's usual step began to decide; at the end the law believed in a round trip of \
         {last:.1} ms on the empty path."
    );
    vec![
        Figure {
            question: Question::When,
            title: format!("{name}: what the law believed of rates, and why the rate changed"),
            chart: Some(rates),
            note,
        },
        Figure::of(Question::When, format!("{name}: what the law believed of delays"), delays),
    ]
}

/// Returns one layer of points for each reason of a decision. A point marks the time at which the reason changed to the
/// layer's reason, and lies on the line of the rate. The reason `law`, the law's usual step, has no points.
fn reasons(beliefs: &[BeliefResult]) -> Vec<Layer> {
    let mut layers: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    let before = std::iter::once(None).chain(beliefs.iter().map(|it| it.reason.as_deref()));
    for (it, before) in beliefs.iter().zip(before) {
        let began = it.reason.as_deref().filter(|reason| *reason != "law" && Some(*reason) != before);
        let Some(reason) = began else { continue };
        let point = (it.at_s, it.rate_bps as f64 / 1e6);
        match layers.iter_mut().find(|(name, _)| *name == reason) {
            Some((_, points)) => points.push(point),
            None => layers.push((reason, vec![point])),
        }
    }
    let style = |number: usize| Style { color: COLORS[number % COLORS.len()], dash: "", width: 1.6 };
    let layer = |(number, (name, points)): (usize, (&str, _))| Layer {
        name: format!("decided by {name}"),
        style: style(number),
        shape: Shape::Points(points),
    };
    layers.into_iter().enumerate().map(layer).collect()
}
