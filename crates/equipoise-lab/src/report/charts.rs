//! Which charts a report has: delay over time, rates over time, the delay's distribution.

use super::chart::{Axis, Chart, Layer, Mark, Shape, Style};
use super::figure::{Figure, look, middle, ms, nice, over_time, shades, step_marks, time_axis};
use super::format::millis;
use super::{pair, paths, tcp};
use crate::result::{FlowResult, IntervalResult, Report, Run, StepKind, World};

/// The figures of one controlled flow.
pub(super) fn figures(report: &Report, flow: usize) -> Vec<Figure> {
    let worlds = first_runs(report);
    let shown: Vec<_> = worlds.into_iter().filter_map(|run| run.flows.get(flow).map(|flow| (run, flow))).collect();
    let Some((_, first)) = shown.first() else { return Vec::new() };
    if first.tcp.is_some() {
        return tcp::figures(report, flow, &shown);
    }
    let name = first.name.clone();
    let mut figures = vec![
        Figure { title: format!("{name}: one-way delay over time"), html: delay_over_time(report, flow, &shown) },
        Figure { title: format!("{name}: sending rate over time"), html: rate_over_time(report, flow, &shown) },
        Figure { title: format!("{name}: distribution of the one-way delay"), html: distribution(flow, &shown) },
    ];
    // Behind the rate of all of them together.
    figures.splice(2..2, paths::figures(report, flow, &shown));
    if first.pair.is_some() {
        for figure in &mut figures {
            figure.title.push_str(", RTP half");
        }
        figures.splice(0..0, pair::figures(report, flow, &shown));
    }
    figures
}

/// The figures of the links.
pub(super) fn link_figures(report: &Report) -> Vec<Figure> {
    tcp::queues(report, &first_runs(report))
}

/// The first run of each world.
fn first_runs(report: &Report) -> Vec<&Run> {
    [World::Sim, World::Live].iter().filter_map(|world| report.runs.iter().find(|run| run.world == *world)).collect()
}

/// Dashes of a target: unlike those of the worlds and of the steps.
const TARGET_DASH: &str = "14 3 2 3";

/// The flow's target in milliseconds, where there is one.
fn target_of(shown: &[(&Run, &FlowResult)]) -> Option<f64> {
    let target = shown.iter().find_map(|(_, flow)| flow.target_s);
    target.map(|target| target * 1e3).filter(|target| target.is_finite())
}

fn target_mark(target_ms: f64, label: String) -> Mark {
    Mark { at: target_ms, label, name: format!("target, {}", millis(target_ms / 1e3)), dash: TARGET_DASH }
}

fn delay_over_time(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let mut layers = Vec::new();
    let mut all = Vec::new();
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        let band = |interval: &IntervalResult| (middle(interval), ms(interval.delay_p50_s), ms(interval.delay_p95_s));
        let line = |interval: &IntervalResult| (middle(interval), ms(interval.delay_mean_s));
        layers.push(Layer {
            name: format!("{world}: median to 95th percentile of each interval"),
            style,
            shape: Shape::Band(flow.intervals.iter().map(band).collect()),
        });
        layers.push(Layer {
            name: format!("{world}: mean of each interval"),
            style,
            shape: Shape::Line(flow.intervals.iter().map(line).collect()),
        });
        all.extend(flow.intervals.iter().flat_map(|interval| [ms(interval.delay_p95_s), ms(interval.delay_mean_s)]));
    }
    let target = target_of(shown);
    let (top, cut) = top_of(&mut all, target);
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
    let mut html = chart.to_html();
    if cut {
        html.push_str(&format!(
            "<p class=\"note\">The axis ends at {top} ms so that the target can be told; what lies above is drawn at its edge.</p>\n"
        ));
    }
    html
}

/// Where the delay axis ends: above nearly everything, but not so far that the target sticks to its foot.
fn top_of(delays: &mut Vec<f64>, target: Option<f64>) -> (f64, bool) {
    delays.retain(|delay| delay.is_finite());
    delays.sort_by(f64::total_cmp);
    let highest = delays.last().copied().unwrap_or(1.0);
    let most = target.map_or_else(|| WIDEST_SPAN * quantile(delays, 0.5), |target| target * 5.0);
    let top = nice(highest.min(most).max(target.unwrap_or(0.0) * 1.5).max(1e-3));
    (top, highest > top)
}

/// How many times its median a delay without a target may reach before its axis is cut.
const WIDEST_SPAN: f64 = 50.0;

/// The value below which this share of the sorted values lies; 1 if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(1.0)
}

fn rate_over_time(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let mut layers = Vec::new();
    let capacities = scheduled(report, StepKind::Capacity);
    let dashes = ["2 3", "10 4", "10 3 2 3", "1 4"];
    for (number, (name, points)) in scheduled(report, StepKind::Load).into_iter().chain(capacities).enumerate() {
        let dash = dashes.get(number % dashes.len()).copied().unwrap_or_default();
        let style = Style { color: "var(--context)", dash, width: 1.6 };
        layers.push(Layer { name, style, shape: Shape::Steps(points) });
    }
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        let points = flow.intervals.iter().map(|interval| (middle(interval), interval.rate_bps / 1e6)).collect();
        layers.push(Layer {
            name: format!("{world}: sending rate of {}", flow.name),
            style,
            shape: Shape::Line(points),
        });
    }
    let title = "Sending rate of each control interval over time, with background load and capacity".to_owned();
    over_time(report, shown, (format!("rate-{flow}"), title), "rate of IP packets (Mbit/s)", layers)
}

/// Planned rates over the whole run, in Mbit/s, of everything of a kind.
fn scheduled(report: &Report, kind: StepKind) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let what = match kind {
        StepKind::Capacity => "capacity of",
        StepKind::Load => "planned load of",
    };
    for step in report.steps.iter().filter(|step| step.kind == kind && step.at_s <= report.duration_s) {
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
            points.push((report.duration_s, last));
        }
    }
    // An access link that is far wider than anything sent would flatten the rest.
    let widest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    let narrowest = lines.iter().map(|line| widest(&line.1)).fold(f64::INFINITY, f64::min);
    lines.retain(|line| kind == StepKind::Load || widest(&line.1) <= 4.0 * narrowest);
    lines
}

/// How much of what the histogram counts is surely drawn: its longest tail would press the rest against the axis.
const DRAWN_SHARE: f64 = 0.95;

/// The cumulative distribution: a delay that many packets share, like that of an empty queue, is a step in it and leaves
/// the rest readable, where a density would have a spike.
fn distribution(flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let target = target_of(shown);
    let ends = shown.iter().filter_map(|(_, flow)| delay_reached_by(flow, DRAWN_SHARE));
    let Some(end) = ends.reduce(f64::max) else {
        return "<p class=\"note\">No packet arrived after the warm-up.</p>\n".to_owned();
    };
    let right = nice(end.max(target.unwrap_or(0.0) * 1.5));
    let mut left = target.unwrap_or(right);
    let mut layers = Vec::new();
    for (run, flow) in shown {
        let points = cumulative(flow, right);
        left = points.first().map_or(left, |point| left.min(point.0));
        let (style, world) = look(run.world);
        layers.push(Layer { name: world.to_owned(), style, shape: Shape::Line(points) });
    }
    let chart = Chart {
        id: format!("distribution-{flow}"),
        title: "Share of the packets sent after the warm-up that had at most a given one-way delay".to_owned(),
        x: Axis::new("one-way delay (ms)", left.floor().max(0.0), right),
        y: Axis::new("packets, cumulative (%)", 0.0, 100.0),
        categories: Vec::new(),
        layers,
        horizontals: Vec::new(),
        verticals: target.map(|at| target_mark(at, format!("target {}", millis(at / 1e3)))).into_iter().collect(),
        shades: Vec::new(),
    };
    let note = "<p class=\"note\">So many of the packets had at most this delay. Only packets up to the 99th percentile are \
        counted, and they are the 100 %; longer delays are in the table.</p>\n";
    chart.to_html() + note
}

/// Percent of the histogram's packets over the delay in milliseconds that they had at most, up to `right`.
fn cumulative(flow: &FlowResult, right: f64) -> Vec<(f64, f64)> {
    let total = packets_counted(flow);
    let mut below = 0.0;
    let mut points = Vec::new();
    for bin in flow.histogram.iter().filter(|bin| bin.to_s > bin.from_s && bin.to_s * 1e3 <= right) {
        if points.is_empty() {
            points.push((bin.from_s * 1e3, 0.0));
        }
        below += bin.packets as f64;
        points.push((bin.to_s * 1e3, below / total.max(1.0) * 100.0));
    }
    if total > 0.0 && below >= total {
        points.push((right, 100.0));
    }
    points
}

/// Packets in the histogram: a float, because the counts of results that were not made here may be of any size.
fn packets_counted(flow: &FlowResult) -> f64 {
    flow.histogram.iter().map(|bin| bin.packets as f64).sum()
}

/// The upper edge, in milliseconds, of the bin in which this share of the packets is reached.
fn delay_reached_by(flow: &FlowResult, share: f64) -> Option<f64> {
    let total = packets_counted(flow);
    let mut below = 0.0;
    flow.histogram.iter().filter(|bin| bin.to_s.is_finite() && bin.to_s > 0.0).find_map(|bin| {
        below += bin.packets as f64;
        (total > 0.0 && below >= share * total).then_some(bin.to_s * 1e3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::flow;

    /// A cut that moved what lies beyond onto the axis' end would show delays that no packet had.
    #[test]
    fn the_distribution_is_cumulative_and_cut_without_being_bent() {
        let rounded = |right| -> Vec<(i64, i64)> {
            let points = cumulative(&flow(&[50, 30, 20]), right);
            points.into_iter().map(|(at, share)| (at.round() as i64, share.round() as i64)).collect()
        };
        assert_eq!(rounded(10.0), [(5, 0), (6, 50), (7, 80), (8, 100), (10, 100)]);
        assert_eq!(rounded(7.5), [(5, 0), (6, 50), (7, 80)]);
        assert!(cumulative(&flow(&[]), 10.0).is_empty());
        let reached = delay_reached_by(&flow(&[50, 30, 20]), 0.8).unwrap();
        assert!((reached - 7.0).abs() < 1e-9, "{reached}");
        assert_eq!(delay_reached_by(&flow(&[0, 0]), 0.8), None);
    }

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
}
