//! The HTML page that shows the round-trip times in a capture.

use crate::capture::{Analysis, Direction, Distribution, Side};
use equipoise_lab::report::chart::{Axis, Chart, Layer, Shape, Style};
use equipoise_lab::report::table::{Column, Table};
use equipoise_lab::report::{NOTHING, escape, head, millis};

/// Maximum number of directions of TCP connections for which a chart is drawn.
const DRAWN: usize = 6;
/// Number of points with which the curve of a Gaussian fit is drawn.
const CURVE: usize = 200;

/// Returns the HTML page with the analysis of the capture named `name`.
pub fn capture_html(name: &str, analysis: &Analysis) -> String {
    let mut page = head(&format!("Round-trip times in {name}"));
    page.push_str(&format!(
        "<h1>Round-trip times in {}</h1>\n<p class=\"meta\">{} frames · {} TCP segments · {} connections</p>\n",
        escape(name),
        analysis.frames,
        analysis.segments,
        analysis.connections.len()
    ));
    if let Some(ended) = &analysis.ended {
        page.push_str(&format!(
            "<p class=\"verdict missed\">The file is {}; what came before is analysed.</p>\n",
            escape(ended)
        ));
    }
    for (reason, count) in &analysis.skipped {
        page.push_str(&format!("<p class=\"note\">{count} frames passed over: {}.</p>\n", escape(reason)));
    }
    let measured = analysis.measured();
    page.push_str(&overview(&measured));
    for (index, (direction, rtt)) in measured.iter().take(DRAWN).enumerate() {
        page.push_str(&section(index, direction, rtt));
    }
    page.push_str(READING);
    page.push_str("</body>\n</html>\n");
    page
}

const READING: &str = "<h2>How to read this</h2>\n\
    <p>A sample is the time from a segment to its acknowledgement, as the capture saw both. Beside the sender that is the \
    path's round-trip time; beside the receiver it is no more than the receiver's own delay. Where the capture was taken \
    follows from the two halves of the handshake, one of which takes no time beside an end (a factor of three), or, without \
    a handshake, from packets that have all of their hops left.</p>\n\
    <p>Left out are acknowledgements of retransmitted segments (Karn 1987) and, unless every one was asked for, those that do \
    not acknowledge exactly two segments: one alone may have waited for the delayed-ACK timer (Waki 2013, Sec. 2.1).</p>\n\
    <p>The bell is f(x) = a exp(−(x − b)² / (2c²)), fitted to the histogram by least squares (Waki 2013, Eq. 1).</p>\n";

const fn side(side: Side) -> &'static str {
    match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver: not the path",
        Side::Unknown => "unknown",
    }
}

fn overview(measured: &[(&Direction, &Distribution)]) -> String {
    let heads = ["samples", "min", "median", "mean", "95 %", "max", "left out"];
    let mut table =
        Table::new("Directions").column("direction", Column::Text).column("captured at", Column::Text).numbers(heads);
    for (direction, rtt) in measured {
        let ends = format!("{} → {}", escape(&direction.from), escape(&direction.to));
        let times = [rtt.min_s, rtt.p50_s, rtt.mean_s, rtt.p95_s, rtt.max_s].map(millis);
        let first = [ends, side(direction.side).to_owned(), rtt.samples.to_string()];
        let left_out = direction.left_out.values().sum::<u64>().to_string();
        table.push(first.into_iter().chain(times).chain([left_out]).collect());
    }
    format!("<h2>Directions with samples</h2>\n{}", table.to_html())
}

fn section(index: usize, direction: &Direction, rtt: &Distribution) -> String {
    let mut text = format!("<h2>{} → {}</h2>\n", escape(&direction.from), escape(&direction.to));
    let number =
        |value: Option<f64>, digits: usize| value.map_or(NOTHING.to_owned(), |value| format!("{value:.digits$}"));
    text.push_str(&format!(
        "<p>{} data segments, {} of them retransmitted. Standard deviation {}, skewness {}, excess kurtosis {}, \
         Kolmogorov-Smirnov distance to the normal law {}.</p>\n",
        direction.data_segments,
        direction.retransmitted,
        rtt.deviation_s.map_or(NOTHING.to_owned(), millis),
        number(rtt.skewness, 3),
        number(rtt.excess_kurtosis, 3),
        number(rtt.ks_distance, 4)
    ));
    if let Some(fit) = &rtt.fit {
        let [a, b, c] = fit.standard_errors;
        text.push_str(&format!(
            "<p>Bell: a = {:.1} ± {a:.1} samples in {}, b = {} ± {}, c = {} ± {}, R² = {:.4} (± is a standard error).</p>\n",
            fit.a,
            millis(rtt.bin_s),
            millis(fit.b_s),
            millis(b),
            millis(fit.c_s),
            millis(c),
            fit.r2
        ));
    }
    text.push_str(&format!("<figure>\n<h3>Distribution</h3>\n{}</figure>\n", chart(index, direction, rtt).to_html()));
    for (reason, count) in &direction.left_out {
        text.push_str(&format!("<p class=\"note\">{count} acknowledgements left out: {}.</p>\n", escape(reason)));
    }
    text
}

fn chart(index: usize, direction: &Direction, rtt: &Distribution) -> Chart {
    let edge = |bar: usize| (rtt.first_s + bar as f64 * rtt.bin_s) * 1e3;
    let mut bars: Vec<_> = rtt.counts.iter().enumerate().map(|(bar, &count)| (edge(bar), count as f64)).collect();
    bars.push((edge(rtt.counts.len()), 0.0));
    // The axis does not include a few very late samples, because they would push all other samples to the left edge.
    let right = (rtt.p95_s + 3.0 * (rtt.p95_s - rtt.min_s)).min(rtt.max_s + rtt.bin_s) * 1e3;
    let left = edge(0);
    let style = |color, dash| Style { color, dash, width: 1.8 };
    let mut layers = vec![Layer {
        name: format!("samples in bars of {}", millis(rtt.bin_s)),
        style: style("var(--series-1)", ""),
        shape: Shape::Steps(bars.into_iter().filter(|(x, _)| *x <= right).collect()),
    }];
    if let Some(fit) = &rtt.fit {
        let at = |point: usize| left + (right - left) * point as f64 / CURVE as f64;
        let curve = (0..=CURVE).map(|point| (at(point), fit.at(at(point) / 1e3))).collect();
        let shape = Shape::Line(curve);
        layers.push(Layer { name: "fitted bell".to_owned(), style: style("var(--series-2)", "6 3"), shape });
    }
    let highest = rtt.counts.iter().max().copied().unwrap_or(0) as f64;
    let top = rtt.fit.map_or(highest, |fit| highest.max(fit.a)) * 1.05;
    let title = format!("Histogram of the round-trip times from {}", direction.from);
    let x = Axis::new("time to the acknowledgement (ms)", left, right);
    Chart::new(format!("rtt-{index}"), title, x, Axis::new("samples a bar", 0.0, top), layers)
}
