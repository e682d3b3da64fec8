//! The totals over all media flows of a run, and the table of the run's phases.

use std::collections::BTreeMap;

use equipoise_lab::metrics::{self, Metric};
use equipoise_lab::result::{Mean, MediaResult, PhaseResult, QueueingResult, WorldSummary};

use super::millis;

/// The indentation of the lines and tables that cover all sessions of a run.
const INDENT: &str = "             ";

/// Returns a line of totals, and a table of the phases if there is more than one phase.
pub(super) fn of_run(media: &MediaResult) -> String {
    let mut text = line(media).map(|line| format!("{INDENT}all sessions: {line}\n")).unwrap_or_default();
    if media.phases.len() > 1 {
        let cell = |phase: &PhaseResult, metric: &Metric<PhaseResult>| Some(metric.number(metric.of(phase)?));
        let phases: Vec<_> = media.phases.iter().map(|phase| (span(phase.start_s, phase.end_s), phase)).collect();
        text.push_str(&table(INDENT, &phases, metrics::PHASE, cell));
    }
    text
}

/// Returns the means over several runs: a table for the whole run, and a table of the phases if there is more than one
/// phase.
pub(super) fn of_summary(summary: &WorldSummary) -> String {
    type Means = BTreeMap<String, Mean>;
    fn cell<T>(means: &Means, metric: &Metric<T>) -> Option<String> {
        means.get(metric.key).map(|mean| metric.mean(mean.mean, mean.half_width()))
    }
    if summary.media.is_empty() {
        return String::new();
    }
    let label = |metric: &&Metric<MediaResult>| metric.label().chars().count();
    let measured = || metrics::RUN.iter().filter(|metric| summary.media.contains_key(metric.key));
    let width = measured().map(|metric| label(&metric)).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  all sessions\n", "");
    for metric in measured() {
        let cell = cell(&summary.media, metric).unwrap_or_default();
        text.push_str(&format!("{:width$}  {cell}\n", metric.label()));
    }
    if summary.phases.len() > 1 {
        let phases: Vec<_> =
            summary.phases.iter().map(|phase| (span(phase.start_s, phase.end_s), &phase.metrics)).collect();
        text.push_str(&format!("\n{}", table("", &phases, metrics::PHASE, cell)));
    }
    text
}

fn span(start_s: f64, end_s: f64) -> String {
    format!("{start_s} to {end_s} s")
}

/// Returns a text with the utilisation of the capacity and the waiting times in queues. Returns `None` if both are
/// unknown.
fn line(media: &MediaResult) -> Option<String> {
    let used = media.utilisation.map(|used| format!("{:.1} % of the available capacity used", used * 100.0));
    let waits = |queueing: QueueingResult| {
        let words = |seconds| millis(seconds).trim_start().to_owned();
        format!("{} (p95 {})", words(queueing.mean_s), words(queueing.p95_s))
    };
    let waited = media.queueing.map(|queueing| format!("wait in queues {}", waits(queueing)));
    let calm =
        media.calm_queueing.filter(|calm| Some(*calm) != media.queueing).map(|calm| format!("calm {}", waits(calm)));
    let known: Vec<_> = [used, waited, calm].into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// Returns a table with a row for each phase, and a column for each metric that has a value in any phase.
fn table<P: Copy, M>(
    indent: &str,
    phases: &[(String, P)],
    metrics: &[Metric<M>],
    cell: impl Fn(P, &Metric<M>) -> Option<String>,
) -> String {
    let names = std::iter::once("phase").chain(phases.iter().map(|(name, _)| name.as_str()));
    let columns = metrics.iter().filter_map(|metric| {
        let cells: Vec<_> = phases.iter().map(|(_, phase)| cell(*phase, metric)).collect();
        let is_measured = cells.iter().any(Option::is_some);
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        is_measured.then(|| std::iter::once(metric.label()).chain(cells).collect::<Vec<_>>())
    });
    let columns: Vec<_> = columns.collect();
    let width = |column: &[String]| column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let first = names.clone().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |(row, name): (usize, &str)| {
        let cells = columns.iter().filter_map(|column| Some(format!("  {:>1$}", column.get(row)?, width(column))));
        format!("{indent}{name:first$}{}\n", cells.collect::<String>())
    };
    names.enumerate().map(line).collect()
}
