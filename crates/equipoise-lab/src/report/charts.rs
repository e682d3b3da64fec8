//! Collects the charts of a report from the modules that define them. The charts of delay over time and of rates over
//! time are defined here.

use super::chart::{Axis, Chart, Layer, Mark, Shape, Style};
use super::figure::{Figure, Question, Shown, end_s, heights, ms, nice, over_time, shades, step_marks, time_axis};
use super::format::millis;
use super::worlds::worlds;
use super::{beliefs, distribution, pair, paths, spread, tcp};
use crate::result::{IntervalResult, Report, StepKind};
use crate::statistics::quantile;

/// Returns the figures of all flows that have a controller, and of the links.
pub(super) fn figures(report: &Report) -> Vec<Figure> {
    let flows = report.runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let controlled = flows.iter().enumerate().filter(|(_, flow)| flow.controller.is_some());
    let of_flows = controlled.flat_map(|(index, _)| of_flow(report, index));
    of_flows.chain(tcp::queues(report, &worlds(report))).collect()
}

/// Returns the figures of one flow that has a controller.
fn of_flow(report: &Report, flow: usize) -> Vec<Figure> {
    let shown: Vec<_> = worlds(report).iter().filter_map(|world| Shown::of(world, flow)).collect();
    let Some(Shown { flow: first, .. }) = shown.first() else { return Vec::new() };
    if first.tcp.is_some() {
        return tcp::figures(report, flow, &shown);
    }
    let mut figures = vec![
        delay_over_time(report, flow, &shown),
        rate_over_time(report, flow, &shown),
        distribution::figure(flow, &shown),
    ];
    figures.extend(beliefs::figures(report, flow, &shown));
    figures.extend(paths::figures(report, flow, &shown));
    if first.pair.is_some() {
        for figure in &mut figures {
            figure.title.push_str(", RTP half");
        }
        figures.splice(0..0, pair::figures(report, flow, &shown));
    }
    figures
}

/// Dash pattern of a target line, which differs from those of simulated lines, live lines and steps.
const TARGET_DASH: &str = "14 3 2 3";

/// The flow's target delay in milliseconds, if the flow has one.
pub(super) fn target_of(shown: &[Shown<'_>]) -> Option<f64> {
    let target = shown.iter().find_map(|shown| shown.flow.target_s);
    target.map(|target| target * 1e3).filter(|target| target.is_finite())
}

pub(super) fn target_mark(target_ms: f64, label: String) -> Mark {
    Mark { at: target_ms, label, name: format!("target, {}", millis(target_ms / 1e3)), dash: TARGET_DASH }
}

fn delay_over_time(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Figure {
    let mut layers = Vec::new();
    for shown in shown {
        let Shown { style, world, .. } = *shown;
        if let [only] = shown.runs.as_slice() {
            let band =
                |interval: &IntervalResult| (interval.middle_s(), ms(interval.delay_p50_s), ms(interval.delay_p95_s));
            let shape = Shape::Band(only.intervals.iter().map(band).collect());
            layers.push(Layer { name: format!("{world}: median to 95th percentile of each interval"), style, shape });
        }
        let mean = |interval: &IntervalResult| (interval.middle_s(), ms(interval.delay_mean_s));
        let means = shown.series(|flow| &flow.intervals, mean);
        layers.extend(spread::layers(style, &format!("{world}: mean of each interval"), &means));
    }
    let target = target_of(shown);
    let (top, cut) = top_of(&mut heights(&layers), target);
    let chart = Chart {
        id: format!("delay-{flow}"),
        title: "One-way delay of each control interval over time, against its target".to_owned(),
        x: time_axis(report),
        y: Axis::new("one-way delay (ms)", 0.0, top),
        categories: Vec::new(),
        layers,
        horizontals: target.map(|target| target_mark(target, "target".to_owned())).into_iter().collect(),
        verticals: step_marks(report),
        shades: shades(report, shown),
    };
    let note = note_of(top, cut, target);
    let title = format!("{}: one-way delay over time", name_of(shown));
    Figure { question: Question::Held, title, chart: Some(chart), note }
}

/// Returns the name of the flow that the charts show.
pub(super) fn name_of<'a>(shown: &[Shown<'a>]) -> &'a str {
    shown.first().map_or("", |shown| shown.flow.name.as_str())
}

/// Returns the upper limit of the delay axis, and whether some delays are above the limit. The limit is the longest
/// delay, but at least 1.5 times and at most five times the target. Without a target, the limit is at most
/// [`WIDEST_SPAN`] times the median delay. The limit is then rounded up to a round number.
fn top_of(delays: &mut Vec<f64>, target: Option<f64>) -> (f64, bool) {
    delays.retain(|delay| delay.is_finite());
    delays.sort_by(f64::total_cmp);
    let highest = delays.last().copied().unwrap_or(1.0);
    // The quantile is NaN if there are no delays, and then it does not limit the axis.
    let most = target.map_or_else(|| WIDEST_SPAN * quantile(delays, 0.5), |target| target * 5.0);
    let top = nice(highest.min(most).max(target.unwrap_or(0.0) * 1.5).max(1e-3));
    (top, highest > top)
}

/// Returns the note below a chart of delays, which explains why the axis ends below some delays; empty if the axis
/// shows all delays.
fn note_of(top: f64, cut: bool, target: Option<f64>) -> String {
    match target {
        _ if !cut => String::new(),
        Some(_) => format!("The axis ends at {top} ms so that the target can be told."),
        None => format!("The axis ends at {top} ms, below the longest delays, so that usual delays can be told."),
    }
}

/// If a flow has no target, the delay axis ends at the longest delay or at the median delay times this factor,
/// whichever is lower.
const WIDEST_SPAN: f64 = 50.0;

fn rate_over_time(report: &Report, flow: usize, shown: &[Shown<'_>]) -> Figure {
    /// Dash patterns of planned loads and of link capacities.
    const DASHES: [(StepKind, &str); 2] = [(StepKind::Load, "2 3"), (StepKind::Capacity, "10 4")];
    let mut layers = Vec::new();
    // If there is only one line of a kind, it is grey. If there are several lines of a kind, they have colours that no
    // simulated line, live line or mark has. A load and a capacity can have the same colour, but differ in their dash
    // patterns.
    for (kind, dash) in DASHES {
        let lines = scheduled(report, kind);
        let colors = if lines.len() > 1 { &paths::COLORS[3..] } else { &["var(--context)"] };
        for ((name, points), color) in lines.into_iter().zip(colors.iter().cycle()) {
            layers.push(Layer { name, style: Style { color, dash, width: 1.6 }, shape: Shape::Steps(points) });
        }
    }
    let name = name_of(shown);
    for shown in shown {
        let Shown { style, world, .. } = *shown;
        let rate = |interval: &IntervalResult| (interval.middle_s(), interval.rate_bps / 1e6);
        let rates = shown.series(|flow| &flow.intervals, rate);
        layers.extend(spread::layers(style, &format!("{world}: sending rate of {name}"), &rates));
    }
    let title = "Sending rate of each control interval over time, with background load and capacity".to_owned();
    let chart = over_time(report, shown, (format!("rate-{flow}"), title), "rate of IP packets (Mbit/s)", layers);
    Figure::of(Question::Cost, format!("{name}: sending rate over time"), chart)
}

/// Returns the planned capacities of the links, or the planned loads of the background flows, in Mbit/s over the whole
/// run. Links that have far more capacity than the narrowest link are left out.
fn scheduled(report: &Report, kind: StepKind) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let what = match kind {
        StepKind::Capacity => "capacity of",
        StepKind::Load => "planned load of",
    };
    for step in report.steps.iter().filter(|step| step.kind == kind && step.at_s <= end_s(report)) {
        let name = format!("{what} {}", step.name);
        let point = (step.at_s, step.rate_bps as f64 / 1e6);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    for (_, points) in &mut lines {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        if let Some(&(_, last)) = points.last() {
            points.push((end_s(report), last));
        }
    }
    // A link whose largest capacity is more than four times that of the narrowest link is left out, because it would
    // flatten the other lines.
    let widest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    let narrowest = lines.iter().map(|line| widest(&line.1)).fold(f64::INFINITY, f64::min);
    lines.retain(|line| kind == StepKind::Load || widest(&line.1) <= 4.0 * narrowest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers_above_their_data() {
        for (value, expected) in [(0.9, 1.0), (8.2, 10.0), (15.3, 20.0), (41.0, 50.0), (1e-3, 1e-3)] {
            assert!((nice(value) - expected).abs() < 1e-9, "{value}: {}", nice(value));
        }
        let (top, cut) = top_of(&mut vec![8.0, 9.0, f64::NAN, 500.0], Some(8.2));
        assert!((top - 50.0).abs() < 1e-9 && cut, "{top}");
        let (top, cut) = top_of(&mut vec![8.0, 9.0, 9.5], Some(8.2));
        assert!((top - 15.0).abs() < 1e-9 && !cut, "{top}");
    }

    /// If this test fails, the note below a chart without a target mentions a target.
    #[test]
    fn the_note_of_an_axis_that_is_cut_mentions_a_target_only_if_there_is_one() {
        let noted = |target| {
            let (top, cut) = top_of(&mut vec![8.0, 9.0, 9.0, 5000.0], target);
            note_of(top, cut, target)
        };
        assert_eq!(noted(Some(8.2)), "The axis ends at 50 ms so that the target can be told.");
        assert_eq!(noted(None), "The axis ends at 500 ms, below the longest delays, so that usual delays can be told.");
        assert_eq!(note_of(10.0, false, None), "");
    }
}
