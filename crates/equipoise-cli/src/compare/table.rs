//! A comparison as a table for the terminal.

use equipoise_lab::compare::{Comparison, FlowComparison, MetricComparison, Sample};

/// Returns the table as text. It lists, for each flow, the means of all variants and their differences from the first
/// variant.
pub(super) fn of(comparison: &Comparison) -> String {
    let names: Vec<_> = comparison.variants.iter().map(|variant| variant.name.as_str()).collect();
    let mut text = format!("{}, simulated with {} each\n", names.join(", "), comparison.seeds());
    for flow in &comparison.flows {
        text.push_str(&format!("\n{}", of_flow(&names, flow)));
    }
    let optimal = comparison.pareto_optimal();
    if !optimal.is_empty() {
        let (flow, optimal) = (&comparison.flow, optimal.join(", "));
        text.push_str(&format!("\n{flow}: Pareto-optimal in mean delay and delivered rate: {optimal}\n"));
    }
    text
}

/// The columns of a row: metric, variant, mean, difference from the first variant, and a word that judges the
/// difference.
type Row = [String; 5];

fn of_flow(names: &[&str], flow: &FlowComparison) -> String {
    let first = names.first().copied().unwrap_or_default();
    let heads =
        [&flow.name, "variant", "mean ± 95 %", &format!("difference from {first}"), "which is"].map(str::to_owned);
    let metrics = flow.metrics.iter().filter(|metric| metric.variants.iter().any(|sample| sample.mean.is_some()));
    let rows: Vec<Row> = std::iter::once(heads).chain(metrics.flat_map(|metric| of_metric(names, metric))).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Row| {
        let [metric, variant, mean, difference, word] = row;
        let [a, b, c, d] = [0, 1, 2, 3].map(|column| widths.get(column).copied().unwrap_or(0));
        format!("{metric:a$}  {variant:b$}  {mean:>c$}  {difference:>d$}  {word}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn of_metric(names: &[&str], metric: &MetricComparison) -> Vec<Row> {
    let row = |(place, (name, sample)): (usize, (&&str, &Sample))| {
        let label = if place == 0 { metric.metric.label() } else { String::new() };
        let mean = sample.mean.map(|mean| metric.metric.mean(mean.mean, mean.half_width()));
        let difference = sample.difference.map(|difference| metric.difference(&difference.mean)).unwrap_or_default();
        let word = sample.difference.map_or("", |difference| difference.word.text());
        [label, (*name).to_owned(), mean.unwrap_or_else(|| "-".to_owned()), difference, word.to_owned()]
    };
    names.iter().zip(&metric.variants).enumerate().map(row).collect()
}
