//! Metrics, links and counters as tables.

use std::collections::BTreeMap;

use super::format::{NOTHING, escape};
use super::worlds::{InWorld, worlds};
use crate::metrics::{self, Metric};
use crate::result::{FlowResult, LinkResult, PathResult, Report, Run};
use crate::statistics::half_width_95;

/// Mean over the runs and, of several, the 95 % confidence interval of that mean.
pub(super) fn over_runs(values: &[f64], scale: f64, decimals: usize) -> String {
    if values.is_empty() {
        return NOTHING.to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let interval = half_width_95(values).map(|half| format!(" ± {:.decimals$}", half * scale)).unwrap_or_default();
    format!("{:.decimals$}{interval}", mean * scale)
}

/// The heads of columns that stand for one world each.
pub(super) fn world_heads(worlds: &[InWorld<'_>], of_several: &str) -> String {
    let head = |world: &InWorld<'_>| match world.runs.len() {
        1 => format!("<th scope=\"col\">{}</th>", world.name),
        runs => format!("<th scope=\"col\">{}, {of_several} {runs} runs</th>", world.name),
    };
    worlds.iter().map(head).collect()
}

/// One flow's metrics, the worlds side by side.
pub(super) fn metrics(report: &Report, index: usize, flow: &FlowResult) -> String {
    let worlds = worlds(report);
    let row = |metric: &Metric| {
        let of_world = |world: &InWorld<'_>| -> Vec<f64> {
            let flows = world.runs.iter().filter_map(|run| run.flows.get(index));
            flows.filter_map(|flow| metric.of(flow)).collect()
        };
        let measured: Vec<_> = worlds.iter().map(of_world).collect();
        let cell = |values: &Vec<f64>| format!("<td>{}</td>", over_runs(values, metric.scale, metric.decimals));
        let cells: String = measured.iter().map(cell).collect();
        let was_measured = measured.iter().any(|values| !values.is_empty());
        was_measured.then(|| format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", metric.label()))
    };
    let rows: String = metrics::of(flow).iter().filter_map(row).collect();
    let head = format!("<th scope=\"col\">metric</th>{}", world_heads(&worlds, "mean of"));
    table(&format!("Metrics of {}", flow.name), &head, &rows)
}

/// A column of a flow's paths: its scale to the printed unit, its decimals, and where it comes from.
type PathMetric = (&'static str, f64, usize, fn(&PathResult) -> Option<f64>);

const PATH_METRICS: &[PathMetric] = &[
    ("mean rate (Mbit/s)", 1e-6, 3, |path| path.mean_rate_bps),
    ("one-way delay: mean (ms)", 1e3, 3, |path| path.delay.mean_s),
    ("95th percentile (ms)", 1e3, 3, |path| path.delay.p95_s),
    ("packets sent", 1.0, 0, |path| Some(path.packets_sent as f64)),
    ("packets lost (%)", 100.0, 3, |path| {
        (path.packets_sent > 0).then(|| path.packets_lost as f64 / path.packets_sent as f64)
    }),
    ("three reports missing", 1.0, 0, |path| Some(path.reports_missing as f64)),
];

/// Every path of a flow in every world.
pub(super) fn paths(report: &Report, index: usize, flow: &FlowResult) -> String {
    let mut rows = String::new();
    for world in worlds(report) {
        for (place, path) in flow.paths.iter().enumerate() {
            let cell = |(_, scale, decimals, get): &PathMetric| {
                let results = world.runs.iter().filter_map(|run| run.flows.get(index)?.paths.get(place));
                let values: Vec<_> = results.filter_map(get).collect();
                format!("<td>{}</td>", over_runs(&values, *scale, *decimals))
            };
            let cells: String = PATH_METRICS.iter().map(cell).collect();
            let (name, world) = (escape(&path.name), world.name);
            rows.push_str(&format!("<tr><th scope=\"row\">{name}</th><td class=\"text\">{world}</td>{cells}</tr>\n"));
        }
    }
    let columns: String = PATH_METRICS.iter().map(|metric| format!("<th scope=\"col\">{}</th>", metric.0)).collect();
    let head = format!("<th scope=\"col\">path</th><th scope=\"col\" class=\"text\">world</th>{columns}");
    table(&format!("Paths of {}", flow.name), &head, &rows)
}

/// A column of the links: its scale to the printed unit, its decimals, and where it comes from.
type LinkMetric = (&'static str, f64, usize, fn(&LinkResult) -> Option<f64>);

const LINK_METRICS: &[LinkMetric] = &[
    ("utilisation (%)", 100.0, 2, |link| link.utilisation),
    ("packets forwarded", 1.0, 0, |link| Some(link.packets_forwarded as f64)),
    ("packets dropped", 1.0, 0, |link| Some(link.packets_dropped as f64)),
    ("mean queue (packets)", 1.0, 2, |link| link.mean_queue_packets),
    ("longest queue (packets)", 1.0, 0, |link| Some(link.max_queue_packets as f64)),
];

/// Every link in every world.
pub(super) fn links(report: &Report) -> String {
    let mut rows = String::new();
    for world in worlds(report) {
        let links = world.runs.first().map(|run| run.links.as_slice()).unwrap_or_default();
        for (index, link) in links.iter().enumerate() {
            let cell = |(_, scale, decimals, get): &LinkMetric| {
                let values: Vec<_> = world.runs.iter().filter_map(|run| run.links.get(index)).filter_map(get).collect();
                format!("<td>{}</td>", over_runs(&values, *scale, *decimals))
            };
            let cells: String = LINK_METRICS.iter().map(cell).collect();
            let (name, world) = (escape(&link.name), world.name);
            rows.push_str(&format!("<tr><th scope=\"row\">{name}</th><td class=\"text\">{world}</td>{cells}</tr>\n"));
        }
    }
    let columns: String = LINK_METRICS.iter().map(|metric| format!("<th scope=\"col\">{}</th>", metric.0)).collect();
    let head = format!("<th scope=\"col\">link</th><th scope=\"col\" class=\"text\">world</th>{columns}");
    table("Links", &head, &rows)
}

/// Where a counter stands in its table: the flow's place, whose name follows, then what was counted.
type CounterKey<'a> = (usize, &'a str, String);

/// The place of the emulator's counters: after all flows.
const EMULATOR: usize = usize::MAX;

/// What was counted beside the packets: dropped datagrams and decisions by reason, all runs of a world together.
pub(super) fn counters(report: &Report) -> String {
    let worlds = worlds(report);
    let mut totals: BTreeMap<CounterKey<'_>, Vec<Option<u64>>> = BTreeMap::new();
    for (column, world) in worlds.iter().enumerate() {
        for (key, count) in world.runs.iter().flat_map(|run| counts(run)) {
            // A reason that did not occur is left out of the results; a world without an emulator has no such count.
            let nothing = (key.0 != EMULATOR).then_some(0);
            let total = totals.entry(key).or_insert_with(|| vec![nothing; worlds.len()]);
            if let Some(total) = total.get_mut(column) {
                *total = Some(total.unwrap_or(0).saturating_add(count));
            }
        }
    }
    let row = |((_, owner, what), totals): (&CounterKey<'_>, &Vec<Option<u64>>)| {
        let cells: String = totals
            .iter()
            .map(|total| format!("<td>{}</td>", total.map_or_else(|| NOTHING.to_owned(), |total| total.to_string())))
            .collect();
        let (owner, what) = (escape(owner), escape(what));
        format!("<tr><th scope=\"row\">{owner}</th><td class=\"text\">{what}</td>{cells}</tr>\n")
    };
    let rows: String = totals.iter().map(row).collect();
    let head = "<th scope=\"col\">flow</th><th scope=\"col\" class=\"text\">what</th>".to_owned();
    table("Counters", &(head + &world_heads(&worlds, "total of")), &rows)
}

/// The counters of a run; the emulator's come last.
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

/// A table that scrolls within itself where the page is narrow; `name` is for those who cannot see it.
pub(super) fn table(name: &str, head: &str, rows: &str) -> String {
    let name = escape(name);
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table><thead><tr>{head}</tr></thead>\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}
