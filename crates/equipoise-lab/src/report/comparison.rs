//! The page of a comparison. It shows a chart of delay against rate, charts of delay and of rate over time, the paired
//! differences, and the text of the scenarios.

use super::chart::{Axis, Chart, Layer, Shape, Style};
use super::figure::{heights, nice};
use super::format::{NOTHING, escape};
use super::paths::variant_style;
use super::table::{Column, Table};
use super::{HANDLING, head};
use crate::compare::{
    Comparison, FlowComparison, MetricComparison, Moment, OverTime, Place, Sample, VariantResult, Word,
};
use crate::result::Mean;

/// Returns the page of a comparison as HTML.
pub fn comparison_html(comparison: &Comparison) -> String {
    let names = comparison.variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>();
    let title = names.join(", ");
    let mut page = head(&title);
    page.push_str(&format!("<h1>{}</h1>\n", escape(&title)));
    page.push_str(&about(comparison));
    page.push_str(&format!("<h2>{}: delay against rate</h2>\n{}", escape(&comparison.flow), pareto(comparison)));
    page.push_str(&format!("<h2>{}: over time</h2>\n{}", escape(&comparison.flow), over_time(comparison)));
    for flow in &comparison.flows {
        page.push_str(&format!("<h2>{}: differences</h2>\n{}", escape(&flow.name), differences(comparison, flow)));
    }
    page.push_str(READING);
    page.push_str(HANDLING);
    page.push_str("<h2>The variants</h2>\n");
    for VariantResult { name, description, scenario_text, .. } in &comparison.variants {
        page.push_str(&format!(
            "<h3>{}</h3>\n<p>{}</p>\n<details>\n<summary>The scenario as it was run</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
            escape(name),
            escape(description),
            escape(scenario_text)
        ));
    }
    page.push_str("</body>\n</html>\n");
    page
}

const READING: &str = "<h2>How to read this</h2>\n\
    <p>All variants ran on the same seeds, so that the same seed draws the same background traffic in each. A difference is taken seed by \
    seed, and its interval is that of the mean of these differences (Student's t): what chance does to two variants alike cancels out, and a \
    difference can be decided where the intervals of the two means overlap. It is <em>less</em> or <em>more</em> if its 95 % confidence \
    interval does not hold zero, <em>equal</em> if every run has the same value, and else <em>undecided</em>. Each interval is by itself: \
    if twenty differences are all zero, one of them is expected to look decided.</p>\n\
    <p>The delivered rate is that of the packets sent after the warm-up that arrived, in IP packets; of a TCP connection it is new data, \
    without headers. A variant is <em>Pareto-optimal</em> if no other one has less delay at no lower a rate, or a higher rate at no more delay, \
    by the means. Lost packets are those of the whole run.</p>\n";

fn about(comparison: &Comparison) -> String {
    let first = comparison.variants.first().map_or("", |variant| variant.name.as_str());
    let optimal = comparison.pareto_optimal().into_iter().map(escape).collect::<Vec<_>>().join(", ");
    let optimal = if optimal.is_empty() { "none: delay or rate was not measured".to_owned() } else { optimal };
    format!(
        "<p class=\"meta\">Equipoise {} · simulated, {} a variant · differences are those from {}</p>\n\
         <p class=\"verdict\"><strong>Pareto-optimal in mean delay and delivered rate:</strong> {optimal}</p>\n",
        escape(&comparison.version),
        comparison.seeds(),
        escape(first),
    )
}

/// Returns the chart of delay against rate. The points of Pareto-optimal variants are filled, and connected by a line.
fn pareto(comparison: &Comparison) -> String {
    let all = || comparison.variants.iter().zip(&comparison.places);
    let missing = all().filter(|(_, place)| drawn(place).is_none()).map(|(variant, _)| escape(&variant.name));
    let missing = missing.collect::<Vec<_>>().join(", ");
    let note = if missing.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">Not drawn, as delay or rate was not measured: {missing}.</p>\n")
    };
    let points: Vec<_> = comparison.places.iter().filter_map(drawn).collect();
    let Some(scale) = Scale::of(&points) else { return note };
    let title = "Mean one-way delay against delivered rate, a point a variant, with 95 % confidence intervals";
    let layers = layers(comparison, &scale);
    let chart = Chart::new("pareto".to_owned(), title.to_owned(), rates(&points), scale.axis(), layers);
    let reading =
        "<p class=\"note\">Better is further down and further to the right. Lines are 95 % confidence intervals.</p>\n";
    format!("<figure>\n{}{reading}{note}</figure>\n", chart.to_html())
}

fn layers(comparison: &Comparison, scale: &Scale) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut front = Vec::new();
    for (number, (variant, place)) in comparison.variants.iter().zip(&comparison.places).enumerate() {
        let Some(Drawn { x, y }) = drawn(place) else { continue };
        let y = y.map(|ms| scale.on_axis(ms));
        let is_filled = place.is_pareto_optimal == Some(true);
        let optimal = if is_filled { ", Pareto-optimal" } else { "" };
        if is_filled {
            front.push((x[1], y[1]));
        }
        let style = variant_style(number);
        let name = format!("{}{optimal}", variant.name);
        layers.push(Layer { name, style, shape: Shape::Estimate { x, y, is_filled } });
    }
    front.sort_by(|one: &(f64, f64), other| one.0.total_cmp(&other.0));
    if front.len() > 1 {
        let style = Style { color: "var(--context)", dash: "2 3", width: 1.4 };
        let name = "from one Pareto-optimal variant to the next".to_owned();
        layers.push(Layer { name, style, shape: Shape::Line(front) });
    }
    layers
}

/// Returns the charts of the compared flow's delay and rate over time. Each chart shows all variants.
fn over_time(comparison: &Comparison) -> String {
    let charts = [
        course(comparison, "delay-over-time", "one-way delay (ms)", &|it| &it.delay_mean_s, 1e3),
        course(comparison, "rate-over-time", "rate (Mbit/s)", &|it| &it.rate_bps, 1e-6),
    ];
    let runs = comparison.over_time.iter().map(|it| it.runs).max().unwrap_or(0);
    let note = format!(
        "<p class=\"note\">Lines are at each moment the median of {runs} runs, bands go from their 10th to their 90th percentile. Where fewer \
         than half of the runs have a value, there is a gap.</p>\n"
    );
    charts.concat() + &note
}

/// Returns the chart of a quantity over time: for each variant, the median and a band from the 10th to the 90th
/// percentile.
fn course(
    comparison: &Comparison,
    id: &str,
    unit: &'static str,
    of: &dyn Fn(&OverTime) -> &[Moment],
    scale: f64,
) -> String {
    let scaled = |value: Option<f64>| value.map_or(f64::NAN, |value| value * scale);
    let mut layers = Vec::new();
    for (number, (variant, found)) in comparison.variants.iter().zip(&comparison.over_time).enumerate() {
        let moments = of(found);
        if moments.is_empty() {
            continue;
        }
        let band = moments.iter().map(|it| (it.at_s, scaled(it.p10), scaled(it.p90))).collect();
        let median = moments.iter().map(|it| (it.at_s, scaled(it.median))).collect();
        let (style, name) = (variant_style(number), &variant.name);
        layers.push(Layer { name: format!("{name}: 10 % to 90 %"), style, shape: Shape::Band(band) });
        layers.push(Layer { name: format!("{name}: median"), style, shape: Shape::Line(median) });
    }
    if layers.is_empty() {
        return String::new();
    }
    let last = comparison.over_time.iter().filter_map(|found| of(found).last()).map(|moment| moment.at_s.ceil());
    let highest = heights(&layers).into_iter().fold(0.1, f64::max);
    let title = format!("{}: {unit} over time, a line a variant", comparison.flow);
    let x = Axis::new("time (s)", 0.0, last.fold(0.0, f64::max));
    let chart = Chart::new(id.to_owned(), title, x, Axis::new(unit, 0.0, nice(highest * 1.02)), layers);
    format!("<figure>\n{}</figure>\n", chart.to_html())
}

/// A variant in the chart: its rate in Mbit/s and its delay in milliseconds, each as the lower end of the confidence
/// interval, the mean, and the upper end.
struct Drawn {
    x: [f64; 3],
    y: [f64; 3],
}

fn drawn(place: &Place) -> Option<Drawn> {
    let (rate, delay) = (place.delivered_rate_bps?, place.delay_mean_s?);
    Some(Drawn { x: ends(&rate).map(|bps| bps / 1e6), y: ends(&delay).map(|s| s * 1e3) })
}

/// Returns the axis of the rates. The axis starts at zero, unless the lowest end of all confidence intervals is above
/// half of the highest end.
fn rates(points: &[Drawn]) -> Axis {
    /// Margin below the lowest end and above the highest end of all confidence intervals, as a share of the distance
    /// between these two ends.
    const MARGIN: f64 = 0.08;
    let least = points.iter().map(|point| point.x[0]).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.x[2]).fold(0.0, f64::max);
    let margin = MARGIN * (most - least);
    let label = "delivered rate (Mbit/s)";
    if least > most / 2.0 && margin > 0.0 {
        Axis::new(label, least - margin, most + margin)
    } else {
        Axis::new(label, 0.0, nice(most * 1.02))
    }
}

/// The axis of the delays: its type and its limits.
enum Scale {
    /// Linear, from zero to this number of milliseconds.
    Linear(f64),
    /// Logarithmic, between two powers of ten given by their exponents. On this axis, short delays stay distinct even
    /// if other delays are long.
    Logarithmic(i32, i32),
}

impl Scale {
    /// Returns the axis that suits these points; `None` if there are no points.
    fn of(points: &[Drawn]) -> Option<Self> {
        /// The axis is linear if the highest end of all confidence intervals is at most this many times the shortest
        /// mean delay.
        const LINEAR_TO: f64 = 10.0;
        let least = points.iter().map(|point| point.y[1]).reduce(f64::min)?;
        let most = points.iter().map(|point| point.y[2]).fold(0.0, f64::max);
        let is_linear = least <= 0.0 || most <= LINEAR_TO * least || !most.is_finite();
        Some(if is_linear {
            Self::Linear(nice(most * 1.02))
        } else {
            Self::Logarithmic(least.log10().floor() as i32, most.log10().ceil() as i32)
        })
    }

    /// Converts a delay in milliseconds into the units of the axis. A delay below the axis is drawn at the lower end of
    /// the axis.
    fn on_axis(&self, ms: f64) -> f64 {
        match self {
            Self::Linear(_) => ms,
            Self::Logarithmic(foot, _) => ms.max(10f64.powi(*foot)).log10(),
        }
    }

    fn axis(&self) -> Axis {
        const LABEL: &str = "mean one-way delay (ms)";
        match self {
            Self::Linear(top) => Axis::new(LABEL, 0.0, *top),
            Self::Logarithmic(foot, top) => Axis::logarithmic(LABEL, *foot, *top),
        }
    }
}

/// Returns the lower end of a mean's confidence interval, the mean, and the upper end. Without an interval, both ends
/// are the mean.
fn ends(mean: &Mean) -> [f64; 3] {
    let [low, high] = mean.ci95.unwrap_or([mean.mean; 2]);
    [low, mean.mean, high]
}

/// Returns the table of a flow's means and paired differences, with one row for each metric and variant. Metrics that
/// were not measured, or that are zero in all runs, are omitted.
fn differences(comparison: &Comparison, flow: &FlowComparison) -> String {
    let first = comparison.variants.first().map_or("", |variant| variant.name.as_str());
    let mut table = Table::new(&format!("Differences of {}", flow.name))
        .column("variant", Column::Text)
        .column("mean ± 95 %", Column::Number)
        .column("which is", Column::Text)
        .column(&format!("difference from {first} ± 95 %"), Column::Number);
    for metric in flow.metrics.iter().filter(|metric| metric.variants.iter().any(says_something)) {
        table.group(&metric.metric.label());
        for (variant, sample) in comparison.variants.iter().zip(&metric.variants) {
            table.push(row(metric, &variant.name, sample));
        }
    }
    table.to_html()
}

/// Whether a metric was measured in some run of a variant, with a value other than zero.
fn says_something(sample: &Sample) -> bool {
    sample.values.iter().flatten().any(|value| *value != 0.0)
}

fn row(metric: &MetricComparison, name: &str, sample: &Sample) -> Vec<String> {
    let mean = sample.mean.map(|mean| metric.metric.mean(mean.mean, mean.half_width()));
    let difference = sample.difference.map(|difference| metric.difference(&difference.mean));
    let [mean, difference] = [mean, difference].map(|cell| cell.unwrap_or_else(|| NOTHING.to_owned()));
    let word = match sample.difference.map(|difference| difference.word) {
        Some(decided @ (Word::Less | Word::More)) => format!("<strong>{}</strong>", decided.text()),
        Some(other) => other.text().to_owned(),
        None => String::new(),
    };
    vec![escape(name), mean, word, difference]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEMO_SHORT;
    use crate::compare::{self, Plan, Variant};
    use crate::scenario::{Override, Scenario};

    fn compared(names: [&str; 2]) -> Comparison {
        let variant = |(name, b): (&str, i64)| {
            let scenario = Scenario::parse_with(DEMO_SHORT, &[Override::set("flow.media.controller.b", b)]);
            Variant { name: name.to_owned(), scenario: scenario.expect("a right scenario") }
        };
        let variants: Vec<_> = names.into_iter().zip([300, 2000]).map(variant).collect();
        compare::run(&variants, None, &Plan { seed: 1, runs: 3, execution: Some(1).into() }, &|_| {}).expect("it runs")
    }

    #[test]
    fn the_page_has_the_chart_the_differences_and_both_scenarios() {
        let page = comparison_html(&compared(["quick", "slow"]));
        for words in [
            "delivered rate (Mbit/s)</p>",
            "Pareto-optimal",
            "slow: median",
            "difference from quick ± 95 %",
            "95th percentile (ms)",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert_eq!(page.matches("<summary>The scenario as it was run</summary>").count(), 2);
        assert_eq!(page.matches("<svg class=\"plot\"").count(), 3, "delay against rate, and both over time");
        assert!(!page.contains("src=") && !page.contains("href="));
    }

    /// If this test fails, the axis is linear up to 200 ms although the shortest delay is 7 ms, so short delays
    /// overlap.
    #[test]
    fn delays_far_apart_have_a_logarithmic_axis() {
        let at = |ms: f64| Drawn { x: [1.0; 3], y: [ms - 8.0, ms, ms + 1.0] };
        let near = Scale::of(&[at(20.0), at(30.0)]).expect("points");
        assert!(matches!(near, Scale::Linear(top) if (top - 40.0).abs() < 1e-9));
        assert!((near.on_axis(20.0) - 20.0).abs() < 1e-12);
        let far = Scale::of(&[at(7.0), at(180.0)]).expect("points");
        assert!(
            matches!(far, Scale::Logarithmic(0, 3)) && far.on_axis(-1.0).abs() < 1e-12 && far.axis().is_logarithmic
        );
        assert!(Scale::of(&[]).is_none());
    }

    #[test]
    fn rates_that_lie_close_together_fill_their_axis() {
        let at = |mbps: f64| Drawn { x: [mbps - 0.1, mbps, mbps + 0.1], y: [1.0; 3] };
        let close = rates(&[at(3.0), at(4.0)]);
        assert!((close.min - 2.804).abs() < 1e-9 && (close.max - 4.196).abs() < 1e-9, "{close:?}");
        let apart = rates(&[at(1.0), at(4.0)]);
        assert!(apart.min.abs() < 1e-12 && (apart.max - 5.0).abs() < 1e-9, "{apart:?}");
        let one = Drawn { x: [3.0; 3], y: [1.0; 3] };
        assert!(rates(&[one]).min.abs() < 1e-12, "a single point has no width");
    }

    #[test]
    fn hostile_names_stay_text_and_what_was_not_measured_is_said() {
        let mut comparison = compared(["<b>", "\"slow\" & co"]);
        for place in &mut comparison.places {
            place.delay_mean_s = None;
        }
        let page = comparison_html(&comparison);
        assert!(
            !page.contains("<b>")
                && page.contains("Not drawn, as delay or rate was not measured: &lt;b&gt;, &quot;slow&quot; &amp; co.")
        );
        comparison.over_time.clear();
        comparison.variants.clear();
        comparison.flows.clear();
        assert!(comparison_html(&comparison).ends_with("</html>\n"));
    }
}
