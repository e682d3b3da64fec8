//! Which charts a report has: delay over time, rates over time, the delay's distribution.

use super::chart::{Axis, Chart, Layer, Shade, Shape, Style, mark_entry};
use super::format::{escape, millis};
use crate::result::{FlowResult, IntervalResult, Report, Run, StepKind, World};

/// A chart with the words that go with it.
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) html: String,
}

/// The figures of one controlled flow.
pub(super) fn figures(report: &Report, flow: usize) -> Vec<Figure> {
    let worlds = first_runs(report);
    let shown: Vec<_> = worlds.into_iter().filter_map(|run| run.flows.get(flow).map(|flow| (run, flow))).collect();
    let Some((_, first)) = shown.first() else { return Vec::new() };
    let name = first.name.clone();
    vec![
        Figure { title: format!("{name}: one-way delay over time"), html: delay_over_time(report, flow, &shown) },
        Figure { title: format!("{name}: sending rate over time"), html: rate_over_time(report, flow, &shown) },
        Figure { title: format!("{name}: distribution of the one-way delay"), html: distribution(flow, &shown) },
    ]
}

/// The first run of each world.
fn first_runs(report: &Report) -> Vec<&Run> {
    [World::Sim, World::Live].iter().filter_map(|world| report.runs.iter().find(|run| run.world == *world)).collect()
}

/// How a world's lines look, and what it is called.
fn look(world: World) -> (Style, &'static str) {
    match world {
        World::Sim => (Style { color: "var(--sim)", dash: "7 4", width: 1.8 }, "simulated"),
        World::Live => (Style { color: "var(--live)", dash: "", width: 1.8 }, "live"),
    }
}

fn middle(interval: &IntervalResult) -> f64 {
    f64::midpoint(interval.start_s, interval.end_s)
}

fn delay_over_time(report: &Report, flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let mut layers = Vec::new();
    let mut all = Vec::new();
    for (run, flow) in shown {
        let (style, world) = look(run.world);
        let band = flow.intervals.iter().filter_map(|interval| {
            let (low, high) = (interval.delay_p50_s?, interval.delay_p95_s?);
            Some((middle(interval), low * 1e3, high * 1e3))
        });
        layers.push(Layer {
            name: format!("{world}: median to 95th percentile of each interval"),
            style,
            shape: Shape::Band(band.collect()),
        });
        let line: Vec<_> = flow
            .intervals
            .iter()
            .filter_map(|interval| Some((middle(interval), interval.delay_mean_s? * 1e3)))
            .collect();
        all.extend(flow.intervals.iter().filter_map(|interval| interval.delay_p95_s.map(|delay| delay * 1e3)));
        layers.push(Layer { name: format!("{world}: mean of each interval"), style, shape: Shape::Line(line) });
    }
    let target = shown.iter().find_map(|(_, flow)| flow.target_s).map(|target| target * 1e3);
    let (top, cut) = top_of(&mut all, target);
    let chart = Chart {
        id: format!("delay-{flow}"),
        title: "One-way delay of each control interval over time, against its target".to_owned(),
        x: time_axis(report),
        y: Axis { label: "one-way delay (ms)", min: 0.0, max: top },
        layers,
        horizontals: target.into_iter().collect(),
        verticals: step_times(report),
        shades: shades(report, shown),
    };
    let mut html = with_marks(&chart, target, report);
    if cut {
        html.push_str(&format!(
            "<p class=\"note\">The axis ends at {top:.0} ms so that the target can be told; what lies above is drawn at its edge.</p>\n"
        ));
    }
    html
}

/// Where the delay axis ends: above nearly everything, but not so far that the target sticks to its foot.
fn top_of(delays: &mut [f64], target: Option<f64>) -> (f64, bool) {
    delays.sort_by(f64::total_cmp);
    let highest = delays.last().copied().unwrap_or(1.0);
    let most = target.map_or(f64::INFINITY, |target| target * 5.0);
    let top = nice(highest.min(most).max(target.unwrap_or(0.0) * 1.5).max(1e-3));
    (top, highest > top)
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 4.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
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
        layers.push(Layer { name: format!("{world}: sending rate"), style, shape: Shape::Line(points) });
    }
    let highest = layers.iter().flat_map(|layer| match &layer.shape {
        Shape::Line(points) | Shape::Steps(points) => points.iter().map(|point| point.1).collect(),
        Shape::Band(_) => Vec::new(),
    });
    let top = nice(highest.fold(0.1, f64::max) * 1.02);
    let chart = Chart {
        id: format!("rate-{flow}"),
        title: "Sending rate of each control interval over time, with background load and capacity".to_owned(),
        x: time_axis(report),
        y: Axis { label: "rate of IP packets (Mbit/s)", min: 0.0, max: top },
        layers,
        horizontals: Vec::new(),
        verticals: step_times(report),
        shades: shades(report, shown),
    };
    with_marks(&chart, None, report)
}

/// Planned rates over the whole run, in Mbit/s, of everything of a kind.
fn scheduled(report: &Report, kind: StepKind) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let what = match kind {
        StepKind::Capacity => "capacity of",
        StepKind::Load => "planned load of",
    };
    for step in report.steps.iter().filter(|step| step.kind == kind) {
        let name = format!("{what} {}", step.name);
        let point = (step.at_s, step.rate_bps as f64 / 1e6);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    for (_, points) in &mut lines {
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

fn distribution(flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let mut layers = Vec::new();
    let (mut right, mut top) = (0.0f64, 0.0f64);
    let mut left = f64::INFINITY;
    for (run, flow) in shown {
        let total: u64 = flow.histogram.iter().map(|bin| bin.packets).sum();
        let (style, world) = look(run.world);
        let density = |packets: u64, width_ms: f64| packets as f64 / total.max(1) as f64 / width_ms * 100.0;
        let mut points = Vec::new();
        for bin in &flow.histogram {
            let (from, to) = (bin.from_s * 1e3, bin.to_s * 1e3);
            let share = density(bin.packets, to - from);
            points.push((from, share));
            (left, right, top) = (left.min(from), right.max(to), top.max(share));
        }
        layers.push(Layer { name: world.to_owned(), style, shape: Shape::Steps(points) });
    }
    if right <= 0.0 {
        return "<p class=\"note\">No packet arrived after the warm-up.</p>\n".to_owned();
    }
    let target = shown.iter().find_map(|(_, flow)| flow.target_s).map(|target| target * 1e3);
    let right = nice(target.map_or(right, |target| right.min(5.0 * target).max(1.5 * target)));
    let chart = Chart {
        id: format!("distribution-{flow}"),
        title: "Share of the packets sent after the warm-up by their one-way delay".to_owned(),
        x: Axis { label: "one-way delay (ms)", min: left.floor().min(right - 1e-3).max(0.0), max: right },
        y: Axis { label: "packets (% per ms)", min: 0.0, max: nice(top.max(1e-3)) },
        layers,
        horizontals: Vec::new(),
        verticals: target.into_iter().collect(),
        shades: Vec::new(),
    };
    let mark = target.map(|target| mark_entry(&format!("target, {}", millis(target / 1e3)), "2 3"));
    chart.to_html().replacen("</ul>", &format!("{}</ul>", mark.unwrap_or_default()), 1)
}

fn time_axis(report: &Report) -> Axis {
    Axis { label: "time (s)", min: 0.0, max: report.duration_s }
}

/// Times of the steps, once each.
fn step_times(report: &Report) -> Vec<f64> {
    let mut times: Vec<_> = report.steps.iter().map(|step| step.at_s).filter(|at| *at > 0.0).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// The warm-up, and the intervals in which the machine stood still.
fn shades(report: &Report, shown: &[(&Run, &FlowResult)]) -> Vec<Shade> {
    let warm_up = Shade { from: 0.0, to: report.warm_up_s, color: "var(--warm-up)" };
    let stalled = shown.iter().flat_map(|(_, flow)| flow.intervals.iter().filter(|interval| interval.stalled));
    let stalled = stalled.map(|interval| Shade { from: interval.start_s, to: interval.end_s, color: "var(--stall)" });
    std::iter::once(warm_up).filter(|shade| shade.to > shade.from).chain(stalled).collect()
}

/// A chart over time with the marks in its legend: target, steps, shades.
fn with_marks(chart: &Chart, target_ms: Option<f64>, report: &Report) -> String {
    let mut marks = String::new();
    if let Some(target) = target_ms {
        marks.push_str(&mark_entry(&format!("target, {}", millis(target / 1e3)), "6 4"));
    }
    for at in step_times(report) {
        let what: Vec<_> = report
            .steps
            .iter()
            .filter(|step| (step.at_s - at).abs() < f64::EPSILON)
            .map(|step| format!("{} to {:.2} Mbit/s", step.name, step.rate_bps as f64 / 1e6))
            .collect();
        marks.push_str(&mark_entry(&format!("{at:.0} s: {}", what.join(", ")), "2 3"));
    }
    let has = |color: &str| chart.shades.iter().any(|shade| shade.color == color);
    for (color, name) in
        [("var(--warm-up)", "warm-up, left out of the means"), ("var(--stall)", "the machine stood still")]
    {
        if has(color) {
            let name = escape(name);
            marks.push_str(&format!("<li><span class=\"swatch\" style=\"background:{color}\"></span> {name}</li>"));
        }
    }
    chart.to_html().replacen("</ul>", &format!("{marks}</ul>"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers_above_their_data() {
        for (value, expected) in [(0.9, 1.0), (8.2, 10.0), (15.3, 20.0), (41.0, 50.0), (1e-3, 1e-3)] {
            assert!((nice(value) - expected).abs() < 1e-9, "{value}: {}", nice(value));
        }
        let (top, cut) = top_of(&mut [8.0, 9.0, 500.0], Some(8.2));
        assert!((top - 50.0).abs() < 1e-9 && cut, "{top}");
    }
}
