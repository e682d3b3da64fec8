//! The report of a run as one HTML file: the history and the totals of its series.

use equipoise_lab::report::chart::{Axis, Chart, Layer, Shape, Style};
use equipoise_lab::report::table::{Column, Table};
use equipoise_lab::report::{NOTHING, escape, head, millis};

use super::board::{Board, Series};
use super::told::Way;
use super::trail::{Point, Trail};

/// Returns the report as an HTML page. `dropped` is the number of events that the report lacks.
pub(crate) fn html(board: &Board, dropped: u64) -> String {
    let (title, command, version) =
        board.start.as_ref().map_or(("", "", ""), |start| (start.title.as_str(), start.command, start.version));
    let mut page = head(&format!("equipoise {command}"));
    page.push_str(&format!("<h1>equipoise {command}</h1>\n<p>{}</p>\n", escape(title)));
    page.push_str(&format!("<p class=\"meta\">Equipoise {} · {:.1} s</p>\n", escape(version), board.at_s));
    if dropped > 0 {
        page.push_str(&format!(
            "<p class=\"verdict missed\">{dropped} events were dropped on their way to this report and are missing from it.</p>\n"
        ));
    }
    // Ended and open series are sorted together by series number.
    let mut all: Vec<&Series> = board.ended.iter().chain(board.open.values()).collect();
    all.sort_by_key(|series| series.open.series);
    page.push_str(&overview(board));
    if all.len() > 1 && all.iter().any(|series| series.open.direction != Way::Carried) {
        page.push_str("<h2>All together</h2>\n");
        page.push_str(&figure("Rate of all", rates("all", &board.all, "rate of all")));
    }
    for (series, trail) in all.iter().filter_map(|series| Some((series, series.trail.as_ref()?))) {
        page.push_str(&section(series, trail));
    }
    page.push_str(&each(board, &all));
    page.push_str(READING);
    page.push_str("</body>\n</html>\n");
    page
}

const READING: &str = "<h2>How to read this</h2>\n\
    <p>Rates and sizes are those of IP packets, including headers. A point is an interval; in a long run, several intervals are \
    combined into their mean, and into the largest of their 95th percentiles. The delay at a receiver is the delay of packets \
    above the minimum of the session so far, between the two clocks: they need not be synchronised, but a drift makes it grow. The delay \
    at a sender is the one that its controller uses, from the receiver's reports. Packets that no report covered at the end are not \
    among the losses of a sender. A line has a gap if nothing was measured.</p>\n";

fn overview(board: &Board) -> String {
    let mut table = Table::new("In all").column("way", Column::Text);
    table = table.numbers(["number", "packets", "Mbit/s on average", "packets lost"]);
    for (way, total) in &board.sums {
        let rate = if board.at_s > 0.0 { total.bytes as f64 * 8.0 / board.at_s / 1e6 } else { 0.0 };
        let [opened, packets, lost] = [total.opened, total.packets, total.lost].map(|count| count.to_string());
        table.push(vec![way.name().to_owned(), opened, packets, format!("{rate:.3}"), lost]);
    }
    format!("<h2>In all</h2>\n{}", table.to_html())
}

/// Returns the section of the page that shows the history of one series.
fn section(series: &Series, trail: &Trail) -> String {
    let name = &series.open.name;
    let id = format!("s{}", series.open.series);
    let mut text = format!("<h2>{} ({})</h2>\n", escape(name), series.open.direction.name());
    text.push_str(&figure("Rate", rates(&format!("{id}-rate"), trail, name)));
    let lines: [(&'static str, &'static str, &str, Lines); 3] = [
        (
            "Delay",
            "ms",
            "delay",
            &[
                ("mean", "var(--series-1)", "", |point| point.delay_mean_s * 1e3),
                ("95th percentile", "var(--series-2)", "6 4", |point| point.delay_p95_s * 1e3),
            ],
        ),
        ("Loss", "% of packets", "loss", &[("lost", "var(--series-6)", "", |point| point.lost_share * 100.0)]),
        ("Queue", "packets", "queue", &[("waiting", "var(--series-3)", "", |point| point.queue_packets)]),
    ];
    for (title, unit, key, lines) in lines {
        let label = format!("{title} of {name}");
        text.push_str(&figure(title, chart((format!("{id}-{key}"), label), unit, trail, lines)));
    }
    text
}

/// The lines of a chart. Each line has a name, a colour, a dash pattern, and a function that returns the value of a
/// point.
type Lines = &'static [(&'static str, &'static str, &'static str, fn(&Point) -> f64)];

fn rates(id: &str, trail: &Trail, name: &str) -> Option<Chart> {
    let lines: Lines = &[
        ("rate", "var(--series-1)", "", |point| point.rate_bps / 1e6),
        ("allowed", "var(--series-5)", "6 4", |point| point.allowed_bps / 1e6),
    ];
    chart((id.to_owned(), format!("Rate of {name}")), "Mbit/s", trail, lines)
}

/// Returns a chart of those lines that have values; `None` if no line has values.
fn chart((id, title): (String, String), unit: &'static str, trail: &Trail, lines: Lines) -> Option<Chart> {
    let layer = |(name, color, dash, of): &(&str, &'static str, &'static str, fn(&Point) -> f64)| {
        let points = joined(trail, *of);
        let is_measured = points.iter().any(|(_, value)| value.is_finite());
        let style = Style { color, dash, width: 1.6 };
        is_measured.then(|| Layer { name: (*name).to_owned(), style, shape: Shape::Line(points) })
    };
    let layers: Vec<_> = lines.iter().filter_map(layer).collect();
    let values = layers.iter().filter_map(|layer| match &layer.shape {
        Shape::Line(points) => Some(points),
        _ => None,
    });
    let most = values.flatten().map(|(_, value)| *value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let (first, last) = (trail.points().next()?, trail.points().last()?);
    let x = Axis::new("time in s", if first.at_s < 2.0 { 0.0 } else { first.at_s }, last.at_s);
    (!layers.is_empty()).then(|| Chart::new(id, title, x, Axis::new(unit, 0.0, most * 1.05), layers))
}

/// Returns the points of a line. A point has no value if its interval contains no report. Such a point is left out, and
/// the line connects its neighbours. The line has a gap only where two values are far apart in time.
fn joined(trail: &Trail, of: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    /// Maximum time between two connected points, in s, if each point shows one interval. If a point shows several
    /// intervals, this time is multiplied by their number. Our choice: several usual report intervals.
    const FAR_S: f64 = 5.0;
    let far_s = FAR_S * trail.intervals_a_point() as f64;
    let mut joined: Vec<(f64, f64)> = Vec::new();
    let points = trail.points().map(|point| (point.at_s, of(&point)));
    for (at_s, value) in points.filter(|(_, value)| value.is_finite()) {
        if let Some((last_s, _)) = joined.last().copied()
            && at_s - last_s > far_s
        {
            joined.push((last_s, f64::NAN));
        }
        joined.push((at_s, value));
    }
    joined
}

fn figure(title: &str, chart: Option<Chart>) -> String {
    chart.map_or_else(String::new, |chart| {
        format!("<figure>\n<h3>{}</h3>\n{}</figure>\n", escape(title), chart.to_html())
    })
}

fn each(board: &Board, all: &[&Series]) -> String {
    let mut table = Table::new("Each").column("what", Column::Text).column("way", Column::Text);
    table = table.numbers(["from s", "for s", "Mbit/s", "mean delay", "packets", "lost"]);
    table = table.column("stopped by breakers", Column::Text).column("ended as", Column::Text);
    for series in all {
        let Series { open, total, end, breakers, .. } = series;
        let until_s = end.map_or(board.at_s, |(at_s, _)| at_s);
        let lasted_s = (until_s - open.at_s).max(0.0);
        let rate = if lasted_s > 0.0 { total.bytes as f64 * 8.0 / lasted_s / 1e6 } else { 0.0 };
        let delay = (total.delayed > 0).then(|| total.delay_sum_s / total.delayed as f64);
        let stopped = breakers.iter().map(|(breaker, count)| format!("{breaker}: {count}")).collect::<Vec<_>>();
        table.push(vec![
            escape(&open.name),
            open.direction.name().to_owned(),
            format!("{:.1}", open.at_s),
            format!("{lasted_s:.1}"),
            format!("{rate:.3}"),
            delay.map_or_else(|| NOTHING.to_owned(), millis),
            total.packets.to_string(),
            total.lost.to_string(),
            if stopped.is_empty() { NOTHING.to_owned() } else { escape(&stopped.join(", ")) },
            end.map_or_else(|| NOTHING.to_owned(), |(_, why)| escape(why)),
        ]);
    }
    let more = match board.more_ended {
        0 => String::new(),
        more => format!("<p class=\"note\">{more} more have ended, and are only in the totals.</p>\n"),
    };
    format!("<h2>Each</h2>\n{}{more}", table.to_html())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::samples;
    use crate::views::told::Told;

    #[test]
    fn the_report_has_charts_of_the_first_sessions_a_line_of_each_and_no_text_of_a_peers_as_it_came() {
        let mut board = samples::board(20);
        for second in 2..10 {
            board.take(&samples::interval(1, f64::from(second)));
        }
        board.take(&Told::End { series: 1, at_s: 9.5, why: "the sender said goodbye" });
        let page = html(&board, 3);
        assert_eq!(page.matches("<svg class=\"plot\"").count(), 1 + 16 * 3, "all, and rate, delay and loss of sixteen");
        assert_eq!(page.matches("<tr>").count(), 2 + 1 + 20, "two heads, one way, twenty sessions");
        for part in
            ["a &quot;quoted&quot; peer", "the sender said goodbye", "media timeout: 1", "3 events were dropped"]
        {
            assert!(page.contains(part), "{part} is not in the page");
        }
        assert!(!page.contains("a \"quoted\" peer"));
    }
}
