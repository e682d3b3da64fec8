//! Tables of metrics, links and counters.

use std::collections::BTreeMap;

use super::format::{NOTHING, escape};
use super::table::{Column, Table};
use super::worlds::{InWorld, worlds};
use crate::metrics::{self, Metric};
use crate::result::{FlowResult, LinkResult, PathResult, Report, Run};
use crate::statistics::half_width_95;

/// Formats the mean over the runs. If there are several runs, adds half the width of the 95 % confidence interval.
pub(super) fn over_runs(values: &[f64], scale: f64, decimals: usize) -> String {
    if values.is_empty() {
        return NOTHING.to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let interval = half_width_95(values).map(|half| format!(" ± {:.decimals$}", half * scale)).unwrap_or_default();
    format!("{:.decimals$}{interval}", mean * scale)
}

/// Returns the headings of the columns for simulated and for live runs. With several runs, a heading contains
/// `of_several` ("mean of") and the number of runs.
pub(super) fn world_heads(worlds: &[InWorld<'_>], of_several: &str) -> Vec<String> {
    let head = |world: &InWorld<'_>| match world.runs.len() {
        1 => world.name.to_owned(),
        runs => format!("{}, {of_several} {runs} runs", world.name),
    };
    worlds.iter().map(head).collect()
}

/// Returns a table without rows, to which rows of simulated and of live runs can be added. If there are both kinds of
/// runs, a column names the kind.
pub(super) fn of_worlds(name: &str, first: &str, worlds: &[InWorld<'_>]) -> Table {
    let table = Table::new(name).without_zeros().column(first, Column::Text);
    if worlds.len() > 1 { table.column("world", Column::Text) } else { table }
}

/// Returns the first cells of a table row: the name and, if the table has simulated and live runs, the kind of runs.
pub(super) fn of_world(name: String, world: &InWorld<'_>, worlds: &[InWorld<'_>]) -> Vec<String> {
    if worlds.len() > 1 { vec![name, world.name.to_owned()] } else { vec![name] }
}

/// Returns the table of one flow's metrics, with columns for simulated and live runs. Counts that are zero in all runs
/// are omitted.
pub(super) fn metrics(report: &Report, index: usize, flow: &FlowResult) -> String {
    let worlds = worlds(report);
    let mut table = Table::new(&format!("Metrics of {}", flow.name))
        .column("metric", Column::Text)
        .numbers(world_heads(&worlds, "mean of"));
    for metric in metrics::of(flow) {
        let of_world = |world: &InWorld<'_>| -> Vec<f64> {
            let flows = world.runs.iter().filter_map(|run| run.flows.get(index));
            flows.filter_map(|flow| metric.of(flow)).collect()
        };
        add(&mut table, metric, &worlds.iter().map(of_world).collect::<Vec<_>>());
    }
    table.to_html()
}

/// Adds a row for a metric, unless the metric was not measured or is a count that is always zero.
pub(super) fn add<T>(table: &mut Table, metric: &Metric<T>, measured: &[Vec<f64>]) {
    let is_count = metric.unit.is_empty() && metric.decimals == 0;
    let mut values = measured.iter().flatten();
    let says_something = if is_count { values.any(|value| *value != 0.0) } else { values.next().is_some() };
    if says_something {
        let cells = measured.iter().map(|values| over_runs(values, metric.scale, metric.decimals));
        table.push(std::iter::once(escape(&metric.label())).chain(cells).collect());
    }
}

/// A column of the table of a flow's paths: its name, the factor that converts a value to the printed unit, the number
/// of printed decimals, and the function that reads the value.
type PathMetric = (&'static str, f64, usize, fn(&PathResult) -> Option<f64>);

const PATH_METRICS: &[PathMetric] = &[
    ("mean rate (Mbit/s)", 1e-6, 3, |path| path.mean_rate_bps),
    ("one-way delay: mean (ms)", 1e3, 3, |path| path.delay.mean_s),
    ("95th percentile (ms)", 1e3, 3, |path| path.delay.p95_s),
    ("packets sent", 1.0, 0, |path| Some(path.packets_sent as f64)),
    ("packets lost (%)", 100.0, 3, |path| {
        (path.packets_sent > 0).then(|| path.packets_lost as f64 / path.packets_sent as f64)
    }),
    ("requests skipped for missing reports", 1.0, 0, |path| Some(path.reports_missing as f64)),
];

/// Returns the table of a flow's paths. Each path has one row for the simulated runs and one row for the live runs.
pub(super) fn paths(report: &Report, index: usize, flow: &FlowResult) -> String {
    let worlds = worlds(report);
    let heads = PATH_METRICS.iter().map(|metric| metric.0);
    let mut table = of_worlds(&format!("Paths of {}", flow.name), "path", &worlds).numbers(heads);
    for world in &worlds {
        for (place, path) in flow.paths.iter().enumerate() {
            let cell = |(_, scale, decimals, get): &PathMetric| {
                let results = world.runs.iter().filter_map(|run| run.flows.get(index)?.paths.get(place));
                over_runs(&results.filter_map(get).collect::<Vec<_>>(), *scale, *decimals)
            };
            let first = of_world(escape(&path.name), world, &worlds);
            table.push(first.into_iter().chain(PATH_METRICS.iter().map(cell)).collect());
        }
    }
    table.to_html()
}

/// A column of the table of links: its name, the factor that converts a value to the printed unit, the number of
/// printed decimals, and the function that reads the value.
type LinkMetric = (&'static str, f64, usize, fn(&LinkResult) -> Option<f64>);

const LINK_METRICS: &[LinkMetric] = &[
    ("utilisation (%)", 100.0, 2, |link| link.utilisation),
    ("packets forwarded", 1.0, 0, |link| Some(link.packets_forwarded as f64)),
    ("packets dropped", 1.0, 0, |link| Some(link.packets_dropped as f64)),
    ("mean queue (packets)", 1.0, 2, |link| link.mean_queue_packets),
    ("longest queue (packets)", 1.0, 0, |link| Some(link.max_queue_packets as f64)),
];

/// Returns the table of links. Each link has one row for the simulated runs and one row for the live runs.
pub(super) fn links(report: &Report) -> String {
    let worlds = worlds(report);
    let mut table = of_worlds("Links", "link", &worlds).numbers(LINK_METRICS.iter().map(|metric| metric.0));
    for world in &worlds {
        let links = world.runs.first().map(|run| run.links.as_slice()).unwrap_or_default();
        for (index, link) in links.iter().enumerate() {
            let cell = |(_, scale, decimals, get): &LinkMetric| {
                let values: Vec<_> = world.runs.iter().filter_map(|run| run.links.get(index)).filter_map(get).collect();
                over_runs(&values, *scale, *decimals)
            };
            let first = of_world(escape(&link.name), world, &worlds);
            table.push(first.into_iter().chain(LINK_METRICS.iter().map(cell)).collect());
        }
    }
    table.to_html()
}

/// The sort key of a counter in the table of counters: the index and the name of the flow, then a description of what
/// is counted.
type CounterKey<'a> = (usize, &'a str, String);

/// The emulator's counters have this index in their sort keys, in place of a flow's index. It is higher than the index
/// of any flow, so the emulator's counters come last in the table.
const EMULATOR: usize = usize::MAX;

/// Returns the table of counters: dropped datagrams by reason, decisions by reason, foreign datagrams at the emulator,
/// and datagrams that the machine lost. Simulated runs and live runs are summed separately.
pub(super) fn counters(report: &Report) -> String {
    let worlds = worlds(report);
    let mut totals: BTreeMap<CounterKey<'_>, Vec<Option<u64>>> = BTreeMap::new();
    for (column, world) in worlds.iter().enumerate() {
        for (key, count) in world.runs.iter().flat_map(|run| counts(run)) {
            // The results of a flow omit each counter that is zero, so a missing counter is zero. Simulated runs have
            // no emulator, so they have no value for the emulator's counters.
            let nothing = (key.0 != EMULATOR).then_some(0);
            let total = totals.entry(key).or_insert_with(|| vec![nothing; worlds.len()]);
            if let Some(total) = total.get_mut(column) {
                *total = Some(total.unwrap_or(0).saturating_add(count));
            }
        }
    }
    let mut table = Table::new("Counters")
        .column("flow", Column::Text)
        .column("what", Column::Text)
        .numbers(world_heads(&worlds, "total of"));
    for ((_, owner, what), totals) in
        totals.iter().filter(|(_, totals)| totals.iter().flatten().any(|total| *total > 0))
    {
        let cell = |total: &Option<u64>| total.map_or_else(|| NOTHING.to_owned(), |total| total.to_string());
        table.push([escape(owner), escape(what)].into_iter().chain(totals.iter().map(cell)).collect());
    }
    table.to_html()
}

/// Returns the counters of a run; the emulator's counters are the last ones.
fn counts(run: &Run) -> Vec<(CounterKey<'_>, u64)> {
    let mut counts = Vec::new();
    for (place, flow) in run.flows.iter().enumerate() {
        let reasons = [("dropped as", &flow.ignored), ("decided by", &flow.decisions)];
        for (what, reasons) in reasons {
            let counted = reasons.iter().map(|(reason, count)| (format!("{what} {reason}"), *count));
            counts.extend(counted.map(|(what, count)| ((place, flow.name.as_str(), what), count)));
        }
        for path in &flow.paths {
            let counted =
                path.decisions.iter().map(|(reason, count)| (format!("{}: decided by {reason}", path.name), *count));
            counts.extend(counted.map(|(what, count)| ((place, flow.name.as_str(), what), count)));
        }
    }
    if let Some(emulator) = &run.emulator {
        let counted = [("foreign datagrams", emulator.packets_foreign), ("lost by the machine", emulator.packets_lost)];
        counts.extend(counted.map(|(what, count)| ((EMULATOR, "emulator", what.to_owned()), count)));
    }
    counts
}
