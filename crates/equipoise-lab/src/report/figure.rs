//! Definitions that figures of a report share: the line styles of simulated and live runs, and the time axis from
//! the run's start to its end.

use super::chart::{Axis, Chart, Layer, Mark, Shade, Shape, Style};
use super::media;
use super::worlds::InWorld;
use crate::result::{FlowResult, Report, World};

/// The questions that a report answers, in the order in which the report answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Was the delay target held?
    Held,
    /// What did it cost to hold the delay target?
    Cost,
    /// What happened at which time?
    When,
}

/// A chart with its title and a note.
pub(super) struct Figure {
    /// The question that the figure answers.
    pub(super) question: Question,
    pub(super) title: String,
    /// The chart; `None` if there is nothing to draw.
    pub(super) chart: Option<Chart>,
    /// A note below the chart, or instead of the chart; may be empty.
    pub(super) note: String,
}

impl Figure {
    /// Returns a figure that consists of a chart and a title, without a note.
    pub(super) const fn of(question: Question, title: String, chart: Chart) -> Self {
        Self { question, title, chart: Some(chart), note: String::new() }
    }
}

/// The results of one flow in all simulated runs, or in all live runs.
pub(super) struct Shown<'a> {
    /// Name of this kind of run ("simulated" or "live"), and the style of its lines.
    pub(super) world: &'static str,
    pub(super) style: Style,
    /// Result of the flow in the first run.
    pub(super) flow: &'a FlowResult,
    /// Results of the flow in all runs, including the first one.
    pub(super) runs: Vec<&'a FlowResult>,
}

impl<'a> Shown<'a> {
    /// Returns the results of flow number `index` in all runs of `world`; `None` if the runs do not have this flow.
    pub(super) fn of(world: &InWorld<'a>, index: usize) -> Option<Self> {
        let runs: Vec<_> = world.runs.iter().filter_map(|run| run.flows.get(index)).collect();
        Some(Self { world: world.name, style: world.style, flow: world.runs.first()?.flows.get(index)?, runs })
    }

    /// Returns, for each run that has at least one point, its points over time.
    pub(super) fn series<T>(
        &self,
        of: impl Fn(&FlowResult) -> &[T],
        point: impl Fn(&T) -> (f64, f64),
    ) -> Vec<Vec<(f64, f64)>> {
        let runs = self.runs.iter().map(|flow| of(flow)).filter(|points| !points.is_empty());
        runs.map(|points| points.iter().map(&point).collect()).collect()
    }
}

/// Returns the finite values of lines and steps, and of the upper edges of bands.
pub(super) fn heights(layers: &[Layer]) -> Vec<f64> {
    let of_layer = |layer: &Layer| -> Vec<f64> {
        match &layer.shape {
            Shape::Line(points) | Shape::Steps(points) => points.iter().map(|point| point.1).collect(),
            Shape::Band(points) => points.iter().map(|point| point.2).collect(),
            Shape::Points(_) | Shape::Estimate { .. } | Shape::Box(..) => Vec::new(),
        }
    };
    layers.iter().flat_map(of_layer).filter(|value| value.is_finite()).collect()
}

/// Returns the line style and the name of simulated or of live runs.
pub(super) fn look(world: World) -> (Style, &'static str) {
    match world {
        World::Sim => (Style { color: "var(--sim)", dash: "7 4", width: 1.8 }, "simulated"),
        World::Live => (Style { color: "var(--live)", dash: "", width: 1.8 }, "live"),
    }
}

/// Dash pattern of three kinds of lines: marks of rate steps, marks of phase starts, and secondary lines in charts of
/// TCP.
pub(super) const STEP_DASH: &str = "2 3";

/// Converts seconds to milliseconds. Returns NaN if nothing was measured, so that the chart has a gap.
pub(super) fn ms(seconds: Option<f64>) -> f64 {
    seconds.map_or(f64::NAN, |seconds| seconds * 1e3)
}

/// Returns a chart of lines and steps over the time of a run. Its vertical axis goes from zero to a round number above
/// the largest value.
pub(super) fn over_time(
    report: &Report,
    shown: &[Shown<'_>],
    (id, title): (String, String),
    unit: &'static str,
    layers: Vec<Layer>,
) -> Chart {
    let highest = heights(&layers).into_iter().fold(0.1, f64::max);
    let chart = Chart::new(id, title, time_axis(report), Axis::new(unit, 0.0, nice(highest * 1.02)), layers);
    Chart { verticals: step_marks(report), shades: shades(report, shown), ..chart }
}

/// Returns the smallest round number that is at least the value. Round numbers are 1, 1.5, 2, 2.5, 3, 4, 5, 6 and 8
/// times a power of ten.
pub(super) fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// Returns the horizontal axis of a chart over the time of a run.
pub(super) fn time_axis(report: &Report) -> Axis {
    Axis::new("time (s)", 0.0, end_s(report))
}

/// Returns the end of the last interval or sample of all flows in all runs, but at most the planned end of the run.
/// Returns the planned end if there are no intervals and no samples.
pub(super) fn end_s(report: &Report) -> f64 {
    let last = |flow: &FlowResult| {
        let interval = flow.intervals.last().map(|interval| interval.end_s);
        let sample = flow.tcp.as_ref().and_then(|tcp| tcp.samples.last()).map(|sample| sample.at_s);
        let received = flow.received.last().map(|sample| sample.at_s);
        [interval, sample, received].into_iter().flatten().reduce(f64::max)
    };
    let ends = report.runs.iter().flat_map(|run| &run.flows).filter_map(last).filter(|end| *end > 0.0);
    ends.reduce(f64::max).map_or(report.duration_s, |end| end.min(report.duration_s))
}

/// Returns marks for the rate steps within the run, and for the starts of phases. Steps at the same time share one
/// mark. The start of a phase has no mark of its own if a rate takes a step at that time.
pub(super) fn step_marks(report: &Report) -> Vec<Mark> {
    let mut steps: Vec<_> = report.steps.iter().filter(|step| step.at_s > 0.0 && step.at_s < end_s(report)).collect();
    steps.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    let together = steps.chunk_by(|one, other| (one.at_s - other.at_s).abs() < 1e-9);
    let mark = |steps: &[&crate::result::Step]| {
        let at = steps.first()?.at_s;
        let words = |to: &str| {
            let all = steps.iter().map(|step| format!("{}{to} {} Mbit/s", step.name, step.rate_bps as f64 / 1e6));
            all.collect::<Vec<_>>().join(", ")
        };
        Some(Mark { at, label: words(""), name: format!("{at} s: {}", words(" to")), dash: STEP_DASH })
    };
    let mut marks: Vec<_> = together.filter_map(mark).chain(media::marks(report)).collect();
    marks.sort_by(|one, other| one.at.total_cmp(&other.at));
    marks
}

/// Returns shades for the warm-up, path outages, and the intervals in which the machine stalled.
pub(super) fn shades(report: &Report, shown: &[Shown<'_>]) -> Vec<Shade> {
    let warm_up =
        Shade { from: 0.0, to: report.warm_up_s, color: "var(--warm-up)", name: "warm-up, left out of the means" };
    let stalled = shown.iter().flat_map(|shown| shown.flow.intervals.iter().filter(|interval| interval.stalled));
    let stalled = stalled.map(|interval| Shade {
        from: interval.start_s,
        to: interval.end_s,
        color: "var(--stall)",
        name: "the machine stalled in this interval (live)",
    });
    let away = report.outages.iter().map(|outage| Shade {
        from: outage.start_s,
        to: outage.end_s,
        color: "var(--outage)",
        name: "a path is taken away",
    });
    std::iter::once(warm_up).filter(|shade| shade.to > shade.from).chain(away).chain(stalled).collect()
}
