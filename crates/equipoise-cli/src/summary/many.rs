//! The tables for several runs, simulated or live: one row per metric, one column per flow.

use equipoise_lab::metrics::{self, Metric};
use equipoise_lab::result::{FlowResult, FlowSummary, Run, WorldSummary};

use super::times;

/// Maximum width of a table, in columns of the terminal.
const WIDTH: usize = 100;

/// Returns the means over the runs as tables, then the disturbances during the runs.
pub(super) fn of(summary: &WorldSummary, runs: &[&Run]) -> String {
    let [first, .., last] = runs else { return String::new() };
    let world = summary.world.name();
    let mut text = format!(
        "{world}: {} runs, seeds {} to {}; mean ± 95 % confidence interval over the runs\n",
        summary.runs, first.seed, last.seed
    );
    for columns in tables(&summary.flows, &first.flows) {
        text.push_str(&format!("\n{}", table(&columns)));
    }
    text.push_str(&super::media::of_summary(summary));
    text.push('\n');
    text.extend(disturbances(runs));
    text
}

/// The column of one flow in a table.
struct Column<'a> {
    head: String,
    summary: &'a FlowSummary,
    metrics: &'static [Metric],
}

impl Column<'_> {
    fn cell(&self, metric: &Metric) -> String {
        let mean = self.summary.metrics.get(metric.key);
        mean.map_or_else(|| "-".to_owned(), |mean| metric.mean(mean.mean, mean.half_width()))
    }

    fn width(&self) -> usize {
        let cells = self.metrics.iter().map(|metric| self.cell(metric).chars().count());
        cells.max().unwrap_or(0).max(self.head.chars().count())
    }
}

/// Groups flows into tables. All flows of a table have the same metrics. A table contains as many flows as fit into
/// [`WIDTH`].
fn tables<'a>(summaries: &'a [FlowSummary], flows: &[FlowResult]) -> Vec<Vec<Column<'a>>> {
    let column = |(summary, flow): (&'a FlowSummary, &FlowResult)| {
        let of = flow.controller.as_ref().map(|controller| format!(" ({controller})")).unwrap_or_default();
        Column { head: format!("{}{of}", summary.name), summary, metrics: metrics::of(flow) }
    };
    let mut tables: Vec<Vec<Column<'_>>> = Vec::new();
    for column in summaries.iter().zip(flows).map(column) {
        let fits = |table: &&mut Vec<Column<'_>>| {
            let width: usize = table.iter().map(|column| 2 + column.width()).sum();
            let same = table.first().is_some_and(|first| std::ptr::eq(first.metrics, column.metrics));
            same && labels(column.metrics) + width + 2 + column.width() <= WIDTH
        };
        match tables.iter_mut().find(fits) {
            Some(table) => table.push(column),
            None => tables.push(vec![column]),
        }
    }
    tables
}

/// Returns the width of the longest metric label, in columns of the terminal.
fn labels(metrics: &[Metric]) -> usize {
    metrics.iter().map(|metric| metric.label().chars().count()).max().unwrap_or(0)
}

fn table(columns: &[Column<'_>]) -> String {
    let metrics = columns.first().map_or(&[][..], |column| column.metrics);
    let width = labels(metrics);
    let line = |label: &str, cell: &dyn Fn(&Column<'_>) -> String| {
        let cells: String = columns.iter().map(|column| format!("  {:>1$}", cell(column), column.width())).collect();
        format!("{label:width$}{cells}\n")
    };
    let measured = |metric: &&Metric| columns.iter().any(|column| column.summary.metrics.contains_key(metric.key));
    let rows = metrics.iter().filter(measured).map(|metric| line(&metric.label(), &|column| column.cell(metric)));
    line("", &|column| column.head.clone()) + &rows.collect::<String>()
}

/// Returns lines that report stalls of the machine, runs that ended early, and the TCP settings of the hosts that send
/// flow pairs.
fn disturbances(runs: &[&Run]) -> Vec<String> {
    let mut lines = Vec::new();
    let stalls: Vec<_> = runs.iter().flat_map(|run| &run.stalls).map(|stall| stall.end_s - stall.start_s).collect();
    if !stalls.is_empty() {
        let (stalled, stood) = (times(stalls.len() as u64), stalls.iter().sum::<f64>() * 1e3);
        lines.push(format!("the machine stalled {stalled}, {stood:.0} ms in total\n"));
    }
    let early = runs.iter().filter(|run| !run.complete).count();
    if early > 0 {
        lines.push(format!("{early} of {} runs ended early\n", runs.len()));
    }
    let flows = runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let hosts = flows.iter().filter_map(|flow| Some((flow, flow.pair.as_ref()?.host.as_ref()?)));
    lines.extend(hosts.map(|(flow, host)| format!("{}: {}\n", flow.name, host.words())));
    lines
}
