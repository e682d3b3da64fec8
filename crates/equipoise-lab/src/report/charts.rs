//! Which charts a report has: delay over time, rates over time, the delay's distribution.

use super::chart::{Axis, Chart, Layer, Mark, Shape, Style};
use super::figure::{Figure, look, middle, ms, nice, over_time, shades, step_marks, time_axis};
use super::format::millis;
use super::{pair, paths, tcp};
use crate::result::{DelayShare, FlowResult, IntervalResult, Report, Run, StepKind, World};

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

/// The complementary distribution on a logarithmic axis: the tail, by which media is judged, has as much room as the rest, and the
/// 95th and 99th percentiles stand where 5 % and 1 % are left.
fn distribution(flow: usize, shown: &[(&Run, &FlowResult)]) -> String {
    let target = target_of(shown);
    let mut layers = Vec::new();
    for (run, flow) in shown {
        let points = complementary(flow);
        let (style, world) = look(run.world);
        if !points.is_empty() {
            layers.push(Layer { name: world.to_owned(), style, shape: Shape::Line(points) });
        }
    }
    let delays = || shown.iter().flat_map(|(_, flow)| complementary(flow)).map(|point| point.0);
    let (Some(least), Some(longest)) = (delays().reduce(f64::min), delays().reduce(f64::max)) else {
        return "<p class=\"note\">No packet arrived after the warm-up.</p>\n".to_owned();
    };
    let (left, right) = (least.min(target.unwrap_or(least)), longest.max(target.unwrap_or(longest)));
    let chart = Chart {
        id: format!("distribution-{flow}"),
        title: "Share of the packets sent after the warm-up that had at least a given one-way delay".to_owned(),
        x: Axis::new("one-way delay (ms)", left.floor().max(0.0), nice(right.max(1e-3))),
        y: Axis::logarithmic("packets with at least this delay (%)", LEAST_PERCENT, MOST_PERCENT),
        categories: Vec::new(),
        layers,
        horizontals: Vec::new(),
        verticals: target.map(|at| target_mark(at, format!("target {}", millis(at / 1e3)))).into_iter().collect(),
        shades: Vec::new(),
    };
    let note = "<p class=\"note\">So many of the packets took this long or longer: the 95th percentile is where 5 % are left, the 99th \
        where 1 % are. The curve goes down to one packet in a thousand, or to the last one of fewer; nothing of it is cut off.</p>\n";
    chart.to_html() + note
}

/// Exponents of the least and the largest share on the axis: 0.1 % and 100 %.
const LEAST_PERCENT: i32 = -1;
const MOST_PERCENT: i32 = 2;

/// The exponent of the percentage of packets over the delay in milliseconds that they had at least.
fn complementary(flow: &FlowResult) -> Vec<(f64, f64)> {
    let point = |point: &DelayShare| (point.delay_s * 1e3, (point.share * 100.0).log10());
    flow.distribution.iter().map(point).filter(|(delay, share)| delay.is_finite() && share.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::flow;

    /// Read off the chart, the 95th percentile was one of what is left of the 99th, and the tail was gone.
    #[test]
    fn the_distribution_is_complementary_and_its_tail_is_whole() {
        let flow = flow(&[(1.0, 5.0), (0.05, 18.7), (0.01, 60.0), (1e-3, 192.0)]);
        let rounded: Vec<_> = complementary(&flow)
            .into_iter()
            .map(|(at, share)| (at.round() as i64, (share * 100.0).round() as i64))
            .collect();
        assert_eq!(rounded, [(5, 200), (19, 70), (60, 0), (192, -100)], "100 %, 5 %, 1 % and 0.1 %");
        let run = crate::report::tests::run(World::Sim, 1, 0.0082);
        let chart = distribution(0, &[(&run, &flow)]);
        for label in [">100<", ">10<", ">1<", ">0.1<", ">200<", "packets with at least this delay (%)"] {
            assert!(chart.contains(label), "{label}: {chart}");
        }
        assert!(distribution(0, &[(&run, &crate::report::tests::flow(&[]))]).contains("No packet arrived"));
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
