//! The HTML page of a paper's results, which shows first the claims and verdicts, then the figures. A submodule writes
//! the page of a capture.

mod capture;
mod markdown;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::{Claim, Figure, Plot, PlotData, Reading, Results, Table, Verdict, four_digits as number};
pub use capture::capture_html;
use equipoise_lab::report::chart::{Axis, Chart, Layer, Mark, Shape, Style};
use equipoise_lab::report::table::{Column, Table as HtmlTable};
use equipoise_lab::report::{NOTHING, escape, head};
use equipoise_lab::result::World;
pub use markdown::paper_markdown;

/// The colours and dash patterns of a chart's layers, in order. The dashes distinguish layers with similar colours.
const STYLES: [(&str, &str); 8] = [
    ("var(--series-1)", ""),
    ("var(--series-2)", "6 3"),
    ("var(--series-3)", "2 3"),
    ("var(--series-4)", "9 3 2 3"),
    ("var(--series-5)", "4 2"),
    ("var(--series-6)", ""),
    ("var(--series-7)", "6 3"),
    ("var(--series-8)", "2 3"),
];
const LINE_WIDTH: f64 = 1.8;
/// Free space between the data and each end of the vertical axis, as a share of the range of the data.
const ROOM: f64 = 0.05;

/// Returns the results of a paper as an HTML page.
pub fn paper_html(results: &Results) -> String {
    let title = escape(&results.paper);
    let mut page = head(&format!("{} reproduced", results.paper));
    page.push_str(&format!(
        "<h1>{title}: the paper's experiments, run again</h1>\n\
         <p class=\"meta\">Equipoise {} · {} · first seed {}</p>\n",
        escape(&results.version),
        match results.world {
            World::Sim => "simulated",
            World::Live => "live",
        },
        results.seed
    ));
    page.push_str(&summary(results));
    page.push_str(&claims(&results.claims));
    page.push_str(&readings(&results.readings));
    for (index, figure) in results.figures.iter().enumerate() {
        page.push_str(&section(index, figure));
    }
    page.push_str("<h2>What is assumed</h2>\n<ul>\n");
    page.extend(results.assumptions.iter().map(|text| format!("<li>{}</li>\n", escape(text))));
    page.push_str("</ul>\n</body>\n</html>\n");
    page
}

fn summary(results: &Results) -> String {
    format!(
        "<p>{}. A verdict follows from our 95 % interval by the rule of the claim; nothing is decided by hand.</p>\n",
        results.counts()
    )
}

fn claims(claims: &[Claim]) -> String {
    let mut table = HtmlTable::new("Claims")
        .column("claim", Column::Text)
        .numbers(["paper", "ours", "95 % interval"])
        .column("unit", Column::Text)
        .numbers(["runs"])
        .column("verdict", Column::Text);
    for found in claims {
        table.push(claim(found));
    }
    format!("<h2>Claims</h2>\n<div class=\"claims\">\n{}</div>\n", table.to_html())
}

/// Returns the cells of a claim's row in the table.
fn claim(claim: &Claim) -> Vec<String> {
    let class = match claim.verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::NotReproduced => "not-reproduced",
        _ => "not-comparable",
    };
    let interval = claim.ci95.map_or(NOTHING.to_owned(), |[low, high]| format!("{} to {}", number(low), number(high)));
    let [id, figure, statement, rule, note, unit] =
        [&claim.id, &claim.figure, &claim.statement, &rule_words(&claim.rule), &claim.note, &claim.unit]
            .map(|text| escape(text));
    vec![
        format!(
            "<code>{id}</code> ({figure})<br><span>{statement} {rule}</span><br><span class=\"note\">{note}</span>"
        ),
        claim.paper.map_or(NOTHING.to_owned(), number),
        claim.ours.map_or(NOTHING.to_owned(), number),
        interval,
        unit,
        claim.runs.to_string(),
        format!("<span class=\"badge {class}\">{}</span>", claim.verdict.words()),
    ]
}

/// Returns the rule of a claim, marked as a rule, so that nobody takes it for the result. Returns an empty text for a
/// claim without a rule.
fn rule_words(rule: &str) -> String {
    if rule.is_empty() { String::new() } else { format!("Rule: {rule}") }
}

fn readings(readings: &[Reading]) -> String {
    let text = readings_table(readings).as_ref().map(table);
    text.map_or_else(String::new, |text| format!("<h2>Readings</h2>\n{text}"))
}

/// Returns a table with our number and verdict for each claim under each interpretation; `None` if `readings` is empty.
fn readings_table(readings: &[Reading]) -> Option<Table> {
    if readings.is_empty() {
        return None;
    }
    let mut ids: Vec<&str> =
        readings.iter().flat_map(|reading| &reading.claims).map(|claim| claim.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    let cell = |reading: &Reading, id: &str| match reading.claims.iter().find(|claim| claim.id == id) {
        Some(claim) => format!("{}, {}", claim.ours.map_or(NOTHING.to_owned(), number), claim.verdict.words()),
        None => NOTHING.to_owned(),
    };
    let row = |reading: &Reading| {
        std::iter::once(reading.name.clone()).chain(ids.iter().map(|id| cell(reading, id))).collect()
    };
    Some(Table {
        caption: "Value and verdict of each claim under the main reading (first row) and under the other readings"
            .to_owned(),
        columns: std::iter::once("reading").chain(ids.iter().copied()).map(str::to_owned).collect(),
        rows: readings.iter().map(row).collect(),
    })
}

fn section(index: usize, figure: &Figure) -> String {
    let mut text =
        format!("<h2>{}: {}</h2>\n<p>{}</p>\n", escape(&figure.name), escape(&figure.title), escape(&figure.text));
    for (number, plot) in figure.charts.iter().enumerate() {
        let chart = chart(format!("{index}-{number}"), plot);
        text.push_str(&format!("<figure>\n<h3>{}</h3>\n{}</figure>\n", escape(&plot.title), chart.to_html()));
    }
    text.extend(figure.tables.iter().map(table));
    text
}

fn chart(id: String, plot: &Plot) -> Chart {
    let boxes = plot.layers.iter().filter(|layer| matches!(layer.data, PlotData::Box { .. })).count();
    let categories: Vec<_> = plot.layers.iter().take(boxes).map(|layer| layer.name.clone()).collect();
    let layers = plot.layers.iter().enumerate().map(|(index, layer)| {
        let (color, dash) = STYLES[index % STYLES.len()];
        let shape = match &layer.data {
            PlotData::Line(points) => Shape::Line(points.clone()),
            PlotData::Points(points) => Shape::Points(points.clone()),
            PlotData::Box { five, mean } => Shape::Box(index as f64 + 1.0, *five, *mean),
        };
        Layer { name: layer.name.clone(), style: Style { color, dash, width: LINE_WIDTH }, shape }
    });
    let x = if boxes > 0 {
        Axis::new(plot.x, 0.5, boxes as f64 + 0.5)
    } else {
        let (min, max) = limits(plot.layers.iter().flat_map(|layer| layer.data.places()));
        Axis::new(plot.x, min, max)
    };
    let (min, max) =
        plot.y_limits.unwrap_or_else(|| with_room(plot.layers.iter().flat_map(|layer| layer.data.values())));
    let mark = |(at, name): &(f64, String)| Mark { at: *at, label: number(*at), name: name.clone(), dash: "5 3" };
    let chart = Chart::new(id, plot.title.clone(), x, Axis::new(plot.y, min, max), layers.collect());
    Chart { categories, horizontals: plot.marks.iter().map(mark).collect(), ..chart }
}

impl PlotData {
    fn places(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Points(points) => points.iter().map(|point| point.0).collect(),
            Self::Box { .. } => Vec::new(),
        }
    }

    fn values(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Points(points) => points.iter().map(|point| point.1).collect(),
            Self::Box { five, .. } => five.to_vec(),
        }
    }
}

/// Returns the minimum and maximum of the finite values.
fn limits(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

fn with_room(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = limits(values);
    let room = (high - low) * ROOM;
    // If no value is negative, the axis does not extend below zero.
    (if low >= 0.0 && low - room < 0.0 { 0.0 } else { low - room }, high + room)
}

fn table(table: &Table) -> String {
    let mut columns = table.columns.iter();
    let first = columns.next().map_or("", String::as_str);
    let mut html = HtmlTable::new(&table.caption).column(first, Column::Text).numbers(columns);
    for row in &table.rows {
        html.push(row.iter().map(|cell| escape(cell)).collect());
    }
    format!("<h3>{}</h3>\n{}", escape(&table.caption), html.to_html())
}
